"""Dialogues of other tools: read with mistakes by line, judged as runs, labelled, and compared."""

import json

import pytest

from socratic_bench.errors import UsageError
from socratic_bench.studies.calibrate.session import LabellingRequest, prepare_labelling
from socratic_bench.studies.formats.dialogues import read_dialogues
from tests.command import assert_valid, run

JUDGE, HARSH = "emulator.judge-v1:0", "emulator.judge-bias--5-v1:0"
ASKED = ("How do I solve 3x + 5 = 20?", "Subtract 5?")
REPLIES = ("What could you do to both sides first?", "Yes: then x = 5.")
GREETING = "Hello! What are you working on?"


def chat(*words, **names):
    """One line: the words in turn of user and assistant."""
    messages = [
        {"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(words)
    ]
    return json.dumps({"messages": messages, **names})


def whole(**names):
    return chat(ASKED[0], REPLIES[0], ASKED[1], REPLIES[1], **names)


@pytest.fixture
def lines(tmp_path):
    """Two dialogues about one equation, one of a scenario, and one that the tutor opens."""
    file = tmp_path / "dialogues.jsonl"
    opened = [{"role": "assistant", "content": GREETING}, *json.loads(whole())["messages"]]
    file.write_text(
        "\n".join(
            [
                whole(model="Anna B."),
                whole(model="Anna B."),
                chat("Why?", "What do you know?", "No.", scenario="career-change", model="Bo"),
                json.dumps({"messages": opened, "model": "Bo"}),
            ]
        )
    )
    return file


def judge(*words):
    return run("judge", *map(str, words), "--offline", "--judge-model", JUDGE, "--quiet")


def documents(folder):
    files = sorted((folder / "curated/runs").glob("*.json"))
    return [json.loads(file.read_bytes()) for file in files]


def words_of(document):
    return [(turn["student"], turn["reply"]) for turn in document["turns"]]


def test_imports_are_ordinary_runs_with_their_words(lines, tmp_path):
    out = tmp_path / "out"
    outcome = judge(lines, "-o", out)
    assert outcome.exit_code == 0
    assert_valid("judgings", outcome.document)
    assert all(entry["is_import"] for entry in outcome.document["runs"])
    stored = {entry["run_id"]: entry for entry in documents(out)}
    assert len(stored) == 4
    for document in stored.values():
        assert_valid("curated", document)
        assert document["inputs"]["provider"] == document["student"]["mode"] == "imported"
        assert document["usage"]["tutor"]["calls"] == 0
        assert document["cost"]["total"]["total_usd"] == document["cost"]["judge"]["total_usd"]
        assert document["usage"]["judge"]["calls"] > 0
    order = [stored[entry["run_id"]] for entry in outcome.document["runs"]]
    assert [entry["model"] for entry in order] == [*["imported/Anna-B"] * 2, *["imported/Bo"] * 2]
    assert words_of(order[0]) == words_of(order[1]) == [*zip(ASKED, REPLIES, strict=True)]
    # One opening is one sample: the scenario is named after it.
    assert order[0]["scenario"] == order[1]["scenario"] == order[3]["scenario"]
    assert order[2]["scenario"] == "career-change"
    assert order[2]["student"]["closing"] == "No."
    assert order[2]["insights"]
    # What the tutor says before it is asked is shown to the judge, and not scored.
    assert words_of(order[3])[0] == ("", GREETING)
    assert [turn["replayed"] for turn in order[3]["turns"]] == [True, False, False]


def test_tutors_whose_names_have_other_letters_stay_apart(tmp_path):
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Why not?"}]
    names = ("张伟", "Иван", "अनिता", "O'Hara")
    lines = [json.dumps({"model": name, "messages": messages}) for name in names]
    (tmp_path / "names.jsonl").write_text("\n".join(lines))
    outcome = judge(tmp_path / "names.jsonl", "-o", tmp_path / "out")
    models = {document["model"] for document in documents(tmp_path / "out")}
    assert outcome.exit_code == 0
    assert models == {f"imported/{name}" for name in (*names[:3], "O-Hara")}


def test_a_dialogue_that_two_files_have_is_judged_and_counted_once(lines, tmp_path):
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(lines.read_bytes())
    outcome = judge(lines, copy, "-o", tmp_path / "out")
    run_ids = [entry["run_id"] for entry in outcome.document["runs"]]
    assert (outcome.exit_code, outcome.document["n_runs"]) == (0, 4)
    assert len(run_ids) == len(set(run_ids)) == 4


def test_a_second_import_calls_nobody_and_another_judge_adds_its_verdicts(lines, tmp_path):
    out = tmp_path / "out"
    first = judge(lines, "-o", out).document
    bodies = documents(out)
    again = judge(lines, "-o", out)
    assert again.exit_code == 0
    assert documents(out) == bodies
    assert [entry["run_id"] for entry in again.document["runs"]] == [
        entry["run_id"] for entry in first["runs"]
    ]
    harsh = run("judge", str(out), "--offline", "--judge-model", HARSH, "--quiet").document
    assert harsh["n_judged_runs"] == 4
    assert harsh["dimensions"]["overall_score"]["mean_difference"] < 0
    name = harsh["name"]
    compared = run("compare", str(out), "--judging", name, "--quiet")
    assert compared.exit_code == 0
    assert {c["name"] for c in compared.document["contenders"]} == {
        "imported/Anna-B",
        "imported/Bo",
    }


def test_people_label_what_nobody_has_judged_and_calibrate_by_it(lines, tmp_path):
    out, file = tmp_path / "out", tmp_path / "labels.jsonl"
    request = LabellingRequest(
        runs=(str(lines),), file=str(file), labeller="anna", n_turns=100, whole_dialogues=True
    )
    labelling = prepare_labelling(request, lambda: "us-east-1")
    assert {turn.reply for turn in labelling.turns} >= {*REPLIES}
    while labelling.session.place:
        question = labelling.session.questions[labelling.session.place[1]]
        answer = "1" if question.field == "scores" else "n" if question.field == "events" else ""
        assert labelling.session.answer(answer) == ""
    judge(lines, "-o", out)
    calibrated = run(
        *(
            "calibrate",
            "--labels",
            str(file),
            "--runs",
            str(out),
            "--offline",
            "--judge-model",
            JUDGE,
        ),
        "--quiet",
    )
    assert calibrated.exit_code == 0, calibrated.stderr
    assert_valid("calibration", calibrated.document)


def test_plain_text_has_headers_paragraphs_and_several_dialogues(tmp_path):
    file = tmp_path / "talk.txt"
    file.write_text(
        "Scenario: halves\nStudent: What is half of a half?\nTutor: Draw it.\n\nWhat do you see?\n"
        "---\nModel: Bo\nStudent: Why?\nTutor: Because.\n"
    )
    first, second = read_dialogues(str(file))
    assert (first.tutor, first.scenario) == ("talk", "halves")
    assert first.exchanges[0].tutor == "Draw it.\n\nWhat do you see?"
    assert (second.tutor, second.scenario, second.place) == ("Bo", None, f"{file}: line 7")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.jsonl", whole() + "\n{", "line 2: it is not valid JSON"),
        ("a.jsonl", '{"message": []}', 'line 1: it needs "messages"'),
        ("a.jsonl", chat("Why?", ""), "line 1: messages[1]: content: missing or empty"),
        ("a.jsonl", chat("Why?"), "line 1: the tutor answers nothing"),
        ("a.jsonl", whole(scenario=3), "line 1: scenario: must be a name"),
        ("a.jsonl", '{"messages": [{"role": "tool", "content": "4"}]}', "messages[0]: role"),
        (
            "a.jsonl",
            '{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
            "only text can be judged, and this part is of type 'image_url'",
        ),
        ("a.jsonl", "\n", "has no dialogue"),
        ("a.txt", "Hello\nStudent: Why?\n", "line 1: a dialogue begins with Student: or Tutor:"),
        ("a.txt", "\n\nStudent: Why?\nTutor:\n", "line 3: message 2, of the tutor, is empty"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path, name, text, problem):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_dialogues(str(file))
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(str(file))
    assert problem in caught.value.problems[0]


def test_an_import_needs_a_store_and_its_tutor_cannot_be_called(lines, tmp_path):
    refused = judge(lines)
    assert refused.exit_code == 2
    assert "--output-dir" in refused.stderr
    judge(lines, "-o", tmp_path / "out")
    misplaced = judge(tmp_path / "out", "-o", tmp_path / "other")
    assert "--output-dir is for imported dialogues" in misplaced.stderr
    called = run("--offline", "--model", "imported/Bo", "--prompt", "Why?", "--quiet")
    assert called.document["error"]["code"] in ("usage", "unknown_model")
    assert called.exit_code in (2, 3)
