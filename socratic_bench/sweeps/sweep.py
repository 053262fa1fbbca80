"""A sweep from its beginning to its end: what is to be played, playing it, and what it came to."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace
from ulid import ULID

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.calling.cancel_token import CancelToken
from socratic_bench.documents.pace import ModelPace
from socratic_bench.documents.sweep import CellRow, SweepFile
from socratic_bench.errors import BenchError, Problem
from socratic_bench.ports import Benchmark
from socratic_bench.runner import in_time
from socratic_bench.runner.plan import draw_seed
from socratic_bench.storage.listing import ListedStores
from socratic_bench.sweeps.asked import Asked
from socratic_bench.sweeps.control import CellJob, SweepControl
from socratic_bench.sweeps.earlier import begun_earlier, left
from socratic_bench.sweeps.engine import SweepEngine
from socratic_bench.sweeps.grid import Cell, Grid, run_id, run_ids_begin_with
from socratic_bench.sweeps.index import CellIndex, curated_bodies, moment
from socratic_bench.sweeps.look import Look
from socratic_bench.sweeps.rows import row_of_curated
from socratic_bench.sweeps.shared import Shared, ask_of_all
from socratic_bench.sweeps.state import SweepState
from socratic_bench.sweeps.under_way import counted
from socratic_bench.version import VERSION

GO_ON = Problem.of("Go on with the same command and {resume}.")


class SweepDisplay(Protocol):
    """Shows people how far a sweep is; it reads the state whenever it likes."""

    def begin(self, sweep_id: str, state: SweepState) -> None: ...

    def notice(self, text: str) -> None: ...

    def failed(self, row: CellRow) -> None: ...

    def end(self) -> None: ...


class SweepResult(Struct, frozen=True, kw_only=True):
    """How a sweep went: `cells` in the order in which they are played, and the rows of those that
    have ended, by key. `error` is what ended it early, `pace` how fast each model was asked,
    `spent_usd` what all of it has cost at most, `None` without a budget.
    """

    asked: Asked
    benchmark: Benchmark
    begun: SweepFile
    cells: tuple[Cell, ...]
    rows: Mapping[str, CellRow]
    error: BenchError | None
    indices: tuple[CellIndex | None, CellIndex | None]
    pace: tuple[ModelPace, ...]
    spent_usd: float | None
    notices: tuple[str, ...]
    started_at: datetime
    completed_at: datetime
    duration_s: float


def perform_sweep(
    asked: Asked,
    *,
    display: SweepDisplay,
    cancel_token: CancelToken,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    call: Callable[[str], str] = str,
) -> SweepResult:
    """Play all that is missing of a sweep. Raises `UsageError` if it cannot begin or go on.

    What is told of cells calls settings as `call` does, which is a function of a module.
    """
    return _Sweeping(asked, display, cancel_token, now, call).result()


class _Sweeping:
    """One sweep in one process."""

    def __init__(
        self,
        asked: Asked,
        display: SweepDisplay,
        cancel_token: CancelToken,
        now: Callable[[], datetime],
        call: Callable[[str], str],
    ) -> None:
        self._asked = asked
        self._settings = asked.settings
        self._display = display
        self._token = cancel_token
        self._now = now
        self._call = call
        self._notices: list[str] = []
        self._pace: tuple[ModelPace, ...] = ()
        self._spent_usd: float | None = None
        config = asked.grid.base
        self._stores = in_time(lambda: ListedStores(config, cancel_token.sleep), cancel_token)
        self._benchmark = load_benchmark(asked.grid.base.benchmark)

    def result(self) -> SweepResult:
        started_at, began_s = self._now(), self._token.monotonic_s()
        self._token.start_deadline(self._asked.grid.base.deadline_s)
        begun = in_time(lambda: self._begun(started_at), self._token)
        grid = replace(self._asked.grid, base=replace(self._asked.grid.base, seed=begun.seed))
        cells = grid.cells()
        indices = [CellIndex(store, begun.sweep_id, self._notice) for store in self._stores.all]
        refusal = f"{begun.sweep_id} is being played by another process."
        with self._stores.alone(f"sweeps/{begun.sweep_id}/lock", refusal):
            rows = in_time(lambda: self._known_rows(begun, cells, indices), self._token)
            error = self._played(begun, grid, cells, rows, indices)
        in_folder, in_bucket = self._placed(indices)
        return SweepResult(
            asked=replace(self._asked, grid=grid),
            benchmark=self._benchmark,
            begun=begun,
            cells=cells,
            rows=rows,
            error=error and _told(error, is_whole=len(rows) == len(cells)),
            indices=(in_folder, in_bucket),
            pace=self._pace,
            spent_usd=self._spent_usd,
            notices=tuple(self._notices),
            started_at=started_at,
            completed_at=self._now(),
            duration_s=self._token.monotonic_s() - began_s,
        )

    def _placed(self, indices: Sequence[CellIndex]) -> tuple[CellIndex | None, CellIndex | None]:
        in_folder = indices[0] if self._stores.folder else None
        return in_folder, indices[-1] if self._stores.bucket else None

    def _begun(self, started_at: datetime) -> SweepFile:
        """The sweep that goes on, or a new one."""
        if self._settings.resume:
            if begun := begun_earlier(self._asked.grid, self._stores.all):
                return begun
            self._notice("There is no sweep of this command line to go on with: a new one begins.")
        seed = self._asked.grid.base.seed
        return SweepFile(
            sweep_id=f"sweep-{ULID()}",
            benchmark=self._benchmark.name,
            identity=self._asked.grid.identity(),
            seed=draw_seed() if seed is None else seed,
            started_at=started_at.isoformat(),
            runner_version=VERSION,
        )

    def _known_rows(
        self, begun: SweepFile, cells: Sequence[Cell], indices: Sequence[CellIndex]
    ) -> dict[str, CellRow]:
        """How cells ended earlier, by the indices, and by the runs that these lack."""
        for index in indices:
            index.begin(begun)
        if not self._settings.resume:
            return {}
        rows: dict[str, CellRow] = {}
        for index in indices:
            rows.update(index.rows())
        rows = {cell.key: rows[cell.key] for cell in cells if cell.key in rows}
        started_at = moment(begun.started_at)
        unknown = {run_id(begun.sweep_id, started_at, one): one for one in cells}
        unknown = {name: one for name, one in unknown.items() if not _is_complete(rows, one)}
        for store in self._stores.all:
            beginning = run_ids_begin_with(started_at)
            for name, body in curated_bodies(store, beginning, unknown.__contains__):
                row = row_of_curated(unknown[name], body, self._benchmark.metrics)
                if row:
                    rows[row.cell] = row
                    for index in indices:
                        index.add(row)
        return rows

    def _played(
        self,
        begun: SweepFile,
        grid: Grid,
        cells: Sequence[Cell],
        rows: dict[str, CellRow],
        indices: Sequence[CellIndex],
    ) -> BenchError | None:
        missing = left(cells, rows, self._settings)
        state = SweepState(cells, rows.values(), self._token.monotonic_s)
        for cell in missing:
            if cell.key in rows:
                state.again(rows.pop(cell.key))
        begun_jobs = self._jobs(begun, grid, missing)
        jobs = begun_jobs[: self._settings.limit]
        self._display.begin(begun.sweep_id, state)

        def keep(row: CellRow) -> None:
            rows[row.cell] = row
            for index in indices:
                index.add(row)
            if row.status != "completed":
                self._display.failed(row)

        control = SweepControl(jobs, state, keep, self._token)
        at_once = min(self._settings.max_connections, len(jobs))
        spent_usd = sum(row.cost_usd or 0.0 for row in rows.values())
        spent_usd += sum(job.counted_usd for job in begun_jobs)
        self._spent_usd = None if grid.base.max_cost_usd is None else spent_usd
        try:
            if at_once:
                self._pace = self._play(control, grid, at_once=at_once, spent_usd=spent_usd)
        finally:
            for index in indices:
                index.flush()
            self._display.end()
        return control.error

    def _jobs(self, begun: SweepFile, grid: Grid, missing: Sequence[Cell]) -> Sequence[CellJob]:
        """The missing cells, each with what it has cost so far if a budget has to know."""
        started_at = moment(begun.started_at)
        ids = {run_id(begun.sweep_id, started_at, cell): cell for cell in missing}
        jobs = [CellJob(cell=cell, run_id=name) for name, cell in ids.items()]
        if not (jobs and self._settings.resume and grid.base.max_cost_usd is not None):
            return jobs
        tables = self._asked.price_tables()
        return in_time(lambda: counted(jobs, grid, self._stores.all, tables), self._token)

    def _play(
        self, control: SweepControl, grid: Grid, *, at_once: int, spent_usd: float
    ) -> tuple[ModelPace, ...]:
        """In this process, or in others of its own; how fast each model was asked."""
        with ExitStack() as stack:
            is_many = self._settings.processes > 1
            folder = stack.enter_context(TemporaryDirectory(prefix="sweep-")) if is_many else None
            shared = self._shared(folder)
            targets = stack.enter_context(shared.rate_targets(self._token.monotonic_s))
            # Other processes have services of their own: one connection is for the look alone.
            own = 1 if is_many else at_once
            services = stack.enter_context(
                shared.services(targets, self._token.monotonic_s, self._notice, own)
            )
            if services.spending:
                services.spending.add(spent_usd)
            look = Look(
                asked=self._asked, tested=control.models, notice=self._notice, call=self._call
            )
            stack.enter_context(look.over(services, self._token))
            if is_many:
                from socratic_bench.sweeps.workers import ProcessPool

                ProcessPool(
                    control=control,
                    grid=grid,
                    shared=shared,
                    n_processes=self._settings.processes,
                    at_once=max(1, at_once - own),
                    notice=self._notice,
                ).play(self._token)
                ask_of_all(targets, grid, self._benchmark)
            else:
                engine = SweepEngine(
                    services=services,
                    grid=grid,
                    benchmark=self._benchmark,
                    listener=control,
                    call=self._call,
                )
                engine.play(control.take, at_once, self._token)
            if services.spending:
                self._spent_usd = services.spending.most_usd
            return targets.report()

    def _shared(self, folder: str | None) -> Shared:
        return Shared(
            price_tables=self._asked.price_tables(),
            targets=self._asked.targets(),
            stall_s=self._settings.stall_min * 60,
            limit_usd=self._asked.grid.base.max_cost_usd,
            folder=folder,
            call=self._call,
        )

    def _notice(self, text: str) -> None:
        self._notices.append(text)
        self._display.notice(text)


def _told(error: BenchError, *, is_whole: bool) -> BenchError:
    """What ended the sweep, with how to go on with it."""
    told = error.copied()
    told.hints = error.hints if is_whole else (*error.hints, GO_ON)
    return told


def _is_complete(rows: Mapping[str, CellRow], cell: Cell) -> bool:
    row = rows.get(cell.key)
    return row is not None and row.status == "completed"
