"""A sweep from its beginning to its end: what is to be played, playing it, and what it came to."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from functools import partial
from math import inf

from msgspec import Struct
from msgspec.structs import replace
from ulid import ULID

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.sweep import CellRow, SweepFile
from socratic_bench.documents.usage import ModelThroughput
from socratic_bench.errors import ArtifactError, BenchError, Naming, Problem
from socratic_bench.models.batch import BatchJobs
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.cancel import CancelToken, run_cancellable
from socratic_bench.models.events import NOTED_WITHIN_S
from socratic_bench.models.rate_limiter import RateTargets
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.runs import Plan, prepare
from socratic_bench.runs.batches import ways
from socratic_bench.runs.context import utc_now
from socratic_bench.runs.prepare import draw_seed
from socratic_bench.runs.services import Services
from socratic_bench.storage.keys import index_of
from socratic_bench.storage.stores import ListedStores
from socratic_bench.studies.places import CellIndex, run_id, run_ids_begin_with
from socratic_bench.studies.sweep.engine import (
    SweepControl,
    SweepDisplay,
    SweepEngine,
    SweepState,
    Traced,
    untraced,
)
from socratic_bench.studies.sweep.grid import Cell, CellJob, Grid, kind_key
from socratic_bench.studies.sweep.preflight import Preflight
from socratic_bench.studies.sweep.request import SweepRequest
from socratic_bench.studies.sweep.resume import (
    agree_on_beginning,
    cells_to_play,
    damage_messages,
    find_sweep,
    gate_again,
    journalled_usd,
    look_at_files,
    read_journals,
    read_rows,
    with_plan,
)
from socratic_bench.studies.sweep.spending import LOOK, UNBOUNDED_USD, CellBudget, Ledger
from socratic_bench.version import VERSION

# A resumed sweep with targets sends nothing before the last earlier request is this old: a minute,
# how much later than its journal entry a request may be sent, and the whole seconds of rows.
QUIET_S = 60.0 + NOTED_WITHIN_S + 1.0
GO_ON = Problem.of("Run the same command with {resume}.")


class SweepResult(Struct, frozen=True, kw_only=True):
    """How a sweep went: `cells` in the order in which they are played, and the rows of those that
    have ended, by key. `error` is what ended it early, `pace` how fast each model was asked,
    `spent_usd` what all of it has cost at most, and `n_paid` the cells that the budget pays for;
    both are `None` without a budget.
    """

    request: SweepRequest
    benchmark: Benchmark
    begun: SweepFile
    cells: tuple[Cell, ...]
    rows: Mapping[str, CellRow]
    error: BenchError | None
    indices: tuple[CellIndex | None, CellIndex | None]
    pace: tuple[ModelThroughput, ...]
    spent_usd: float | None
    n_paid: int | None
    notices: tuple[str, ...]
    started_at: datetime
    completed_at: datetime
    duration_s: float


def perform_sweep(
    request: SweepRequest,
    *,
    display: SweepDisplay,
    cancel_token: CancelToken,
    now: Callable[[], datetime] = utc_now,
    call: Naming = str,
    traced: Traced = untraced,
) -> SweepResult:
    """Play all that is missing of a sweep. Raises `UsageError` if it cannot begin or go on. What is
    told of cells calls settings as `call` does, which is a function of a module.
    """
    process = _SweepProcess(request, display, cancel_token, now, call)
    process.traced = traced
    return process.result()


class _SweepProcess:
    """One sweep in one process."""

    def __init__(
        self,
        request: SweepRequest,
        display: SweepDisplay,
        cancel_token: CancelToken,
        now: Callable[[], datetime],
        call: Naming,
    ) -> None:
        self._asked = request
        self._settings = request.settings
        self._display = display
        self._token = cancel_token
        self._now = now
        self._call = call
        self.traced: Traced = untraced
        self._called = threading.Event()  # set as the first call of a cell begins
        self._notices: list[str] = []
        self._pace: tuple[ModelThroughput, ...] = ()
        self._spent_usd: float | None = None
        self._n_paid: int | None = None
        self._damaged: Mapping[str, Sequence[str]] = {}  # keys of stored files, by run
        self._last_request_at: datetime | None = None
        config = request.grid.base
        self._stores = run_cancellable(
            lambda: ListedStores(config, cancel_token.sleep), cancel_token
        )
        self._benchmark = load_benchmark(request.grid.base.benchmark)

    def result(self) -> SweepResult:
        started_at, began_s = self._now(), self._token.monotonic_s()
        deadline_s = self._asked.grid.base.deadline_s
        self._token.start_deadline(deadline_s, self._benchmark.shorter)
        identity = self._asked.grid.identity()
        # Lock out others that may begin the same sweep.
        with (
            self._stores.exclusive(f"{index_of(identity)}lock")
            if self._settings.resume
            else nullcontext()
        ):
            begun = run_cancellable(lambda: self._begin(started_at), self._token)
        grid = replace(self._asked.grid, base=replace(self._asked.grid.base, seed=begun.seed))
        cells = replace(self._asked, grid=grid).cells
        indices = [CellIndex(store, begun.sweep_id, self._notice) for store in self._stores.all]
        refusal = f"{begun.sweep_id} is in use by another process."
        with ExitStack() as stack:
            place = f"sweeps/{begun.sweep_id}"
            if not self._asked.share:  # shards play beside each other
                stack.enter_context(self._stores.exclusive(f"{place}/lock", refusal))
            stack.enter_context(
                self._stores.shared(f"{place}/processes.lock", lambda: self._remove_drafts(begun))
            )
            earlier = run_cancellable(lambda: self._read_rows(begun, cells, indices), self._token)
            rows = {cell.key: earlier[cell.key] for cell in cells if cell.key in earlier}
            self._note_requests(
                datetime.fromisoformat(row.completed_at) for row in earlier.values()
            )
            error = self._play_missing(begun, grid, cells, rows, indices)
        if error and len(rows) < len(cells):
            error = error.copied()
            error.hints = (*error.hints, GO_ON)
        in_folder = indices[0] if self._stores.folder else None
        in_bucket = indices[-1] if self._stores.bucket else None
        return SweepResult(
            request=replace(self._asked, grid=grid),
            benchmark=self._benchmark,
            begun=begun,
            cells=cells,
            rows=rows,
            error=error,
            indices=(in_folder, in_bucket),
            pace=self._pace,
            spent_usd=self._spent_usd,
            n_paid=self._n_paid,
            notices=tuple(self._notices),
            started_at=started_at,
            completed_at=self._now(),
            duration_s=self._token.monotonic_s() - began_s,
        )

    def _begin(self, started_at: datetime) -> SweepFile:
        """The sweep that goes on, or a new one."""
        if self._settings.resume:
            if begun := find_sweep(self._asked.grid, self._stores.all):
                return with_plan(begun, self._asked.grid, self._asked.bounds)
            if not self._asked.share:
                self._notice("No earlier sweep has these settings: starting a new one.")
        seed = self._asked.grid.base.seed
        begun = SweepFile(
            sweep_id=f"sweep-{ULID()}",
            benchmark=self._benchmark.name,
            identity=self._asked.grid.identity(),
            seed=draw_seed() if seed is None else seed,
            started_at=started_at.isoformat(),
            runner_version=VERSION,
            axes={},
        )
        if self._settings.resume:
            begun = agree_on_beginning(begun, self._stores.all[-1])
        return with_plan(begun, self._asked.grid, self._asked.bounds)

    def _read_rows(
        self, begun: SweepFile, cells: Sequence[Cell], indices: Sequence[CellIndex]
    ) -> dict[str, CellRow]:
        """How cells of the sweep ended earlier, these and others."""
        for index in indices:
            index.begin(begun)
        if not self._settings.resume:
            return {}
        stores = self._stores.all
        rows = read_rows(begun, cells, indices, stores, self._benchmark)
        self._damaged = look_at_files(begun, cells, rows, stores, self._benchmark)
        for text in damage_messages(self._damaged, stores):
            self._notice(text)
        return {**rows, **gate_again(begun, rows, stores, self._asked.grid.base)}

    def _remove_drafts(self, begun: SweepFile) -> None:
        """Remove half-written files of killed processes, while no process plays the sweep."""
        if folder := self._stores.folder:
            for name in (f"sweeps/{begun.sweep_id}", f"sweeps/{begun.sweep_id}/cells"):
                folder.remove_drafts(name)
            folder.remove_drafts("curated/runs", run_ids_begin_with(begun))

    def _play_missing(
        self,
        begun: SweepFile,
        grid: Grid,
        cells: Sequence[Cell],
        rows: dict[str, CellRow],
        indices: Sequence[CellIndex],
    ) -> BenchError | None:
        missing = cells_to_play(cells, rows, self._settings)
        state = SweepState(cells, rows.values(), self._token.monotonic_s)
        for cell in missing:
            if cell.key in rows:
                state.count(rows.pop(cell.key).model, n_failed=-1)
        all_jobs = self._jobs(begun, grid, missing)
        jobs = all_jobs[: self._settings.limit]
        self._display.begin(begun.sweep_id, state)

        def keep(row: CellRow) -> None:
            rows[row.key] = row
            for index in indices:
                index.add(row)
            if row.status != "completed":
                self._display.failed(row)

        control = SweepControl(jobs, state, keep, self._token)
        try:
            with self._spending(begun, grid, rows, is_to_play=bool(jobs)) as budget:
                control.budget = budget
                if jobs and not control.is_unpaid():
                    self._pace = self._play(control, begun, grid, n_jobs=len(jobs))
                rows.update(self._rows_of_others(control, begun, cells, rows, indices))
                unfinished = [job for job in all_jobs if job.cell.key not in rows]
                self._n_paid = budget.n_covered(unfinished) + state.n_completed if budget else None
        finally:
            for index in indices:
                index.flush()
            self._display.end()
        return control.error

    def _rows_of_others(
        self,
        control: SweepControl,
        begun: SweepFile,
        cells: Sequence[Cell],
        rows: Mapping[str, CellRow],
        indices: Sequence[CellIndex],
    ) -> Mapping[str, CellRow]:
        """How cells have ended meanwhile that another process played."""
        left = [cell for cell in cells if cell.key not in rows] if control.n_elsewhere else []
        stores = self._stores.all if left else ()
        ended = read_rows(begun, left, indices if left else (), stores, self._benchmark)
        return {cell.key: ended[cell.key] for cell in left if cell.key in ended}

    @contextmanager
    def _look_limit(self, sweep_id: str) -> Iterator[SpendingLimit]:
        """What the look of a process without a budget spends from: journals do not have it."""
        ledger = Ledger(self._stores.all, sweep_id, f"{ULID()}{LOOK}")
        limit = SpendingLimit(UNBOUNDED_USD, partial(ledger.keep, inf))
        try:
            yield limit
        finally:
            with suppress(ArtifactError):  # more than was spent is noted
                ledger.keep(inf, limit.close())

    @contextmanager
    def _spending(
        self, begun: SweepFile, grid: Grid, rows: Mapping[str, CellRow], *, is_to_play: bool
    ) -> Iterator[CellBudget | None]:
        """The budget, of which all processes of the sweep have spent; `None` without one."""
        stores, limit_usd = self._stores.all, grid.base.max_cost_usd
        share, most_usd = self._asked.share, self._asked.sweep_max_cost_usd
        ledger = Ledger(
            stores,
            begun.sweep_id,
            str(ULID()),
            shard=f"shard-{share.index}-of-{share.count}-" if share else "",
            most_usd=inf if most_usd is None else most_usd,
        )
        if limit_usd is None:
            if is_to_play:
                ledger.note_no_budget()
            yield None
            return
        ledger.check()
        tables = self._asked.price_tables()
        # A shard that finds no ledger is among the first processes of the sweep.
        is_counted = not (share and ledger.is_new)
        if ledger.needs_journals and self._settings.resume and is_counted:
            cells = {run_id(begun, cell.key): cell for cell in grid.cells()}
            usd = journalled_usd(cells, grid, rows.values(), stores, tables, ledger.processes)
            ledger.add_journals(usd)
            if ledger.is_new and usd:
                self._notice("What was spent so far is counted by the journals, without looks.")
        limit = SpendingLimit(limit_usd, partial(ledger.keep, limit_usd), ledger.process)
        try:
            yield CellBudget(limit, grid, tables)
        finally:
            with suppress(ArtifactError):  # more than was spent is noted
                ledger.close(limit.close())
            self._spent_usd = max(limit.most_usd, ledger.spent_usd)

    def _jobs(self, begun: SweepFile, grid: Grid, missing: Sequence[Cell]) -> Sequence[CellJob]:
        """The missing cells, each with the calls that it has made so far if there is a budget."""
        ids = {run_id(begun, cell.key): cell for cell in missing}
        jobs = [
            CellJob(cell=cell, run_id=name, order=n, is_damaged=name in self._damaged)
            for n, (name, cell) in enumerate(ids.items(), start=1)
        ]
        has_budget, has_targets = grid.base.max_cost_usd is not None, bool(self._asked.targets())
        if not (jobs and self._settings.resume and (has_budget or has_targets)):
            return jobs
        logs = run_cancellable(lambda: read_journals(ids, self._stores.all), self._token)
        for log in logs.values():
            self._note_requests(attempt.started_at for attempt, _ in log.requests())
        roles = self._benchmark.cast.roles
        n_calls = {
            name: {role: len(log.completions(role)) for role in roles} for name, log in logs.items()
        }
        return [replace(job, n_calls=n_calls.get(job.run_id, {})) for job in jobs]

    def _note_requests(self, moments: Iterable[datetime]) -> None:
        """Remember when earlier processes sent their last request, at the latest."""
        self._last_request_at = max(filter(None, (*moments, self._last_request_at)), default=None)

    def _await_targets(self) -> None:
        """Wait until what earlier processes sent counts in no minute that is yet to end."""
        if self._last_request_at is None or not self._asked.targets():
            return
        quiet_at = self._last_request_at + timedelta(seconds=QUIET_S)
        wait_s = min(QUIET_S, (quiet_at - self._now()).total_seconds())
        if wait_s > 0:
            self._notice(
                f"The first request waits {wait_s:.0f} s: targets hold for what was sent in the "
                "last minute, too."
            )
            with suppress(BenchError):  # the token has what ended the sweep meanwhile
                self._token.sleep(wait_s)

    def _play(
        self, control: SweepControl, begun: SweepFile, grid: Grid, *, n_jobs: int
    ) -> tuple[ModelThroughput, ...]:
        """Play the cells; how fast each model was called."""
        budget = control.budget
        self._await_targets()
        settings = self._settings
        targets = RateTargets(
            self._asked.targets(),
            stall_s=settings.stall_min * 60,
            monotonic_s=self._token.monotonic_s,
        )
        services = Services(
            monotonic_s=self._token.monotonic_s,
            rate_targets=targets,
            spending=budget.limit if budget else None,
            max_connections=settings.max_connections,
            on_narrowed=lambda narrowed: self._notice(f"{narrowed}."),
            batch_jobs=BatchJobs(n_jobs),
        )
        with ExitStack() as stack:
            stack.enter_context(services)
            services.price_tables.update(self._asked.price_tables())
            look = Preflight(
                request=self._asked,
                tested=control.models,
                notice=self._notice,
                new_limit=nullcontext if budget else partial(self._look_limit, begun.sweep_id),
                call=self._call,
            )
            stack.enter_context(look.over(services, self._token, self._called))
            engine = SweepEngine(
                services=services,
                grid=grid,
                benchmark=self._benchmark,
                control=control,
                call=self._call,
                called=self._called,
                traced=self.traced,
            )
            # Cells whose calls go by batch jobs wait for each other, so that all have one job.
            has_batches = any("batch" in ways(plan) for plan in self._plans(control, grid))
            at_once = n_jobs if has_batches else min(settings.max_connections, n_jobs)
            engine.play(at_once, self._token)
            return targets.report()

    def _plans(self, control: SweepControl, grid: Grid) -> Iterator[Plan]:
        """One plan for each kind of cell, where calls may go by batch jobs."""
        if {grid.base.via, grid.base.judge_via} == {"now"} or control.budget:
            return
        kinds = {kind_key(cell.values): cell for cell in control.cells}
        for cell in kinds.values():
            yield prepare(grid.config(cell), price_tables=self._asked.price_tables())

    def _notice(self, text: str) -> None:
        self._notices.append(text)
        self._display.notice(text)
