"""What happens to the calls of a run, as one stream of events."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from socratic_bench.errors import BenchError, ModelError
from socratic_bench.ports.provider import ErrorKind
from socratic_bench.types import Attempt, CallKey, Completion, Request

# The slot of a rate limiter, a place in a minute of the model's target, another request that writes
# the same prefix to the prompt cache, or requests under way that may leave enough of the budget.
WaitCause = Literal["rate_limit", "rate_target", "prompt_cache", "budget", "connection"]


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
    input_tokens_at_most: int


class AttemptFailed(CallEvent, frozen=True, kw_only=True):
    """A request has failed, and another one may follow."""

    attempt: Attempt


class CallRetries(CallEvent, frozen=True, kw_only=True):
    """Try `n_tried` has failed, and another one follows after a wait; `n_most` is how many tries
    there are in all, `None` for no bound.
    """

    kind: ErrorKind
    n_tried: int
    n_most: int | None
    wait_s: float


class CallWaits(CallEvent, frozen=True, kw_only=True):
    """The next request waits, for `wait_s` seconds where that is known."""

    cause: WaitCause
    wait_s: float | None = None


class CallAnswered(CallEvent, frozen=True, kw_only=True):
    """A call was answered; whoever made it gets the answer once all listeners have heard of it.

    `stored` is the `completion` as it is kept, in JSON.
    """

    request_sha256: str
    stored: bytes
    completion: Completion


class CallFailed(CallEvent, frozen=True, kw_only=True):
    """A call failed for good, or was given up; the error has its attempts."""

    request_sha256: str
    error: BenchError


CallListener = Callable[[CallEvent], None]  # called in the thread of the call; must not raise
