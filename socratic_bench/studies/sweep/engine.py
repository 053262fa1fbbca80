"""Plays the cells of a sweep: many runs at once over shared services, and the progress of all."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.concurrency import convert
from socratic_bench.documents.run import RunDocument, RunResult
from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import (
    EXIT_GATE,
    BenchError,
    InternalError,
    InUseError,
    LeaseLostError,
    Naming,
    UsageError,
)
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.events import CallAnswered, CallBegan, CallEvent
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.ports.parts import Views
from socratic_bench.runs import Plan, perform, prepare
from socratic_bench.runs.context import Listener
from socratic_bench.runs.gates import metric_at
from socratic_bench.runs.services import Services
from socratic_bench.storage.keys import RunKeys
from socratic_bench.studies.places import expected_values
from socratic_bench.studies.rows import judge_variances, read_document, unjudged_differences
from socratic_bench.studies.sweep.grid import Cell, CellJob, Grid
from socratic_bench.studies.sweep.spending import CellBudget
from socratic_bench.types import EndReason

# The calls a second, and the remaining time, are measured over so many seconds.
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
    """How far a sweep is at a moment. `calls_per_s` is of the last minute, `left_s` what the rest
    takes if it goes on like that; `None` before that can be told.
    """

    elapsed_s: float
    n_cells: int
    models: tuple[ModelProgress, ...]
    calls_per_s: float | None = None
    left_s: float | None = None

    @property
    def n_ended(self) -> int:
        return sum(model.n_done + model.n_failed for model in self.models)


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
        self.n_cells, self._n_ended = len(cells), 0
        for row in ended:
            self._add(row)
            used = row.usage
            n_tokens = (used.input_tokens or 0) + (used.output_tokens or 0)
            self._count(row.model, n_calls=used.calls, n_tokens=n_tokens)

    @property
    def n_completed(self) -> int:
        with self._lock:
            return sum(model.n_done for model in self._models.values())

    def count(self, model: str, **more: int) -> None:
        """Add to numbers of a model's progress."""
        with self._lock:
            self._count(model, **more)

    def on_answer(self, model: str, n_tokens: int) -> None:
        """A call of a cell of that model was answered, by whatever model."""
        with self._lock:
            self._count(model, n_calls=1, n_tokens=n_tokens)
            now_s = self._monotonic_s()
            self._calls.append(now_s)
            self._forget(now_s)

    def on_end(self, row: CellRow) -> None:
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
            n_left = self.n_cells - sum(model.n_done + model.n_failed for model in models)
            return Snapshot(
                elapsed_s=elapsed_s,
                n_cells=self.n_cells,
                models=models,
                calls_per_s=len(self._calls) / lately_s if self._calls and lately_s else None,
                left_s=n_left * elapsed_s / self._n_ended if self._n_ended else None,
            )

    def _add(self, row: CellRow) -> None:
        """What is known of it once it has ended."""
        is_complete = row.status == "completed"
        self._count(row.model, n_done=is_complete, n_failed=not is_complete)
        was = self._models[row.model]
        is_cost_known = was.cost_usd is not None and row.cost_usd is not None
        cost_usd = (was.cost_usd or 0.0) + (row.cost_usd or 0.0) if is_cost_known else None
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


# A run that ends for these reasons ends the whole sweep, since all others would end so, too.
FATAL: frozenset[EndReason] = frozenset({"credentials", "artifacts", "internal", "usage"})


class SweepControl:
    """Hands out cells and hears of them; safe to use from several threads.

    `keep` keeps the row of a cell. What would befall all cells ends the sweep at once; a cell that
    the `budget` does not cover waits until others have ended, and is left if it never does. Cells
    that other processes play are left to them. `error` is what ended the sweep early.
    """

    budget: CellBudget | None = None  # made with the services of the runs
    n_elsewhere = 0

    def __init__(
        self,
        jobs: Sequence[CellJob],
        state: SweepState,
        keep: Callable[[CellRow], None],
        cancel_token: CancelToken,
    ) -> None:
        self._waiting = deque(jobs)
        self.state = state
        self._keep = keep
        self._token = cancel_token
        self._lock = threading.Lock()
        self._spent: BenchError | None = None
        self._n_running = 0
        self._ended: Future[None] = Future()  # done once another cell has ended

    @property
    def error(self) -> BenchError | None:
        return self._token.error or self._spent

    @property
    def models(self) -> frozenset[str]:
        """Those of the cells that wait."""
        return frozenset(job.cell.model for job in self._waiting)

    @property
    def cells(self) -> Sequence[Cell]:
        """Those that wait."""
        return [job.cell for job in self._waiting]

    def take(self) -> CellJob | None:
        """The next cell; `None` if no other is to be begun."""
        while True:
            with self._lock:
                if self.error or not self._waiting:
                    return None
                job = self._waiting[0]
                if self.budget is None or self.budget.begin(job):
                    self._waiting.popleft()
                    self._n_running += 1
                    break
                if not self._n_running:
                    n_paid, n_cells = self.state.n_completed, self.state.n_cells
                    self._spent = self.budget.refusal(job, n_paid, n_cells)
                    return None
                ended = self._ended
            with suppress(BenchError):  # the token has what ends the sweep meanwhile
                self._token.result(ended)
        self.state.count(job.cell.model, n_running=1)
        return job

    def is_unpaid(self) -> bool:
        """Whether the sweep ends before any call, since the budget does not cover its next cell."""
        if self.budget and self._waiting and not self.budget.n_covered([self._waiting[0]]):
            n_paid, n_cells = self.state.n_completed, self.state.n_cells
            self._spent = self.budget.refusal(self._waiting[0], n_paid, n_cells)
        return self._spent is not None

    def on_end(self, job: CellJob, row: CellRow) -> None:
        """A cell's run is over, well or badly."""
        self.state.on_end(row)
        self._keep(row)
        self._leave(job)

    def on_abandon(self, job: CellJob, error: BenchError | None) -> None:
        """A cell's run could go on, but was ended by this."""
        self.state.count(job.cell.model, n_running=-1)  # as if it had never begun
        if isinstance(error, InUseError | LeaseLostError):
            self.n_elsewhere += 1
        elif error and error.end_reason in FATAL:
            self._token.end(error)
        elif error and error.end_reason in ("budget", "batch_pending"):
            self._spent = self._spent or error
        self._leave(job)

    def _leave(self, job: CellJob) -> None:
        """Let cells begin for which there is room only now."""
        if self.budget:
            self.budget.end(job)
        with self._lock:
            self._n_running -= 1
            ended, self._ended = self._ended, Future()
        ended.set_result(None)


def row_of_result(cell: Cell, result: RunResult, benchmark: Benchmark) -> CellRow:
    """How a cell's run ended just now."""
    document = RunDocument.of(result).printed
    infos = (*benchmark.metrics, *result.opening.metrics)
    row = _row(cell, document, infos, benchmark.views, exit_code=result.exit_code)
    keys = RunKeys(result.run_id)
    curated = result.stored.get(keys.curated)
    if curated is None:
        return row
    # Entries of journals in buckets are delivered, too.
    own = (keys.raw, keys.curated)
    files = {key: stored.n_bytes for key, stored in result.stored.items() if key.startswith(own)}
    return replace(row, files=files, curated_sha256=curated.sha256.hex())


def row_of_curated(
    cell: Cell, run_id: str, body: bytes, benchmark: Benchmark, files: Mapping[str, int] = {}
) -> CellRow | None:
    """How a cell's run ended by its curated file; `None` if that is none, or another run's. Of the
    other `files` the sizes are known.
    """
    try:
        document = read_document(body, run_id, **expected_values(run_id, cell.values, cell.seed))
        exit_code = EXIT_GATE if document["error"] else 0
        row = _row(cell, document, benchmark.metrics, benchmark.views, exit_code=exit_code)
    except (UsageError, msgspec.MsgspecError, KeyError, TypeError):
        return None
    files = {**files, RunKeys(run_id).curated: len(body)}
    return replace(row, files=files, curated_sha256=sha256(body).hexdigest())


def _row(
    cell: Cell,
    document: Mapping[str, Any],
    infos: Sequence[MetricInfo],
    views: Views,
    *,
    exit_code: int,
) -> CellRow:
    """Raises `msgspec.ValidationError`, `KeyError` or `TypeError` for what is no run's document."""
    cost = document["cost"]
    values = document["metrics"]
    shared = ("run_id", "seed", "status", "end_reason", "n_turns", "error")
    return convert(
        {
            "key": cell.key,
            "axes": dict(cell.values),
            "repeat": cell.repeat,
            "exit_code": exit_code,
            "metrics": {metric.name: metric_at(metric.name, values) for metric in infos},
            "censored": [
                metric.name
                for metric in infos
                if metric.censored_by and metric_at(metric.censored_by, values)
            ],
            "judge_variance": judge_variances(document, views),
            "unjudged_differ_by": unjudged_differences(document, views),
            "exposures": views.exposures(document),
            "parts": views.parts(document),
            "votes": [turn["votes"]["scores"] for turn in document["turns"] if turn.get("votes")]
            or None,
            "usage": document["usage"]["total"],
            "cost_usd": cost and cost["total"] and cost["total"]["total_usd"],
            **document["timestamps"],
            **{name: document[name] for name in shared},
        },
        CellRow,
    )


# A run that ends for these reasons is resumed with the sweep.
UNDER_WAY: frozenset[EndReason] = frozenset(
    {"interrupted", "deadline", "budget", "batch_pending", "credentials", "artifacts"}
)

# Makes a run's listener one that traces it, too.
Traced = Callable[[Plan, Listener], Listener]


def untraced(_: Plan, listener: Listener) -> Listener:
    return listener


class SweepEngine(Struct, frozen=True, kw_only=True):
    """What it takes to play cells of a grid; what failed tells settings as `call` has them.
    `called` is set as the first call of all begins.
    """

    services: Services
    grid: Grid
    benchmark: Benchmark
    control: SweepControl
    call: Naming = str
    called: threading.Event = field(default_factory=threading.Event)
    traced: Traced = untraced

    def play(self, at_once: int, cancel_token: CancelToken) -> None:
        """Play the cells of `control`, from several threads, until it has no other. Every cell that
        was begun has ended when this returns. It raises nothing: the control hears of everything.
        """

        def work() -> None:
            while job := self.control.take():
                self._play(job, cancel_token)

        with ThreadPoolExecutor(at_once, thread_name_prefix="cell") as pool:
            for future in [pool.submit(work) for _ in range(at_once)]:
                try:
                    cancel_token.result(future)
                except BenchError as error:  # such as a deadline that passes meanwhile
                    cancel_token.end(error)
                    future.result()

    def _play(self, job: CellJob, cancel_token: CancelToken) -> None:
        try:
            self._perform(job, cancel_token)
        finally:
            self.services.batch_jobs.leave(job.run_id)

    def _perform(self, job: CellJob, cancel_token: CancelToken) -> None:
        token = cancel_token.sibling()
        try:
            plan = prepare(self.grid.config(job.cell), price_tables=self.services.price_tables)
            with cancel_token.parent_of(token):
                heard = _CallListener(job.cell.model, self.control.state, self.called)
                result = perform(
                    replace(plan, run_id=job.run_id, order=job.order, is_damaged=job.is_damaged),
                    listener=self.traced(plan, heard),
                    cancel_token=token,
                    services=self.services,
                )
        except BenchError as error:
            self.control.on_abandon(job, error)
            return
        except Exception as defect:  # noqa: BLE001 -- the boundary: other cells are reported
            self.control.on_abandon(job, InternalError.of(defect))
            return
        if result.end_reason in UNDER_WAY:
            self.control.on_abandon(job, result.error)
            return
        if result.error:
            result.error.call_settings(self.call)
        self.control.on_end(job, row_of_result(job.cell, result, self.benchmark))


class _CallListener(Listener):
    """Tells of the first call, and of the answers of one run."""

    def __init__(self, model: str, state: SweepState, called: threading.Event) -> None:
        self._model = model
        self._state = state
        self._called = called

    def on_call(self, event: CallEvent) -> None:
        if isinstance(event, CallAnswered):
            usage = event.completion.usage
            n_tokens = usage.input_tokens + usage.output_tokens if usage else 0
            self._state.on_answer(self._model, n_tokens)
        elif isinstance(event, CallBegan):
            self._called.set()
