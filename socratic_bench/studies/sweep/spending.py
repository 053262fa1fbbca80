"""What a sweep spends: its ledger, and which cells its budget pays for. The ledger has what each of
its processes has spent, at most, in every store.

A process notes an amount before it spends it, and what it did spend at its end. A killed process
leaves the amount that it noted last. So the sum never falls, whatever becomes of runs and prices.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from threading import Lock

from msgspec.structs import replace

from socratic_bench.catalogue.prices import PriceTable
from socratic_bench.concurrency import decode
from socratic_bench.documents import encode
from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.sweep_status import SpendingFile
from socratic_bench.errors import BenchError, Problem, Stopped, UsageError
from socratic_bench.models.budget import ExpectedCosts, SpendingLimit
from socratic_bench.runs.dry_run import Forecaster
from socratic_bench.runs.prepare import prepare
from socratic_bench.storage.stores import ListedStore
from socratic_bench.studies.sweep.grid import Cell, CellJob, Grid, kind_key
from socratic_bench.types import in_digits, plural

# In the place of a process: the sum over journals of those that noted no amount here.
JOURNALS = "journals"
LOOK = "-look"  # ends the name of a look without a budget
PLACES = 9
UNBOUNDED_USD = 1e9
Amounts = Mapping[str, float | None]


class Ledger:
    """Amounts by process. `process` is a name that no other process has. Those of a shard begin
    alike, as `shard` says: they have a limit of their own, and all processes together have
    `most_usd`.

    The file is replaced only if no other process has replaced it meanwhile. Methods raise
    `ArtifactError`.
    """

    def __init__(
        self,
        stores: Sequence[ListedStore],
        sweep_id: str,
        process: str,
        *,
        shard: str = "",
        most_usd: float = inf,
    ) -> None:
        self.process = f"{shard}{process}"
        self._shard = shard
        self._most_usd = most_usd
        self._stores = stores
        self._sweep_id = sweep_id
        self._key = f"sweeps/{sweep_id}/spending.json"
        self._amounts: dict[str, float | None] = {}
        self._reported_usd = 0.0
        self._is_current = False  # what is merged is the file that all processes write first
        files = {store.location(self._key): store.get(self._key) for store in stores}
        bodies = {place: body for place, body in files.items() if body is not None}
        self.is_new = not bodies
        is_read = [self._merge(body) for body in bodies.values()]
        self._damaged = () if any(is_read) else tuple(bodies)

    @property
    def processes(self) -> frozenset[str]:
        """The processes of which it has an amount."""
        return frozenset(name for name, usd in self._amounts.items() if usd is not None)

    @property
    def needs_journals(self) -> bool:
        """Whether there may be processes of which it has none."""
        return self.is_new or None in self._amounts.values()

    def check(self) -> None:
        """Raise `UsageError` if no store has a copy that can be read: looks at models are nowhere
        else.
        """
        if self._damaged:
            raise UsageError(
                [f"The ledger of this sweep cannot be read: {' and '.join(self._damaged)}."],
                hint="Remove it: then what was spent is counted by the journals, requests without "
                "an answer at the most that they can cost, and looks at models not at all.",
            )

    @property
    def spent_usd(self) -> float:
        """What all processes have spent, at most, or those of the shard; of all it is never less
        than a document has reported.
        """
        spent_usd = self._sum_usd(self._amounts)
        return spent_usd if self._shard else max(self._reported_usd, spent_usd)

    @property
    def has_budget(self) -> bool:
        """Whether a process has or had one. Looks at models are noted without one, too."""
        names = (name for name, usd in self._amounts.items() if usd is not None)
        return any(name != JOURNALS and not name.endswith(LOOK) for name in names)

    def _sum_usd(self, amounts: Amounts) -> float:
        """Of the shard, if this is a shard's ledger."""
        return sum(usd or 0.0 for name, usd in amounts.items() if name.startswith(self._shard))

    def add_journals(self, usd: float) -> None:
        """Count what is in journals alone."""
        self._amounts[JOURNALS] = max(usd, self._amounts.get(JOURNALS) or 0.0)

    def note_no_budget(self) -> None:
        """Note that this process has no budget. A damaged file stays, for who needs it to mend."""
        if not self._damaged:
            self._update(inf, {self.process: None})

    def keep(self, limit_usd: float, usd: float) -> tuple[float, bool]:
        """See `SpendingLimit`."""
        is_noted = self._update(limit_usd, {self.process: usd})
        others_usd = self._sum_usd(self._amounts) - (self._amounts.get(self.process) or 0.0)
        return others_usd, is_noted

    def close(self, usd: float) -> None:
        """Note what this process has spent in the end, and the sum that its document reports, which
        is not that of all processes for a shard.
        """
        self._update(inf, {self.process: usd}, is_reported=not self._shard)

    def _update(self, limit_usd: float, amounts: Amounts, *, is_reported: bool = False) -> bool:
        """The bucket first, which other processes may share."""
        is_noted = True
        rounded = {name: usd and round(usd, PLACES) for name, usd in amounts.items()}

        def changed(body: bytes | None) -> bytes | None:
            nonlocal is_noted
            if body is not None:
                self._merge(body)
            amounts = {**self._amounts, **rounded}
            total_usd = sum(usd or 0.0 for usd in amounts.values())
            # A process that has spent less than it noted may always say so.
            before_usd = sum(usd or 0.0 for usd in self._amounts.values())
            shard_usd = max(limit_usd, self._sum_usd(self._amounts))
            is_noted = (
                self._sum_usd(amounts) <= shard_usd + 10**-PLACES
                and total_usd <= max(self._most_usd, limit_usd, before_usd) + 10**-PLACES
            )
            self._reported_usd = max(
                self._reported_usd, round(total_usd, PLACES) if is_reported else 0.0
            )
            file = SpendingFile(
                sweep_id=self._sweep_id, spent_usd=amounts, reported_usd=self._reported_usd
            )
            return encode(plain_keys(file)) if is_noted else None

        for store in reversed(self._stores):
            self._is_current = store is self._stores[-1]
            store.update(self._key, changed)
            if not is_noted:
                return False
        self._amounts |= rounded
        return True

    def _merge(self, body: bytes) -> bool:
        """Take over other processes' amounts: what they note at their end may be less than before.
        False if the file is none of this sweep's.
        """
        try:
            file = decode(body, SpendingFile)
        except ValueError:
            file = None
        if file is None or file.sweep_id != self._sweep_id:
            return False
        self._reported_usd = max(self._reported_usd, file.reported_usd)
        for name, usd in file.spent_usd.items():
            if name != self.process:
                known = self._amounts.get(name)
                is_of_process = usd is not None and name != JOURNALS
                is_newer = known is None or (self._is_current and is_of_process)
                self._amounts[name] = usd if is_newer else max(known or 0.0, usd or 0.0)
        return True


class CellBudget:
    """The budget of a sweep, and what its cells are expected to cost: each kind of cell is forecast
    once, and once calls are answered, by what they cost. A cell begins only if the budget covers
    what the cells under way and this one are expected to need. Safe to use from several threads.
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
            f"{plural(n_cells, 'run')}: {max(0.0, self.limit.left_usd()):.4f} USD are "
            f"left, and the next run is expected to need {self._needed_usd(job):.4f} USD, with "
            f"up to {self._expected(job.cell).largest_usd:.4f} USD for one request.",
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
