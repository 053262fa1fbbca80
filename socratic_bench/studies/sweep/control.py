"""Which cell comes next, and what becomes of the sweep as cells end."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import BenchError
from socratic_bench.models.cancel import CancelToken
from socratic_bench.studies.sweep.grid import Cell
from socratic_bench.studies.sweep.state import SweepState
from socratic_bench.types import EndReason

# What ends one run so would end all others, too.
FATAL: frozenset[EndReason] = frozenset({"credentials", "artifacts", "internal", "usage"})


class CellJob(Struct, frozen=True, kw_only=True):
    """A cell that is to be played, and the id of its run; `counted_usd` is what its earlier
    processes spent, where the sweep's limit knows of it.
    """

    cell: Cell
    run_id: str
    counted_usd: float = 0.0


class CellListener(Protocol):
    """Hears of cells from whichever thread plays them."""

    def answered(self, job: CellJob, n_tokens: int) -> None:
        """A call of its run was answered."""
        ...

    def ended(self, job: CellJob, row: CellRow) -> None:
        """Its run is over, well or badly."""
        ...

    def left(self, job: CellJob, error: BenchError | None) -> None:
        """Its run could go on, but was ended by this."""
        ...


class SweepControl:
    """Hands out cells and hears of them; safe to use from several threads.

    `keep` keeps the row of a cell. What would befall all cells ends the sweep at once; once the
    budget is used up, no further cell is begun. `error` is what ended it early.
    """

    def __init__(
        self,
        jobs: Sequence[CellJob],
        state: SweepState,
        keep: Callable[[CellRow], None],
        cancel_token: CancelToken,
    ) -> None:
        self._waiting = deque(jobs)
        self._state = state
        self._keep = keep
        self._token = cancel_token
        self._lock = threading.Lock()
        self._spent: BenchError | None = None

    @property
    def error(self) -> BenchError | None:
        return self._token.error or self._spent

    @property
    def models(self) -> frozenset[str]:
        """Those of the cells that wait."""
        return frozenset(job.cell.model for job in self._waiting)

    def take(self) -> CellJob | None:
        """The next cell; `None` if no other is to be begun."""
        with self._lock:
            if self.error or not self._waiting:
                return None
            job = self._waiting.popleft()
        self._state.began(job.cell.model)
        return job

    def answered(self, job: CellJob, n_tokens: int) -> None:
        """See `CellListener`."""
        self._state.answered(job.cell.model, n_tokens)

    def ended(self, job: CellJob, row: CellRow) -> None:
        """See `CellListener`."""
        del job
        self._state.ended(row)
        self._keep(row)

    def left(self, job: CellJob, error: BenchError | None) -> None:
        """See `CellListener`."""
        self._state.left(job.cell.model)
        if error is None:
            return
        if error.end_reason in FATAL:
            self._token.end(error)
        elif error.end_reason == "budget":
            self._spent = self._spent or error
