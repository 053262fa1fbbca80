"""What a run cost, by role and kind of token: with an unknown price, the sum is unknown, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from socratic_bench.catalogue.prices import (
    Cost,
    ModelPrices,
    PriceSource,
    PriceTable,
    PricingTier,
    builtin_prices,
    dearest_usd,
    price,
)
from socratic_bench.documents.document import USD_PLACES, Amount, Count, Share, keys
from socratic_bench.documents.usage import RoleUsage, sum_usage
from socratic_bench.ports.parts import Parts
from socratic_bench.settings import CoreConfig
from socratic_bench.types import JUDGE, Attempt, Completion, Role, Usage, doc


class Billing(Struct, frozen=True, kw_only=True):
    """Which role calls which model, in which region, at which prices. A role without a model makes
    no calls. `tiers`: the tiers asked for, if not the default.
    """

    models: Mapping[Role, str | None]
    table: PriceTable
    region: str | None
    offline: bool = False
    tiers: Mapping[Role, PricingTier] = field(default_factory=dict)
    jurors: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        config: CoreConfig,
        parts: Parts,
        models: Mapping[Role, str | None],
        prices: PriceTable | None,
    ) -> Billing:
        """Of a run; without `prices` of the user's own, by the built-in ones."""
        return cls(
            models=models,
            table=prices or builtin_prices(),
            region=config.region,
            offline=config.offline,
            tiers={role: parts.tier(role, config) for role in models},
            jurors=config.jurors,
        )

    def prices(self, role: Role, call: Completion | Attempt | None = None) -> ModelPrices | None:
        """Of the model that was asked; that of the role, where a call does not tell; of a jury
        those of its first, if all are known.
        """
        model = (call.model_id if call else None) or self.models[role]
        if model is None:
            return None
        of_jury = self.jurors if role == JUDGE and call is None else (model,)
        found = [self.table.of(one, self.region) for one in of_jury or (model,)]
        return found[0] if all(found) else None

    def tier(self, role: Role) -> PricingTier:
        """How the role's calls were asked for."""
        return self.tiers.get(role, PricingTier())


class RoleCost(Struct, frozen=True, kw_only=True):
    """USD by kind of token, each token in one kind only."""

    input_usd: Annotated[Amount, doc("USD of input tokens that were not cached")]
    output_usd: Annotated[Amount, doc("USD of output tokens")]
    cache_read_usd: Annotated[Amount, doc("USD of input tokens read from a cache")]
    cache_write_usd: Annotated[Amount, doc("USD of input tokens written to a cache")]
    total_usd: Annotated[Amount, doc("USD of all of them")]


class MaybeBilled(Struct, frozen=True, kw_only=True):
    """Failed requests that may be on the bill all the same; not in the total."""

    attempts: Annotated[Count, doc("requests that failed and may be billed")]
    at_most_usd: Annotated[Amount | None, doc("USD that they may cost; null if no bound is known")]


class CostEntry(Struct, frozen=True, kw_only=True):
    """USD by role and in total."""

    currency: Annotated[Literal["USD"], doc("of all amounts")] = "USD"
    roles: Annotated[
        dict[
            str,
            Annotated[RoleCost | None, doc("USD; null if a price or a token count is not known")],
        ],
        keys("roles and total"),
    ] = field(name="*roles", default_factory=dict)
    by_model: Annotated[
        dict[str, Annotated[dict[str, RoleCost | None], doc("USD by the model's id")]],
        keys("roles"),
        doc("by role and by the model that was asked; null as above"),
    ] = field(default_factory=dict)
    without_caching_usd: Annotated[Amount | None, doc("the total if no token had been cached")]
    cache_hit_share: Annotated[
        Share | None, doc("share of all input tokens that were read from a cache")
    ]
    maybe_billed: Annotated[
        MaybeBilled, doc("failed requests that may be on the bill; not in the total")
    ]
    stand_in: Annotated[
        bool, doc("whether the amounts are no bill: the embedded endpoint, or made-up prices")
    ]
    prices: Annotated[
        list[PriceSource],
        Meta(
            min_length=1,
            description="where the prices come from; the first that knows a model counts",
        ),
    ]

    @classmethod
    def of(cls, billing: Billing, tallies: Mapping[Role, RoleUsage]) -> CostEntry | None:
        """`None` if no model in use has a known price."""
        roles = [*billing.models]
        calls = {role: tallies[role].completions for role in roles}
        prices = [billing.prices(role, call) for role in roles for call in calls[role]]
        prices += [billing.prices(role) for role in roles]
        if not any(prices):
            return None
        costs = {role: role_cost(billing, role, calls[role]) for role in roles}
        plain = [role_cost(billing, role, map(_as_uncached, calls[role])) for role in roles]
        costs["total"] = add_up([*costs.values()])
        return cls(
            roles={name: _fields(cost) for name, cost in costs.items()},
            without_caching_usd=_usd(add_up(plain)),
            cache_hit_share=_hit_share(sum_usage([tallies[role].usage for role in roles])),
            maybe_billed=_maybe_billed(billing, tallies),
            by_model={role: _by_model(billing, role, calls[role]) for role in roles},
            stand_in=billing.offline or any(p.stand_in for p in prices if p),
            prices=_sources(billing.table),
        )


def role_cost(billing: Billing, role: Role, calls: Iterable[Completion]) -> Cost | None:
    """What a role's calls cost, each at the price of its model and as it was served."""
    asked = billing.tier(role)
    costs = [
        call_cost(billing.prices(role, call), call.usage, served(call, asked)) for call in calls
    ]
    if not costs and billing.models[role] and billing.prices(role) is None:
        return None
    return add_up(costs)


def role_usd(billing: Billing, role: Role, calls: Iterable[Completion]) -> float | None:
    """The same in USD, as documents tell it."""
    return _usd(role_cost(billing, role, calls))


def _by_model(
    billing: Billing, role: Role, calls: Sequence[Completion]
) -> dict[str, RoleCost | None]:
    made: dict[str, list[Completion]] = {}
    for call in calls:
        made.setdefault(call.model_id or billing.models[role] or "", []).append(call)
    return {model: _fields(role_cost(billing, role, some)) for model, some in sorted(made.items())}


def call_cost(prices: ModelPrices | None, usage: Usage | None, terms: PricingTier) -> Cost | None:
    """What one call cost; `None` if its tokens or a price are not known."""
    rates = prices.rates(terms.name) if prices else None
    return price(usage, rates) if usage and rates else None


def served(call: Completion, asked: PricingTier) -> PricingTier:
    """The tier to bill: the one that the service says, else the one asked for."""
    return PricingTier(
        call.served_tier or asked.tier, call.served_latency_profile or asked.latency_profile
    )


def add_up(costs: Sequence[Cost | None]) -> Cost | None:
    """The sum, or `None` if one of them is not known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known, Cost()) if len(known) == len(costs) else None


def attempt_usd(prices: ModelPrices | None, attempt: Attempt, asked: PricingTier) -> float | None:
    """The most that a failed request can cost; `None` if that is not known."""
    tokens_in, tokens_out = attempt.input_tokens_at_most, attempt.output_tokens_at_most
    if tokens_in is None or tokens_out is None:
        return None
    if prices is None or not asked.names <= prices.tiers.keys():
        return None
    return dearest_usd(tokens_in, tokens_out, prices, asked)


def _as_uncached(call: Completion) -> Completion:
    """The same tokens, all input at the price of input."""
    if call.usage is None:
        return call
    usage = Usage(input_tokens=call.usage.input_tokens, output_tokens=call.usage.output_tokens)
    return replace(call, usage=usage)


def _maybe_billed(billing: Billing, tallies: Mapping[Role, RoleUsage]) -> MaybeBilled:
    lost = [
        (role, one)
        for role in billing.models
        for one in tallies[role].attempts
        if one.error is not None and one.may_have_been_billed
    ]
    worst = [attempt_usd(billing.prices(role, one), one, billing.tier(role)) for role, one in lost]
    known = [usd for usd in worst if usd is not None]
    return MaybeBilled(
        attempts=len(lost),
        at_most_usd=round(sum(known, 0.0), USD_PLACES) if len(known) == len(worst) else None,
    )


def _hit_share(usage: Usage | None) -> float | None:
    if usage is None or not usage.input_tokens:
        return None
    return round(usage.cache_read_tokens / usage.input_tokens, 4)


def _fields(cost: Cost | None) -> RoleCost | None:
    if cost is None:
        return None
    kinds = {**asdict(cost), "total_usd": cost.total_usd}
    return RoleCost(**{name: round(usd, USD_PLACES) for name, usd in kinds.items()})


def _usd(cost: Cost | None) -> float | None:
    return None if cost is None else round(cost.total_usd, USD_PLACES)


def _sources(table: PriceTable) -> list[PriceSource]:
    """The sources of the prices; the first that knows a model counts."""
    found: list[PriceSource] = []
    below: PriceTable | None = table
    while below:
        found.append(below.source)
        below = below.below
    return found
