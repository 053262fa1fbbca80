"""The dry run of a sweep: its expected usage, cost and time, without a call of a model."""

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.document import TIME_PLACES, USD_PLACES, ErrorEntry, to_places
from socratic_bench.documents.dry_run import (
    ASSUMPTIONS,
    BoundBy,
    CachingSaves,
    ExpectedGroup,
    ExpectedThroughput,
    Extent,
    RefusedCells,
    SweepBudget,
    SweepDeadline,
    SweepDryRun,
)
from socratic_bench.documents.schema import KEYS
from socratic_bench.documents.sweep import CellRow
from socratic_bench.documents.usage import CallUsage
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.rate_target import RateTarget, target_of
from socratic_bench.ports.benchmark import Length
from socratic_bench.runs import Plan, prepare
from socratic_bench.runs.dry_run import Forecaster
from socratic_bench.runs.prepare import draw_seed
from socratic_bench.storage.stores import ListedStores
from socratic_bench.studies.places import CellIndex
from socratic_bench.studies.sweep.grid import MODEL, Cell, CellJob, kind_key
from socratic_bench.studies.sweep.kinds import (
    TOTAL,
    Kind,
    Load,
    Place,
    Usd,
    flex_savings,
    kind_of_cells,
    sum_by_model,
    sum_loads,
    sum_usage,
    sum_usd,
    total_usd,
)
from socratic_bench.studies.sweep.request import SweepRequest
from socratic_bench.studies.sweep.resume import cells_to_play, find_sweep
from socratic_bench.studies.sweep.settings import SweepSettings
from socratic_bench.studies.sweep.spending import CellBudget, Ledger
from socratic_bench.types import EndReason, Json

# The calls a second that one process makes, about: see docs/dev/performance.md.
CALLS_PER_S = 200.0
MINUTE_S = 60.0


class Timing(Struct, frozen=True, kw_only=True):
    """The cells in their order, their forecasts, and what bounds how fast they are played."""

    cells: Sequence[Cell]
    kinds: Sequence[Kind]
    settings: SweepSettings
    targets: Sequence[RateTarget]

    def duration(self, length: Length) -> tuple[float, BoundBy]:
        """Seconds that all cells take, and what they depend on most."""
        loads = sum_loads(self.kinds, length)
        n_calls = sum(load.requests for load in loads.values())
        at_targets = [self.at_targets_s(place, load) for place, load in loads.items()]
        longest = [kind.by_length[length].duration_s for kind in self.kinds]
        bounds: dict[BoundBy, float] = {
            "longest_run": max(longest, default=0.0),
            "max_connections": max(self._last_end_s(length), self._requests_s(length)),
            "process": n_calls / CALLS_PER_S,
            "targets": max((seconds for seconds in at_targets if seconds is not None), default=0.0),
        }
        bound_by = max(bounds, key=lambda name: bounds[name])
        return bounds[bound_by], bound_by

    def target(self, place: Place) -> RateTarget:
        """The target that holds for a model in a region."""
        model, region = place
        return target_of(self.targets, model, region or "")

    def at_targets_s(self, place: Place, load: Load) -> float | None:
        """Seconds until the last request of a model is sent at its targets; `None` without any.

        Tokens have no slots: those of one minute may be sent at its beginning.
        """
        target = self.target(place)
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
        free_at = [0.0] * min(self.settings.max_connections, len(self.cells) or 1)
        for cell in self.cells:
            begun_s = heapq.heappop(free_at)
            heapq.heappush(free_at, begun_s + runs[kind_key(cell.values)].duration_s)
        return max(free_at)

    def _requests_s(self, length: Length) -> float:
        """How long so many requests at once take for all of them."""
        under_way_s = sum(kind.by_length[length].requests_s * kind.n for kind in self.kinds)
        return under_way_s / self.settings.max_connections


def forecast_sweep(
    request: SweepRequest,
    call: Callable[[str], str] = str,
    sleep: Callable[[float], None] = time.sleep,
) -> SweepDryRun:
    """The dry run of a sweep that was checked, in which settings are called as `call` does.

    Raises `UsageError` if a store is sure to be unusable, and `ArtifactError` if one that holds the
    earlier part of the sweep cannot be read.
    """
    forecaster = Forecaster()
    forecaster.check_stores(request.grid.base)
    seed, rows, spent_usd = _earlier(request, sleep)
    grid = replace(request.grid, base=replace(request.grid.base, seed=seed))
    all_cells = grid.cells()
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
    """The seed of the sweep that is gone on with, how its cells ended, and what it has spent; else
    a seed.
    """
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
        self._timing = Timing(
            cells=cells, kinds=self.kinds, settings=request.settings, targets=request.targets()
        )

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
            cached += [(kind.likely.costs[TOTAL], kind.n) for kind in kinds_of_plan]
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
        duration_s, bound_by = self._timing.duration("likely")
        low, high = self._extent("short"), self._extent("long")
        cost_usd = self._cost_usd("likely")
        budget = self._budget(cost_usd[TOTAL], high.cost_usd)
        deadline = self._deadline(duration_s, high.duration_seconds)
        refused = [*self._refused()]
        return SweepDryRun(
            benchmark=self._base.benchmark,
            axes={axis.name: [*axis.values] for axis in grid.axes},
            repeats=grid.repeats,
            seed=self._base.seed or 0,
            n_runs=len(self._cells),
            n_forecast=len(_by_kind(self._cells)),
            end_reason=_end_reason(budget, deadline),
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
            groups={name: [*self._groups(name)] for name in self._axis_names},
            models=[*self._paces()],
            caching=CachingSaves(
                with_usd=self._cached_usd,
                without_usd=sum_usd((kind.likely.without_caching_usd, kind.n) for kind in kinds),
            ),
            flex=flex_savings(kinds),
            budget=budget,
            deadline=deadline,
            refused=refused,
            stand_in=any(kind.likely.is_stand_in for kind in kinds),
            prices=[*dict.fromkeys(source for kind in kinds for source in kind.likely.sources)],
            sent=self._forecaster.sent,
            assumptions=[*ASSUMPTIONS],
        )

    @property
    def _roles(self) -> Sequence[str]:
        return KEYS["roles"](load_benchmark(self._base.benchmark).parts)

    @property
    def _axis_names(self) -> Sequence[str]:
        return [*dict.fromkeys((MODEL, *(axis.name for axis in self._asked.grid.axes)))]

    def _usage(self, length: Length, kinds: Sequence[Kind]) -> CallUsage:
        return sum_usage(
            (usage, kind.n) for kind in kinds for usage in kind.by_length[length].usage.values()
        )

    def _cost_usd(self, length: Length) -> dict[str, Usd]:
        return {
            role: sum_usd((kind.by_length[length].costs[role], kind.n) for kind in self.kinds)
            for role in (*self._roles, TOTAL)
        }

    def _extent(self, length: Length) -> Extent:
        return Extent(
            usage=self._usage(length, self.kinds),
            cost_usd=self._cost_usd(length)[TOTAL],
            duration_seconds=round(self._timing.duration(length)[0], TIME_PLACES),
        )

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
            target = self._timing.target(place)
            at_targets_s = self._timing.at_targets_s(place, load)
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

    def _deadline(self, expected_s: float, high_s: float) -> SweepDeadline | None:
        deadline_s = self._base.deadline_s
        if deadline_s is None:
            return None
        return SweepDeadline(
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


def _end_reason(budget: SweepBudget | None, deadline: SweepDeadline | None) -> EndReason | None:
    if budget and not budget.covers_expected:
        return "budget"
    return "deadline" if deadline and not deadline.covers_expected else None
