"""The cost of a run by role and kind of token. A sum with an unknown price is unknown."""

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
from socratic_bench.settings import IMPORTED, CoreConfig, provider_of
from socratic_bench.types import JUDGE, Attempt, Completion, Role, Usage, doc


class Billing(Struct, frozen=True, kw_only=True):
    """The models, region, prices and service tiers of a run's calls.

    Attributes:
        models: model id by role; `None` for a role without calls.
        tiers: requested tiers by role; the default tier for others.
    """

    models: Mapping[Role, str | None]
    table: PriceTable
    region: str | None
    offline: bool = False
    tiers: Mapping[Role, PricingTier] = {}
    jurors: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        config: CoreConfig,
        parts: Parts,
        models: Mapping[Role, str | None],
        prices: PriceTable | None,
    ) -> Billing:
        """The billing of a run; without `prices`, by the built-in ones."""
        return cls(
            # Nobody calls the tutor of an imported dialogue.
            models={
                role: None if model and provider_of(model) == IMPORTED else model
                for role, model in models.items()
            },
            table=prices or builtin_prices(),
            region=config.region,
            offline=config.offline,
            tiers={role: parts.tier(role, config) for role in models},
            jurors=config.jurors,
        )

    def prices(self, role: Role, call: Completion | Attempt | None = None) -> ModelPrices | None:
        """Of the call's model, or of the role's; of a jury, its first's if all are known."""
        model = (call.model_id if call else None) or self.models[role]
        if model is None:
            return None
        of_jury = self.jurors if role == JUDGE and call is None else (model,)
        prices = [self.table.of(model_id, self.region) for model_id in of_jury or (model,)]
        return prices[0] if all(prices) else None

    def tier(self, role: Role) -> PricingTier:
        """The tier that the role's calls request."""
        return self.tiers.get(role, PricingTier())


class RoleCost(Struct, frozen=True, kw_only=True):
    """USD by kind of token; each token is of one kind."""

    input_usd: Annotated[Amount, doc("USD of uncached input tokens")]
    output_usd: Annotated[Amount, doc("USD of output tokens")]
    cache_read_usd: Annotated[Amount, doc("USD of input tokens read from a cache")]
    cache_write_usd: Annotated[Amount, doc("USD of input tokens written to a cache")]
    total_usd: Annotated[Amount, doc("USD of all of them")]


class MaybeBilled(Struct, frozen=True, kw_only=True):
    """Failed requests that may be billed; not in the total."""

    attempts: Annotated[Count, doc("number of such requests")]
    at_most_usd: Annotated[Amount | None, doc("upper bound of their USD; null: unknown")]


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
        doc("by role and model; null as above"),
    ] = {}
    without_caching_usd: Annotated[Amount | None, doc("the total without any caching")]
    cache_hit_share: Annotated[
        Share | None, doc("share of input tokens that were read from a cache")
    ]
    maybe_billed: Annotated[
        MaybeBilled, doc("failed requests that may be billed; not in the total")
    ]
    stand_in: Annotated[
        bool, doc("true if nothing is billed: the built-in mock, or made-up prices")
    ]
    prices: Annotated[
        list[PriceSource],
        Meta(
            min_length=1, description="sources of the prices; the first that lists a model is used"
        ),
    ]

    @classmethod
    def of(cls, billing: Billing, tallies: Mapping[Role, RoleUsage]) -> CostEntry | None:
        """The cost of all roles; `None` if no model in use has a known price."""
        roles = [*billing.models]
        calls = {role: tallies[role].completions for role in roles}
        prices = [billing.prices(role, call) for role in roles for call in calls[role]]
        prices += [billing.prices(role) for role in roles]
        if not any(prices):
            return None
        costs = {role: role_cost(billing, role, calls[role]) for role in roles}
        # As if nothing of the input had been cached.
        uncached = {
            role: [replace(c, usage=c.usage and c.usage.uncached) for c in calls[role]]
            for role in roles
        }
        plain = [role_cost(billing, role, uncached[role]) for role in roles]
        usage = sum_usage([tallies[role].usage for role in roles])
        costs["total"] = add_up([*costs.values()])
        return cls(
            roles={name: _fields(cost) for name, cost in costs.items()},
            without_caching_usd=_usd(add_up(plain)),
            cache_hit_share=round(usage.cache_read_tokens / usage.input_tokens, 4)
            if usage and usage.input_tokens
            else None,
            maybe_billed=_maybe_billed(billing, tallies),
            by_model={role: _by_model(billing, role, calls[role]) for role in roles},
            stand_in=billing.offline or any(p.stand_in for p in prices if p),
            prices=billing.table.sources,
        )


def role_cost(billing: Billing, role: Role, calls: Iterable[Completion]) -> Cost | None:
    """Cost of a role's calls, each at the price of its model and of the tier that served it."""
    requested = billing.tier(role)
    costs = [
        call_cost(billing.prices(role, call), call.usage, billed_tier(call, requested))
        for call in calls
    ]
    if not costs and billing.models[role] and billing.prices(role) is None:
        return None
    return add_up(costs)


def role_usd(billing: Billing, role: Role, calls: Iterable[Completion]) -> float | None:
    """The same in USD, rounded as in documents."""
    return _usd(role_cost(billing, role, calls))


def _by_model(
    billing: Billing, role: Role, calls: Sequence[Completion]
) -> dict[str, RoleCost | None]:
    by_model: dict[str, list[Completion]] = {}
    for call in calls:
        by_model.setdefault(call.model_id or billing.models[role] or "", []).append(call)
    return {
        model: _fields(role_cost(billing, role, of_model))
        for model, of_model in sorted(by_model.items())
    }


def call_cost(prices: ModelPrices | None, usage: Usage | None, terms: PricingTier) -> Cost | None:
    """Cost of one call; `None` if its tokens or a price are unknown."""
    rates = prices.rates(terms.name) if prices else None
    return price(usage, rates) if usage and rates else None


def billed_tier(call: Completion, requested: PricingTier) -> PricingTier:
    """The tier that served the call, if the service names it, or else the requested one."""
    return PricingTier(
        call.served_tier or requested.tier, call.served_latency_profile or requested.latency_profile
    )


def add_up(costs: Sequence[Cost | None]) -> Cost | None:
    """The sum; `None` if one of them is unknown."""
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs, Cost()) if len(known_costs) == len(costs) else None


def attempt_usd(prices: ModelPrices | None, attempt: Attempt, tier: PricingTier) -> float | None:
    """Upper bound of a failed request's cost in USD; `None` if unknown."""
    tokens_in, tokens_out = attempt.input_tokens_at_most, attempt.output_tokens_at_most
    if tokens_in is None or tokens_out is None:
        return None
    if prices is None or not tier.names <= prices.tiers.keys():
        return None
    return dearest_usd(tokens_in, tokens_out, prices, tier)


def _maybe_billed(billing: Billing, tallies: Mapping[Role, RoleUsage]) -> MaybeBilled:
    bounds_usd = [
        attempt_usd(billing.prices(role, attempt), attempt, billing.tier(role))
        for role in billing.models
        for attempt in tallies[role].attempts
        if attempt.error is not None and attempt.may_have_been_billed
    ]
    known_usd = [usd for usd in bounds_usd if usd is not None]
    is_known = len(known_usd) == len(bounds_usd)
    return MaybeBilled(
        attempts=len(bounds_usd),
        at_most_usd=round(sum(known_usd, 0.0), USD_PLACES) if is_known else None,
    )


def _fields(cost: Cost | None) -> RoleCost | None:
    if cost is None:
        return None
    kinds = {**asdict(cost), "total_usd": cost.total_usd}
    return RoleCost(**{name: round(usd, USD_PLACES) for name, usd in kinds.items()})


def _usd(cost: Cost | None) -> float | None:
    return None if cost is None else round(cost.total_usd, USD_PLACES)
