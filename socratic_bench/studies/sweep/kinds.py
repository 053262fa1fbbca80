"""The cells of a sweep by their kind, as its dry run expects them, and sums over all."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.catalogue.prices import PriceSource
from socratic_bench.documents.cost import Billing, CostEntry, add_up, role_cost
from socratic_bench.documents.document import USD_PLACES
from socratic_bench.documents.dry_run import Expectation, FlexSaves, Forecast
from socratic_bench.documents.usage import CallUsage
from socratic_bench.errors import BenchError
from socratic_bench.ports.benchmark import Length
from socratic_bench.runs import Plan
from socratic_bench.types import Json, Role

FLEX = "flex"
TOTAL = "total"
Usd = float | None  # `None`: a price is not known
Place = tuple[str, str | None]  # a model, and its region


class Load(Struct, frozen=True):
    """Requests and tokens that a model is sent."""

    requests: int = 0
    tokens: int = 0

    def plus(self, requests: int, tokens: int) -> "Load":
        return Load(self.requests + requests, self.tokens + tokens)


class ForecastTotals(Struct, frozen=True, kw_only=True):
    """What a run takes if replies have one length: usage and USD by role, USD by role and model,
    seconds, those of all its requests together, and what each model is sent.
    """

    usage: Mapping[Role, CallUsage]
    costs: Mapping[Role, Usd]
    by_model: Mapping[Role, Mapping[str, Usd]]
    duration_s: float
    requests_s: float
    loads: Mapping[Place, Load]
    without_caching_usd: Usd
    sources: Sequence[PriceSource] = ()
    is_stand_in: bool = False


class Kind(Struct, frozen=True, kw_only=True):
    """Cells that differ in their repeat alone: `values` of their axes, and how many there are.

    `at_flex_usd`: with the model under test at the tier flex.
    """

    values: Mapping[str, Json]
    n: int
    model: str
    by_length: Mapping[Length, ForecastTotals]
    at_flex_usd: Usd
    refusal: BenchError | None

    @property
    def likely(self) -> ForecastTotals:
        return self.by_length["likely"]


def kind_of_cells(values: Mapping[str, Json], n: int, plan: Plan, forecast: Forecast) -> Kind:
    """The cells of a plan, as they are forecast."""
    billing = Billing.of(plan.config, plan.benchmark.parts, plan.models, plan.prices)
    likely = forecast.expected["likely"]
    return Kind(
        values=values,
        n=n,
        model=plan.config.model,
        by_length={
            length: _totals(billing, expected) for length, expected in forecast.expected.items()
        },
        at_flex_usd=_at_flex(plan, likely),
        refusal=likely.refusal,
    )


def _totals(billing: Billing, expected: Expectation) -> ForecastTotals:
    tallies = expected.tallies
    entry = CostEntry.of(billing, tallies)
    roles = entry.roles if entry else {}
    costs = {role: cost.total_usd for role, cost in roles.items() if cost is not None}
    return ForecastTotals(
        usage={role: CallUsage.of_all([tally]) for role, tally in tallies.items()},
        costs={role: costs.get(role) for role in (*tallies, TOTAL)},
        by_model={
            role: {model: cost.total_usd if cost else None for model, cost in made.items()}
            for role, made in (entry.by_model if entry else {}).items()
        },
        duration_s=expected.duration_s,
        requests_s=sum(call.latency_ms for call in chain.from_iterable(expected.calls.values()))
        / 1000,
        loads=_loads(billing, expected),
        without_caching_usd=entry.without_caching_usd if entry else None,
        sources=entry.prices if entry else (),
        is_stand_in=bool(entry and entry.stand_in),
    )


def _loads(billing: Billing, expected: Expectation) -> dict[Place, Load]:
    loads: dict[Place, Load] = defaultdict(Load)
    for call in chain.from_iterable(expected.calls.values()):
        place = (call.model_id or "", billing.region)
        n_tokens = call.usage.input_tokens + call.usage.output_tokens if call.usage else 0
        loads[place] = loads[place].plus(1, n_tokens)
    return dict(loads)


def _at_flex(plan: Plan, expected: Expectation) -> Usd:
    """USD of all roles, if the model under test were asked at the tier flex."""
    config = replace(plan.config, service_tier=FLEX, latency_profile=None)
    billing = Billing.of(config, plan.benchmark.parts, plan.models, plan.prices)
    tested = plan.benchmark.parts.tested
    costs = [
        role_cost(
            billing,
            role,
            [replace(call, served_tier=None) if role == tested else call for call in calls],
        )
        for role, calls in expected.calls.items()
    ]
    total = add_up(costs)
    return None if total is None else total.total_usd


def sum_usd(amounts: Iterable[tuple[Usd, int]]) -> Usd:
    """The sum of amounts, each so many times; `None` if one of them is not known."""
    pairs = [*amounts]
    known = [usd * n for usd, n in pairs if usd is not None]
    return round(sum(known), USD_PLACES) if len(known) == len(pairs) else None


def sum_by_model(kinds: Sequence[Kind], role: Role) -> dict[str, Usd]:
    """USD of all cells by the model that is asked in a role."""
    made = [(kind.likely.by_model.get(role, {}), kind.n) for kind in kinds]
    names = sorted({name for models, _ in made for name in models})
    return {name: sum_usd((models.get(name, 0.0), n) for models, n in made) for name in names}


def sum_usage(usages: Iterable[tuple[CallUsage, int]]) -> CallUsage:
    """The sums, each usage so many times; `None` where a number is not known."""
    pairs = [*usages]

    def total(name: str) -> Any:  # noqa: ANN401 -- as the field has it
        numbers = [(getattr(usage, name), n) for usage, n in pairs]
        is_known = all(number is not None for number, _ in numbers)
        return sum(number * n for number, n in numbers) if is_known else None

    return CallUsage(**{name: total(name) for name in CallUsage.__struct_fields__})


def sum_loads(kinds: Sequence[Kind], length: Length) -> dict[Place, Load]:
    """The requests and tokens that each model is sent by all cells."""
    totals: dict[Place, Load] = defaultdict(Load)
    for kind in kinds:
        for place, load in kind.by_length[length].loads.items():
            totals[place] = totals[place].plus(load.requests * kind.n, load.tokens * kind.n)
    return dict(totals)


def total_usd(length: Length, kinds: Sequence[Kind]) -> Usd:
    """USD of all cells in all roles."""
    return sum_usd((kind.by_length[length].costs[TOTAL], kind.n) for kind in kinds)


def flex_savings(kinds: Sequence[Kind]) -> FlexSaves:
    """What all cells cost with the models under test at the tier flex, where it has a price."""
    priced = [kind for kind in kinds if kind.at_flex_usd is not None]
    unpriced = [kind for kind in kinds if kind.at_flex_usd is None]
    costs = ((kind.likely.costs[TOTAL], kind.n) for kind in unpriced)
    amounts = [*((kind.at_flex_usd, kind.n) for kind in priced), *costs]
    return FlexSaves(
        cost_usd=sum_usd(amounts) if priced else None,
        unpriced=[*dict.fromkeys(kind.model for kind in unpriced)],
    )
