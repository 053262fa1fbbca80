"""Plays the cells of a sweep: many runs at once over shared services, each with its own end."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from msgspec import Struct

from socratic_bench.calling.cancel_token import CancelToken
from socratic_bench.calling.events import CallAnswered, CallEvent
from socratic_bench.documents.result import RunResult
from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import BenchError, InternalError
from socratic_bench.ports import Benchmark, MetricInfo
from socratic_bench.runner import Plan, perform
from socratic_bench.runner.listener import Listener
from socratic_bench.services import Services
from socratic_bench.sweeps.grid import Cell
from socratic_bench.sweeps.rows import row_of_result
from socratic_bench.sweeps.state import SweepState
from socratic_bench.types import EndReason

# What ends one run so would end all others, too.
FATAL: frozenset[EndReason] = frozenset({"credentials", "artifacts"})
# How a run ends that a sweep which goes on plays further.
UNDER_WAY: frozenset[EndReason] = FATAL | {"interrupted", "deadline", "budget"}


class CellJob(Struct, frozen=True, kw_only=True):
    """A cell, and what makes the plan of its run once it is its turn."""

    cell: Cell
    plan: Callable[[], Plan]


class SweepEngine(Struct, frozen=True, kw_only=True):
    """What it takes to play cells.

    `on_row` hears of each cell that ended, from any thread.
    """

    services: Services
    benchmark: Benchmark
    state: SweepState
    at_once: int
    on_row: Callable[[CellRow], None]

    def play(self, jobs: Sequence[CellJob], cancel_token: CancelToken) -> BenchError | None:
        """Play them in their order, so many at once; what ended the sweep before all were played.

        Every cell that was begun has ended when this returns.
        """
        waiting, lock = deque(jobs), threading.Lock()

        def take() -> CellJob | None:
            with lock:
                return waiting.popleft() if waiting and not cancel_token.error else None

        def work() -> None:
            while job := take():
                self._play(job, cancel_token)

        n_workers = min(self.at_once, len(jobs)) or 1
        with ThreadPoolExecutor(n_workers, thread_name_prefix="cell") as pool:
            futures: list[Future[None]] = [pool.submit(work) for _ in range(n_workers)]
            for future in futures:
                self._wait(future, cancel_token)
        return cancel_token.error

    def _wait(self, future: "Future[None]", cancel_token: CancelToken) -> None:
        """Until it is done; a deadline that passes meanwhile ends all cells."""
        try:
            cancel_token.result(future)
        except BenchError as error:
            cancel_token.end(error)
            future.result()

    def _play(self, job: CellJob, cancel_token: CancelToken) -> None:
        self.state.began(job.cell.model)
        try:
            result = self._performed(job, cancel_token)
        except Exception as error:  # noqa: BLE001 -- the boundary: other cells are reported
            ended = error if isinstance(error, BenchError) else InternalError.of(error)
            cancel_token.end(ended)
            result = None
        if result is None or result.end_reason in UNDER_WAY:
            self.state.left(job.cell.model)
            if result and result.error and result.end_reason in FATAL:
                cancel_token.end(result.error)
            return
        row = row_of_result(job.cell, result, self._metrics(result))
        self.state.ended(row)
        self.on_row(row)

    def _performed(self, job: CellJob, cancel_token: CancelToken) -> RunResult:
        token = CancelToken(monotonic_s=cancel_token.monotonic_s)
        with cancel_token.parent_of(token):
            return perform(
                job.plan(),
                listener=_CellListener(job.cell, self.state),
                cancel_token=token,
                services=self.services,
            )

    def _metrics(self, result: RunResult) -> Sequence[MetricInfo]:
        return (*self.benchmark.metrics, *result.opening.metrics)


class _CellListener(Listener):
    """Tells a sweep of one of its runs."""

    def __init__(self, cell: Cell, state: SweepState) -> None:
        self._model = cell.model
        self._state = state

    def on_call(self, event: CallEvent) -> None:
        if isinstance(event, CallAnswered):
            usage = event.completion.usage
            n_tokens = usage.input_tokens + usage.output_tokens if usage else 0
            self._state.answered(self._model, n_tokens)
