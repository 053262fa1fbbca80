"""Keeps a run within its budget: what a request can cost at most is reserved before it is sent."""

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
from socratic_bench.models.spending import SpendingLimit
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.types import JUDGE, Attempt, CallKey, Completion, Request, in_digits

PLACES = 6
USED_UP = (
    "Raise {{max_cost_usd}}, {shorter}, or lower {{max_tokens}}, which bounds what a reply can "
    "cost."
)


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
        wait: Callable[["Future[None]"], None],
        shorter: str = Benchmark.shorter,
    ) -> None:
        self._limit = limit
        self._table = table
        self._region = region
        self._wait = wait
        self._hint = USED_UP.format(shorter=shorter)
        self._refused: str | None = None
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
        asked: PricingTier,
    ) -> float:
        """What earlier processes spent, counted in the same way: `calls` were answered, `failed`
        are the other requests; `asked` is their tier, and `model_id` the model of those that name
        none.
        """
        lost = [*failed, *(one for call in calls for one in call.attempts if one.error is not None)]
        usd = sum(
            _answered_usd(self._prices(call.model_id or model_id), call, asked) for call in calls
        )
        return usd + sum(
            attempt_usd(self._prices(one.model_id or model_id), one, asked) or 0.0 for one in lost
        )

    def reserve(self, model_id: str, request: Request, key: CallKey) -> "Reservation":
        """Reserve what the request can cost at most, or raise `Stopped`, which ends the run by its
        budget.
        """
        prices = self._prices(model_id)
        asked = PricingTier(request.config.service_tier, request.config.latency_profile)
        worst_usd = dearest_usd(
            most_input_tokens(request), request.config.max_tokens, prices, asked
        )
        with self._limit.in_line() as place:
            while True:
                moved = self._limit.moved
                answer = "never" if self._is_over(key) else self._limit.reserve(place, worst_usd)
                if answer == "reserved":
                    reservation = Reservation(self._limit, worst_usd, prices, asked)
                    self._reservations[key] = reservation
                    return reservation
                if answer == "never":
                    self._refused = self._refused or self._why_not(worst_usd, key)
                    raise _refused(self._refused, self._hint)
                self._wait(moved)

    def on_call(self, event: CallEvent) -> None:
        """A request's fate is known; it is the only one of its call by then."""
        match event:
            case AttemptBegan():
                self._begun.add(event.key)
            case AttemptFailed():
                self._begun.discard(event.key)
                self._reservations.pop(event.key).failed(event.attempt)
            case CallAnswered():
                self._begun.discard(event.key)
                self._reservations.pop(event.key).answered(event.completion)
            case CallFailed():
                self._settle_left(event.key)
            case _:
                pass

    def _settle_left(self, key: CallKey) -> None:
        """What came back could not be kept, or the run ended before the request went."""
        left, was_begun = self._reservations.pop(key, None), key in self._begun
        self._begun.discard(key)
        if left and was_begun:
            left.lost()
        elif left:
            left.unsent()

    def _is_over(self, key: CallKey) -> bool:
        return self._refused is not None and key.role != JUDGE

    def _why_not(self, worst_usd: float, key: CallKey) -> str:
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
            raise _refused(
                f"The price of {model_id} is not known, so that no budget can hold.",
                "Give it with {prices_file}, in the form that socratic-runner schema prices tells.",
            )
        return prices


class Reservation(Struct, frozen=True):
    """Leave to send one request; one of its methods is called once the outcome is known.

    A call without counters, or at an unknown price, counts as its upper bound.
    """

    limit: SpendingLimit
    worst_usd: float
    prices: ModelPrices
    asked: PricingTier

    def answered(self, completion: Completion) -> None:
        self._settle(_known_usd(self.prices, completion, self.asked))

    def lost(self) -> None:
        self._settle(None)

    def unsent(self) -> None:
        self._settle(0.0)

    def failed(self, attempt: Attempt) -> None:
        self._settle(None if attempt.may_have_been_billed else 0.0)

    def _settle(self, spent_usd: float | None) -> None:
        self.limit.settle(self.worst_usd, self.worst_usd if spent_usd is None else spent_usd)


def _refused(why: str, hint: str) -> Stopped:
    stopped = Stopped(why, end_reason="budget", hint=Problem.of(hint))
    stopped.retryable = False
    return stopped


def _answered_usd(prices: ModelPrices, call: Completion, asked: PricingTier) -> float:
    """What a call cost; if that is not known, all that its last request could."""
    usd = _known_usd(prices, call, asked)
    if usd is not None:
        return usd
    return sum(attempt_usd(prices, one, asked) or 0.0 for one in call.attempts[-1:])


def _known_usd(prices: ModelPrices, call: Completion, asked: PricingTier) -> float | None:
    """What a call cost, at most: reading from a cache costs no more than input does."""
    usage, terms = call.usage, billed_tier(call, asked)
    cost = call_cost(prices, usage, terms)
    if cost is None and usage:
        cost = call_cost(prices, replace(usage, cache_read_tokens=0), terms)
    return None if cost is None else cost.total_usd
