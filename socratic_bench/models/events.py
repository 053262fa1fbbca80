"""What happens to the calls of a run, as one stream of events, and who listens to all of them:
the journal, and the count of what was used.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from orjson import Fragment

from socratic_bench.documents.journal import Answered, Failed, FailedAttemptEntry, RequestEntry
from socratic_bench.documents.usage import RoleUsage
from socratic_bench.errors import BenchError, ModelError
from socratic_bench.journal.log import Log
from socratic_bench.journal.replay import ReplayLog
from socratic_bench.ports.provider import ErrorKind
from socratic_bench.turns import without_words
from socratic_bench.types import JUDGE, Attempt, CallKey, Completion, Request, Role

# What a request waits for: the adaptive rate, a minute of the model's target, another request that
# writes the same prefix to the prompt cache, the budget, or one of the connections.
WaitCause = Literal["rate_limit", "rate_target", "prompt_cache", "budget", "connection"]
NOTED_WITHIN_S = 2.0  # a request waits no longer for a store to note it before it is sent


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


class JournalListener(Struct, frozen=True):
    """Writes each request to the run's journal before it is sent, and how each call ended: should
    the process be killed, a later one knows what may be on the bill, and makes no call twice.

    `wait` is `CancelToken.result`: a request waits a moment until the stores have noted it.
    """

    log: Log
    now: Callable[[], datetime]
    wait: Callable[[Future[None], float], object]

    def on_call(self, event: CallEvent) -> None:
        """Write the event down, if a later process has to know of it."""
        match event:
            case AttemptBegan():
                request = RequestEntry(
                    key=event.key,
                    model_id=event.model_id,
                    at=self.now(),
                    input_tokens_at_most=event.input_tokens_at_most,
                    output_tokens_at_most=event.request.config.max_tokens,
                )
                self.log.add(request, durable=False)
                with suppress(TimeoutError, BenchError):
                    for write in self.log.writes():
                        self.wait(write, NOTED_WITHIN_S)
            case AttemptFailed():
                failed = FailedAttemptEntry(key=event.key, attempt=event.attempt)
                self.log.add(failed, durable=False)
            case CallAnswered(key=key, request_sha256=sha256):
                completion: Any = Fragment(event.stored)  # stands in the entry's JSON as it is
                self.log.add(Answered(key=key, request_sha256=sha256, completion=completion))
            case CallFailed(key=key, request_sha256=sha256, error=error):
                self.log.add(
                    Failed(
                        key=key,
                        request_sha256=sha256,
                        code=error.code,
                        message=error.message,
                        end_reason=error.end_reason,
                        retryable=error.retryable,
                        hint=error.hint,
                        attempts=tuple(error.attempts),
                    )
                )
            case _:
                pass


class UsageTracker:
    """Keeps what the calls of a run used, by role; safe to use from several threads."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._lock = threading.Lock()
        self._completions: dict[Role, list[Completion]] = {role: [] for role in roles}
        self._failed: dict[Role, list[Attempt]] = {role: [] for role in roles}
        self._under_way = 0
        self._settled = threading.Condition(self._lock)

    def on_call(self, event: CallEvent) -> None:
        """Count a call that has ended, and those that are under way."""
        with self._lock:
            match event:
                case CallBegan():
                    self._under_way += 1
                case CallReplayed():
                    if not event.key.is_closing:
                        self._count(event.key.role, event.outcome)
                case CallAnswered():
                    self._count(event.key.role, event.completion)
                case CallFailed():
                    self._failed[event.key.role].extend(event.error.attempts)
                case _:
                    pass
            if isinstance(event, CallAnswered | CallFailed):
                self._under_way -= 1
                self._settled.notify_all()

    def settle(self, timeout_s: float) -> None:
        """Wait until no call is under way: when a run is ended, each still notes its attempts."""
        with self._lock:
            self._settled.wait_for(lambda: self._under_way == 0, timeout_s)

    def take_over(self, replay_log: ReplayLog, roles: Iterable[Role]) -> None:
        """Count what earlier processes did that is not replayed: requests that failed, and calls
        about the episode as it then was, which may have gone on.
        """
        with self._lock:
            for role in roles:
                self._failed[role].extend(replay_log.failed_attempts(role))
            for key, outcome in replay_log.closing_outcomes():
                self._count(key.role, outcome)

    def tallies(self) -> Mapping[Role, RoleUsage]:
        """The answers and the failed requests of each role."""
        with self._lock:
            return {
                role: RoleUsage(completions=tuple(answered), failed=tuple(self._failed[role]))
                for role, answered in self._completions.items()
            }

    def _count(self, role: Role, outcome: Completion | ModelError) -> None:
        if isinstance(outcome, Completion):
            # A turn has the words of its actors; a verdict has what is wanted of the judge's.
            completion = without_words(outcome) if role == JUDGE else outcome
            self._completions[role].append(completion)
        else:
            self._failed[role].extend(outcome.attempts)
