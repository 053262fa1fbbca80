"""How far a sweep is: counted from many threads, read by whoever shows it."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.sweep import CellRow
from socratic_bench.studies.sweep.grid import Cell

# Calls a second, and the time that is left, are told by what was done in so many seconds.
LATELY_S = 60.0


class ModelProgress(Struct, frozen=True, kw_only=True):
    """How far one model is. `n_done` counts cells that are complete, `n_failed` those that are not
    and will not be played again by themselves; both also of earlier processes. `cost_usd` is null
    while the cost of a cell is not known.
    """

    model: str
    n_cells: int
    n_done: int = 0
    n_running: int = 0
    n_failed: int = 0
    n_calls: int = 0
    n_tokens: int = 0
    cost_usd: float | None = 0.0


class Snapshot(Struct, frozen=True, kw_only=True):
    """How far a sweep is at a moment. `n_before` cells ended in earlier processes. `calls_per_s` is
    of the last minute, `left_s` what the rest takes if it goes on like that; `None` before that can
    be told.
    """

    elapsed_s: float
    n_cells: int
    n_before: int
    models: tuple[ModelProgress, ...]
    calls_per_s: float | None = None
    left_s: float | None = None

    @property
    def n_ended(self) -> int:
        return sum(one.n_done + one.n_failed for one in self.models)


class SweepState:
    """Counts what happens to cells and calls; safe to use from several threads."""

    def __init__(
        self, cells: Sequence[Cell], ended: Iterable[CellRow], monotonic_s: Callable[[], float]
    ) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._began_s = monotonic_s()
        self._models: dict[str, ModelProgress] = {}
        self._calls: deque[float] = deque()
        for model, n_cells in Counter(cell.model for cell in cells).items():
            self._models[model] = ModelProgress(model=model, n_cells=n_cells)
        self._n_cells, self._n_before, self._n_ended = len(cells), 0, 0
        for row in ended:
            self._add(row)
            used = row.usage
            n_tokens = (used.input_tokens or 0) + (used.output_tokens or 0)
            self._count(row.model, n_calls=used.calls, n_tokens=n_tokens)
            self._n_before += 1

    def began(self, model: str) -> None:
        """A cell of a model is being played."""
        with self._lock:
            self._count(model, n_running=1)

    def answered(self, model: str, n_tokens: int) -> None:
        """A call of a cell of that model was answered, by whatever model."""
        with self._lock:
            self._count(model, n_calls=1, n_tokens=n_tokens)
            now_s = self._monotonic_s()
            self._calls.append(now_s)
            self._forget(now_s)

    def again(self, row: CellRow) -> None:
        """A cell that failed is to be played further."""
        with self._lock:
            self._count(row.model, n_failed=-1)

    def left(self, model: str) -> None:
        """A cell was given up for now: it counts as never begun."""
        with self._lock:
            self._count(model, n_running=-1)

    def ended(self, row: CellRow) -> None:
        """A cell is played, or cannot be."""
        with self._lock:
            self._count(row.model, n_running=-1)
            self._add(row)
            self._n_ended += 1

    def snapshot(self) -> Snapshot:
        """How far it is by now."""
        with self._lock:
            now_s = self._monotonic_s()
            self._forget(now_s)
            elapsed_s = now_s - self._began_s
            lately_s = min(elapsed_s, LATELY_S)
            models = tuple(self._models.values())
            n_left = self._n_cells - sum(one.n_done + one.n_failed for one in models)
            return Snapshot(
                elapsed_s=elapsed_s,
                n_cells=self._n_cells,
                n_before=self._n_before,
                models=models,
                calls_per_s=len(self._calls) / lately_s if self._calls and lately_s else None,
                left_s=n_left * elapsed_s / self._n_ended if self._n_ended else None,
            )

    def _add(self, row: CellRow) -> None:
        """What is known of it once it has ended."""
        is_complete = row.status == "completed"
        self._count(row.model, n_done=is_complete, n_failed=not is_complete)
        was = self._models[row.model]
        known = was.cost_usd is not None and row.cost_usd is not None
        cost_usd = (was.cost_usd or 0.0) + (row.cost_usd or 0.0) if known else None
        self._models[row.model] = replace(was, cost_usd=cost_usd)

    def _count(self, model: str, **more: int) -> None:
        was = self._models[model]
        counts = {name: getattr(was, name) + number for name, number in more.items()}
        self._models[model] = replace(was, **counts)

    def _forget(self, now_s: float) -> None:
        while self._calls and self._calls[0] < now_s - LATELY_S:
            self._calls.popleft()


class SweepDisplay(Protocol):
    """Shows people how far a sweep is; it reads the state whenever it likes."""

    def begin(self, sweep_id: str, state: SweepState) -> None: ...

    def notice(self, text: str) -> None: ...

    def failed(self, row: CellRow) -> None: ...

    def end(self) -> None: ...
