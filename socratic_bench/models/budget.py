"""Keeps runs within their budget: what a request can cost at most is reserved before it is sent."""

import threading
from bisect import insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.catalogue.prices import (
    BATCH,
    ModelPrices,
    PriceTable,
    PricingTier,
    dearest_usd,
)
from socratic_bench.catalogue.tokens import most_input_tokens
from socratic_bench.concurrency import start_thread
from socratic_bench.documents.cost import attempt_usd, billed_tier, call_cost
from socratic_bench.errors import ArtifactError, Problem, Stopped
from socratic_bench.models.batch import BatchCall
from socratic_bench.models.events import (
    AttemptBegan,
    AttemptFailed,
    CallAnswered,
    CallEvent,
    CallFailed,
    CallReplayed,
)
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.types import JUDGE, Attempt, CallKey, Completion, Request, Role, in_digits

PLACES = 6
USED_UP = (
    "Raise {{max_cost_usd}}, {shorter}, or lower {{max_tokens}}, which bounds what a reply can "
    "cost."
)
NANO = 1_000_000_000
# A request may cost a fraction of a nano dollar less than was reserved for it.
ROUNDING_NANO = 1

Wait = Callable[["Future[None]"], None]  # until it is done, or raise what ends the run


class ExpectedCosts(Struct, frozen=True, kw_only=True):
    """What a run is expected to cost: USD of its calls, by role and in order, and the most that one
    request can cost.
    """

    calls: Mapping[Role, Sequence[float]]
    largest_usd: float = 0.0

    @property
    def usd(self) -> float:
        return sum(map(sum, self.calls.values()))


class SpendingLimit:
    """The money that one run, or all runs of a sweep together, may spend; safe to use from several
    threads. What a request can cost at most is reserved until it settles.

    `keep` notes in the stores how much this process has spent, at most, before a request is sent.
    It returns what other processes have, and whether the limit allows both; else nothing is noted.
    `process` is the name under which it notes.

    Runs have an order: a request waits for those of earlier runs, and leaves them what they are
    expected to need. So the first ones are completed, and not all of them cut short.
    """

    def __init__(
        self,
        limit_usd: float,
        keep: Callable[[float], tuple[float, bool]] | None = None,
        process: str | None = None,
    ) -> None:
        self.limit_usd = limit_usd
        self.process = process
        self._limit_nano = round(limit_usd * NANO)
        self._keep = keep
        self._kept_nano = self._others_nano = 0
        self._keeping: Future[None] | None = None
        self._noting = threading.Lock()
        self._lock = threading.RLock()
        self._spent_nano = self._reserved_nano = self._n_under_way = 0
        self._queue: list[tuple[int, int]] = []  # by the order of runs and of requests
        self._n_requests = 0
        self._changed: Future[None] = Future()  # done once another request may fit
        self._runs: dict[int, dict[Role, deque[float]]] = {}  # what their next calls are to cost
        self._expected_usd = self._actual_usd = 0.0  # of calls of such runs
        if keep:
            self._write()

    @property
    def spent_usd(self) -> float:
        """USD that are spent, at most."""
        return (self._spent_nano + self._others_nano) / NANO

    @property
    def most_usd(self) -> float:
        """USD that are spent, at most, with those reserved for requests that have not settled."""
        with self._lock:
            return (self._own_nano + self._others_nano) / NANO

    def add(self, usd: float) -> None:
        """Count what was spent earlier."""
        with self._lock:
            self._spent_nano += round(usd * NANO)

    def needed_usd(self, expected: ExpectedCosts) -> float:
        """What another run needs, with what is known of calls that were made."""
        with self._lock:
            return expected.usd * self._dearness

    def left_usd(self) -> float:
        """What runs that have begun are expected to leave."""
        with self._lock:
            return self.limit_usd - self.spent_usd - self._held_usd()

    def begin_run(self, order: int, expected: ExpectedCosts) -> None:
        """From now on hold what the run is expected to need."""
        with self._lock:
            self._runs[order] = {role: deque(usd) for role, usd in expected.calls.items()}

    def end_run(self, order: int) -> None:
        """Leave what the run has not spent to others."""
        with self._lock:
            self._runs.pop(order, None)
        self._notify()

    def advance(self, order: int, role: Role, usd: float | None = None) -> None:
        """A call of a run was answered for so much; `None`: by an earlier process."""
        with self._lock:
            if order not in self._runs:
                return
            expected = self._runs[order].get(role)
            expected_usd = expected.popleft() if expected else 0.0
            if usd is not None:
                self._expected_usd += expected_usd
                self._actual_usd += usd

    def reserve(
        self,
        usd: float,
        *,
        wait: Wait,
        is_refused: Callable[[], bool],
        refusal: Callable[[], Stopped],
        order: int = 0,
    ) -> None:
        """Reserve what a request can cost.

        A request that may fit once others turn out cheaper waits for them, and later requests wait
        behind it. Raises the refusal if it `is_refused`, or does not fit while no other request is
        under way, and `ArtifactError` if it cannot be noted.
        """
        is_kept = False
        while not is_kept:
            self._admit(usd, order, wait, is_refused, refusal)
            try:
                is_kept = self._keep_reserved(wait)
            finally:
                if not is_kept:  # another process has spent it meanwhile, or the run ends
                    self.settle(usd, 0.0)

    def settle(self, reserved_usd: float, spent_usd: float) -> None:
        """Release a request's reservation and count what it cost."""
        with self._lock:
            self._spent_nano += round(spent_usd * NANO)
            self._reserved_nano -= round(reserved_usd * NANO)
            self._n_under_way -= 1
        self._notify()

    def close(self) -> float:
        """Allow nothing more; returns what this process has spent, at most."""
        with self._noting, self._lock:
            self._keep, self._limit_nano = None, -1
            return self._own_nano / NANO

    @property
    def _own_nano(self) -> int:
        return self._spent_nano + self._reserved_nano

    @property
    def _dearness(self) -> float:
        """What calls cost, by what they were expected to."""
        return self._actual_usd / self._expected_usd if self._expected_usd else 1.0

    def _held_usd(self, before: float = inf) -> float:
        runs = [calls.values() for order, calls in self._runs.items() if order < before]
        return self._dearness * sum(sum(map(sum, calls)) for calls in runs)

    def _admit(
        self,
        usd: float,
        order: int,
        wait: Wait,
        is_refused: Callable[[], bool],
        refusal: Callable[[], Stopped],
    ) -> None:
        with self._lock:
            self._n_requests += 1
            place = (order, self._n_requests)
            insort(self._queue, place)
        try:
            while True:
                with self._lock:
                    changed, is_first = self._changed, self._queue[0] is place
                    if is_first and not is_refused() and self._reserve_nano(usd, order):
                        return
                    has_earlier = any(number < order for number in self._runs)
                    is_final = is_first and not self._n_under_way and not has_earlier
                if is_final or is_refused():
                    raise refusal()
                wait(changed)
        finally:
            with self._lock:
                self._queue.remove(place)
            self._notify()

    def _reserve_nano(self, usd: float, order: int) -> bool:
        nano, held_nano = round(usd * NANO), round(self._held_usd(order) * NANO)
        committed = self._own_nano + self._others_nano + held_nano
        if committed + nano > self._limit_nano + ROUNDING_NANO:
            return False
        self._reserved_nano += nano
        self._n_under_way += 1
        return True

    def _keep_reserved(self, wait: Wait) -> bool:
        """Wait until it is noted how much is reserved; false if another process has spent it. One
        note is for all requests that wait for one.
        """
        needed = self._own_nano
        while self._keep:
            with self._lock:
                if self._kept_nano >= min(needed, self._own_nano):
                    return True
                if self._own_nano + self._others_nano > self._limit_nano + ROUNDING_NANO:
                    return False
                if self._keeping is None or self._keeping.done():
                    self._keeping = start_thread(self._write)
                keeping = self._keeping
            try:
                wait(keeping)
            except ArtifactError as error:
                raise error.copied() from error
        return True

    def _write(self) -> None:
        with self._noting:
            if self._keep is None:
                return  # closed meanwhile
            own_nano = self._own_nano
            others_usd, is_noted = self._keep(own_nano / NANO)
        with self._lock:
            self._others_nano = round(others_usd * NANO)
            if is_noted:
                self._kept_nano = own_nano

    def _notify(self) -> None:
        with self._lock:
            changed, self._changed = self._changed, Future()
        changed.set_result(None)


class Reservation(Struct, frozen=True):
    """Money reserved for one request; one of its methods is called once the outcome is known."""

    limit: SpendingLimit
    worst_usd: float
    prices: ModelPrices
    tier: PricingTier

    def settle_answer(self, completion: Completion) -> float:
        """Count what the call cost, in USD: at most, if it has no counters or no price."""
        return self.settle(_usd_of_tokens(self.prices, completion, self.tier))

    def settle(self, spent_usd: float | None) -> float:
        """Count what the request cost; `None`: as much as it could."""
        usd = self.worst_usd if spent_usd is None else spent_usd
        self.limit.settle(self.worst_usd, usd)
        return usd


class Budget:
    """Decides before each request, retries included, whether it may still be sent, and listens to
    the calls of its run; safe to use from several threads.

    A request that may fit once calls under way turn out cheaper waits for them, and later requests
    wait behind it. So the dialogue cannot overtake a verdict, and the outcome does not depend on a
    race. The first request that does not fit for good ends the dialogue; verdicts on what was
    played are still asked for as far as they fit. Several runs may spend from one limit, in their
    `order`. `shorter` is a benchmark's: see `Benchmark`.
    """

    def __init__(
        self,
        limit: SpendingLimit,
        *,
        table: PriceTable,
        region: str | None,
        wait: Wait,
        shorter: str = Benchmark.shorter,
        order: int = 0,
    ) -> None:
        self.limit = limit
        self._order = order
        self._table = table
        self._region = region
        self._wait = wait
        self._hint = USED_UP.format(shorter=shorter)
        self._refusal: str | None = None
        self._reservations: dict[CallKey, Reservation] = {}
        self._begun: set[CallKey] = set()
        self.largest_usd = 0.0  # of one request

    def earlier_usd(
        self,
        model_id: str | None,
        calls: Sequence[Completion],
        failed: Sequence[Attempt] = (),
        *,
        tier: PricingTier,
    ) -> float:
        """What earlier processes spent, in USD, counted in the same way: `calls` were answered,
        `failed` are the other requests. `tier` is theirs, `model_id` the model of those that name
        none.
        """
        lost = [*failed, *(a for call in calls for a in call.attempts if a.error is not None)]
        calls_usd = 0.0
        for call in calls:
            usd = _usd_of_tokens(self._prices(call.model_id or model_id), call, tier)
            if usd is None:  # all that its last request could cost
                lost += call.attempts[-1:]
            calls_usd += usd or 0.0
        return calls_usd + sum(
            attempt_usd(self._prices(attempt.model_id or model_id), attempt, tier) or 0.0
            for attempt in lost
        )

    def reserve(self, model_id: str, request: Request, key: CallKey) -> Reservation:
        """Reserve what the request can cost at most, or raise `Stopped`, which ends the run by its
        budget.
        """
        prices, config = self._prices(model_id), request.config
        tier = PricingTier(config.service_tier, config.latency_profile)
        worst_usd = dearest_usd(most_input_tokens(request), config.max_tokens, prices, tier)
        self.limit.reserve(
            worst_usd,
            wait=self._wait,
            is_refused=lambda: self._refusal is not None and key.role != JUDGE,
            refusal=lambda: self._refuse(worst_usd, key),
            order=self._order,
        )
        self.largest_usd = max(self.largest_usd, worst_usd)
        reservation = Reservation(self.limit, worst_usd, prices, tier)
        self._reservations[key] = reservation
        return reservation

    def reserve_batch(self, calls: Sequence[BatchCall]) -> None:
        """Reserve what the records of a job can cost at most, or raise `Stopped` without any."""
        tier = PricingTier(BATCH)
        worsts = [
            dearest_usd(
                most_input_tokens(call.request),
                call.request.config.max_tokens,
                self._prices(call.model_id),
                tier,
            )
            for call in calls
        ]
        # All are sent together, so none waits for another one to turn out cheaper.
        if sum(worsts) > self.limit.limit_usd - self.limit.most_usd:
            raise self._refuse(sum(worsts), calls[0].key)
        for call, worst_usd in zip(calls, worsts, strict=True):
            self.limit.reserve(
                worst_usd,
                wait=self._wait,
                is_refused=lambda: False,
                refusal=lambda: self._refuse(sum(worsts), calls[0].key),
                order=self._order,
            )
            prices = self._prices(call.model_id)
            self._reservations[call.key] = Reservation(self.limit, worst_usd, prices, tier)

    def release(self, key: CallKey) -> None:
        """A record was not processed: nothing is billed for it."""
        if reservation := self._reservations.pop(key, None):
            reservation.settle(0.0)

    def on_call(self, event: CallEvent) -> None:
        """Settle the reservation once a request has succeeded or failed."""
        match event:
            case AttemptBegan():
                self._begun.add(event.key)
            case AttemptFailed():
                self._begun.discard(event.key)
                spent_usd = None if event.attempt.may_have_been_billed else 0.0
                self._reservations.pop(event.key).settle(spent_usd)
            case CallAnswered():
                self._begun.discard(event.key)
                usd = self._reservations.pop(event.key).settle_answer(event.completion)
                self.limit.advance(self._order, event.key.role, usd)
            case CallReplayed():
                self.limit.advance(self._order, event.key.role)
            case CallFailed():
                # The answer could not be recorded, or the run ended before the request was sent.
                if reservation := self._reservations.pop(event.key, None):
                    reservation.settle(None if event.key in self._begun else 0.0)
                self._begun.discard(event.key)
            case _:
                pass

    def _refuse(self, worst_usd: float, key: CallKey) -> Stopped:
        """The run's first refusal counts: from then on only verdicts are still called for."""
        limit_usd, spent_usd = self.limit.limit_usd, round(self.limit.spent_usd, PLACES)
        self._refusal = self._refusal or (
            f"The budget of {in_digits(limit_usd)} USD has "
            f"{max(0.0, limit_usd - spent_usd):.6f} USD left: up to {spent_usd:.6f} USD are spent, "
            f"and the {key.role}'s next request could cost {worst_usd:.6f} USD."
        )
        return Stopped(self._refusal, end_reason="budget", hint=Problem.of(self._hint))

    def _prices(self, model_id: str | None) -> ModelPrices:
        prices = self._table.of(model_id, self._region) if model_id else None
        if prices is None:
            raise Stopped(
                f"The price of {model_id} is unknown, so a budget cannot be kept.",
                end_reason="budget",
                hint=Problem.of(
                    "Give it with {prices_file} (format: socratic-runner schema prices)."
                ),
            )
        return prices


def _usd_of_tokens(prices: ModelPrices, call: Completion, tier: PricingTier) -> float | None:
    """What a call cost, at most: reading from a cache costs no more than input does."""
    usage, terms = call.usage, billed_tier(call, tier)
    cost = call_cost(prices, usage, terms)
    if cost is None and usage:
        cost = call_cost(prices, replace(usage, cache_read_tokens=0), terms)
    return None if cost is None else cost.total_usd
