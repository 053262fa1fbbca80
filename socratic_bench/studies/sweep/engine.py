"""Plays cells: many runs at once over services that they share, each with an end of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.documents.run import RunResult
from socratic_bench.errors import BenchError, InternalError
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.events import CallAnswered, CallBegan, CallEvent
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.runs import perform, prepare
from socratic_bench.runs.context import Listener
from socratic_bench.runs.resume import without_resume_hints
from socratic_bench.runs.services import Services
from socratic_bench.studies.sweep.control import CellJob, CellListener
from socratic_bench.studies.sweep.grid import Grid
from socratic_bench.studies.sweep.rows import row_of_result
from socratic_bench.types import EndReason

# How a run ends that a sweep which goes on plays further.
UNDER_WAY: frozenset[EndReason] = frozenset(
    {"interrupted", "deadline", "budget", "credentials", "artifacts"}
)


class SweepEngine(Struct, frozen=True, kw_only=True):
    """What it takes to play cells of a grid; what failed tells settings as `call` has them.

    `called` is set as the first call of all begins.
    """

    services: Services
    grid: Grid
    benchmark: Benchmark
    listener: CellListener
    call: Callable[[str], str] = str
    called: threading.Event = field(default_factory=threading.Event)

    def play(
        self, take: Callable[[], CellJob | None], at_once: int, cancel_token: CancelToken
    ) -> None:
        """Play what `take` gives, from several threads, until that is `None` in each.

        Every cell that was begun has ended when this returns. It raises nothing: the listener hears
        of everything.
        """

        def work() -> None:
            while job := take():
                self._play(job, cancel_token)

        with ThreadPoolExecutor(at_once, thread_name_prefix="cell") as pool:
            for future in [pool.submit(work) for _ in range(at_once)]:
                _wait(future, cancel_token)

    def _play(self, job: CellJob, cancel_token: CancelToken) -> None:
        try:
            result = self._performed(job, cancel_token)
        except BenchError as error:
            self.listener.left(job, error)
        except Exception as defect:  # noqa: BLE001 -- the boundary: other cells are reported
            self.listener.left(job, InternalError.of(defect))
        else:
            self._hand_in(job, result)

    def _hand_in(self, job: CellJob, result: RunResult) -> None:
        ended_by = result.error and without_resume_hints(result.error)
        if result.end_reason in UNDER_WAY:
            self.listener.left(job, ended_by)
            return
        if ended_by:
            ended_by.call_settings(self.call)
        row = row_of_result(job.cell, replace(result, error=ended_by), self.benchmark)
        self.listener.ended(job, row)

    def _performed(self, job: CellJob, cancel_token: CancelToken) -> RunResult:
        config = self.grid.config(job.cell)
        plan = prepare(config, price_tables=self.services.price_tables)
        if job.counted_usd:
            self.services.counted_usd[job.run_id] = job.counted_usd
        token = cancel_token.sibling()
        with cancel_token.parent_of(token):
            return perform(
                replace(plan, run_id=job.run_id),
                listener=_CallListener(job, self.listener, self.called),
                cancel_token=token,
                services=self.services,
            )


def _wait(future: "Future[None]", cancel_token: CancelToken) -> None:
    """Until it is done; a deadline that passes meanwhile ends all cells."""
    try:
        cancel_token.result(future)
    except BenchError as error:
        cancel_token.end(error)
        future.result()


class _CallListener(Listener):
    """Tells of the first call, and of the answers of one run."""

    def __init__(self, job: CellJob, listener: CellListener, called: threading.Event) -> None:
        self._job = job
        self._listener = listener
        self._called = called

    def on_call(self, event: CallEvent) -> None:
        if isinstance(event, CallAnswered):
            usage = event.completion.usage
            n_tokens = usage.input_tokens + usage.output_tokens if usage else 0
            self._listener.answered(self._job, n_tokens)
        elif isinstance(event, CallBegan):
            self._called.set()
