"""Which cells the budget of a sweep pays for: a cell begins only if the budget covers what the
cells under way and this one are expected to need.
"""

from collections.abc import Iterable
from threading import Lock

from msgspec.structs import replace

from socratic_bench.catalogue.prices import PriceTable
from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.errors import BenchError, Problem, Stopped
from socratic_bench.models.budget import ExpectedCosts, SpendingLimit
from socratic_bench.runs.dry_run import Forecaster
from socratic_bench.runs.prepare import prepare
from socratic_bench.studies.sweep.grid import Cell, CellJob, Grid, kind_key
from socratic_bench.types import in_digits, plural

PLACES = 4
UNBOUNDED_USD = 1e9


class CellBudget:
    """The budget of a sweep, and what its cells are expected to cost: each kind of cell is forecast
    once, and once calls are answered, by what they cost. Safe to use from several threads.
    """

    def __init__(self, limit: SpendingLimit, grid: Grid, tables: dict[str, PriceTable]) -> None:
        self.limit = limit
        self._grid = grid
        self._tables = tables
        self._lock = Lock()
        self._forecaster = Forecaster(counts_tokens=False)
        self._by_kind: dict[str, ExpectedCosts] = {}

    def begin(self, job: CellJob) -> bool:
        """Hold what a cell is expected to need, if the budget covers it."""
        if not self.n_covered([job]):
            return False
        self.limit.begin_run(job.order, self._expected(job.cell))
        return True

    def end(self, job: CellJob) -> None:
        """A cell has ended: what it has not spent is left to others."""
        self.limit.end_run(job.order)

    def n_covered(self, jobs: Iterable[CellJob]) -> int:
        """How many of these cells, the first ones, the budget covers beside those under way."""
        left_usd, n = self.limit.left_usd(), 0
        for job in jobs:
            needed_usd = self._needed_usd(job)
            left_usd -= needed_usd
            if needed_usd and left_usd < self._expected(job.cell).largest_usd:
                break
            n += 1
        return n

    def refusal(self, job: CellJob, n_paid: int, n_cells: int) -> Stopped:
        """The error of a sweep that ends since its next cell is not covered."""
        limit_usd = self.limit.limit_usd
        return Stopped(
            f"The budget of {in_digits(limit_usd)} USD pays for {n_paid} of "
            f"{plural(n_cells, 'cell')}: {max(0.0, self.limit.left_usd()):.{PLACES}f} USD are "
            f"left, and the next cell is expected to need {self._needed_usd(job):.{PLACES}f} USD, "
            f"with up to {self._expected(job.cell).largest_usd:.{PLACES}f} USD for one request.",
            end_reason="budget",
            hint=Problem.of("Raise {max_cost_usd}."),
        )

    def _needed_usd(self, job: CellJob) -> float:
        """What the rest of a cell needs of which earlier processes have made some calls."""
        expected = self._expected(job.cell)
        calls = {role: usd[job.n_calls.get(role, 0) :] for role, usd in expected.calls.items()}
        return self.limit.needed_usd(replace(expected, calls=calls))

    def _expected(self, cell: Cell) -> ExpectedCosts:
        with self._lock:
            kind = kind_key(cell.values)
            if kind not in self._by_kind:
                self._by_kind[kind] = self._forecast(cell)
            return self._by_kind[kind]

    def _forecast(self, cell: Cell) -> ExpectedCosts:
        """Nothing is expected of a cell that cannot be played, as it tells itself."""
        try:
            plan = prepare(self._grid.config(cell), price_tables=self._tables)
            plan = replace(plan, config=replace(plan.config, max_cost_usd=UNBOUNDED_USD))
            likely = self._forecaster.forecast(plan).expected["likely"]
        except BenchError:
            return ExpectedCosts(calls={})
        billing = Billing.of(plan.config, plan.benchmark.parts, plan.models, plan.prices)
        calls = {
            role: [role_usd(billing, role, [call]) or 0.0 for call in calls]
            for role, calls in likely.calls.items()
        }
        return ExpectedCosts(calls=calls, largest_usd=likely.largest_usd)
