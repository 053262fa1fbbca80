"""The dry run of a sweep: its expected usage, cost and time, without a call of a model."""

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.cost import Billing, CostEntry, add_up, role_cost
from socratic_bench.documents.document import TIME_PLACES, USD_PLACES, ErrorEntry, to_places
from socratic_bench.documents.dry_run import (
    ASSUMPTIONS,
    Bound,
    BoundBy,
    CachingSaves,
    DeadlineCheck,
    Expectation,
    ExpectedGroup,
    ExpectedThroughput,
    FlexSaves,
    Forecast,
    RefusedCells,
    SweepBudget,
    SweepDryRun,
    ViaPrices,
)
from socratic_bench.documents.schema import KEYS
from socratic_bench.documents.sweep import CellRow
from socratic_bench.documents.usage import CallUsage
from socratic_bench.errors import BenchError, Naming
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.rate_target import RateTarget, target_of
from socratic_bench.ports.benchmark import Length
from socratic_bench.runs import Plan, prepare
from socratic_bench.runs.dry_run import Forecaster
from socratic_bench.runs.prepare import draw_seed
from socratic_bench.storage.stores import ListedStores
from socratic_bench.studies.places import CellIndex
from socratic_bench.studies.sweep.grid import MODEL, Cell, CellJob, kind_key
from socratic_bench.studies.sweep.request import SweepRequest
from socratic_bench.studies.sweep.resume import cells_to_play, find_sweep
from socratic_bench.studies.sweep.spending import CellBudget, Ledger
from socratic_bench.types import Completion, Json, Role

# The calls a second that one process makes, about: see docs/dev/performance.md.
CALLS_PER_S = 200.0
MINUTE_S = 60.0


FLEX = "flex"
TOTAL = "total"
Usd = float | None  # `None`: a price is not known
Place = tuple[str, str | None]  # a model, and its region


class Load(Struct, frozen=True):
    """Requests and tokens that a model is sent."""

    requests: int = 0
    tokens: int = 0


class ForecastTotals(Struct, frozen=True, kw_only=True):
    """What a run takes if replies have one length: usage by role, its cost if prices are known,
    seconds, those of all its requests together, and what each model is sent.
    """

    usage: Mapping[Role, CallUsage]
    cost: CostEntry | None
    duration_s: float
    requests_s: float
    loads: Mapping[Place, Load]

    def usd(self, role: str = TOTAL) -> Usd:
        cost = self.cost.roles[role] if self.cost else None
        return cost.total_usd if cost else None


class Kind(Struct, frozen=True, kw_only=True):
    """Cells that differ in their repeat alone: `values` of their axes, and how many there are.
    `at_flex_usd`: with the model under test at the tier flex.
    """

    values: Mapping[str, Json]
    n: int
    model: str
    by_length: Mapping[Length, ForecastTotals]
    at_flex_usd: Usd
    via: Mapping[Role, ViaPrices]
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
        via=ViaPrices.by_role(billing, likely, plan.benchmark),
        refusal=likely.refusal,
    )


def _totals(billing: Billing, expected: Expectation) -> ForecastTotals:
    calls: dict[Place, list[Completion]] = defaultdict(list)
    for call in chain.from_iterable(expected.calls.values()):
        calls[call.model_id or "", billing.region].append(call)
    return ForecastTotals(
        usage={role: CallUsage.of_all([tally]) for role, tally in expected.tallies.items()},
        cost=CostEntry.of(billing, expected.tallies),
        duration_s=expected.duration_s,
        requests_s=sum(call.latency_ms for made in calls.values() for call in made) / 1000,
        loads={
            place: Load(
                len(made),
                sum(c.usage.input_tokens + c.usage.output_tokens for c in made if c.usage),
            )
            for place, made in calls.items()
        },
    )


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
    made = []
    for kind in kinds:
        costs = kind.likely.cost.by_model.get(role, {}) if kind.likely.cost else {}
        usd = {model: cost.total_usd if cost else None for model, cost in costs.items()}
        made.append((usd, kind.n))
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
    totals: dict[Place, Load] = {}
    for kind in kinds:
        for place, load in kind.by_length[length].loads.items():
            before = totals.get(place, Load())
            n_requests = before.requests + load.requests * kind.n
            totals[place] = Load(n_requests, before.tokens + load.tokens * kind.n)
    return totals


def total_usd(length: Length, kinds: Sequence[Kind]) -> Usd:
    """USD of all cells in all roles."""
    return sum_usd((kind.by_length[length].usd(), kind.n) for kind in kinds)


def flex_savings(kinds: Sequence[Kind]) -> FlexSaves:
    """What all cells cost with the models under test at the tier flex, where it has a price."""
    priced = [kind for kind in kinds if kind.at_flex_usd is not None]
    unpriced = [kind for kind in kinds if kind.at_flex_usd is None]
    costs = ((kind.likely.usd(), kind.n) for kind in unpriced)
    amounts = [*((kind.at_flex_usd, kind.n) for kind in priced), *costs]
    return FlexSaves(
        cost_usd=sum_usd(amounts) if priced else None,
        unpriced=[*dict.fromkeys(kind.model for kind in unpriced)],
    )


def forecast_sweep(
    request: SweepRequest, call: Naming = str, sleep: Callable[[float], None] = time.sleep
) -> SweepDryRun:
    """The dry run of a sweep that was checked, in which settings are called as `call` does. Raises
    `UsageError` if a store is sure to be unusable, and `ArtifactError` if one that holds the
    earlier part of the sweep cannot be read.
    """
    forecaster = Forecaster()
    forecaster.check_stores(request.grid.base)
    seed, rows, spent_usd = _earlier(request, sleep)
    grid = replace(request.grid, base=replace(request.grid.base, seed=seed))
    all_cells = replace(request, grid=grid).cells
    cells = cells_to_play(all_cells, rows, request.settings)[: request.settings.limit]
    ended = [rows[cell.key] for cell in all_cells if cell.key in rows]
    spent_usd = max(spent_usd, sum(row.cost_usd or 0.0 for row in ended))
    sweep = _SweepForecast(replace(request, grid=grid), cells, forecaster, spent_usd)
    for kind in sweep.kinds:
        if kind.refusal:
            kind.refusal.call_settings(call)
    return sweep.document()


def _earlier(
    request: SweepRequest, sleep: Callable[[float], None]
) -> tuple[int, Mapping[str, CellRow], float]:
    """The seed, rows and spending of the sweep that is gone on with; or a seed alone."""
    seed, grid = request.grid.base.seed, request.grid
    if request.settings.resume:
        stores = ListedStores(grid.base, sleep).all
        if begun := find_sweep(grid, stores):
            indices = [CellIndex(store, begun.sweep_id, lambda _: None) for store in stores]
            rows = {key: row for index in indices for key, row in index.rows().items()}
            ledger = Ledger(stores, begun.sweep_id, "")
            if grid.base.max_cost_usd is not None:
                ledger.check()
            return begun.seed, rows, ledger.spent_usd
    return (draw_seed() if seed is None else seed), {}, 0.0


class _SweepForecast:
    """A sweep of which these cells are forecast; its processes have spent `spent_usd`."""

    def __init__(
        self, request: SweepRequest, cells: Sequence[Cell], forecaster: Forecaster, spent_usd: float
    ) -> None:
        self._asked = request
        self._cells = cells
        self._spent_usd = spent_usd
        self._forecaster = forecaster
        self._base = request.grid.base
        self.kinds, self._cached_usd = self._forecast()
        self._targets = request.targets()

    def _forecast(self) -> tuple[list[Kind], Usd]:
        """The kinds of cells, and what they cost with prompt caching."""
        tables = self._asked.price_tables()
        kinds: list[Kind] = []
        cached: list[tuple[Usd, int]] = []
        for cells in _by_kind(self._cells).values():
            plan = prepare(self._asked.grid.config(cells[0]), price_tables=tables)
            kinds_of_plan = [*self._of_kind(cells[0].values, len(cells), plan)]
            kinds += kinds_of_plan
            if not self._base.prompt_cache:
                with_caching = replace(plan, config=replace(plan.config, prompt_cache=True))
                kinds_of_plan = [*self._of_kind(cells[0].values, len(cells), with_caching)]
            cached += [(kind.likely.usd(), kind.n) for kind in kinds_of_plan]
        return kinds, sum_usd(cached)

    def _of_kind(self, values: Mapping[str, Json], n: int, plan: Plan) -> Iterator[Kind]:
        """One forecast for all cells, but for the one that is the first to write to a cache."""
        n_prefixes = self._forecaster.n_prefixes
        first = self._forecaster.forecast(plan)
        if n > 1 and self._forecaster.n_prefixes > n_prefixes:
            yield kind_of_cells(values, 1, plan, first)
            first, n = self._forecaster.forecast(plan), n - 1
        yield kind_of_cells(values, n, plan, first)

    def document(self) -> SweepDryRun:
        kinds, grid = self.kinds, self._asked.grid
        duration_s, bound_by = self._duration("likely")
        low, high = self._extent("short"), self._extent("long")
        cost_usd = self._cost_usd("likely")
        budget = self._budget(cost_usd[TOTAL], high.cost_usd)
        deadline = self._deadline(duration_s, high.duration_seconds)
        refused = [*self._refused()]
        costs = [kind.likely.cost for kind in kinds if kind.likely.cost]
        return SweepDryRun(
            benchmark=self._base.benchmark,
            axes={axis.name: [*axis.values] for axis in grid.axes},
            repeats=grid.repeats,
            seed=self._base.seed or 0,
            n_runs=len(self._cells),
            n_forecast=len(_by_kind(self._cells)),
            end_reason="budget"
            if budget and not budget.covers_expected
            else "deadline"
            if deadline and not deadline.covers_expected
            else None,
            error=refused[0].error if refused else None,
            usage={
                role: sum_usage((kind.likely.usage[role], kind.n) for kind in kinds)
                for role in self._roles
            }
            | {TOTAL: self._usage("likely", kinds)},
            cost_usd=cost_usd,
            cost_by_model={role: sum_by_model(kinds, role) for role in self._roles},
            duration_seconds=round(duration_s, TIME_PLACES),
            bound_by=bound_by,
            low=low,
            high=high,
            groups={
                name: [*self._groups(name)]
                for name in dict.fromkeys((MODEL, *(axis.name for axis in grid.axes)))
            },
            via={
                role: ViaPrices.sum([(kind.via[role], kind.n) for kind in kinds])
                for role in self._roles
            },
            models=[*self._paces()],
            caching=CachingSaves(
                with_usd=self._cached_usd,
                without_usd=sum_usd(
                    (kind.likely.cost.without_caching_usd if kind.likely.cost else None, kind.n)
                    for kind in kinds
                ),
            ),
            flex=flex_savings(kinds),
            budget=budget,
            deadline=deadline,
            refused=refused,
            stand_in=any(cost.stand_in for cost in costs),
            prices=[*dict.fromkeys(source for cost in costs for source in cost.prices)],
            sent=self._forecaster.sent,
            assumptions=[*ASSUMPTIONS],
        )

    @property
    def _roles(self) -> Sequence[str]:
        return KEYS["roles"](load_benchmark(self._base.benchmark).parts)

    def _usage(self, length: Length, kinds: Sequence[Kind]) -> CallUsage:
        return sum_usage(
            (usage, kind.n) for kind in kinds for usage in kind.by_length[length].usage.values()
        )

    def _cost_usd(self, length: Length) -> dict[str, Usd]:
        return {
            role: sum_usd((kind.by_length[length].usd(role), kind.n) for kind in self.kinds)
            for role in (*self._roles, TOTAL)
        }

    def _extent(self, length: Length) -> Bound:
        return Bound(
            usage=self._usage(length, self.kinds),
            cost_usd=self._cost_usd(length)[TOTAL],
            duration_seconds=round(self._duration(length)[0], TIME_PLACES),
        )

    def _duration(self, length: Length) -> tuple[float, BoundBy]:
        """Seconds that all cells take, and what they depend on most."""
        loads = sum_loads(self.kinds, length)
        n_calls = sum(load.requests for load in loads.values())
        at_targets = [self._at_targets_s(place, load) for place, load in loads.items()]
        # How long so many requests at once take for all of them.
        under_way_s = sum(kind.by_length[length].requests_s * kind.n for kind in self.kinds)
        at_once = self._asked.settings.max_connections
        longest = [kind.by_length[length].duration_s for kind in self.kinds]
        bounds: dict[BoundBy, float] = {
            "longest_run": max(longest, default=0.0),
            "max_connections": max(self._last_end_s(length), under_way_s / at_once),
            "process": n_calls / CALLS_PER_S,
            "targets": max((seconds for seconds in at_targets if seconds is not None), default=0.0),
        }
        bound_by = max(bounds, key=lambda name: bounds[name])
        return bounds[bound_by], bound_by

    def _at_targets_s(self, place: Place, load: Load) -> float | None:
        """Seconds until the last request of a model is sent at its targets; `None` without any.
        Tokens have no slots: those of one minute may be sent at its beginning.
        """
        target = self._target(place)
        tpm = target.tokens_per_minute
        waits_s = []
        if target.requests_per_minute:
            waits_s.append((load.requests - 1) * target.spacing_s - target.burst_s)
        if tpm:
            waits_s.append((load.tokens / tpm - 1) * MINUTE_S)
        return max(0.0, *waits_s) if waits_s else None

    def _last_end_s(self, length: Length) -> float:
        """When the last cell ends, if each begins as soon as one before it has left its place."""
        runs = {kind_key(kind.values): kind.by_length[length] for kind in self.kinds}
        free_at = [0.0] * min(self._asked.settings.max_connections, len(self._cells) or 1)
        for cell in self._cells:
            begun_s = heapq.heappop(free_at)
            heapq.heappush(free_at, begun_s + runs[kind_key(cell.values)].duration_s)
        return max(free_at)

    def _target(self, place: Place) -> RateTarget:
        """The target that holds for a model in a region."""
        return target_of(self._targets, place[0], place[1] or "")

    def _groups(self, name: str) -> Iterator[ExpectedGroup]:
        by_value: dict[Json, list[Kind]] = {}
        for kind in self.kinds:
            by_value.setdefault(kind.values[name], []).append(kind)
        for value, kinds in by_value.items():
            yield ExpectedGroup(
                value=value,  # type: ignore[arg-type] # of an axis
                n_runs=sum(kind.n for kind in kinds),
                usage=self._usage("likely", kinds),
                cost_usd=total_usd("likely", kinds),
                low_usd=total_usd("short", kinds),
                high_usd=total_usd("long", kinds),
            )

    def _paces(self) -> Iterator[ExpectedThroughput]:
        for place, load in sum_loads(self.kinds, "likely").items():
            target = self._target(place)
            at_targets_s = self._at_targets_s(place, load)
            yield ExpectedThroughput(
                model=place[0],
                region=place[1],
                requests=load.requests,
                tokens=load.tokens,
                target_rpm=target.requests_per_minute,
                target_tpm=target.tokens_per_minute,
                seconds_at_targets=to_places(at_targets_s, TIME_PLACES),
            )

    def _budget(self, expected: Usd, high: Usd) -> SweepBudget | None:
        most = self._base.max_cost_usd
        if most is None:
            return None
        left_usd = most - self._spent_usd
        limit = SpendingLimit(most)
        limit.add(self._spent_usd)
        cell_budget = CellBudget(limit, self._asked.grid, self._asked.price_tables())
        return SweepBudget(
            max_cost_usd=most,
            spent_usd=round(self._spent_usd, USD_PLACES),
            n_paid=cell_budget.n_covered(CellJob(cell=cell, run_id="") for cell in self._cells),
            covers_expected=expected is not None and expected <= left_usd,
            covers_high=high is not None and high <= left_usd,
        )

    def _deadline(self, expected_s: float, high_s: float) -> DeadlineCheck | None:
        deadline_s = self._base.deadline_s
        if deadline_s is None:
            return None
        return DeadlineCheck(
            deadline_s=deadline_s,
            covers_expected=expected_s <= deadline_s,
            covers_high=high_s <= deadline_s,
        )

    def _refused(self) -> Iterator[RefusedCells]:
        for kind in self.kinds:
            if kind.refusal:
                yield RefusedCells(
                    axes=dict(kind.values),  # type: ignore[arg-type] # of axes
                    n_runs=kind.n,
                    error=ErrorEntry.of(kind.refusal),
                )


def _by_kind(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """The cells that differ in their repeat alone, in their order."""
    by_kind: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_kind[kind_key(cell.values)].append(cell)
    return by_kind
