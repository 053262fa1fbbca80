"""What earlier processes of a sweep have left to be played."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.sweep import CellRow, SweepFile
from socratic_bench.errors import EXIT_GATE
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.runs.gates import has_gate_failures
from socratic_bench.settings import table
from socratic_bench.storage.stores import ListedStore
from socratic_bench.studies.sweep.grid import Cell, Grid, run_id, run_ids_begin_with
from socratic_bench.studies.sweep.index import CellIndex, begun_sweeps, curated_bodies
from socratic_bench.studies.sweep.rows import row_of_curated
from socratic_bench.studies.sweep.settings import SweepSettings


def begun_earlier(grid: Grid, stores: Iterable[ListedStore]) -> SweepFile | None:
    """The newest sweep in the stores whose cells have the same in common, if there is one."""
    identity = grid.identity()
    found = [one for store in stores for one in begun_sweeps(store) if one.identity == identity]
    return max(found, key=lambda one: one.sweep_id, default=None)


def known_rows(
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
    complete = {row.cell for row in rows.values() if row.status == "completed"}
    unknown = {run_id(begun, one): one for one in cells if one.key not in complete}
    beginning = run_ids_begin_with(begun)
    for store in stores:
        for name, body in curated_bodies(store, beginning, unknown.__contains__):
            if row := row_of_curated(unknown[name], body, benchmark):
                rows[row.cell] = row
                for index in indices:
                    index.add(row)
    return rows


def gated_anew(
    begun: SweepFile, rows: Mapping[str, CellRow], stores: Iterable[ListedStore], base: RunConfig
) -> dict[str, CellRow]:
    """The rows of complete cells by the gates and the judge coverage of this command, which their
    runs may not have had. Runs are read only where these bounds may tell something else: where
    there are others than usual, or a cell has missed some.
    """
    usual = table(RunConfig)["min_judge_coverage"].default
    is_usual = not base.gates and base.min_judge_coverage == usual
    complete = (row for row in rows.values() if row.status == "completed")
    unsure = {row.run_id: row for row in complete if row.exit_code == EXIT_GATE or not is_usual}
    found: dict[str, CellRow] = {}
    for store in stores if unsure else ():
        beginning = run_ids_begin_with(begun)
        for name, body in curated_bodies(store, beginning, unsure.__contains__):
            row = unsure[name]
            with suppress(msgspec.MsgspecError, KeyError, TypeError):  # else it stays as it was
                found[row.cell] = _gated(row, msgspec.json.decode(body), base)
    return found


def _gated(row: CellRow, document: dict[str, Any], base: RunConfig) -> CellRow:
    judge = document["judge"]
    is_short = has_gate_failures(
        base,
        document["metrics"],
        n_turns=judge["judged_turns"] + judge["unjudged_turns"] if judge else row.n_turns,
        n_judged=judge["judged_turns"] if judge else None,
    )
    if is_short == (row.exit_code == EXIT_GATE):
        return row
    return replace(row, exit_code=EXIT_GATE if is_short else 0, error=None)


def left(cells: Sequence[Cell], rows: Mapping[str, CellRow], settings: SweepSettings) -> list[Cell]:
    """The cells that are to be played: those that have not ended, and those that failed if they
    are to be tried again.
    """
    return [
        cell
        for cell in cells
        if (row := rows.get(cell.key)) is None
        or (row.status != "completed" and settings.retry_failed)
    ]
