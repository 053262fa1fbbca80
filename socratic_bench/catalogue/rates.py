"""What tokens cost at a model's rates, by kind."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from socratic_bench.generation import SERVICE_TIERS
from socratic_bench.types import Usage, doc

DEFAULT_TIER = "default"
OPTIMIZED = "optimized"
# What rates may be given for: the service tiers, and inference that is optimized for latency.
PRICED = (*SERVICE_TIERS, OPTIMIZED)
# What rates, and those of a step, have a price of.
PRICES = ("cache_read", "cache_write", "input", "output")
_MILLION = 1_000_000
Rate = Annotated[float, Meta(ge=0)]


class Step(Struct, frozen=True, kw_only=True):
    """Other rates for calls of more than `input_tokens` input tokens, cached ones included."""

    input_tokens: Annotated[int, Meta(ge=0, description="calls of more input tokens than these")]
    rates: Annotated["Rates", doc("the rates of such calls")]


class Rates(Struct, frozen=True, kw_only=True):
    """USD per million tokens."""

    input: Annotated[Rate, doc("USD per million input tokens")]
    output: Annotated[Rate, doc("USD per million output tokens")]
    cache_read: Annotated[
        Rate | None, doc("USD per million tokens read from a prompt cache; null: not known")
    ] = None
    cache_write: Annotated[
        Rate | None, doc("USD per million tokens written to one; null: as input")
    ] = None
    over: Annotated[Step | None, doc("other rates for long calls")] = None

    def of(self, input_tokens: int) -> "Rates":
        """The rates of a call with so many input tokens."""
        return self.over.rates if self.over and input_tokens > self.over.input_tokens else self


class ModelPrices(Struct, frozen=True):
    """Rates by the names of `PRICED`. `stand_in`: made up, for models that nobody bills."""

    tiers: Mapping[str, Rates]
    stand_in: bool = False

    def rates(self, tier: str | None) -> Rates | None:
        """The rates of a name of `PRICED`; `None` if they are not known."""
        return self.tiers.get(tier or DEFAULT_TIER)


class PricingTier(Struct, frozen=True):
    """How a call was asked for, or served: its tier and latency profile, `None` if not said."""

    tier: str | None = None
    latency_profile: str | None = None

    @property
    def name(self) -> str:
        """The name of the rates: optimized latency has its own, whatever the tier."""
        if self.latency_profile == OPTIMIZED:
            return OPTIMIZED
        return self.tier or DEFAULT_TIER

    @property
    def names(self) -> frozenset[str]:
        """The names of all rates that may apply to such a call: the service may ignore the profile
        and serve the tier alone.
        """
        return frozenset({self.name, self.tier or DEFAULT_TIER})


class Cost(Struct, frozen=True, kw_only=True):
    """USD of one or more calls, by kind of token; each token is in one kind only."""

    input_usd: float = 0.0
    output_usd: float = 0.0
    cache_read_usd: float = 0.0
    cache_write_usd: float = 0.0

    @property
    def total_usd(self) -> float:
        return self.input_usd + self.output_usd + self.cache_read_usd + self.cache_write_usd

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            input_usd=self.input_usd + other.input_usd,
            output_usd=self.output_usd + other.output_usd,
            cache_read_usd=self.cache_read_usd + other.cache_read_usd,
            cache_write_usd=self.cache_write_usd + other.cache_write_usd,
        )


def price(usage: Usage, rates: Rates) -> Cost | None:
    """What one call cost; `None` if it read from a cache at a price that is not known."""
    rates = rates.of(usage.input_tokens)
    if usage.cache_read_tokens and rates.cache_read is None:
        return None
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return Cost(
        input_usd=(usage.input_tokens - cached) * rates.input / _MILLION,
        output_usd=usage.output_tokens * rates.output / _MILLION,
        cache_read_usd=usage.cache_read_tokens * (rates.cache_read or 0.0) / _MILLION,
        cache_write_usd=usage.cache_write_tokens * _write_rate(rates) / _MILLION,
    )


def dearest_usd(
    input_tokens: int, output_tokens: int, prices: ModelPrices, asked: PricingTier
) -> float:
    """The most that a call of at most so many tokens can cost.

    The service may serve it on other terms than it was asked for, and the input may be written to a
    cache or not; the dearest of all counts. Raises `KeyError` if what was asked for has no rates.
    """
    rates_of = [prices.tiers[name] for name in asked.names]
    default = prices.tiers.get(DEFAULT_TIER)
    possible = [rates for named in (*rates_of, default) for rates in _with_steps(named)]
    return (
        max(
            input_tokens * max(rates.input, _write_rate(rates)) + output_tokens * rates.output
            for rates in possible
        )
        / _MILLION
    )


def _with_steps(rates: Rates | None) -> Iterator[Rates]:
    while rates:
        yield rates
        rates = rates.over.rates if rates.over else None


def _write_rate(rates: Rates) -> float:
    return rates.input if rates.cache_write is None else rates.cache_write
