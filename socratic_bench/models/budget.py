"""Keeps runs within their budget: what a request can cost at most is reserved before it is sent."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.catalogue.prices import ModelPrices, PriceTable, PricingTier, dearest_usd
from socratic_bench.catalogue.token_bounds import most_input_tokens
from socratic_bench.documents.cost import attempt_usd, billed_tier, call_cost
from socratic_bench.errors import Problem, Stopped
from socratic_bench.models.events import (
    AttemptBegan,
    AttemptFailed,
    CallAnswered,
    CallEvent,
    CallFailed,
)
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.types import JUDGE, Attempt, CallKey, Completion, Request, in_digits

PLACES = 6
USED_UP = (
    "Raise {{max_cost_usd}}, {shorter}, or lower {{max_tokens}}, which bounds what a reply can "
    "cost."
)
NANO = 1_000_000_000
# A request may cost a fraction of a nano dollar less than was reserved for it.
ROUNDING_NANO = 1

Wait = Callable[["Future[None]"], None]  # until it is done, or raise what ends the run


class SpendingLimit:
    """The money that one run, or all runs of a process together, may spend; safe to use from
    several threads. What a request can cost at most is reserved until it settles.
    """

    def __init__(self, limit_usd: float) -> None:
        self.limit_usd = limit_usd
        self._limit_nano = round(limit_usd * NANO)
        self._lock = threading.Lock()
        self._spent_nano = self._reserved_nano = self._n_under_way = 0
        self._queue: deque[object] = deque()
        self._changed: Future[None] = Future()  # done once another request may fit

    @property
    def spent_usd(self) -> float:
        """USD that are spent, at most."""
        return self._spent_nano / NANO

    @property
    def most_usd(self) -> float:
        """USD that are spent, at most, with those reserved for requests that have not settled."""
        with self._lock:
            return (self._spent_nano + self._reserved_nano) / NANO

    def add(self, usd: float) -> None:
        """Count what was spent earlier."""
        with self._lock:
            self._spent_nano += round(usd * NANO)

    def reserve(
        self,
        usd: float,
        *,
        wait: Wait,
        is_refused: Callable[[], bool],
        refusal: Callable[[], Stopped],
    ) -> None:
        """Reserve what a request can cost.

        A request that may fit once others turn out cheaper waits for them, and later requests wait
        behind it. Raises the refusal if it `is_refused`, or does not fit while no other request is
        under way.
        """
        place = object()
        with self._lock:
            self._queue.append(place)
        try:
            while True:
                with self._lock:
                    changed, is_first = self._changed, self._queue[0] is place
                    if is_first and not is_refused() and self._reserve_nano(round(usd * NANO)):
                        return
                    is_final = is_first and not self._n_under_way
                if is_final or is_refused():
                    raise refusal()
                wait(changed)
        finally:
            with self._lock:
                self._queue.remove(place)
            self._notify()

    def settle(self, reserved_usd: float, spent_usd: float) -> None:
        """Release a request's reservation and count what it cost."""
        with self._lock:
            self._spent_nano += round(spent_usd * NANO)
            self._reserved_nano -= round(reserved_usd * NANO)
            self._n_under_way -= 1
        self._notify()

    def _reserve_nano(self, nano: int) -> bool:
        if self._spent_nano + self._reserved_nano + nano > self._limit_nano + ROUNDING_NANO:
            return False
        self._reserved_nano += nano
        self._n_under_way += 1
        return True

    def _notify(self) -> None:
        with self._lock:
            changed, self._changed = self._changed, Future()
        changed.set_result(None)


class Reservation(Struct, frozen=True):
    """Money reserved for one request; one of its methods is called once the outcome is known.

    A call without counters, or at an unknown price, counts as its upper bound.
    """

    limit: SpendingLimit
    worst_usd: float
    prices: ModelPrices
    tier: PricingTier

    def settle_answer(self, completion: Completion) -> None:
        """Settle by what the call cost."""
        self._settle(_usd_of_tokens(self.prices, completion, self.tier))

    def settle_failure(self, attempt: Attempt) -> None:
        """Settle by whether the request may be on the bill."""
        self._settle(None if attempt.may_have_been_billed else 0.0)

    def settle_unknown(self) -> None:
        """Settle a request of which nothing is known."""
        self._settle(None)

    def release(self) -> None:
        """Release it all."""
        self._settle(0.0)

    def _settle(self, spent_usd: float | None) -> None:
        self.limit.settle(self.worst_usd, self.worst_usd if spent_usd is None else spent_usd)


class Budget:
    """Decides before each request, retries included, whether it may still be sent, and listens to
    the calls of its run; safe to use from several threads.

    A request that may fit once calls under way turn out cheaper waits for them, and later requests
    wait behind it. So the dialogue cannot overtake a verdict, and the outcome does not depend on a
    race. The first request that does not fit for good ends the dialogue; verdicts on what was
    played are still asked for as far as they fit. Several runs may spend from one limit. `shorter`
    is a benchmark's: see `Benchmark`.
    """

    def __init__(
        self,
        limit: SpendingLimit,
        *,
        table: PriceTable,
        region: str | None,
        wait: Wait,
        shorter: str = Benchmark.shorter,
    ) -> None:
        self._limit = limit
        self._table = table
        self._region = region
        self._wait = wait
        self._hint = USED_UP.format(shorter=shorter)
        self._refusal: str | None = None
        self._reservations: dict[CallKey, Reservation] = {}
        self._begun: set[CallKey] = set()

    def take_over(self, usd: float) -> None:
        """Count what earlier processes spent, beyond what the limit knows of."""
        self._limit.add(usd)

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
        calls_usd = sum(
            _call_usd(self._prices(call.model_id or model_id), call, tier) for call in calls
        )
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
        self._limit.reserve(
            worst_usd,
            wait=self._wait,
            is_refused=lambda: self._refusal is not None and key.role != JUDGE,
            refusal=lambda: self._refuse(worst_usd, key),
        )
        reservation = Reservation(self._limit, worst_usd, prices, tier)
        self._reservations[key] = reservation
        return reservation

    def on_call(self, event: CallEvent) -> None:
        """Settle the reservation once a request has succeeded or failed."""
        match event:
            case AttemptBegan():
                self._begun.add(event.key)
            case AttemptFailed():
                self._begun.discard(event.key)
                self._reservations.pop(event.key).settle_failure(event.attempt)
            case CallAnswered():
                self._begun.discard(event.key)
                self._reservations.pop(event.key).settle_answer(event.completion)
            case CallFailed():
                self._settle_open(event.key)
            case _:
                pass

    def _settle_open(self, key: CallKey) -> None:
        """The answer could not be recorded, or the run ended before the request was sent."""
        reservation, was_begun = self._reservations.pop(key, None), key in self._begun
        self._begun.discard(key)
        if reservation and was_begun:
            reservation.settle_unknown()
        elif reservation:
            reservation.release()

    def _refuse(self, worst_usd: float, key: CallKey) -> Stopped:
        """The run's first refusal counts: from then on only verdicts are still called for."""
        self._refusal = self._refusal or self._explain_refusal(worst_usd, key)
        return _stopped(self._refusal, self._hint)

    def _explain_refusal(self, worst_usd: float, key: CallKey) -> str:
        limit_usd, spent_usd = self._limit.limit_usd, round(self._limit.spent_usd, PLACES)
        left_usd = max(0.0, limit_usd - spent_usd)
        return (
            f"The budget of {in_digits(limit_usd)} USD has {left_usd:.6f} USD left: "
            f"up to {spent_usd:.6f} USD are spent, and the {key.role}'s next request could cost "
            f"{worst_usd:.6f} USD."
        )

    def _prices(self, model_id: str | None) -> ModelPrices:
        prices = self._table.of(model_id, self._region) if model_id else None
        if prices is None:
            raise _stopped(
                f"The price of {model_id} is not known, so that no budget can hold.",
                "Give it with {prices_file}, in the form that socratic-runner schema prices tells.",
            )
        return prices


def _stopped(why: str, hint: str) -> Stopped:
    stopped = Stopped(why, end_reason="budget", hint=Problem.of(hint))
    stopped.retryable = False
    return stopped


def _call_usd(prices: ModelPrices, call: Completion, tier: PricingTier) -> float:
    """What a call cost; if that is not known, all that its last request could."""
    usd = _usd_of_tokens(prices, call, tier)
    if usd is not None:
        return usd
    return sum(attempt_usd(prices, attempt, tier) or 0.0 for attempt in call.attempts[-1:])


def _usd_of_tokens(prices: ModelPrices, call: Completion, tier: PricingTier) -> float | None:
    """What a call cost, at most: reading from a cache costs no more than input does."""
    usage, terms = call.usage, billed_tier(call, tier)
    cost = call_cost(prices, usage, terms)
    if cost is None and usage:
        cost = call_cost(prices, replace(usage, cache_read_tokens=0), terms)
    return None if cost is None else cost.total_usd
