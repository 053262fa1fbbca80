"""How runs end: in every way there is, early, and by which order."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import CancelToken, Gate, UsageError, run
from tests.command import in_time
from tests.fakes import (
    PATIENCE_S,
    Said,
    Sent,
    answer,
    refusal,
    stored,
)
from tests.scripted_run import ASKS, CONFIG, DENIED, GONE, GOOD, PROSE, Ending, ending

UNKNOWN = refusal(404, "ResourceNotFoundException")
EXPIRED = refusal(403, "ExpiredTokenException")
INVALID = refusal(400, "ValidationException")
TOO_LONG = refusal(400, "ValidationException", "Input is too long for requested model.")
CLOSES = answer("That helped. [[end of dialogue]]")
CLOSING = {"toolUse": {"toolUseId": "1", "name": "record_closing", "input": {"lapses": []}}}


def in_order(sent: Sent) -> Said:
    """A judge that finds no lapse of the student's."""
    return answer([CLOSING], "tool_use") if b"record_closing" in sent.raw else GOOD


COMPLETE = ("completed", 0)
ENDS: dict[str, tuple[dict[str, Any], Ending]] = {
    "all turns": ({}, Ending("max_turns", *COMPLETE, 3, curated=True)),
    "one turn": ({"turns": 1}, Ending("max_turns", *COMPLETE, 1, curated=True)),
    "the student leaves": (
        {"student_model": "student", "student": [answer("Hm."), CLOSES], "judge": in_order},
        Ending("student_closed", *COMPLETE, 2, curated=True),
    ),
    "the tutor is filtered": (
        {"tutor": [ASKS, answer("", "content_filtered")]},
        Ending("content_filtered", *COMPLETE, 2, curated=True),
    ),
    "a guardrail steps in": (
        {"tutor": [ASKS, answer("Blocked.", "guardrail_intervened")]},
        Ending("guardrail", *COMPLETE, 2, curated=True),
    ),
    "the window is full": (
        {"tutor": [ASKS, answer("What do", "model_context_window_exceeded")]},
        Ending("context_window", *COMPLETE, 2, curated=True),
    ),
    "the dialogue is too long": (
        {"tutor": [ASKS, TOO_LONG]},
        Ending("context_window", *COMPLETE, 1, curated=True),
    ),
    "the tutor says nothing, twice": (
        {"tutor": [ASKS, answer(" "), answer("\n")]},
        Ending("empty_reply", *COMPLETE, 2, curated=True),
    ),
    "the student is filtered": (
        {"student_model": "student", "student": [answer("", "content_filtered")]},
        Ending("content_filtered", *COMPLETE, 1, curated=True),
    ),
    "the student says nothing, twice": (
        {"student_model": "student", "student": [answer(" ")]},
        Ending("empty_reply", *COMPLETE, 1, curated=True),
    ),
    "the student's dialogue is too long": (
        {"student_model": "student", "student": [TOO_LONG]},
        Ending("context_window", *COMPLETE, 1, curated=True),
    ),
    "the tutor is gone at once": (
        {"tutor": [GONE]},
        Ending("unavailable", "partial", 4, 0, curated=False),
    ),
    "the tutor is gone later": (
        {"tutor": [ASKS, GONE]},
        Ending("unavailable", "partial", 4, 1, curated=False),
    ),
    "the student is gone": (
        {"student_model": "student", "student": [GONE]},
        Ending("unavailable", "partial", 4, 1, curated=False),
    ),
    "the tutor is denied": ({"tutor": [DENIED]}, Ending("access", "failed", 3, 0, curated=False)),
    "the tutor is denied later": (
        {"tutor": [ASKS, DENIED]},
        Ending("access", "partial", 3, 1, curated=False),
    ),
    "the student is denied": (
        {"student_model": "student", "student": [DENIED]},
        Ending("access", "partial", 3, 1, curated=False),
    ),
    "the tutor is unknown": (
        {"tutor": [UNKNOWN]},
        Ending("unknown_model", "failed", 3, 0, curated=False),
    ),
    "the credentials expire": (
        {"tutor": [ASKS, EXPIRED]},
        Ending("credentials", "partial", 3, 1, curated=False),
    ),
    "the request is refused": (
        {"tutor": [INVALID]},
        Ending("refused_request", "failed", 3, 0, curated=False),
    ),
    "the judge is gone": ({"judge": [GONE]}, Ending("unavailable", "partial", 4, 3, curated=False)),
    "the judge is gone later": (
        {"judge": [GOOD, GONE]},
        Ending("unavailable", "partial", 4, 3, curated=False),
    ),
    "no verdict can be read": (
        {"judge": [PROSE]},
        Ending("max_turns", "completed", 5, 3, curated=True),
    ),
    "a gate fails": (
        {"gates": (Gate("overall_score", 10.0), Gate("slope", 1.0))},
        Ending("max_turns", "completed", 5, 3, curated=True),
    ),
    "a gate is reached": (
        {"gates": (Gate("overall_score", 10.0), Gate("half_life", 3.0))},
        Ending("max_turns", *COMPLETE, 3, curated=True),
    ),
    "without a judge": (
        {"judge_model": None},
        Ending("max_turns", *COMPLETE, 3, curated=True),
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_every_way_to_end_has_its_status_code_and_files(play, out, name):
    script, expected = ENDS[name]

    assert ending(play(**script), out) == expected


@pytest.mark.parametrize(
    "judge", [DENIED, UNKNOWN, EXPIRED, INVALID], ids=["denied", "unknown", "expired", "refused"]
)
def test_a_judge_that_will_never_answer_ends_the_run_at_its_first_verdict(
    play, out, service, judge
):
    """The tutor's second reply is not given before the judge has refused."""
    refused = threading.Event()

    def refuse(sent: Sent) -> Said:
        refused.set()
        return judge

    def tutor(sent: Sent) -> Said:
        if len(sent.body["messages"]) > 1:
            assert refused.wait(PATIENCE_S)
            return replace(ASKS, held=threading.Event())
        return ASKS

    found = ending(play(tutor=tutor, judge=refuse, turns=40), out)
    assert (found.status, found.exit_code, found.n_turns, found.curated) == ("partial", 3, 1, False)
    # After expired credentials, new ones are tried once.
    assert len(service.of("judge")) == (2 if judge is EXPIRED else 1)


def test_no_credentials_are_told_without_a_request(play, out, service, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    assert ending(play(), out) == Ending("credentials", "failed", 3, 0, curated=False)
    assert service.sent == []


@pytest.mark.parametrize(
    ("variable", "value", "end_reason"),
    [
        ("AWS_PROFILE", "missing", "credentials"),
        ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "not a url", "refused_request"),
    ],
)
def test_an_sdk_that_is_set_up_wrongly_ends_the_run(
    play, out, monkeypatch, variable, value, end_reason
):
    monkeypatch.setenv(variable, value)

    assert ending(play(), out) == Ending(end_reason, "failed", 3, 0, curated=False)


def test_what_cannot_be_run_is_refused_before_any_call(play, service, out):
    with pytest.raises(UsageError) as refused:
        play(turns=0, region=None)

    assert len(refused.value.problems) == 2
    assert (service.sent, stored(out)) == ([], {})


def test_an_output_folder_that_cannot_be_is_refused_before_any_call(play, service, tmp_path):
    (tmp_path / "out").write_text("a file in its way")

    with pytest.raises(UsageError):
        play()
    assert service.sent == []


class TestEndingEarly:
    def test_an_interrupt_returns_at_once_from_a_call_that_hangs(self, play, out, service):
        cancel_token, asked = CancelToken(), threading.Event()

        def tutor(sent: Sent) -> Said:
            if len(sent.body["messages"]) < 4:
                return ASKS
            asked.set()
            return replace(ASKS, held=threading.Event())

        with ThreadPoolExecutor(1) as pool:
            playing = pool.submit(play, tutor=tutor, cancel_token=cancel_token)
            assert asked.wait(PATIENCE_S)
            cancel_token.interrupt(2)
            result = playing.result(PATIENCE_S)

        assert ending(result, out) == Ending("interrupted", "partial", 130, 2, curated=False)
        assert [turn.index for turn in result.turns] == [0, 1]

    def test_sigterm_has_its_own_code(self, play, out):
        cancel_token = CancelToken()
        cancel_token.interrupt(15)
        result = play(cancel_token=cancel_token)

        assert (result.exit_code, result.status, result.turns) == (143, "partial", ())

    def test_an_interrupt_does_not_wait_for_the_judge(self, play, out):
        cancel_token, asked = CancelToken(), threading.Event()

        def judge(sent: Sent) -> Said:
            asked.set()
            return replace(GOOD, held=threading.Event())

        with ThreadPoolExecutor(1) as pool:
            playing = pool.submit(play, judge=judge, cancel_token=cancel_token, turns=1)
            assert asked.wait(PATIENCE_S)
            cancel_token.interrupt(2)
            result = playing.result(PATIENCE_S)

        assert (result.exit_code, len(result.turns)) == (130, 1)
        assert result.document["turns"][0]["unjudged_reason"] == "run_ended"

    def test_an_interrupt_ends_the_wait_between_two_attempts(self, play, out, service):
        """The service asks for two minutes."""
        cancel_token = CancelToken()
        slow = refusal(429, "ThrottlingException", x_amz_retry_after="119000")

        def tutor(sent: Sent) -> Said:
            threading.Timer(0.05, cancel_token.interrupt, [2]).start()
            return slow

        with ThreadPoolExecutor(1) as pool:
            playing = pool.submit(play, tutor=tutor, cancel_token=cancel_token, max_attempts=5)
            result = playing.result(PATIENCE_S)

        assert (result.exit_code, len(service.of("tutor"))) == (130, 1)

    def test_only_the_first_order_to_end_counts(self, play):
        cancel_token = CancelToken()
        cancel_token.interrupt(2)
        cancel_token.interrupt(15)

        assert play(cancel_token=cancel_token).exit_code == 130

    def test_a_deadline_ends_a_call_that_hangs(self, play, out):
        hanging = replace(ASKS, held=threading.Event())
        result = in_time(
            lambda s: play(tutor=[ASKS, hanging], deadline_s=s),
            lambda result: bool(result.turns),
            first_s=1.0,
        )

        assert ending(result, out) == Ending("deadline", "partial", 7, 1, curated=False)
        assert result.document["error"]["retryable"] is True

    def test_a_deadline_that_passed_before_the_first_turn_is_partial_too(self, play, out):
        result = play(deadline_s=0.001)

        assert ending(result, out) == Ending("deadline", "partial", 7, 0, curated=False)

    def test_a_run_can_be_played_beside_the_main_thread(self, play):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(play).result(PATIENCE_S).exit_code == 0

    def test_two_runs_at_once_keep_to_themselves(self, service):
        service.scripts = {"tutor": [ASKS], "judge": [GOOD]}
        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(run, [CONFIG, replace(CONFIG, turns=5, seed=9)])

        assert (len(one.turns), len(other.turns)) == (3, 5)
        assert one.run_id != other.run_id
