"""A call of a model, from the question to the answer: its steps, in their order."""

from concurrent.futures import Future
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import asdict

from socratic_bench.catalogue.token_bounds import most_input_tokens
from socratic_bench.errors import BenchError, InternalError, ModelError
from socratic_bench.journal.codec import completion_of, request_sha256, stored_json
from socratic_bench.models.context import CallContext, CallServices
from socratic_bench.models.events import (
    AttemptBegan,
    AttemptFailed,
    CallAnswered,
    CallBegan,
    CallEvent,
    CallFailed,
    CallReplayed,
    CallRetries,
    CallWaits,
    WaitCause,
)
from socratic_bench.models.sending import send_in_time
from socratic_bench.ports.provider import SERVER_ERROR, THROTTLED, ErrorKind, Provider
from socratic_bench.types import Attempt, CallKey, Completion, Request

if TYPE_CHECKING:
    from socratic_bench.models.target_limiter import Permit

RUN_ENDED = "run_ended"  # the error of a request whose answer nobody waited for any more
RETRY_WINDOW_S = 900.0


class CalledModel(Struct, frozen=True):
    """See `socratic_bench.ports.Model`. Each request is sent in a thread of its own, which the end
    of the run leaves behind.
    """

    model_id: str
    services: CallServices
    context: CallContext

    def complete(self, request: Request, key: CallKey) -> Completion:
        """See `Model.complete`. An error carries the requests that were sent."""
        return _Call(self.model_id, request, key, self.services, self.context).complete()


class _Call(Struct):
    """A call under way: the requests sent, the tries begun, the wait since the last request; `kind`
    is that of the last one's error, `mended` what the provider does otherwise for it.
    """

    model_id: str
    request: Request
    key: CallKey
    services: CallServices
    context: CallContext
    attempts: list[Attempt] = field(default_factory=list)
    wait_ms: float = 0.0
    kind: ErrorKind | None = None
    mended: set[str] = field(default_factory=set)
    input_at_most: int = 0
    n_tried: int = 0
    permit: "Permit | None" = None

    def complete(self) -> Completion:
        if replayed := self._replayed():
            return replayed
        self._tell(CallBegan)
        try:
            self.context.cancel_token.check()
            return self._kept(self._answered())
        except Exception as error:
            told = self._told(error)
            self._tell(CallFailed, request_sha256=request_sha256(self.request), error=told)
            if isinstance(told, InternalError):
                raise  # a defect, which ends the run
            # What ended the run says more than what became of one call.
            self.context.cancel_token.check()
            if told is error:
                raise
            raise told from error

    def _replayed(self) -> Completion | None:
        """What an earlier process was answered, even while the run is ending."""
        log = self.context.replay_log
        if log is None or not log.n_answers:
            return None
        try:
            outcome = log.recall(request_sha256(self.request), self.key)
        except ModelError as error:
            self._tell(CallReplayed, outcome=error)
            raise
        if outcome:
            self._tell(CallReplayed, outcome=outcome)
        return outcome

    def _answered(self) -> Completion:
        limiter_of, token = self.services.target_limiter, self.context.cancel_token
        with limiter_of(self.model_id).calling(token) if limiter_of else nullcontext():
            return self.context.retry_policy.call(
                self._with_mending,
                passes=lambda _: self.kind is not None and self.kind.is_retried,
                sleep=self._pause,
                monotonic_s=self.context.cancel_token.monotonic_s,
                server_wait_s=lambda _: self.kind.retry_after_s if self.kind else None,
            )

    def _pause(self, seconds: float) -> None:
        tried = {"n_tried": self.n_tried, "n_most": self.context.retry_policy.max_attempts}
        self._tell(CallRetries, kind=self.kind, **tried, wait_s=seconds)
        self.wait_ms += seconds * 1000
        self.context.cancel_token.sleep(seconds)

    def _with_mending(self) -> Completion:
        """One try; a request that the provider makes otherwise at once is part of it."""
        self.n_tried += 1
        while True:
            self.kind = None
            try:
                provider = self.services.provider()
                for one in provider.refused_fields(self.model_id).values():
                    self.context.notice(one.notice)
                return self._through_cache_gate(provider)
            except ModelError:
                if not self._is_mended():
                    raise

    def _is_mended(self) -> bool:
        """Whether the next request is another one, for the first time by this word."""
        mended = self.kind.mended if self.kind else None
        if mended is None or mended in self.mended:
            return False
        self.mended.add(mended)
        return True

    def _through_cache_gate(self, provider: Provider) -> Completion:
        """Not while another request writes the same prefix to the model's cache."""
        prefix = provider.cached_prefix(self.model_id, self.request)
        if prefix is None:
            return self._within_limits(provider)
        token, gate = self.context.cancel_token, self.services.cache_gate
        asked_s = token.monotonic_s()
        if not gate.enter(prefix, partial(self._wait_for, "prompt_cache")):
            self.wait_ms += (token.monotonic_s() - asked_s) * 1000
            return self._within_limits(provider)
        completion = None
        try:
            completion = self._within_limits(provider)
            return completion
        finally:
            # Nobody waits for a cache that was refused.
            still = provider.cached_prefix(self.model_id, self.request)
            gate.leave(prefix, is_done=completion is not None or still is None)

    def _within_limits(self, provider: Provider) -> Completion:
        if self.context.cost_limit:
            self._tell(CallWaits, cause="budget")
            self.context.cost_limit.reserve(self.model_id, self.request, self.key)
        if self.services.connections is None:
            return self._at_target(provider)
        # Whoever has one waits for no budget, so that those who have reserved theirs get one.
        with self.services.connections.held(partial(self._wait_for, "connection")):
            return self._at_target(provider)

    def _wait_for(
        self, cause: WaitCause, done: "Future[None]", timeout_s: float | None = None
    ) -> None:
        self._tell(CallWaits, cause=cause)
        self.context.cancel_token.result(done, timeout_s)

    def _at_target(self, provider: Provider) -> Completion:
        if self.services.target_limiter is None:
            return self._paced(provider)
        limiter = self.services.target_limiter(self.model_id)
        token, notice = self.context.cancel_token, self.context.notice
        with limiter.admitted(provider, self.request, token, self._wait, notice) as self.permit:
            self.wait_ms += self.permit.waited_ms
            return self._paced(provider)

    def _wait(self, wait_s: float | None) -> None:
        self._tell(CallWaits, cause="rate_target", wait_s=wait_s)

    def _paced(self, provider: Provider) -> Completion:
        limiter = self.services.rate_limiter(self.model_id)
        if wait_s := limiter.wait_s:
            self._tell(CallWaits, cause="rate_limit", wait_s=wait_s)
        with limiter.slot(self.context.cancel_token.sleep) as slept_s:
            self.wait_ms += slept_s * 1000
            return self._sent(provider)

    def _sent(self, provider: Provider) -> Completion:
        self.input_at_most = self.input_at_most or most_input_tokens(self.request)
        self._tell(AttemptBegan, request=self.request, input_tokens_at_most=self.input_at_most)
        self.context.cancel_token.check()
        if self.permit:
            self.permit.sent()
        started_at, started_s = self.context.now(), self.context.cancel_token.monotonic_s()
        try:
            answer = send_in_time(
                provider,
                self.model_id,
                self.request,
                timeout_s=self.context.timeout_s,
                cancel_token=self.context.cancel_token,
            )
        except Exception as error:
            if error is self.context.cancel_token.error:
                self._lost(started_at, started_s, RUN_ENDED, maybe_billed=True)
                raise
            from socratic_bench.models.call_errors import kind_of

            kind = kind_of(error, provider, self.model_id)
            if kind is None:  # a defect
                self._lost(started_at, started_s, InternalError.code, maybe_billed=True)
                raise
            self._lost(started_at, started_s, kind.code, maybe_billed=kind.maybe_billed)
            self._heed(kind, started_s)
            raise kind.error from error.__cause__ or error
        self.services.rate_limiter(self.model_id).answered()
        if self.permit:
            self.permit.answered(answer.usage)
        self._add_attempt(started_at, answer.latency_ms, None, maybe_billed=True)
        return Completion(
            **asdict(answer),
            attempts=tuple(self.attempts),
            finished_at=self.context.now(),
            model_id=self.model_id,
        )

    def _heed(self, kind: ErrorKind, sent_at_s: float) -> None:
        self.kind = kind
        if kind.notice:
            self.context.notice(kind.notice)
        limiter = self.services.rate_limiter(self.model_id)
        if kind.code == THROTTLED:
            limiter.throttled(sent_at_s=sent_at_s, retry_after_s=kind.retry_after_s)
        elif kind.code == SERVER_ERROR:
            limiter.failed()

    def _lost(
        self, started_at: datetime, started_s: float, error: str, *, maybe_billed: bool
    ) -> None:
        duration_ms = (self.context.cancel_token.monotonic_s() - started_s) * 1000
        attempt = self._add_attempt(started_at, duration_ms, error, maybe_billed=maybe_billed)
        self._tell(AttemptFailed, attempt=attempt)
        if self.permit:
            self.permit.failed(error, maybe_billed=maybe_billed)

    def _add_attempt(
        self, started_at: datetime, duration_ms: float, error: str | None, *, maybe_billed: bool
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

    def _told(self, error: Exception) -> BenchError:
        # Not needed unless a call fails.
        from socratic_bench.models.call_errors import with_hint

        is_tested = self.key.role == self.context.tested
        told = with_hint(error, self.kind, self.request, self.context, is_tested=is_tested)
        told.attempts = tuple(self.attempts)
        return told

    def _kept(self, completion: Completion) -> Completion:
        """The answer as a resumed run would see it: what can be kept is what counts."""
        stored = stored_json(completion)
        kept = completion_of(stored)
        sha256 = request_sha256(self.request)
        self._tell(CallAnswered, request_sha256=sha256, stored=stored, completion=kept)
        return kept

    def _tell(self, kind: type[CallEvent], /, **facts: object) -> None:
        event = kind(key=self.key, model_id=self.model_id, **facts)
        for listener in self.context.listeners:
            listener(event)
