"""Prices of models by id, and what the tokens of a call cost by them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from socratic_bench.catalogue.models import price_rows, price_source
from socratic_bench.generation import SERVICE_TIERS
from socratic_bench.types import Usage, doc

DEFAULT_TIER = "default"
OPTIMIZED = "optimized"
BATCH = "batch"  # the tier that answers of a batch inference job are recorded with
# What rates may be given for: the service tiers, batch inference, and inference that is optimized
# for latency.
PRICED = (*SERVICE_TIERS, BATCH, OPTIMIZED)
# What rates, and those of a step, have a price of.
PRICES = ("cache_read", "cache_write", "input", "output")
_MILLION = 1_000_000
Rate = Annotated[float, Meta(ge=0)]


_ARN = re.compile(
    r"arn:[\w-]+:bedrock:(?P<region>[a-z0-9-]*):\d*:(?P<kind>[\w-]+)/(?P<id>.+)", re.DOTALL
)
# ARNs of other kinds, such as application profiles, do not contain the model's id.
_NAMED_KINDS = ("foundation-model", "inference-profile")


class Step(Struct, frozen=True, kw_only=True):
    """Other rates for calls of more than `input_tokens` input tokens, cached ones included."""

    input_tokens: Annotated[int, Meta(ge=0, description="calls of more input tokens than these")]
    rates: Annotated[Rates, doc("the rates of such calls")]


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

    def of(self, input_tokens: int) -> Rates:
        """The rates of a call with so many input tokens."""
        return self.over.rates if self.over and input_tokens > self.over.input_tokens else self


class ModelPrices(Struct, frozen=True):
    """A model's rates by the names of `PRICED`. `stand_in`: made up, for simulated models."""

    tiers: Mapping[str, Rates]
    stand_in: bool = False

    def rates(self, tier: str | None) -> Rates | None:
        """The rates of a name of `PRICED`; `None` if they are not known."""
        return self.tiers.get(tier or DEFAULT_TIER)


class PricingTier(Struct, frozen=True):
    """Service tier and latency profile of a call, as requested or as served; `None`: not given."""

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

    def __add__(self, other: Cost) -> Cost:
        fields = self.__struct_fields__
        return Cost(**{name: getattr(self, name) + getattr(other, name) for name in fields})


class PriceSource(Struct, frozen=True):
    """Where prices come from: a name, its version, and the day on which they were taken."""

    name: Annotated[str, doc("who says them: a table, a page, a file")]
    version: Annotated[str | None, doc("its version; null: not said")]
    date: Annotated[str | None, doc("the day they were taken")]


class PriceTable(Struct, frozen=True):
    """Rows of a price file by model id; `below` is the table that is used for other models.

    A key may begin with a region and a slash, or end with `*`.
    """

    models: Mapping[str, Mapping[str, Any]]
    source: PriceSource
    below: PriceTable | None = None
    # By model id and region: documents need the prices of each call, of few models.
    _prices: dict[tuple[str, str | None], ModelPrices | None] = field(default_factory=dict)

    def of(self, model_id: str, region: str | None = None) -> ModelPrices | None:
        """The prices of a model id, profile id or ARN; `None` if they are not known.

        A price for the region precedes one for all regions, and a whole name precedes one that ends
        with `*`. A price of the same model in another region's profile is never used.
        """
        place = model_id, region
        if place not in self._prices:
            self._prices[place] = self._find_prices(model_id, region)
        return self._prices[place]

    def _find_prices(self, model_id: str, region: str | None) -> ModelPrices | None:
        names = _price_keys(model_id, region)
        key = next((name for name in names if name in self.models), None) or max(
            (key for key in self.models if key[-1:] == "*" and model_id.startswith(key[:-1])),
            key=len,
            default=None,
        )
        if key is None:
            return self.below.of(model_id, region) if self.below else None
        row = self.models[key]
        tiers = {tier: _to_rates(rates) for tier, rates in row.items() if isinstance(rates, dict)}
        return ModelPrices(tiers, stand_in=row.get("stand_in", False))

    @property
    def sources(self) -> list[PriceSource]:
        """That of this table, then those of the tables below."""
        return [self.source, *(self.below.sources if self.below else ())]


def _price_keys(model_id: str, region: str | None) -> tuple[str, ...]:
    """Keys of a price file under which a model's prices may stand, the most specific first."""
    arn = _ARN.fullmatch(model_id)
    if arn is None:
        return (f"{region}/{model_id}", model_id)
    if arn["kind"] not in _NAMED_KINDS:
        return (model_id,)
    return (model_id, f"{arn['region'] or region}/{arn['id']}", arn["id"])


@cache
def builtin_prices() -> PriceTable:
    return PriceTable(models=price_rows(), source=PriceSource(**price_source()))


def _to_rates(row: Mapping[str, Any]) -> Rates:
    rates = Rates(**{kind: row[kind] for kind in PRICES if kind in row})
    step = row.get("over")
    if not step:
        return rates
    # Its prices of the cache are not taken over.
    long = _to_rates({"input": rates.input, "output": rates.output, **step})
    return replace(rates, over=Step(input_tokens=step["input_tokens"], rates=long))


def price(usage: Usage, rates: Rates) -> Cost | None:
    """The cost of one call; `None` if it read from a cache and the price of that is unknown."""
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
    input_tokens: int, output_tokens: int, prices: ModelPrices, tier: PricingTier
) -> float:
    """Upper bound of the cost of a call with at most so many tokens, requested with `tier`.

    The service may use another tier than the requested one, and may write the input to a cache: the
    dearest case counts. A record of a batch is never served otherwise. Raises `KeyError` if the
    requested tier has no rates.
    """
    requested = [prices.tiers[name] for name in tier.names]
    default = None if tier.tier == BATCH else prices.tiers.get(DEFAULT_TIER)
    possible = [step for rates in (*requested, default) for step in _with_steps(rates)]
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
