"""When requests are sent to a model: one queue, at a rate that adapts, and targets as a ceiling.

A target is a limit that the user gives: no minute, wherever it begins, has more requests or tokens
than it. What a service allows beyond that is found by trying: see `adaptive_rate`.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from math import ceil

from msgspec import Struct, field

from socratic_bench.catalogue.tokens import most_input_tokens
from socratic_bench.documents.usage import ModelThroughput
from socratic_bench.errors import ModelError, Problem
from socratic_bench.models.adaptive_rate import AdaptiveRate, RateNarrowed
from socratic_bench.models.bedrock.error_table import ERROR_KINDS
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.events import WaitCause
from socratic_bench.models.rate_target import (
    CountedRequest,
    MinuteWindow,
    RateTarget,
    target_of,
)
from socratic_bench.ports.provider import THROTTLED, Provider
from socratic_bench.types import Request, Usage

# An estimate of input tokens may be so many times too low, by what the service counted so far.
SAFETY = 1.25
LOOK_AGAIN_S = 5.0  # the first in the queue looks so often whether the rate has grown
ROUNDING_S = 1e-6
STALL_S = 900.0
MOST_PAUSE_S = 60.0  # of a pause without a call no more counts as work
STALL = "stalled"  # the kind of error that its runs end by

OnWait = Callable[[WaitCause, float | None], None]  # a wait begins, of about so many seconds


class RequestSize(Struct, frozen=True):
    """Tokens of a request: an upper bound of its input, an estimate of it, and its most output."""

    most_input: int = 0
    estimate: int = 0
    max_tokens: int = 0


class Slot(CountedRequest, eq=False, kw_only=True):
    """Permission to send one request of a size, which it waited for."""

    size: RequestSize
    asked_at_s: float
    wait_s: float = 0.0
    turn: "Future[None]" = field(default_factory=Future)  # done when the slot becomes the first


class _Wait(Struct, frozen=True):
    """What a request waits for: for `look_in_s` at most (`None`: its turn), in all `about_s`."""

    cause: WaitCause
    look_in_s: float | None
    about_s: float | None


class StallWatch:
    """Counts the seconds in which calls of a model are under way, and ends all runs that call it
    once nothing was answered for `stall_s` of them; `None`: never. For several threads.
    """

    def __init__(self, label: str, stall_s: float | None, monotonic_s: Callable[[], float]) -> None:
        self.is_stalled = False
        self._label, self._stall_s, self._monotonic_s = label, stall_s, monotonic_s
        self._lock = threading.Lock()
        self._work_s = self._answered_at_work_s = 0.0
        self._counted_at_s: float | None = None
        self._calling: list[CancelToken] = []

    @property
    def work_s(self) -> float:
        """Seconds from the first call on, pauses of more than a minute left out."""
        with self._lock:
            if self._calling:
                self._count()
            return self._work_s

    @contextmanager
    def calling(self, cancel_token: CancelToken) -> Iterator[None]:
        """Around a call, with its waits and retries, of a run that the token ends."""
        with self._lock:
            self._count()
            self._calling.append(cancel_token)
        try:
            self._end_if_stalled()
            cancel_token.check()
            yield
        finally:
            with self._lock:
                self._count()
                self._calling.remove(cancel_token)

    def record_answer(self) -> None:
        """A request was answered."""
        with self._lock:
            self._count()
            self._answered_at_work_s = self._work_s

    def record_failure(self) -> None:
        """A request was not answered."""
        with self._lock:
            self._count()
            in_vain_s = self._work_s - self._answered_at_work_s
            if self._stall_s is not None and in_vain_s >= self._stall_s:
                self.is_stalled = True
        self._end_if_stalled()

    def _count(self) -> None:
        now_s = self._monotonic_s()
        if self._counted_at_s is not None:
            gone_s = now_s - self._counted_at_s
            self._work_s += gone_s if self._calling else min(gone_s, MOST_PAUSE_S)
        self._counted_at_s = now_s

    def _end_if_stalled(self) -> None:
        if not self.is_stalled:
            return
        with self._lock:
            calling = tuple(self._calling)
        minutes = (self._stall_s or 0.0) / 60
        for cancel_token in calling:
            cancel_token.end(
                ModelError(
                    f"{self._label} was stopped: it was called for {minutes:g} min, and none of "
                    "its requests was answered.",
                    code=STALL,
                    end_reason=ERROR_KINDS[STALL].end_reason,
                    retryable=True,
                    hint=ERROR_KINDS[STALL].hint,
                )
            )


class RateLimiter:
    """Admits requests to one model of a provider in a region; safe to use from several threads.

    They are admitted in the order in which they ask. Only the first in the queue waits for a time,
    and those behind it for their turn.
    """

    def __init__(
        self,
        model_id: str,
        region: str = "",
        target: RateTarget | None = None,
        *,
        stall_s: float | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model_id, self._region = model_id, region
        self._target = target or RateTarget()
        self._monotonic_s = monotonic_s
        label = f"{model_id} in {region}" if region else model_id
        self._stall_watch = StallWatch(label, stall_s, monotonic_s)
        self._lock = threading.Lock()
        self._queue: deque[Slot] = deque()
        self._rate = AdaptiveRate()
        self._window = MinuteWindow(self._target)
        self._waits_for: WaitCause = "rate_limit"  # what the first in the queue waits for
        self._densest = 0.0  # the most input tokens that a request had, of those estimated
        self._n_requests = self._n_tokens = self._n_throttled = 0
        self._waited_s = 0.0

    @property
    def per_s(self) -> float:
        """Requests a second, as the service seems to allow."""
        return self._rate.per_s

    @contextmanager
    def calling(self, cancel_token: CancelToken) -> Iterator[None]:
        """Around a call, with its waits and retries, of a run that the token ends."""
        with self._lock:
            self._rate.begin_call(self._monotonic_s())
        try:
            with self._stall_watch.calling(cancel_token):
                yield
        finally:
            with self._lock:
                self._rate.end_call(self._monotonic_s())

    def size_of(
        self, provider: Provider, request: Request, notice: Callable[[str], None]
    ) -> RequestSize:
        """What a target of tokens has to know of a request; notes if it exceeds the target."""
        per_minute = self._target.tokens_per_minute
        if per_minute is None:
            return RequestSize()
        size = RequestSize(
            most_input_tokens(request),
            sum(part.tokens for part in provider.sizes(self._model_id, request)),
            request.config.max_tokens,
        )
        if self._most_tokens(size) > per_minute:
            notice(
                f"Requests to {self._model_id} that may have more tokens than its target of "
                f"{per_minute} a minute are sent alone, in a minute that has no others."
            )
        return size

    @contextmanager
    def slot(self, size: RequestSize, cancel_token: CancelToken, on_wait: OnWait) -> Iterator[Slot]:
        """Wait for permission to send one request within the block, or raise what ends the run.

        Call `record_request` and then `record_answer` or `record_failure` with the slot; a slot
        without `record_request` counts for nothing.
        """
        slot = Slot(size=size, asked_at_s=self._monotonic_s())
        with self._lock:
            self._queue.append(slot)
        try:
            wait = self._admit(slot)
            if wait:
                on_wait(wait.cause, wait.about_s)
            while wait:
                with suppress(TimeoutError):
                    cancel_token.result(slot.turn, wait.look_in_s)
                wait = self._admit(slot)
            slot.wait_s = self._monotonic_s() - slot.asked_at_s
            yield slot
        finally:
            if not slot.is_sent:
                self._withdraw(slot)

    def record_request(self, slot: Slot) -> None:
        """The request is sent now, and counts from now on."""
        with self._lock:
            slot.is_sent, slot.sent_at_s = True, self._monotonic_s()
            self._rate.record_request(slot.sent_at_s)
            self._n_requests += 1
            self._waited_s += slot.wait_s

    def record_answer(self, slot: Slot, usage: Usage | None) -> None:
        """The request was answered; what it may have used counts if the service counted nothing."""
        with self._lock:
            n_tokens = usage.input_tokens + usage.output_tokens if usage else slot.n_tokens
            now_s = self._settle(slot, n_tokens)
            self._rate.record_answer(now_s)
            if usage and slot.size.estimate:
                self._densest = max(self._densest, usage.input_tokens / slot.size.estimate)
        self._stall_watch.record_answer()

    def record_failure(
        self, slot: Slot, code: str, *, maybe_billed: bool, retry_after_s: float | None = None
    ) -> RateNarrowed | None:
        """The request failed; by how much that narrowed the rate. It may end the model's runs."""
        with self._lock:
            now_s = self._settle(slot, slot.n_tokens if maybe_billed else 0)
            before_per_s = self.per_s
            if code == THROTTLED:
                self._n_throttled += 1
                self._rate.record_throttling(now_s, slot.sent_at_s, retry_after_s, len(self._queue))
            after_per_s = self.per_s
        self._stall_watch.record_failure()
        if after_per_s == before_per_s:
            return None
        return RateNarrowed(
            model_id=self._model_id,
            region=self._region,
            before_per_s=before_per_s,
            after_per_s=after_per_s,
        )

    def report(self) -> ModelThroughput:
        """What was sent so far, and how fast."""
        work_s, n_requests = self._stall_watch.work_s, self._n_requests
        minutes = max(work_s / 60, 1.0)
        return ModelThroughput(
            model=self._model_id,
            region=self._region or None,
            target_rpm=self._target.requests_per_minute,
            target_tpm=self._target.tokens_per_minute,
            rpm=round(n_requests / minutes, 3) if n_requests else None,
            tpm=round(self._n_tokens / minutes, 3) if n_requests else None,
            requests=n_requests,
            tokens=self._n_tokens,
            throttled=self._n_throttled,
            waited_s=round(self._waited_s, 3),
            work_s=round(work_s, 3),
            stalled=self._stall_watch.is_stalled,
        )

    def _admit(self, slot: Slot) -> _Wait | None:
        """Admit the request if it may be sent now; else what it waits for."""
        with self._lock:
            if self._queue[0] is not slot:
                self._rate.note_waiting(len(self._queue))
                interval_s = max(1 / self.per_s, self._target.spacing_s)
                return _Wait(self._waits_for, None, len(self._queue) * interval_s)
            now_s, n_tokens = self._monotonic_s(), self._most_tokens(slot.size)
            rate_s, target_s = self._rate.due_s() - now_s, self._window.wait_s(now_s, n_tokens)
            wait_s = max(rate_s, target_s)
            if wait_s > ROUNDING_S:
                self._rate.note_waiting(len(self._queue))
                self._waits_for = "rate_limit" if rate_s > target_s else "rate_target"
                if slot.turn.done():
                    slot.turn = Future()
                return _Wait(self._waits_for, min(wait_s, LOOK_AGAIN_S), wait_s)
            self._queue.popleft()
            self._wake_first()
            self._rate.take(now_s)
            slot.n_tokens = n_tokens
            self._window.add(slot, now_s)
            return None

    def _settle(self, slot: Slot, n_tokens: int) -> float:
        now_s = self._monotonic_s()
        self._rate.record_duration(now_s, slot.sent_at_s)
        slot.n_tokens = n_tokens
        self._n_tokens += n_tokens
        if self._target.tokens_per_minute:
            self._wake_first()
        return now_s

    def _withdraw(self, slot: Slot) -> None:
        """The request is not sent."""
        with self._lock:
            self._window.remove(slot)
            with suppress(ValueError):
                self._queue.remove(slot)
            self._wake_first()

    def _wake_first(self) -> None:
        """Have the first in the queue look again."""
        if self._queue and not self._queue[0].turn.done():
            self._queue[0].turn.set_result(None)

    def _most_tokens(self, size: RequestSize) -> int:
        """Tokens that a request may take: no tokenizer makes more of it, or it would be far denser
        than all that were counted.
        """
        most = size.most_input
        if self._densest:
            most = min(most, ceil(SAFETY * self._densest * size.estimate))
        return most + size.max_tokens


class RateTargets:
    """The limiters of all models, each with its target, if it has one.

    Of several targets for a model in a region the one that names more counts. A model that answered
    nothing for `stall_s` seconds in which it was called is stopped; `None`: none is.
    """

    def __init__(
        self,
        targets: Sequence[RateTarget] = (),
        *,
        stall_s: float | None = STALL_S,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._targets = tuple(targets)
        self._stall_s = stall_s
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._limiters: dict[tuple[str, str, str], RateLimiter] = {}

    def of(self, provider: str, region: str, model_id: str) -> RateLimiter:
        """The limiter that all share who call the model there."""
        key = (provider, region, model_id)
        with self._lock:
            if key not in self._limiters:
                self._limiters[key] = RateLimiter(
                    model_id,
                    region,
                    target_of(self._targets, model_id, region),
                    stall_s=self._stall_s,
                    monotonic_s=self._monotonic_s,
                )
            return self._limiters[key]

    def problem(self, model_id: str, region: str | None, n_tokens: int) -> Problem | None:
        """What is wrong with a request of at least so many tokens, before anything is sent."""
        per_minute = target_of(self._targets, model_id, region or "").tokens_per_minute
        if per_minute is None or n_tokens <= per_minute:
            return None
        return Problem.of(
            "{max_tokens} of {n_tokens} is more than the {per_minute} tokens a minute that are the "
            "target of {model_id}.",
            model_id=model_id,
            n_tokens=n_tokens,
            per_minute=per_minute,
        )

    def report(self) -> tuple[ModelThroughput, ...]:
        """How fast each model was called, of those that `of` was asked for."""
        reports = [limiter.report() for limiter in tuple(self._limiters.values())]
        return tuple(sorted(reports, key=lambda report: (report.model, report.region or "")))
