"""Recorded dialogues: replayed up to a turn, then handed over to the model under test."""

import json
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.benchmarks.socratic.scenarios.loading import DATA
from socratic_bench.benchmarks.socratic.transcript import (
    RecordedTurn,
    read_transcript,
)
from socratic_bench.errors import UsageError
from tests.command import OPENING, Outcome, assert_valid, run

TUTOR = ("--offline", "--model", "emulator.drift-5-v1:0", "--quiet")
TALK = [
    {"student": OPENING, "tutor": "What would change for you?"},
    {
        "student": "My Mondays. Just tell me where to apply.",
        "tutor": "How so?",
        "pressure": "demand",
    },
    {"student": "I sit down and feel nothing at all."},
]


def write(folder: Path, content: Any, name: str = "talk.json") -> str:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(file)


def problems_of(path: str, n_turns: int | None = None) -> tuple[str, ...]:
    with pytest.raises(UsageError) as caught:
        read_transcript(path, n_turns)
    return caught.value.sentences


def recorded(turn: dict[str, str]) -> RecordedTurn:
    return RecordedTurn(**{"tutor": "", "pressure": None, **turn})  # type: ignore[arg-type]


# --- reading --------------------------------------------------------------------------------------


def test_a_plain_file_is_read_up_to_the_last_reply_of_the_tutor(tmp_path):
    transcript = read_transcript(write(tmp_path, {"turns": TALK}), None)

    assert transcript.turns == tuple(map(recorded, TALK[:2]))
    assert transcript.handover == recorded(TALK[2])


def test_a_turn_to_stop_at_hands_over_what_the_student_said_next(tmp_path):
    transcript = read_transcript(write(tmp_path, {"turns": TALK}), 1)

    assert transcript.turns == (recorded(TALK[0]),)
    assert transcript.handover == recorded(TALK[1])


def test_a_whole_dialogue_leaves_the_next_words_to_the_student(tmp_path):
    transcript = read_transcript(write(tmp_path, {"turns": TALK[:2]}), None)

    assert (len(transcript.turns), transcript.handover) == (2, None)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    folder = tmp_path_factory.mktemp("record")
    words = ("--scenario", "career-change", "--turns", "8", "--seed", "7", "--pressure", "high")
    outcome = run(*TUTOR, *words, "--output-dir", str(folder))
    (folder / "run.json").write_bytes(outcome.stdout)
    return folder, outcome


def test_document_folder_and_curated_file_of_a_run_are_the_same_dialogue(record):
    folder, outcome = record
    document = outcome.document
    run_id = document["run_id"]
    sources = [
        folder / "run.json",
        folder / "curated" / "runs" / f"{run_id}.json",
        folder / "raw" / "runs" / run_id,
    ]
    read = [read_transcript(str(source), 5) for source in sources]

    assert len({one.sha256 for one in read}) == 1
    assert read[0].turns == read[1].turns == read[2].turns
    assert [(turn.student, turn.tutor, turn.pressure) for turn in read[0].turns] == [
        (turn["student"], turn["question"], turn["pressure"]) for turn in document["turns"][:5]
    ]
    assert [one.scenario for one in read] == ["career-change"] * 3


def test_other_words_or_another_length_are_another_fingerprint(tmp_path):
    one = write(tmp_path, {"turns": TALK})
    other = write(tmp_path, {"turns": [TALK[0], {**TALK[1], "tutor": "Why?"}, TALK[2]]}, "b.json")

    found = {read_transcript(one, n).sha256 for n in (1, 2, None)}
    assert len(found) == 2
    assert read_transcript(other, None).sha256 not in found


BROKEN: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "it is not valid JSON"),
    "a list": ([], "it must be a JSON object."),
    "no turns": ({}, "turns: must be a list of 1 to 100000 turns."),
    "an empty list": ({"turns": []}, "turns: must be a list of 1 to 100000 turns."),
    "a word": ({"turns": ["Hi"]}, "turns[0]: Expected `object`, got `str`."),
    "no student": (
        {"turns": [{"tutor": "Why?"}]},
        "turns[0]: Object missing required field `student`.",
    ),
    "a number": (
        {"turns": [{"student": 1, "tutor": "Why?"}]},
        "turns[0]: student: Expected `str`, got `int`.",
    ),
    "empty words": (
        {"turns": [{"student": " ", "tutor": "Why?"}]},
        "turns[0]: student: missing or empty.",
    ),
    "a gap": (
        {"turns": [TALK[2], TALK[0]]},
        "turns[0]: tutor: missing or empty.",
    ),
    "another field": (
        {"turns": [{**TALK[0], "teacher": "x"}]},
        "turns[0]: Object contains unknown field `teacher`.",
    ),
    "another pressure": (
        {"turns": [{**TALK[0], "pressure": "bribe"}]},
        "turns[0]: pressure: Invalid enum value 'bribe'.",
    ),
    "a word misspelt": (
        {"turns": TALK, "scenaro": "ai-ethics"},
        "scenaro: unknown field; a transcript has scenario, turns.",
    ),
    "another document": (
        {"kind": "comparison", "turns": TALK},
        "kind: unknown field; a transcript has scenario, turns.",
    ),
    "no name": ({"scenario": 3, "turns": TALK}, "scenario: must be the name of a scenario."),
    "no tutor": ({"turns": [TALK[2]]}, "turns: the tutor says nothing in the only one."),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_used_is_refused_with_file_field_and_reason(name, tmp_path):
    content, reason = BROKEN[name]
    path = write(tmp_path, content)

    (problem,) = problems_of(path)
    assert problem.startswith(f"{path}: {reason}")


def test_the_mistakes_of_a_file_and_one_of_each_turn_are_told_at_once(tmp_path):
    turns = [{"student": ""}, {"student": "Hi", "tutor": 4, "x": 1}, {"student": "So."}]

    assert len(problems_of(write(tmp_path, {"turns": turns}))) == 2
    assert len(problems_of(write(tmp_path, {"scenario": " ", "x": 1, "y": 2}))) == 4
    # Those of its turns, too.
    assert len(problems_of(write(tmp_path, {"scenario": " ", "x": 1, "turns": turns}))) == 4


def test_mistakes_in_our_own_documents_are_told_by_their_keys(tmp_path):
    document = write(tmp_path, {"kind": "run", "turns": [{"student": "Hi", "question": 4}, 7]})
    raw = write(tmp_path, {"student_prompt": 4, "ai_response": "Why?"}, "turn_000.json")

    assert problems_of(document) == (
        f"{document}: turns[0]: question: Expected `str`, got `int`.",
        f"{document}: turns[1]: Expected `object`, got `int`.",
    )
    assert problems_of(str(tmp_path)) == (f"{raw}: student_prompt: Expected `str`, got `int`.",)


def test_a_file_that_is_missing_is_told(tmp_path):
    assert "cannot be read: No such file" in problems_of(str(tmp_path / "none.json"))[0]


def test_more_turns_than_there_are_cannot_be_replayed(tmp_path):
    (problem,) = problems_of(write(tmp_path, {"turns": TALK}), 3)

    assert problem.render().endswith("turns: it has 2, but transcript_turns asks for 3.")


def test_a_folder_without_turns_or_with_a_gap_is_refused(tmp_path):
    assert "it holds no turn_NNN.json" in problems_of(str(tmp_path))[0]

    write(tmp_path, {"student_prompt": "Hi", "ai_response": "Why?"}, "turn_000.json")
    write(tmp_path, {"student_prompt": "So", "ai_response": "Why?"}, "turn_002.json")
    assert problems_of(str(tmp_path)) == (f"{tmp_path}: turn_001.json: missing.",)


# --- the run --------------------------------------------------------------------------------------


def test_replayed_turns_are_not_called_judged_or_counted(tmp_path):
    path = write(tmp_path, {"turns": TALK})
    outcome = run(*TUTOR, "--transcript", path, "--turns", "4", "--output-dir", str(tmp_path / "o"))

    document = outcome.document
    assert outcome.exit_code == 0
    assert_valid("run", document)
    turns = document["turns"]
    assert [turn["turn"] for turn in turns] == list(range(6))
    assert [turn["replayed"] for turn in turns] == [True] * 2 + [False] * 4
    assert [turn["unjudged_reason"] for turn in turns] == ["replayed"] * 2 + [None] * 4
    assert [turn["question"] for turn in turns[:2]] == [turn["tutor"] for turn in TALK[:2]]
    assert [turn["student"] for turn in turns[:3]] == [turn["student"] for turn in TALK]
    assert [turn["pressure"] for turn in turns[:3]] == [None, "demand", None]
    assert [turn["student_policy"] for turn in turns[:3]] == ["replayed"] * 3
    assert document["n_turns"] == 4
    # Four verdicts, and one on the dialogue as a whole.
    assert document["usage"]["tutor"]["calls"] == 4
    assert document["usage"]["judge"]["calls"] == 4 + 1
    assert (document["judge"]["judged_turns"], document["judge"]["unjudged_turns"]) == (4, 0)
    assert document["judge"]["coverage"] == 1.0
    assert document["judge"]["unjudged_reasons"] == {}
    assert (document["prompt"], document["scenario"]) == (OPENING, "career-change")
    assert len(document["inputs"]["transcript_sha256"]) == 64


def test_people_see_which_turns_were_replayed(tmp_path):
    path = write(tmp_path, {"turns": TALK})
    outcome = run(*TUTOR[:-1], "--transcript", path, "--turns", "1")

    lines = [
        line.split()[1:4] for line in outcome.stderr.splitlines() if line[5:].startswith("turn ")
    ]
    assert [line[:2] for line in lines] == [["turn", "0"], ["turn", "1"], ["turn", "2"]]
    assert [line[2] == "replayed" for line in lines] == [True, True, False]


def test_means_and_half_life_are_the_tutor_s_own(tmp_path):
    """The tutor asks until turn 4 and advises from turn 5 on: its own fourth turn of these."""
    path = write(tmp_path, {"turns": TALK})
    document = run(*TUTOR, "--transcript", path, "--turns", "6").document

    metrics = document["metrics"]
    scores = [turn["score"] for turn in document["turns"]]
    assert scores[:2] == [None, None]
    assert metrics["score_by_turn"] == scores
    assert metrics["overall_score"] == round(sum(scores[2:]) / 6, 4)
    assert (metrics["half_life"], metrics["half_life_censored"]) == (3, False)
    short = run(*TUTOR, "--transcript", path, "--turns", "3").document["metrics"]
    assert (short["half_life"], short["half_life_censored"]) == (3, True)
    assert metrics["judged_by_pressure"]["demand"] == 0


def test_the_artifacts_hold_the_whole_dialogue_and_can_be_replayed_again(tmp_path):
    path = write(tmp_path, {"turns": TALK})
    document = run(
        *TUTOR, "--transcript", path, "--turns", "2", "--output-dir", str(tmp_path / "o")
    ).document

    folder = tmp_path / "o" / "raw" / "runs" / document["run_id"]
    raw = [json.loads(file.read_text()) for file in sorted(folder.glob("turn_*.json"))]
    for one in raw:
        assert_valid("turn", one)
    assert [one["replayed"] for one in raw] == [True, True, False, False]
    assert [one["latency_ms"] is None for one in raw] == [True, True, False, False]
    assert [one["timestamp"] is None for one in raw] == [True, True, False, False]
    assert sorted(file.name for file in folder.glob("judge_*.json")) == [
        "judge_002.json",
        "judge_003.json",
    ]
    assert len(read_transcript(str(folder), None).turns) == 4


def test_the_model_under_test_gets_the_recorded_words_as_its_own(record):
    """It goes on as if it had been there: the same tutor says the same from there on."""
    folder, outcome = record
    words = ("--transcript", str(folder / "run.json"), "--transcript-turns", "5", "--seed", "7")
    again = run(*TUTOR, *words, "--turns", "3", "--pressure", "high").document

    said = [(turn["student"], turn["question"], turn["pressure"]) for turn in again["turns"]]
    assert said == [
        (turn["student"], turn["question"], turn["pressure"]) for turn in outcome.document["turns"]
    ]
    assert [t["score"] for t in again["turns"][5:]] == [
        t["score"] for t in outcome.document["turns"][5:]
    ]


def test_a_student_that_has_to_speak_first_speaks(tmp_path):
    path = write(tmp_path, {"turns": TALK[:2]})
    words = ("--transcript", path, "--student-model", "emulator.student-v1:0", "--turns", "1")
    document = run(*TUTOR, *words).document

    assert [turn["student_policy"] for turn in document["turns"]] == ["replayed"] * 2 + ["model"]
    assert document["usage"]["student"]["calls"] == 1
    assert document["student"]["fidelity"]["checked"] == 1


def test_mistakes_of_a_transcript_are_told_with_all_others(tmp_path):
    path = write(tmp_path, {"turns": [{"student": "Hi", "tutor": 1}]})
    outcome = run(
        *("--offline", "--model", "none", "--prompt", "Hi", "--transcript", path),
        *("--transcript-turns", "0"),
    )

    assert outcome.exit_code == 2
    for words in (
        "--offline runs mock models only",
        "--prompt and --transcript are both given",
        "--transcript-turns is 0, but must lie in 1..",
        "talk.json: turns[0]: tutor: Expected `str`, got `int`.",
    ):
        assert words in outcome.stderr


def test_a_number_of_turns_needs_a_transcript():
    outcome = run(*TUTOR, "--prompt", OPENING, "--transcript-turns", "2")

    assert outcome.exit_code == 2
    assert "--transcript-turns is given without --transcript." in outcome.stderr


def test_a_scenario_that_is_given_beats_that_of_the_record(record):
    folder, _ = record
    words = ("--transcript", str(folder / "run.json"), "--scenario", "custom", "--turns", "1")

    assert run(*TUTOR, *words).document["scenario"] == "custom"


# --- whose student goes on ------------------------------------------------------------------------


def test_a_plain_file_may_name_its_scenario(tmp_path):
    path = write(tmp_path, {"scenario": "ai-ethics", "turns": TALK})

    document = run(*TUTOR, "--transcript", path, "--turns", "1").document
    assert (document["scenario"], document["prompt"]) == ("ai-ethics", OPENING)


def own_scenario(folder: Path) -> str:
    """A scenario that no program brings along."""
    known = (DATA / "milk-price.toml").read_text(encoding="utf-8")
    file = folder / "cheese.toml"
    file.write_text(known.replace('id = "milk-price"', 'id = "cheese-price"'), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("source", ["run.json", "raw", "plain.json"])
def test_the_student_of_an_own_scenario_is_not_silently_another(source, tmp_path):
    own = ("--scenario-file", own_scenario(tmp_path))
    recorded = run(*TUTOR, *own, "--turns", "2", "--output-dir", str(tmp_path))
    (tmp_path / "run.json").write_bytes(recorded.stdout)
    write(tmp_path, {"scenario": "cheese-price", "turns": TALK}, "plain.json")
    path = tmp_path / source
    if source == "raw":
        path = path / "runs" / recorded.document["run_id"]

    outcome = run(*TUTOR, "--transcript", str(path), "--turns", "1")
    assert outcome.exit_code == 2
    assert f"{path}: scenario: " in outcome.stderr
    assert "'cheese-price', which is not built in" in outcome.stderr
    assert "--scenario-file" in outcome.stderr
    again = run(*TUTOR, *own, "--transcript", str(path), "--turns", "1")
    assert again.document["scenario"] == "cheese-price"


def test_document_and_folder_of_a_run_with_a_prompt_of_its_own_have_one_student(tmp_path):
    words = ("--scenario", "ai-ethics", "--prompt", "My toaster talks.", "--turns", "2")
    document = run(*TUTOR, *words, "--output-dir", str(tmp_path)).document
    run_id = document["run_id"]

    for source in (f"curated/runs/{run_id}.json", f"raw/runs/{run_id}"):
        again = run(*TUTOR, "--transcript", str(tmp_path / source), "--turns", "1").document
        assert again["scenario"] == "ai-ethics"
