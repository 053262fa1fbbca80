"""What earlier processes of a sweep have left to be played."""

from collections.abc import Iterable, Mapping, Sequence

from socratic_bench.documents.sweep import CellRow, SweepFile
from socratic_bench.storage.listing import ListedStore
from socratic_bench.sweeps.grid import Cell, Grid
from socratic_bench.sweeps.index import begun_sweeps
from socratic_bench.sweeps.settings import SweepSettings


def begun_earlier(grid: Grid, stores: Iterable[ListedStore]) -> SweepFile | None:
    """The newest sweep in the stores whose cells have the same in common, if there is one."""
    identity = grid.identity()
    found = [one for store in stores for one in begun_sweeps(store) if one.identity == identity]
    return max(found, key=lambda one: one.sweep_id, default=None)


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
