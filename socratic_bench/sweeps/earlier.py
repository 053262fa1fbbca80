"""What earlier processes of a sweep have left to be played."""

from collections.abc import Iterable, Mapping, Sequence

from socratic_bench.documents.sweep import CellRow, SweepFile
from socratic_bench.ports import Benchmark
from socratic_bench.storage.listing import ListedStore
from socratic_bench.sweeps.grid import Cell, Grid, run_id, run_ids_begin_with
from socratic_bench.sweeps.index import CellIndex, begun_sweeps, curated_bodies, moment
from socratic_bench.sweeps.rows import row_of_curated
from socratic_bench.sweeps.settings import SweepSettings


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
    started_at = moment(begun.started_at)
    unknown = {run_id(begun.sweep_id, started_at, one): one for one in cells}
    unknown = {name: one for name, one in unknown.items() if not _is_complete(rows, one)}
    for store in stores:
        beginning = run_ids_begin_with(started_at)
        for name, body in curated_bodies(store, beginning, unknown.__contains__):
            row = row_of_curated(unknown[name], body, benchmark)
            if row:
                rows[row.cell] = row
                for index in indices:
                    index.add(row)
    return rows


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


def _is_complete(rows: Mapping[str, CellRow], cell: Cell) -> bool:
    row = rows.get(cell.key)
    return row is not None and row.status == "completed"
