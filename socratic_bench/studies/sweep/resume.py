"""What earlier processes of a sweep have done: rows, cells to play, costs, last requests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.prices import PriceTable
from socratic_bench.concurrency import decode
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.run import StoredGate
from socratic_bench.documents.sweep import CellRow, SweepFile
from socratic_bench.errors import EXIT_GATE, MOST_SHOWN, BenchError
from socratic_bench.journal.replay import ReplayLog
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.ports.store import Entry
from socratic_bench.runs import prepare
from socratic_bench.runs.gates import is_judged_enough
from socratic_bench.runs.models import earlier_usd, new_budget
from socratic_bench.settings import table
from socratic_bench.storage.keys import RunKeys, index_of
from socratic_bench.storage.replicated_journal import distinct
from socratic_bench.storage.stores import ListedBucket, ListedStore
from socratic_bench.studies.gates import FigureBound
from socratic_bench.studies.places import (
    CURATED,
    RAW,
    CellIndex,
    begun_sweeps,
    curated_bodies,
    run_id,
    run_ids_begin_with,
)
from socratic_bench.studies.sweep.engine import row_of_curated
from socratic_bench.studies.sweep.grid import Axis, Cell, Grid
from socratic_bench.studies.sweep.settings import SweepSettings
from socratic_bench.types import plural


def find_sweep(grid: Grid, stores: Iterable[ListedStore]) -> SweepFile | None:
    """The newest sweep in the stores whose cells have the same in common, if there is one."""
    identity = grid.identity()
    sweeps = (sweep for store in stores for sweep in begun_sweeps(store))
    same = [sweep for sweep in sweeps if sweep.identity == identity]
    return max(same, key=lambda sweep: sweep.sweep_id, default=None)


def agree_on_beginning(begun: SweepFile, store: ListedStore) -> SweepFile:
    """Of processes that start at once, all play the first one's. Raises `ArtifactError`."""

    def first(body: bytes | None) -> bytes | None:
        nonlocal begun
        with suppress(ValueError):
            if body is not None:
                begun = decode(body, SweepFile)
                return None
        return encode(plain_keys(begun))

    store.update(f"{index_of(begun.identity)}sweep.json", first)
    return begun


def with_plan(begun: SweepFile, grid: Grid, bounds: Iterable[FigureBound]) -> SweepFile:
    """The beginning of a sweep with the plan of its grid, added to an earlier plan. A sweep of an
    earlier program has no plan, and its rows may have values of which this grid has none: it stays
    as it is.
    """
    if begun.axes is None:
        return begun
    axes = {axis.name: axis.values for axis in grid.axes}
    plan = {
        name: [*dict.fromkeys([*begun.axes.get(name, ()), *axes.get(name, ())])]
        for name in {**begun.axes, **axes}
    }
    whole = replace(
        grid,
        base=replace(grid.base, seed=begun.seed),
        axes=tuple(Axis(name, tuple(values)) for name, values in plan.items()),
        repeats=max(begun.repeats or 1, grid.repeats),
    )
    return replace(
        begun,
        axes=plan,
        repeats=whole.repeats,
        keys=[cell.key for cell in whole.cells()],
        gates=[
            StoredGate(metric=gate.metric, bound=gate.bound, side=gate.side)
            for gate in (bound.gate for bound in bounds)
        ],
        is_simulated=grid.base.offline,
    )


def read_rows(
    begun: SweepFile,
    cells: Sequence[Cell],
    indices: Sequence[CellIndex],
    stores: Iterable[ListedStore],
    benchmark: Benchmark,
) -> dict[str, CellRow]:
    """How cells of the sweep ended earlier, by the indices, and how the given ones did by the runs
    that these lack, with which the indices are mended.
    """
    rows: dict[str, CellRow] = {}
    for index in indices:
        rows.update(index.rows())
    complete = {row.key for row in rows.values() if row.status == "completed"}
    unknown = {run_id(begun, cell.key): cell for cell in cells if cell.key not in complete}
    beginning = run_ids_begin_with(begun)
    for store in stores:
        for name, body in curated_bodies(store, beginning, unknown.__contains__):
            if row := row_of_curated(unknown[name], name, body, benchmark):
                rows[row.key] = row
                for index in indices:
                    index.add(row)
    return rows


def look_at_files(
    begun: SweepFile,
    cells: Sequence[Cell],
    rows: dict[str, CellRow],
    stores: Iterable[ListedStore],
    benchmark: Benchmark,
) -> dict[str, Sequence[str]]:
    """The stored files of complete cells that are missing, no files, or others than the index has,
    by run; the rows of these runs are removed. A run that has got more turns by itself gets a row
    by its own document. A store that has none of the files is new if another one has some, and not
    damaged.
    """
    damaged: dict[str, Sequence[str]] = {}
    beginning = run_ids_begin_with(begun)
    complete = {
        row.run_id: (cell, row)
        for cell in cells
        if (row := rows.get(cell.key)) and row.status == "completed"
    }
    sizes_by_store = [
        (store, {**store.sizes(f"{CURATED}{beginning}"), **store.sizes(f"{RAW}{beginning}")})
        for store in stores
    ]
    are_all_gone = not any(sizes for _, sizes in sizes_by_store)
    for store, sizes in sizes_by_store:
        files_there = {name for name in complete if RunKeys(name).curated in sizes}
        others = {
            name: body
            for name, body in curated_bodies(store, beginning, files_there.__contains__)
            if (digest := complete[name][1].curated_sha256) and sha256(body).hexdigest() != digest
        }
        for name, (cell, row) in complete.items() if sizes or are_all_gone else ():
            curated = RunKeys(name).curated
            files = row.files or {curated: sizes.get(curated) or 1}
            keys = [key for key, n_bytes in files.items() if sizes.get(key) != n_bytes]
            changed = None
            if name in others:
                own_sizes = {key: n for key, n in sizes.items() if name in key and n}
                changed = row_of_curated(cell, name, others[name], benchmark, own_sizes)
            if changed and changed.n_turns > row.n_turns:
                rows[cell.key] = changed
            elif keys or name in others:
                damaged[name] = keys or [curated]
    for name in damaged:
        rows.pop(complete[name][0].key, None)
    return damaged


def damage_messages(
    damaged: Mapping[str, Sequence[str]], stores: Sequence[ListedStore]
) -> Iterator[str]:
    """What people are told of damaged files. A run without a journal can only be played again."""
    has_journal = {name: any(journal_entries(store, name) for store in stores) for name in damaged}
    for is_restored, how in (
        (True, "restored from the journal"),
        (False, "and no journal: played again, by new calls"),
    ):
        runs = [keys for name, keys in damaged.items() if has_journal[name] == is_restored]
        keys = [key for keys in runs for key in keys]
        more = f" and {len(keys) - MOST_SHOWN} more" if len(keys) > MOST_SHOWN else ""
        have = plural(len(runs), "complete run has", "complete runs have")
        if runs:
            listed = ", ".join(keys[:MOST_SHOWN])
            yield f"{have} missing or damaged files, {how}: {listed}{more}."


def gate_again(
    begun: SweepFile, rows: Mapping[str, CellRow], stores: Iterable[ListedStore], base: RunConfig
) -> dict[str, CellRow]:
    """The rows of complete cells by the judge coverage that this command asks for, which their runs
    may not have had. Runs are read only where that may change a result: where it is another than
    usual, or a cell has missed a gate.
    """
    usual = table(RunConfig)["min_judge_coverage"].default
    is_usual = base.min_judge_coverage == usual
    complete = (row for row in rows.values() if row.status == "completed")
    unsure = {row.run_id: row for row in complete if row.exit_code == EXIT_GATE or not is_usual}
    changed: dict[str, CellRow] = {}
    for store in stores if unsure else ():
        beginning = run_ids_begin_with(begun)
        for name, body in curated_bodies(store, beginning, unsure.__contains__):
            row = unsure[name]
            with suppress(msgspec.MsgspecError, KeyError, TypeError):  # else it stays as it was
                changed[row.key] = _gated(row, msgspec.json.decode(body), base)
    return changed


def _gated(row: CellRow, document: dict[str, Any], base: RunConfig) -> CellRow:
    judge = document["judge"]
    judged, unjudged = (judge["judged_turns"], judge["unjudged_turns"]) if judge else (0, 0)
    is_covered = partial(is_judged_enough, n_turns=judged + unjudged, n_judged=judged)
    thresholds = document["thresholds"]
    # What it missed beside the coverage, such as unread answers, it still misses. Gates of a single
    # run are no longer given in a sweep.
    is_of_else = not thresholds["fail_under"] and is_covered(thresholds["min_judge_coverage"])
    is_short = (judge is not None and not is_covered(base.min_judge_coverage)) or (
        row.exit_code == EXIT_GATE and (judge is None or is_of_else)
    )
    if is_short == (row.exit_code == EXIT_GATE):
        return row
    return replace(row, exit_code=EXIT_GATE if is_short else 0, error=None)


def cells_to_play(
    cells: Sequence[Cell], rows: Mapping[str, CellRow], settings: SweepSettings
) -> list[Cell]:
    """Cells that have not ended, and those that failed if they are to be tried again."""
    return [
        cell
        for cell in cells
        if (row := rows.get(cell.key)) is None
        or (row.status != "completed" and settings.retry_failed)
    ]


READERS = 16


def read_journals(
    run_ids: Iterable[str], stores: Sequence[ListedStore], without: frozenset[str] = frozenset()
) -> dict[str, ReplayLog]:
    """The calls of these runs, by id, less those of processes `without`, by their names in the
    sweep's ledger. A journal that cannot be read is left out: its run says so itself once it is to
    go on.
    """

    def read(run_id: str) -> ReplayLog | None:
        entries = distinct([e for store in stores for e in journal_entries(store, run_id)])
        with suppress(BenchError):
            return ReplayLog([*_without(without, entries.values())])
        return None

    ids = [*run_ids]
    with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
        logs = zip(ids, pool.map(read, ids), strict=True)
        return {run_id: log for run_id, log in logs if log}


def journalled_usd(
    cells: Mapping[str, Cell],
    grid: Grid,
    rows: Iterable[CellRow],
    stores: Sequence[ListedStore],
    tables: dict[str, PriceTable],
    without: frozenset[str],
) -> float:
    """What runs of a sweep, by id, have cost, in USD at most, by their journals, or by their rows
    where these have none. `without`: see `read_journals`.
    """
    usd = {row.run_id: row.cost_usd or 0.0 for row in rows}
    for name, log in read_journals(cells, stores, without).items():
        with suppress(BenchError):  # the run says so itself once it is to go on
            plan = prepare(grid.config(cells[name]), price_tables=tables)
            usd[name] = earlier_usd(new_budget(plan, None, lambda _: None), plan, log)
    return sum(usd.values())


def _without(processes: frozenset[str], entries: Iterable[Entry]) -> Iterator[Entry]:
    """The beginning of a journal, and what all but these processes added."""
    is_counted = True
    for entry in entries:
        if entry.get("kind") == "process":
            is_counted = entry.get("in_ledger") not in processes
        if is_counted:
            yield entry


def journal_entries(store: ListedStore, run_id: str) -> list[Entry]:
    """Of a run's journal: one file in a folder, and an object an entry in a bucket."""
    keys = RunKeys(run_id)
    if not isinstance(store, ListedBucket):
        return [*_read((store.get(keys.journal_file) or b"").splitlines())]
    names = sorted(key for key in store.keys(keys.journal) if key != keys.lease)
    links = _read(store.get(name) or b"" for name in names)
    return [entry for link in links if isinstance(entry := link.get("entry"), dict)]


def _read(lines: Iterable[bytes]) -> Iterator[Entry]:
    for line in lines:
        with suppress(msgspec.DecodeError):  # the last one, of a process that was killed
            yield msgspec.json.decode(line, type=dict)
