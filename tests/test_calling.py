"""The path of a call with a provider that says what it is told: its events, its end, its thread."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec import ValidationError
from msgspec.structs import replace

from socratic_bench.errors import ModelError, Stopped
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.call import CalledModel
from socratic_bench.models.events import (
    AttemptBegan,
    AttemptFailed,
    CallAnswered,
    CallBegan,
    CallEvent,
    CallFailed,
    CallRetries,
)
from socratic_bench.ports.provider import (
    Answer,
    ErrorKind,
    Provider,
    UnreadableAnswerError,
    leave,
)
from socratic_bench.types import CallKey, Message, Request, Usage
from tests.calling import Around
from tests.fakes import PATIENCE_S

KEY = CallKey(role="tutor", index=3, part="a")
REQUEST = Request(messages=(Message.user("Well?"),), config=GenerateConfig(max_tokens=100))
ANSWER = Answer(
    message=Message.assistant("Fine."),
    stop_reason="end_turn",
    provider_stop_reason="stop",
    usage=Usage(input_tokens=10, output_tokens=5),
    latency_ms=7.0,
)


class BusyError(Exception):
    """The service is busy."""


class FieldError(Exception):
    """The service refuses a field that can be left out."""


@dataclass
class Scripted(Provider):
    """Does what the steps say, one a request, in the thread of the request."""

    steps: list[Callable[[], Answer]] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)

    def send(self, model_id: str, request: Request, timeout_s: float) -> Answer:
        self.threads.append(threading.current_thread().name)
        return self.steps.pop(0)() if self.steps else ANSWER

    def error_kind(self, error: Exception) -> ErrorKind | None:
        if isinstance(error, BusyError):
            return ErrorKind(code="busy", message="Busy.", is_retried=True)
        if isinstance(error, FieldError):
            return ErrorKind(
                code="invalid_request", message="No.", mended="field", notice="Without the field."
            )
        return None

    def sizes(self, model_id: str, request: Request) -> list[Any]:
        return []


@dataclass
class Played:
    """A model on such a provider, and what was heard of its calls."""

    around: Around = field(default_factory=Around)
    provider: Scripted = field(default_factory=Scripted)
    heard: list[CallEvent] = field(default_factory=list)

    def model(self, max_attempts: int = 3) -> CalledModel:
        context = replace(self.around.context(max_attempts), listeners=(self.heard.append,))
        return CalledModel("m", self.around.services(self.provider), context)

    @property
    def kinds(self) -> list[type[CallEvent]]:
        assert {(event.key, event.model_id) for event in self.heard} == {(KEY, "m")}
        return [type(event) for event in self.heard]


def failing(error: Exception) -> Callable[[], Answer]:
    def fail() -> Answer:
        raise error

    return fail


@pytest.fixture
def played() -> Played:
    return Played()


def test_a_call_with_a_retry_is_told_event_by_event(played):
    played.provider.steps = [failing(BusyError())]
    found = played.model().complete(REQUEST, KEY)

    tried = [AttemptBegan, AttemptFailed, CallRetries]
    retries = played.heard[3]
    assert played.kinds == [CallBegan, *tried, AttemptBegan, CallAnswered]
    assert played.heard[-1].completion == found
    assert played.heard[2].attempt == found.attempts[0]
    assert (retries.kind.code, retries.n_tried, retries.wait_s) == ("busy", 1, 0.5)
    assert [one.error for one in found.attempts] == ["busy", None]
    assert (found.stop_reason, found.provider_stop_reason, found.model_id) == (
        *("end_turn", "stop"),
        "m",
    )
    assert played.around.waits == [0.5]


def test_what_is_mended_is_sent_at_once_and_once(played):
    played.provider.steps = [failing(FieldError()), failing(FieldError())]
    with pytest.raises(ModelError) as failed:
        played.model().complete(REQUEST, KEY)

    assert [one.error for one in failed.value.attempts] == ["invalid_request"] * 2
    assert (played.around.waits, played.around.notices) == ([], ["Without the field."])
    assert played.kinds[-1] is CallFailed


def test_an_answer_that_is_none_is_tried_again_for_every_provider(played):
    played.provider.steps = [failing(UnreadableAnswerError("HTML"))]

    found = played.model().complete(REQUEST, KEY)
    assert [(one.error, one.may_have_been_billed) for one in found.attempts] == [
        ("unreadable_answer", True),
        (None, True),
    ]


def test_a_defect_of_a_provider_flies_and_is_not_tried_again(played):
    played.provider.steps = [failing(KeyError("defect"))]
    with pytest.raises(KeyError):
        played.model().complete(REQUEST, KEY)

    assert len(played.provider.threads) == 1
    assert played.kinds == [CallBegan, AttemptBegan, AttemptFailed, CallFailed]
    failed = played.heard[-1].error
    assert (failed.end_reason, failed.exit_code) == ("internal", 1)
    # Whatever was sent may be on the bill.
    assert [(one.error, one.may_have_been_billed) for one in failed.attempts] == [
        ("internal", True)
    ]


def test_an_answer_that_cannot_be_kept_is_a_defect_that_is_told(played):
    wrong: Any = 7
    played.provider.steps = [lambda: replace(ANSWER, request_id=wrong)]
    with pytest.raises(ValidationError):
        played.model().complete(REQUEST, KEY)

    assert played.kinds == [CallBegan, AttemptBegan, CallFailed]
    assert [one.error for one in played.heard[-1].error.attempts] == [None]


def test_the_end_of_the_run_leaves_a_request_that_hangs(played):
    """In a thread of its own, which nobody waits for."""
    asked, ended = threading.Event(), threading.Event()

    def hang() -> Answer:
        asked.set()
        ended.wait(PATIENCE_S)
        return ANSWER

    played.provider.steps = [hang]
    with ThreadPoolExecutor(1) as pool:
        calling = pool.submit(played.model().complete, REQUEST, KEY)
        assert asked.wait(PATIENCE_S)
        played.around.cancel_token.interrupt(15)
        with pytest.raises(Stopped) as stopped:
            calling.result(PATIENCE_S)
        ended.set()

    assert stopped.value.signal_number == 15
    assert played.kinds == [CallBegan, AttemptBegan, AttemptFailed, CallFailed]
    assert [one.error for one in played.heard[-1].error.attempts] == ["run_ended"]


def test_a_request_that_the_end_of_the_run_holds_back_is_no_attempt(played):
    has_ended, held_back = threading.Event(), threading.Event()

    def prepare() -> Answer:
        played.around.cancel_token.interrupt(15)
        has_ended.wait(PATIENCE_S)
        try:
            leave()
        except Stopped:
            held_back.set()
            raise
        return ANSWER

    played.provider.calls_leave = True
    played.provider.steps = [prepare]
    with pytest.raises(Stopped):
        played.model().complete(REQUEST, KEY)
    has_ended.set()

    assert held_back.wait(PATIENCE_S)
    assert played.kinds == [CallBegan, AttemptBegan, AttemptFailed, CallFailed]
    assert not played.heard[2].attempt.may_have_been_billed
    assert played.heard[-1].error.attempts == ()


def test_a_run_that_has_ended_sends_nothing_more(played):
    played.around.cancel_token.interrupt(15)
    with pytest.raises(Stopped):
        played.model().complete(REQUEST, KEY)

    assert (played.kinds, played.provider.threads) == ([CallBegan, CallFailed], [])
