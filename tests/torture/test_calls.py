"""Calls that go wrong in ways of their own, as a user of the command meets them."""

import json
import re
from collections.abc import Mapping

import pytest

from tests.command import CLAUDE, OPENING, Outcome, account, assert_valid, run
from tests.fakes import FakeBedrock, Said, Script, Sent, answer, scored

STUDENT, JUDGE = "other.student-v1:0", "other.judge-v1:0"
GOOD = scored(3, 3, 4)


def play(scripts: Mapping[str, Script], *words: str, turns: int = 1) -> Outcome:
    """A run against a service that says what it is told."""
    with FakeBedrock({JUDGE: [GOOD], **scripts}) as service:
        outcome = run(
            *("--model", CLAUDE, "--judge-model", JUDGE, "--prompt", OPENING),
            *("--turns", str(turns), "--max-attempts", "2", *words),
            env=account(service.url, CLAUDE),
        )
    assert_valid("run", outcome.document)
    return outcome


# --- verdicts behind thoughts ---------------------------------------------------------------------


def verdict(score: float) -> str:
    return json.dumps({"form": score, "substance": score, "purity": score})


DRAFT, FINAL, BROKEN = verdict(0.5), verdict(2), '{"form": ..., "substance": 3}'

# What a judge says in words -> the score of its verdict, `None` if it is unreadable.
SAID: Mapping[str, float | None] = {
    f"<thinking>Perhaps {DRAFT}? No.</thinking>\n\n{FINAL}": 6,
    f"<think>{DRAFT} or {verdict(3)}</think>```json\n{FINAL}\n```": 6,
    f'<reasoning effort="high">{BROKEN}</reasoning>{FINAL}': 6,
    f"First {DRAFT}, then {BROKEN}. </think> {FINAL}": 6,
    f"<thinking>Perhaps {DRAFT}; rather {FINAL}": 6,
    f"<think>{DRAFT}</think><analysis>{verdict(1)}</analysis>{FINAL} So: {FINAL}": 6,
    f"[THINK]{DRAFT}[/THINK]{FINAL}": 6,
    FINAL.replace("}", ', "rationale": {"form": "It says </think>."}}'): 6,
    f"<thinking>{DRAFT}</thinking>{FINAL}{verdict(3)}": None,
    f"{DRAFT}<thinking>{FINAL}</thinking>": None,
    f"{DRAFT}<thinking>Hm.</thinking>{FINAL}": None,
    f"<thinking>{DRAFT}{FINAL}</thinking>": None,
    f"<thinking>{DRAFT}</thinking>{BROKEN}": None,
    f"[analysis]{DRAFT}[/analysis]{FINAL}": None,
}


def test_drafts_of_a_verdict_in_thoughts_are_none():
    """Each turn's judge says the next of them, whenever it is asked."""

    def judge(sent: Sent) -> Said:
        turns = [int(number) for number in re.findall(rb"What of (\d+)", sent.raw)]
        return answer(list(SAID)[max(turns)])

    tutor = [answer(f"What of {turn}?") for turn in range(len(SAID))]
    outcome = play({CLAUDE: tutor, JUDGE: judge}, turns=len(SAID))

    assert [turn["score"] for turn in outcome.document["turns"]] == list(SAID.values())
    assert outcome.document["judge"]["unjudged_reasons"] == {
        "unreadable_verdict": list(SAID.values()).count(None)
    }


# --- output that the service calls broken ---------------------------------------------------------


@pytest.mark.parametrize("stop_reason", ["malformed_output", "malformed_model_output"])
def test_broken_output_of_a_tutor_is_a_flaw_and_not_scored(stop_reason):
    outcome = play({CLAUDE: [answer("Why?"), answer("<|tool|>", stop_reason)]}, turns=3)
    turns = outcome.document["turns"]

    assert outcome.exit_code == 5, "one turn of three is judged"
    assert [turn["flaw"] for turn in turns] == [None, "malformed_output", "malformed_output"]
    assert [turn["score"] for turn in turns] == [10, None, None]
    assert {turn["unjudged_reason"] for turn in turns[1:]} == {"malformed_output"}
    assert outcome.document["usage"]["judge"]["input_tokens"] == 10, "nobody else was asked"


def test_a_student_whose_output_is_broken_is_asked_once_more_and_flagged():
    broken = answer("I like my <|tool|>", "malformed_model_output")
    scripts = {STUDENT: [broken, answer("I like my colleagues."), broken]}
    outcome = play(scripts, "--student-model", STUDENT, turns=3)
    document = outcome.document

    assert [turn["student"] for turn in document["turns"]][1:] == [
        "I like my colleagues.",
        "I like my <|tool|>",
    ]
    assert [turn["student_asked_again"] for turn in document["turns"]] == [False, True, True]
    assert [turn["student_flags"] for turn in document["turns"]] == [None, [], ["malformed_output"]]
    assert document["student"]["fidelity"]["flags"] == {"malformed_output": 1}
