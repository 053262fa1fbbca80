"""What happens to the calls of a run, as one stream of events."""

from collections.abc import Callable

from msgspec import Struct

from socratic_bench.errors import BenchError, ModelError
from socratic_bench.journal.codec import StoredCompletion
from socratic_bench.types import Attempt, CallKey, Completion, Request


class CallEvent(Struct, frozen=True, kw_only=True):
    """Something has happened to a call to a model."""

    key: CallKey
    model_id: str


class CallReplayed(CallEvent, frozen=True, kw_only=True):
    """An earlier process got the answer, or an error for good; nothing is sent."""

    outcome: Completion | ModelError


class CallBegan(CallEvent, frozen=True, kw_only=True):
    """A call has to be made. It is answered or fails."""


class AttemptBegan(CallEvent, frozen=True, kw_only=True):
    """A request is about to be sent; it is once all listeners have heard of it."""

    request: Request


class AttemptFailed(CallEvent, frozen=True, kw_only=True):
    """A request has failed, and another one may follow."""

    attempt: Attempt


class CallAnswered(CallEvent, frozen=True, kw_only=True):
    """A call was answered; whoever made it gets the answer once all listeners have heard of it.

    `stored` is the `completion` in the form in which it is kept.
    """

    request_sha256: str
    stored: StoredCompletion
    completion: Completion


class CallFailed(CallEvent, frozen=True, kw_only=True):
    """A call failed for good, or was given up; the error has its attempts."""

    request_sha256: str
    error: BenchError


CallListener = Callable[[CallEvent], None]  # called in the thread of the call; must not raise
