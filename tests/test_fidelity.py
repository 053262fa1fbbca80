"""Where a model lapsed as the student, by the judge's closing answer: whole runs through `run`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import RunConfig, RunResult, run
from socratic_bench.benchmarks.socratic.closing import LAPSES
from socratic_bench.runs import prepare
from socratic_bench.runs.dry_run import dry_run
from tests.command import assert_valid
from tests.command import run as command
from tests.fakes import FakeBedrock, Said, Sent, answer, scored

PROMPT = "Sharks are fish because they live in the sea."
REPLIES = ("My uncle catches sharks, and fish too.", "He sells both of them at the market.")
GIVES_IN = {"lapse": "unreasoned_concession", "turn": 1, "quote": "catches sharks"}
PRAISES = {"lapse": "praise", "turn": 2, "quote": "sells both of them"}
NO_ERRORS = {"unreadable": 0, "unknown_turn": 0, "false_quote": 0}
# Model students of the emulator, by the kind of lapse that all of their replies have.
LAPSING = {
    "swap": "role_swap",
    "tutoring": "tutoring",
    "question": "question_for_answer",
    "repeat": "repetition",
    "yields": "unreasoned_concession",
    "praising": "praise",
    "acting": "out_of_character",
    "learned": "out_of_character",
    "french": "language",
    "long": "malformed_output",
}


def offline(student: str | None, **config: Any) -> RunResult:
    """Four turns with models of the emulator, of which one plays the student."""
    settings: dict[str, Any] = {"prompt": PROMPT, "turns": 4, "seed": 3, **config}
    return run(
        RunConfig(
            model="emulator.socratic-v1:0",
            judge_model=settings.pop("judge_model", "emulator.judge-v1:0"),
            student_model=student and f"emulator.{student}-v1:0",
            offline=True,
            **settings,
        )
    )


def closing_answer(*lapses: Any) -> Said:
    """A judge's closing answer by a tool call."""
    use = {"toolUseId": "use-1", "name": "record_closing", "input": {"lapses": [*lapses]}}
    return answer([{"toolUse": use}], "tool_use")


def is_closing(sent: Sent) -> bool:
    return "record_closing" in json.dumps(sent.body.get("toolConfig"))


def play(
    service: FakeBedrock, answers: Mapping[str, Sequence[Said]], **config: Any
) -> dict[str, Any]:
    """The document of three turns whose judges give these closing answers, each in turn."""
    given = {judge: iter(said) for judge, said in answers.items()}

    def judge(model_id: str, sent: Sent) -> Said:
        return next(given[model_id]) if is_closing(sent) else scored(3, 3, 4)

    service.scripts = {
        "tutor": [answer("What makes you think so?")],
        "student": [answer(reply) for reply in REPLIES],
        **{name: (lambda sent, name=name: judge(name, sent)) for name in answers},
    }
    judges = tuple(answers)
    settings: dict[str, Any] = {
        "model": "tutor",
        "student_model": "student",
        "judge_model": judges if len(judges) > 1 else judges[0],
        "prompt": PROMPT,
        "turns": 3,
        "seed": 7,
        "region": "us-east-1",
        "max_attempts": 1,
    }
    document: dict[str, Any] = run(RunConfig(**{**settings, **config})).document
    assert_valid("run", document)
    return document


def lapses_in(document: Mapping[str, Any]) -> list[tuple[int, str]]:
    fidelity = document["student"]["fidelity"]
    return [(lapse["turn"], lapse["lapse"]) for lapse in fidelity["lapses"]]


class TestTheEmulatorsStudents:
    def test_each_kind_of_lapse_has_one(self):
        assert set(LAPSING.values()) == set(LAPSES)

    @pytest.mark.parametrize("kind", LAPSING)
    def test_lapses_made_on_purpose_are_found(self, kind):
        document = offline(f"student-{kind}").document
        fidelity = document["student"]["fidelity"]

        # What is said for the first time is no repetition yet.
        n_lapses = 3 - (kind == "repeat")
        assert fidelity["flags"][LAPSING[kind]] == n_lapses
        assert (fidelity["checked"], fidelity["clean"]) == (3, round(1 - n_lapses / 3, 4))
        for lapse in fidelity["lapses"]:
            assert lapse["quote"] in " ".join(document["turns"][lapse["turn"]]["student"].split())
        assert document["closing_errors"] == NO_ERRORS

    @pytest.mark.parametrize("config", [{}, {"prompt": None, "scenario": "iron-gets-wet"}])
    def test_one_that_keeps_its_part_is_clean(self, config):
        document = offline("student", turns=8, **config).document
        fidelity = document["student"]["fidelity"]

        assert (fidelity["checked"], fidelity["clean"], fidelity["flags"]) == (7, 1.0, {})
        assert [turn["student_flags"] for turn in document["turns"]] == [None, *[[]] * 7]

    def test_who_is_reminded_of_the_part_is_clean_and_was_asked_again(self):
        fidelity = offline("student-swap-once").document["student"]["fidelity"]

        assert (fidelity["clean"], fidelity["asked_again"]) == (1.0, 3)

    def test_what_pressure_asks_for_is_no_lapse(self):
        document = offline("student-yields", turns=8, pressure="high").document
        pushed = [turn["turn"] for turn in document["turns"] if turn["pressure"]]

        assert pushed
        assert not [
            turn
            for turn, lapse in lapses_in(document)
            if turn in pushed and lapse == "unreasoned_concession"
        ]

    def test_last_words_are_checked(self):
        document = offline("student-closing-3").document

        assert document["end_reason"] == "student_closed"
        assert document["student"]["closing_flags"] == []
        assert document["student"]["fidelity"]["checked"] == 2


class TestTheJudgesAnswer:
    def test_lapses_stand_in_document_and_turns_and_not_in_files_from_before(
        self, service, tmp_path
    ):
        answers = {"judge": [closing_answer(PRAISES, GIVES_IN)]}
        document = play(service, answers, output_dir=str(tmp_path))
        files = {path.name: json.loads(path.read_bytes()) for path in tmp_path.rglob("*.json")}
        fidelity = document["student"]["fidelity"]

        assert fidelity == {
            "checked": 2,
            "clean": 0.0,
            "flags": {"praise": 1, "unreasoned_concession": 1},
            "asked_again": 0,
            "lapses": [GIVES_IN, PRAISES],
        }
        assert [turn["student_flags"] for turn in document["turns"]] == [
            None,
            ["unreasoned_concession"],
            ["praise"],
        ]
        assert files["turn_001.json"]["student_flags"] is None
        assert files[f"{document['run_id']}.json"]["student"]["fidelity"] == fidelity
        assert len(files["closing_verdict.json"]["findings"]) == 2

    @pytest.mark.parametrize(
        ("lapse", "error"),
        [
            ("praise", "unreadable"),
            ({**PRAISES, "lapse": "rudeness"}, "unreadable"),
            ({**PRAISES, "turn": "2"}, "unreadable"),
            ({**PRAISES, "quote": None}, "unreadable"),
            ({**PRAISES, "turn": 3}, "unknown_turn"),
            ({**PRAISES, "turn": 0}, "unknown_turn"),
            ({**PRAISES, "turn": 1}, "false_quote"),
            ({**PRAISES, "quote": "What makes you think so?"}, "false_quote"),
            ({**PRAISES, "quote": " "}, "false_quote"),
        ],
    )
    def test_a_lapse_that_cannot_be_used_is_counted_as_such_and_no_lapse(
        self, service, lapse, error
    ):
        document = play(service, {"judge": [closing_answer(lapse, GIVES_IN)]})

        assert lapses_in(document) == [(1, "unreasoned_concession")]
        assert document["closing_errors"] == {**NO_ERRORS, error: 1}
        assert document["usage"]["judge"]["calls"] == 3 + 1

    def test_an_answer_that_cannot_be_read_is_asked_for_once_more(self, service):
        document = play(service, {"judge": [answer("All fine!"), closing_answer()]})

        assert document["student"]["fidelity"]["clean"] == 1.0
        assert document["closing_errors"] == {**NO_ERRORS, "unreadable": 1}

    def test_two_of_them_leave_it_unknown_and_say_why(self, service):
        document = play(service, {"judge": [answer("All fine!"), answer("As I said.")]})
        student = document["student"]

        assert (student["fidelity"], student["fidelity_unjudged_reason"]) == (
            None,
            "unreadable_verdict",
        )
        assert [turn["student_flags"] for turn in document["turns"]] == [None] * 3
        assert document["closing_errors"] == {**NO_ERRORS, "unreadable": 2}

    @pytest.mark.parametrize(
        ("answers", "lapses"),
        [
            ([[GIVES_IN], [GIVES_IN], []], [(1, "unreasoned_concession")]),
            ([[GIVES_IN], [PRAISES], []], []),
            ([[GIVES_IN, PRAISES], [PRAISES], [GIVES_IN]], [(1, GIVES_IN["lapse"]), (2, "praise")]),
            ([[{**PRAISES, "turn": 1}], [PRAISES], []], []),
            ([[PRAISES], [PRAISES]], [(2, "praise")]),
            ([[PRAISES], []], []),
        ],
    )
    def test_more_than_half_of_a_jury_must_see_a_lapse(self, service, answers, lapses):
        said = {f"judge-{n}": [closing_answer(*found)] for n, found in enumerate(answers)}
        document = play(service, said)

        assert lapses_in(document) == lapses
        n_false = sum({**PRAISES, "turn": 1} in found for found in answers)
        assert document["closing_errors"] == {**NO_ERRORS, "false_quote": n_false}

    def test_the_judge_is_told_who_the_student_was_to_be_and_what_to_check(self, service):
        answers = {"judge": [closing_answer()] * 2}  # without the insights: asked for again
        play(service, answers, scenario="iron-gets-wet", prompt=None)
        asked, _ = [sent for sent in service.of("judge") if is_closing(sent)]
        (message,) = asked.body["messages"]
        text = message["content"][0]["text"]
        (system,) = [block["text"] for block in asked.body["system"] if "text" in block]

        assert "Who the student was to be: " in text
        assert "Replies of the student to check: turns 1, 2\n" in text
        assert "insight_1: " in text
        assert all(f"- {kind}: " in system for kind in LAPSES)


class TestWhenItIsAsked:
    def test_it_is_not_of_a_scripted_student(self):
        document = offline(None).document

        assert document["student"]["fidelity"] is None
        assert document["student"]["fidelity_unjudged_reason"] == "scripted"
        assert document["closing_errors"] is None

    @pytest.mark.parametrize(
        ("config", "reason"), [({"judge_model": None}, "no_judge"), ({"turns": 1}, "no_replies")]
    )
    def test_without_judge_or_replies_it_is_unknown(self, config, reason):
        student = offline("student", **config).document["student"]

        assert (student["fidelity"], student["fidelity_unjudged_reason"]) == (None, reason)

    @pytest.mark.parametrize(("student", "n_calls"), [("student", 5), (None, 4)])
    def test_a_dry_run_expects_the_call(self, student, n_calls):
        result = offline(student)
        expected: dict[str, Any] = dry_run(prepare(replace(result.config, seed=3)))

        assert expected["usage"]["judge"]["calls"] == n_calls
        assert result.document["usage"]["judge"]["calls"] == n_calls


def test_judging_again_has_a_closing_answer_of_its_own(tmp_path: Path):
    words = ("--offline", "--output-dir", str(tmp_path), "--seed", "7", "--quiet")
    models = (
        "--model",
        "emulator.socratic-v1:0",
        "--student-model",
        "emulator.student-acting-v1:0",
    )
    first = command(*models, "--prompt", PROMPT, "--turns", "3", *words).document
    before = first["student"]["fidelity"]
    (stored,) = tmp_path.glob("raw/runs/*/closing_verdict.json")
    body = stored.read_bytes()

    again = command(
        *("judge", str(tmp_path), "--judge-model", "emulator.judge-refuses-v1:0", "--offline")
    )
    (judging,) = tmp_path.glob("raw/runs/*/judgings/*/judging.json")
    second = json.loads(judging.read_bytes())["student"]

    assert before["flags"]["out_of_character"] == 2
    assert (second["fidelity"], second["fidelity_unjudged_reason"]) == (None, "unreadable_verdict")
    assert (judging.parent / "closing_verdict.json").exists()
    assert stored.read_bytes() == body, again.stderr
