"""A stored sweep as a whole, whichever machines play it: how far it is, and its document.

Nothing is asked of its processes: all is read from the store.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.concurrency import decode
from socratic_bench.documents import sweep_status
from socratic_bench.documents.journal import LeaseFile
from socratic_bench.documents.sweep import CellRow, FailedCell, SweepFile, Value
from socratic_bench.documents.sweep_status import MissingRun, ModelStatus, UnfinishedRun
from socratic_bench.errors import UsageError
from socratic_bench.settings import Gate
from socratic_bench.storage.folder import FolderStore
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.lease import CLOCK_GRAIN_S
from socratic_bench.storage.stores import ListedStore, Region, store_at
from socratic_bench.studies.gates import FigureBound
from socratic_bench.studies.places import (
    CellIndex,
    begun_sweeps,
    curated_bodies,
    place_of,
    plan_of,
    run_id,
    run_ids_begin_with,
)
from socratic_bench.studies.sweep.engine import row_of_curated
from socratic_bench.studies.sweep.grid import MODEL, Axis, Cell, Grid
from socratic_bench.studies.sweep.request import SweepRequest
from socratic_bench.studies.sweep.settings import SweepSettings
from socratic_bench.studies.sweep.spending import Ledger
from socratic_bench.studies.sweep.status import CellStatus, SweepReader, SweepStatus
from socratic_bench.studies.sweep.sweep import SweepResult


class StoredSweep:
    """A sweep of a store, read as often as one likes.

    `place` is a folder or prefix, of which the newest sweep is taken, or PLACE/sweeps/SWEEP_ID.
    Raises `UsageError` if there is none, and `ArtifactError` if the store cannot be read.
    """

    def __init__(self, place: str, region: Region) -> None:
        named = place_of(place)
        self._store = store_at(named.root, region)
        sweeps = begun_sweeps(self._store)
        begun = next((s for s in sweeps if named.sweep_id in (None, s.sweep_id)), None)
        if begun is None:
            raise UsageError([f"There is no sweep in {place}."])
        self.begun = begun
        self._index = CellIndex(self._store, begun.sweep_id, lambda _: None)
        self._reader = SweepReader(self._store, begun)

    def status(self) -> sweep_status.SweepStatus:
        """How far it is now."""
        read, now = self._reader.read(), datetime.now(UTC)
        cells = {run_id(self.begun, cell.key): cell for cell in self._keyed_cells()}
        unfinished = [
            _unfinished(self._store, run, cells.get(run.run_id), now)
            for run in read.cells
            if run.state in ("running", "pending", "judging")
        ]
        failed = [
            _to_failed_cell(run, cells[run.run_id]) for run in read.cells if run.run_id in cells
        ]
        is_there = {run.run_id for run in read.cells} - {
            run.run_id for run in unfinished if not run.is_running
        }
        models = [*_models(read, unfinished)]
        n_completed = read.count("completed")
        return sweep_status.SweepStatus(
            sweep_id=self.begun.sweep_id,
            benchmark=self.begun.benchmark,
            place=self._store.location("").rstrip("/"),
            started_at=self.begun.started_at,
            is_done=read.is_complete,
            n_runs=read.n_runs,
            n_completed=n_completed,
            n_running=sum(run.is_running for run in unfinished),
            n_failed=read.count("failed"),
            n_missing=read.n_missing - sum(run.is_running for run in unfinished),
            spent_usd=read.spent_usd,
            models=models,
            unfinished=unfinished,
            failed=[*filter(None, failed)],
            missing=[
                MissingRun(key=cell.key, run_id=name, axes=_axes(cell), repeat=cell.repeat)
                for name, cell in cells.items()
                if name not in is_there
            ],
        )

    def result(self) -> SweepResult:
        """As if one process had played all of it until now."""
        begun, now = self.begun, datetime.now(UTC)
        rows = self._rows()
        grid, cells = _plan(begun, rows)
        ledger = Ledger([self._store], begun.sweep_id, "")
        spent_usd = ledger.spent_usd if ledger.has_budget else None
        started_at = datetime.fromisoformat(begun.started_at)
        is_folder = isinstance(self._store, FolderStore)
        gates = (Gate(gate.metric, gate.bound, gate.side) for gate in begun.gates)
        return SweepResult(
            request=SweepRequest(
                settings=SweepSettings(repeats=grid.repeats),
                grid=grid,
                bounds=tuple(map(FigureBound.of, gates)),
            ),
            benchmark=load_benchmark(begun.benchmark),
            begun=begun,
            cells=cells,
            rows=rows,
            error=None,
            indices=(self._index, None) if is_folder else (None, self._index),
            pace=(),
            spent_usd=spent_usd,
            n_paid=len(cells) if spent_usd is not None and len(rows) == len(cells) else None,
            notices=(),
            started_at=started_at,
            completed_at=now,
            duration_s=(now - started_at).total_seconds(),
        )

    def _rows(self) -> dict[str, CellRow]:
        """By the index, and by the curated files that a killed process has not put there."""
        rows, benchmark = self._index.rows(), load_benchmark(self.begun.benchmark)
        complete = {row.run_id for row in rows.values() if row.status == "completed"}
        cells = {run_id(self.begun, cell.key): cell for cell in self._keyed_cells()}
        unknown = cells.keys() - complete
        beginning = run_ids_begin_with(self.begun)
        for name, body in curated_bodies(self._store, beginning, unknown.__contains__):
            cell = cells[name]
            with suppress(msgspec.MsgspecError):
                cell = replace(cell, seed=decode(body, _Seeded).seed)
            if row := row_of_curated(cell, name, body, benchmark):
                rows[row.key] = row
        return rows

    def _keyed_cells(self) -> Sequence[Cell]:
        """The cells of the plan; none if an earlier program has not stored their keys."""
        return _plan(self.begun, {})[1] if self.begun.keys is not None else ()


class _Seeded(Struct):
    seed: int


def _plan(begun: SweepFile, rows: Mapping[str, CellRow]) -> tuple[Grid, tuple[Cell, ...]]:
    """The grid of a sweep, and its cells with their keys; an earlier program has stored only those
    of runs that ended.
    """
    plan = plan_of(begun, [row.axes for row in rows.values()])
    grid = Grid(
        base=RunConfig(
            model="", benchmark=begun.benchmark, seed=begun.seed, offline=begun.is_simulated
        ),
        axes=tuple(Axis(name, (*values,)) for name, values in plan.items()),
        repeats=begun.repeats or max((row.repeat for row in rows.values()), default=1),
    )
    keys = {_place(row.axes, row.repeat): row.key for row in rows.values()}
    cells = []
    for n, (repeat, values) in enumerate(grid.in_order()):
        key = begun.keys[n] if begun.keys is not None else keys.get(_place(values, repeat))
        cells.append(Cell(key=key or f"missing {n}", values=values, repeat=repeat, seed=0))
    return grid, tuple(cells)


def _place(values: Mapping[str, object], repeat: int) -> tuple[str, int]:
    return repr(sorted(values.items())), repeat


def _axes(cell: Cell) -> dict[str, Value]:
    return {**cell.values}  # type: ignore[dict-item] # they are values of axes


def _models(read: SweepStatus, unfinished: Sequence[UnfinishedRun]) -> Iterator[ModelStatus]:
    names = read.axes.get(MODEL, ())
    for name in names:
        states = [run.state for run in read.cells if run.axes.get(MODEL) == name]
        n_running = sum(run.is_running for run in unfinished if run.axes.get(MODEL) == name)
        n_completed, n_failed = states.count("completed"), states.count("failed")
        n_runs = read.n_runs // len(names)
        yield ModelStatus(
            model=str(name),
            n_runs=n_runs,
            n_completed=n_completed,
            n_running=n_running,
            n_failed=n_failed,
            n_missing=max(0, n_runs - n_completed - n_failed - n_running),
        )


def _to_failed_cell(run: CellStatus, cell: Cell) -> FailedCell | None:
    if run.state != "failed" or run.end_reason is None:
        return None
    return FailedCell(
        key=cell.key,
        run_id=run.run_id,
        axes=_axes(cell),
        repeat=cell.repeat,
        end_reason=run.end_reason,
        error=run.error,
    )


def _unfinished(
    store: ListedStore, run: CellStatus, cell: Cell | None, now: datetime
) -> UnfinishedRun:
    return UnfinishedRun(
        run_id=run.run_id,
        key=cell.key if cell else None,
        axes={**run.axes},
        repeat=cell.repeat if cell else None,
        n_turns=run.turn,
        is_pending=run.state == "pending",
        is_running=_is_played(store, RunKeys(run.run_id)),
        age_seconds=run.age_s(now),
    )


def _is_played(store: ListedStore, keys: RunKeys) -> bool:
    """Whether a living process has locked a run's journal, or holds its lease in a bucket, by the
    bucket's own clock.
    """
    if isinstance(store, FolderStore):
        return store.holds(keys.journal_file) and store.is_locked(keys.journal_file)
    body, age_s = store.get(keys.lease), store.age_s(keys.lease)
    if body is None or age_s is None:
        return False
    try:
        lease = decode(body, LeaseFile)
    except ValueError:
        return False
    return not lease.released and age_s <= lease.ttl_s + CLOCK_GRAIN_S
