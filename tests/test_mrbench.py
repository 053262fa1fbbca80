"""MRBench's published form: annotations become labels, and a judge is held to them."""

import json
from math import ceil
from statistics import fmean

import pytest

from tests.command import assert_valid, run

YES, SOME, NO = "Yes", "To some extent", "No"
HISTORY = (
    "Tutor: What is 3 + 4?\xa0\n Student: It is 8.\n Tutor: Is it? \n Student: I think so: 3 + 5."
)
SOLVED = {
    "Mistake_Identification": YES,
    "Mistake_Location": SOME,
    "Revealing_of_the_Answer": NO,
    "Providing_Guidance": "YES",
    "Actionability": "yes",
    "humanlikeness": YES,
    "Coherence": "to some extent",
    "Tutor_Tone": "Encouraging",
}
TOLD = {
    **SOLVED,
    "Mistake_Location": NO,
    "Revealing_of_the_Answer": "Yes (and the revealed answer is correct)",
    "Providing_Guidance": SOME,
    "Actionability": NO,
    "Tutor_Tone": "neutral",
}
WRONG = {**TOLD, "Revealing_of_the_Answer": "Yes (but the revealed answer is incorrect)"}
REPLIES = {
    "Asking": ("Nearly. What makes you add five?", SOLVED),
    "Telling": ("You should simply add four. It is 7.", TOLD),
    "Mistaken": ("No, it is 9.", WRONG),
}
BEA_KEYS = ("Mistake_Identification", "Mistake_Location", "Providing_Guidance", "Actionability")


def published(n=4, key="anno_llm_responses", kept=tuple(SOLVED)):
    return [
        {
            "conversation_id": f"c-{number}",
            "conversation_history": HISTORY,
            "Data": "own",
            key: {
                author: {
                    "response": f"{reply} ({number})" if number else reply,
                    "annotation": {name: annotation[name] for name in kept},
                }
                for author, (reply, annotation) in REPLIES.items()
            },
        }
        for number in range(n)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mrbench")


@pytest.fixture(scope="module")
def converted(folder):
    source, file = folder / "mrbench.json", folder / "labels.jsonl"
    source.write_text(json.dumps(published()))
    return run("mrbench", str(source), "--file", str(file)), file


def rows_in(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_each_reply_becomes_a_label(converted):
    outcome, file = converted
    assert outcome.exit_code == 0
    assert_valid("converted_labels", outcome.document)
    assert (outcome.document["n"], outcome.document["n_dialogues"]) == (12, 4)
    assert outcome.document["authors"] == ["Asking", "Mistaken", "Telling"]
    first = rows_in(file)[0]
    assert_valid("label", first)
    assert first["history"] == [
        {"role": "assistant", "text": "What is 3 + 4?"},
        {"role": "user", "text": "It is 8."},
        {"role": "assistant", "text": "Is it?"},
    ]
    assert (first["prompt"], first["reply"]) == ("I think so: 3 + 5.", REPLIES["Asking"][0])
    assert first["scores"] == {
        "mistake_identification": 2,
        "mistake_location": 1,
        "revealing_of_the_answer": 2,
        "providing_guidance": 2,
        "actionability": 2,
        "human_likeness": 2,
        "coherence": 1,
        "tutor_tone": 2,
    }


def test_what_is_revealed_is_an_event_too(converted):
    _, file = converted
    found = {row["author"]: row for row in rows_in(file)}
    scores = {who: row["scores"]["revealing_of_the_answer"] for who, row in found.items()}
    assert scores == {"Asking": 2, "Telling": 0, "Mistaken": 1}
    events = {who: row["events"]["reveals_answer"] for who, row in found.items()}
    assert events == {"Asking": False, "Telling": True, "Mistaken": True}


def f1(pairs):
    """The mean over classes, as the shared task has it."""
    found = []
    for one in sorted({value for pair in pairs for value in pair}):
        hits = sum(judge == label == one for judge, label in pairs)
        said = sum(judge == one for judge, _ in pairs)
        true = sum(label == one for _, label in pairs)
        precision, recall = hits / said if said else 0, hits / true if true else 0
        found.append(2 * precision * recall / (precision + recall) if hits else 0)
    return fmean(found)


def test_the_shared_tasks_metric_stands_beside_its_best(folder):
    source, file = folder / "bea.json", folder / "bea.jsonl"
    source.write_text(json.dumps(published(key="tutor_responses", kept=BEA_KEYS)))
    run("mrbench", str(source), "--file", str(file))
    words = ("--labels", str(file), "--rubric", "mrbench-8", "--offline", "-q")
    document = run("calibrate", *words).document
    assert document["n_judged"] == 12
    assert [*document["dimensions"]] == [name.lower() for name in BEA_KEYS]
    best = {
        name: one["reference"] and one["reference"]["macro_f1"]
        for name, one in document["dimensions"].items()
    }
    assert best == {
        "mistake_identification": 0.718,
        "mistake_location": None,
        "providing_guidance": 0.583,
        "actionability": None,
    }
    for name, one in document["dimensions"].items():
        pairs = [(turn["judge"][name], turn["label"][name]) for turn in document["turns"]]
        assert one["macro_f1"]["value"] == pytest.approx(f1(pairs), abs=1e-6)


def test_means_of_a_jury_are_no_classes_of_their_own(folder):
    """One juror says a label more than the other: the mean is between two of the three labels."""
    source, file = folder / "jury.json", folder / "jury.jsonl"
    source.write_text(json.dumps(published(key="tutor_responses", kept=BEA_KEYS)))
    run("mrbench", str(source), "--file", str(file))
    jury = ("emulator.judge-v1:0", "emulator.judge-bias-10-v1:0")
    words = [word for juror in jury for word in ("--judge-model", juror)]
    words += ["--labels", str(file), "--rubric", "mrbench-8", "--offline", "-q"]
    document = run("calibrate", *words).document
    assert any(turn["judge"]["actionability"] % 1 for turn in document["turns"])
    for name, one in document["dimensions"].items():
        pairs = [(turn["judge"][name], turn["label"][name]) for turn in document["turns"]]
        three = [(ceil(judge - 0.5), label) for judge, label in pairs]
        assert {judge for judge, _ in three} <= {0, 1, 2}
        assert one["macro_f1"]["value"] == pytest.approx(f1(three), abs=1e-6)


def test_a_conversation_whose_id_is_0_is_one_of_its_own(folder):
    source = folder / "zero.json"
    ids = (1, 0, None)
    rows = [{**one, "conversation_id": id_} for one, id_ in zip(published(3), ids, strict=True)]
    source.write_text(json.dumps(rows))
    outcome = run("mrbench", str(source), "--file", str(folder / "zero.jsonl"))
    assert outcome.document["n_dialogues"] == 3


def test_labels_in_lines_are_not_written_where_they_would_be_read_as_csv(folder):
    source = folder / "mrbench.csv.json"
    source.write_text(json.dumps(published(1)))
    found = run("mrbench", str(source), "--file", str(folder / "labels.csv"))
    assert found.exit_code == 2
    assert "another ending than .csv" in found.document["error"]["message"]
    assert not (folder / "labels.csv").exists()


def test_mistakes_are_told_by_file_conversation_and_reply(folder):
    source = folder / "wrong.json"
    wrong = published(n=3)
    wrong[0]["anno_llm_responses"]["Asking"]["annotation"]["Actionability"] = "perhaps"
    del wrong[1]["conversation_history"]
    wrong[2]["anno_llm_responses"]["Telling"].pop("response")
    source.write_text(json.dumps(wrong))
    half = folder / "half.json"
    half.write_text(json.dumps([{**wrong[0], "conversation_id": "\ud800"}]))
    sources = (str(source), str(folder / "none.json"), str(half))
    found = run("mrbench", *sources, "--file", "x.jsonl")
    message = found.document["error"]["message"]
    assert found.exit_code == 2
    for words in (
        "conversation 0, Asking: Actionability is 'perhaps'",
        "conversation 1: it needs conversation_history",
        "conversation 2, Telling: it needs response",
        "none.json cannot be read",
        "half.json is no JSON (no low surrogate in string",
    ):
        assert words in message, message
