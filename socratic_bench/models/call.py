"""One call to a model, from the request to its recorded answer: `_Call` has its steps in order."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import copy_context
from datetime import datetime
from functools import partial
from typing import NoReturn

from msgspec import Struct, field
from msgspec.structs import asdict

from socratic_bench.catalogue.tokens import most_input_tokens
from socratic_bench.concurrency import ConnectionLimit, start_thread
from socratic_bench.errors import BenchError, InternalError, ModelError, Problem, Stopped
from socratic_bench.generation import chosen_settings, setting_text
from socratic_bench.journal.log import completion_of, request_sha256, stored_json
from socratic_bench.journal.replay import ReplayLog
from socratic_bench.models.adaptive_rate import RateNarrowed
from socratic_bench.models.budget import Budget
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.events import (
    AttemptBegan,
    AttemptFailed,
    CallAnswered,
    CallBegan,
    CallEvent,
    CallFailed,
    CallListener,
    CallReplayed,
    CallRetries,
    CallWaits,
    WaitCause,
)
from socratic_bench.models.prompt_cache import PromptCacheGate
from socratic_bench.models.rate_limiter import RateLimiter, Slot
from socratic_bench.ports.provider import (
    INVALID_REQUEST,
    Answer,
    AnswerTimeoutError,
    ErrorKind,
    Provider,
    common_kind,
    departure,
)
from socratic_bench.retrying import RetryPolicy
from socratic_bench.types import Attempt, CallKey, Completion, Request, Role

RUN_ENDED = "run_ended"  # the error of a request whose answer nobody waited for any more
RETRY_WINDOW_S = 900.0
# Added to a request's time, so that the provider's own timeouts, which tell more, come first.
GRACE_S = 1.0
METADATA = "request_metadata"


class CallServices(Struct, frozen=True, kw_only=True):
    """What calls to one provider share.

    Attributes:
        provider: the provider of a model, connected to where that is yet to be done.
        rate_limiter: the limiter of a model.
        cache_gate: lets one request write a shared prefix before others read it.
        connections: bounds how many requests are under way.
        on_narrowed: hears of throttling that slows a model down.
    """

    provider: Callable[[str], Provider]
    rate_limiter: Callable[[str], RateLimiter]
    cache_gate: PromptCacheGate
    connections: ConnectionLimit | None = None
    on_narrowed: Callable[[RateNarrowed], None] | None = None


class CallContext(Struct, frozen=True, kw_only=True):
    """What a call needs from its run.

    `listeners` hear of it in their order. `tested` is the role whom the settings of a call are for;
    `has_metadata` tells whether requests carry some of the user's. `batch_answer` returns what a
    batch job has answered, if the call was in one.
    """

    now: Callable[[], datetime]
    cancel_token: CancelToken
    retry_policy: RetryPolicy
    timeout_s: float
    notice: Callable[[str], None]
    listeners: tuple[CallListener, ...] = ()
    replay_log: ReplayLog | None = None
    cost_limit: Budget | None = None
    tested: Role = ""
    has_metadata: bool = False
    batch_answer: Callable[[str, CallKey, Request], Completion | None] = lambda *_: None


class CalledModel(Struct, frozen=True):
    """See `socratic_bench.ports.Model`. Each request is sent in a thread of its own, which the end
    of the run leaves behind.
    """

    model_id: str
    services: CallServices
    context: CallContext

    def complete(self, request: Request, key: CallKey) -> Completion:
        """See `Model.complete`. An error carries the requests that were sent."""
        limiter = self.services.rate_limiter(self.model_id)
        return _Call(self.model_id, request, key, self.services, self.context, limiter).complete()


class _Call(Struct):
    """State of one call in progress: the requests sent so far, the wait since the last of them, the
    kind of its error, and the corrections that the provider has made after errors.
    """

    model_id: str
    request: Request
    key: CallKey
    services: CallServices
    context: CallContext
    limiter: RateLimiter
    attempts: list[Attempt] = field(default_factory=list)
    n_tries: int = 0
    wait_ms: float = 0.0
    error_kind: ErrorKind | None = None
    corrections: set[str] = field(default_factory=set)
    input_at_most: int = 0

    def complete(self) -> Completion:
        """Replay the call, or make it, with retries, and record how it ended."""
        if completion := self._replay():
            return completion
        self._announce(CallBegan)
        token = self.context.cancel_token
        try:
            token.check()
            if answer := self.context.batch_answer(self.model_id, self.key, self.request):
                return self._record_answer(answer)
            with self.limiter.calling(token):
                completion = self.context.retry_policy.call(
                    self._try,
                    passes=lambda _: self.error_kind is not None and self.error_kind.is_retried,
                    sleep=self._pause,
                    monotonic_s=token.monotonic_s,
                    server_wait_s=lambda _: (
                        self.error_kind.retry_after_s if self.error_kind else None
                    ),
                )
            return self._record_answer(completion)
        except Exception as error:  # noqa: BLE001 -- recorded, and raised again
            self._fail(error)

    def _replay(self) -> Completion | None:
        """What an earlier process was answered, even while the run is ending."""
        log = self.context.replay_log
        if log is None or not log.n_answers:
            return None
        try:
            completion = log.recall(request_sha256(self.request), self.key)
        except ModelError as error:
            self._announce(CallReplayed, outcome=error)
            raise
        if completion:
            self._announce(CallReplayed, outcome=completion)
        return completion

    def _try(self) -> Completion:
        """Send the request, and at once again as often as the provider corrects it."""
        self.n_tries += 1
        while True:
            self.error_kind = None
            try:
                return self._send_once()
            except ModelError:
                if not self._is_corrected():
                    raise

    def _is_corrected(self) -> bool:
        """Whether the next request differs, by a correction that was not made before."""
        correction = self.error_kind.mended if self.error_kind else None
        if correction is None or correction in self.corrections:
            return False
        self.corrections.add(correction)
        return True

    def _send_once(self) -> Completion:
        """Wait for all that a request needs, send it, and record the attempt."""
        provider, token = self.services.provider(self.model_id), self.context.cancel_token
        connections = self.services.connections
        for refusal in provider.refused_fields(self.model_id).values():
            self.context.notice(refusal.notice)
        with self._cache_turn(provider):
            if self.context.cost_limit:
                self._announce_wait("budget")
                self.context.cost_limit.reserve(self.model_id, self.request, self.key)
            # Whoever holds a connection waits for no budget, so that reservations get one.
            connection = partial(self._wait_for, "connection")
            with (
                connections.hold(connection) if connections else nullcontext(),
                self._rate_slot(provider) as slot,
            ):
                self.wait_ms += slot.wait_s * 1000
                self.input_at_most = self.input_at_most or most_input_tokens(self.request)
                self._announce(
                    AttemptBegan, request=self.request, input_tokens_at_most=self.input_at_most
                )
                token.check()
                self.limiter.record_request(slot)
                started_at, started_s = self.context.now(), token.monotonic_s()
                leaving: Future[None] = Future()
                try:
                    answer = self._send(provider, leaving)
                except Exception as error:  # noqa: BLE001 -- raised again by its kind
                    duration_ms = (token.monotonic_s() - started_s) * 1000
                    is_unsent = error is token.error and leaving.cancel()
                    self._lose(error, provider, slot, started_at, duration_ms, is_unsent=is_unsent)
                self.limiter.record_answer(slot, answer.usage)
                self._add_attempt(started_at, answer.latency_ms)
                return Completion(
                    **asdict(answer),
                    attempts=tuple(self.attempts),
                    finished_at=self.context.now(),
                    model_id=self.model_id,
                )

    def _cache_turn(self, provider: Provider) -> AbstractContextManager[None]:
        """Wait while another request writes the same prefix to the model's cache."""

        def prefix() -> Hashable | None:
            return provider.cached_prefix(self.model_id, self.request)

        def wait(done: "Future[None]", timeout_s: float) -> None:
            began_s = self.context.cancel_token.monotonic_s()
            try:
                self._wait_for("prompt_cache", done, timeout_s)
            finally:
                self.wait_ms += (self.context.cancel_token.monotonic_s() - began_s) * 1000

        # A run has one closing call: those of runs that end together would wait to save little.
        own_prefix = None if self.key.is_closing else prefix()
        return self.services.cache_gate.turn(own_prefix, wait, lambda: prefix() is not None)

    def _rate_slot(self, provider: Provider) -> AbstractContextManager[Slot]:
        size = self.limiter.size_of(provider, self.request, self.context.notice)
        return self.limiter.slot(size, self.context.cancel_token, self._announce_wait)

    def _send(self, provider: Provider, leaving: "Future[None]") -> Answer:
        """Raises what sending raises, `AnswerTimeoutError`, or what ends the run meanwhile."""
        timeout_s = self.context.timeout_s
        send = partial(provider.send, self.model_id, self.request, timeout_s)
        if not provider.calls_leave:
            leaving.set_running_or_notify_cancel()
        context = copy_context()
        context.run(departure.set, leaving)
        sending = start_thread(partial(context.run, send))
        try:
            return self.context.cancel_token.result(sending, timeout_s + GRACE_S)
        except TimeoutError as error:
            raise AnswerTimeoutError(self.model_id, timeout_s) from error

    def _lose(
        self,
        error: Exception,
        provider: Provider,
        slot: Slot,
        started_at: datetime,
        duration_ms: float,
        *,
        is_unsent: bool,
    ) -> NoReturn:
        """Record a request without an answer, settle its slot, and raise its error by its kind."""
        is_end = error is self.context.cancel_token.error
        kind = None if is_end else kind_of(error, provider, self.model_id)
        code = RUN_ENDED if is_end else kind.code if kind else InternalError.code
        maybe_billed = not is_unsent and (kind is None or kind.maybe_billed)
        attempt = self._add_attempt(started_at, duration_ms, code, maybe_billed=maybe_billed)
        if is_unsent:  # the end of the run came first: it is no attempt
            self.attempts.pop()
        self._announce(AttemptFailed, attempt=attempt)
        narrowed = self.limiter.record_failure(
            slot,
            code,
            maybe_billed=maybe_billed,
            retry_after_s=kind.retry_after_s if kind else None,
        )
        if narrowed and self.services.on_narrowed:
            self.services.on_narrowed(narrowed)
        if kind is None:  # the end of the run, or a defect
            raise error
        self.error_kind = kind
        if kind.notice:
            self.context.notice(kind.notice)
        raise kind.error from error.__cause__ or error

    def _add_attempt(
        self,
        started_at: datetime,
        duration_ms: float,
        error: str | None = None,
        *,
        maybe_billed: bool = True,
    ) -> Attempt:
        attempt = Attempt(
            started_at=started_at,
            duration_ms=duration_ms,
            wait_ms=self.wait_ms,
            error=error,
            may_have_been_billed=maybe_billed,
            input_tokens_at_most=self.input_at_most if maybe_billed else None,
            output_tokens_at_most=self.request.config.max_tokens if maybe_billed else None,
            model_id=self.model_id,
        )
        self.wait_ms = 0.0
        self.attempts.append(attempt)
        return attempt

    def _pause(self, seconds: float) -> None:
        """Wait before the next try."""
        tries = {"n_tried": self.n_tries, "n_most": self.context.retry_policy.max_attempts}
        self._announce(CallRetries, kind=self.error_kind, **tries, wait_s=seconds)
        self.wait_ms += seconds * 1000
        self.context.cancel_token.sleep(seconds)

    def _record_answer(self, completion: Completion) -> Completion:
        """The answer as a resumed run would read it: what can be stored is what counts."""
        stored = stored_json(completion)
        recorded = completion_of(stored)
        sha256 = request_sha256(self.request)
        self._announce(CallAnswered, request_sha256=sha256, stored=stored, completion=recorded)
        return recorded

    def _fail(self, error: Exception) -> NoReturn:
        """Record that the call failed, and raise its error with all that is known of it."""
        context = self.context
        described = describe(
            error,
            self.error_kind,
            self.request,
            context.cancel_token,
            is_tested=self.key.role == context.tested,
            has_metadata=context.has_metadata,
        )
        described.attempts = tuple(self.attempts)
        sha256 = request_sha256(self.request)
        self._announce(CallFailed, request_sha256=sha256, error=described)
        if isinstance(described, InternalError):
            raise error  # a defect, which ends the run
        # What ended the run says more than what became of one call.
        context.cancel_token.check()
        if described is error:
            raise error
        raise described from error

    def _wait_for(
        self, cause: WaitCause, done: "Future[None]", timeout_s: float | None = None
    ) -> None:
        self._announce_wait(cause)
        self.context.cancel_token.result(done, timeout_s)

    def _announce_wait(self, cause: WaitCause, wait_s: float | None = None) -> None:
        self._announce(CallWaits, cause=cause, wait_s=wait_s)

    def _announce(self, kind: type[CallEvent], /, **facts: object) -> None:
        event = kind(key=self.key, model_id=self.model_id, **facts)
        for listener in self.context.listeners:
            listener(event)


def kind_of(error: Exception, provider: Provider, model_id: str) -> ErrorKind | None:
    """The kind of a request's error; `None` for a defect."""
    with suppress(Exception):  # of two defects the first one is reported
        return provider.error_kind(error) or common_kind(error, model_id)
    return None


def describe(
    error: Exception,
    kind: ErrorKind | None,
    request: Request,
    cancel_token: CancelToken,
    *,
    is_tested: bool,
    has_metadata: bool,
) -> BenchError:
    """The error of a call with a better hint, and the setting that is refused, where there are any.
    `is_tested`: the call was to the model under test. `has_metadata`: see `CallContext`.
    """
    if error is cancel_token.error and isinstance(error, BenchError):
        return Stopped.of(error)  # the run's is one object for all calls
    if not isinstance(error, BenchError):
        return InternalError.of(error)
    if not (isinstance(error, ModelError) and kind):
        return error
    if kind.look_up:  # what the provider can find out by another request
        with suppress(BenchError):
            error.hint = cancel_token.result(start_thread(kind.look_up)) or error.hint
    return explained(error, kind.refused, request, is_tested=is_tested, metadata=has_metadata)


def explained(
    error: ModelError, refused: str | None, request: Request, *, is_tested: bool, metadata: bool
) -> ModelError:
    """The error by the setting that was refused; the same error if it was none.

    Where the service does not tell what it refuses, the hint names the settings that it may be,
    `metadata` among them. `is_tested`: the request is to the model under test, whom settings of the
    user's are for.
    """
    requested = chosen_settings(request.config) if is_tested else []
    if refused and (refused in (METADATA, *requested) or (is_tested and refused == "max_tokens")):
        name = setting_text(refused)
        return ModelError(
            Problem.of(f"The model refuses {name}. {{why}}", why=error.message),
            code="refused_setting",
            end_reason="refused_request",
            hint=Problem.of(
                f"Leave out {name}, give it another value, or test a model that takes it."
            ),
        )
    # With both samplings it is one of the others.
    optional = [setting_text(name) for name in requested if name != "both_samplings"]
    optional += [setting_text(METADATA)] if metadata else []
    if error.code == INVALID_REQUEST and optional:
        may_be = " or ".join(optional)
        error.hints = (*error.hints, Problem.of(f"Of your settings it may be {may_be}."))
    return error
