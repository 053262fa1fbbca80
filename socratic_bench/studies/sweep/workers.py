"""Processes that play cells, where one interpreter is not enough.

Each has services of its own. A process is handed cells one by one, so that none is idle while
another has cells waiting. It ends when its parent does.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import BenchError, Stopped, Words
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.studies.sweep.control import CellJob, SweepControl
from socratic_bench.studies.sweep.engine import SweepEngine, wait
from socratic_bench.studies.sweep.grid import Grid
from socratic_bench.studies.sweep.shared import Shared
from socratic_bench.studies.sweep.thread_caches import said_to_processes
from socratic_bench.types import EndReason, counted

# Answers are told of so often, many at once.
TELL_EVERY_S = 0.5
# Runs that are told to end take no longer.
ENDING_S = 30.0
# Cells of a process that was killed are played by others, or by new ones so many times.
ROUNDS = 3
END = "end"


class CellEnded(Struct, frozen=True):
    """From a worker: the run of a cell is over."""

    key: str
    row: CellRow


class CellInterrupted(Struct, frozen=True):
    """From a worker: the run of a cell could go on, but was ended by an error, told in parts."""

    key: str
    said: tuple[Words, ...] = ()
    code: str = ""
    end_reason: EndReason = "interrupted"
    hints: tuple[Words, ...] = ()

    @classmethod
    def of(cls, key: str, error: BenchError | None) -> "CellInterrupted":
        return (
            cls(key, error.said, error.code, error.end_reason, error.hints) if error else cls(key)
        )

    @property
    def error(self) -> BenchError | None:
        if not self.said:
            return None
        error = BenchError(*self.said)
        error.code, error.end_reason, error.hints = self.code, self.end_reason, self.hints
        return error


class Answers(Struct, frozen=True):
    """From a worker: calls of a cell were answered, each with so many tokens."""

    key: str
    n_tokens: tuple[int, ...]


class Notice(Struct, frozen=True):
    """From a worker: what people should know."""

    text: str


class ProcessPool(Struct, frozen=True, kw_only=True):
    """Plays what `control` hands out in `n_processes`, which together play `at_once` cells over no
    fewer `n_connections`. `recounted` is a job with what its run has cost by now.
    """

    control: SweepControl
    grid: Grid
    shared: Shared
    n_processes: int
    n_connections: int
    at_once: int
    notice: Callable[[str], None]
    recounted: Callable[[CellJob], CellJob]

    def play(self, cancel_token: CancelToken) -> None:
        """Until no cell is left, or the sweep has ended."""
        for _ in range(ROUNDS):
            self._play(cancel_token)
            if not self.control.has_more:
                return

    def _play(self, cancel_token: CancelToken) -> None:
        n = self.n_processes
        shares = zip(_shares(self.at_once, n), _shares(self.n_connections, n), strict=True)
        workers = [_Worker(self, *share) for share in shares if share[0]]

        def end() -> None:
            for worker in workers:
                worker.end()

        with ThreadPoolExecutor(len(workers), thread_name_prefix="worker") as pool:
            for future in [pool.submit(worker.play) for worker in workers]:
                wait(future, cancel_token, end)


def _shares(most: int, n: int) -> list[int]:
    return [most // n + (place < most % n) for place in range(n)]


class _Worker:
    """One process, seen from its parent."""

    def __init__(self, pool: ProcessPool, n_threads: int, n_connections: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = pool
        self._n_threads = n_threads
        self._connection, theirs = context.Pipe()
        self._lock = threading.Lock()
        self._jobs: dict[str, CellJob] = {}
        told = (theirs, pool.grid, pool.shared, n_threads, n_connections)
        self._process = context.Process(target=work, args=told, daemon=True)
        with said_to_processes():
            self._process.start()
        theirs.close()

    def play(self) -> None:
        """Hand it cells until there are no more, or it is gone."""
        try:
            for _ in range(self._n_threads):
                self._hand_out()
            while self._jobs:
                self._hear(self._connection.recv())
        except (EOFError, OSError):
            self._gone()
        finally:
            self._connection.close()
            self._process.join(ENDING_S)
            self._process.kill()

    def end(self) -> None:
        """Have it end what it plays."""
        timer = threading.Timer(ENDING_S, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            self._send(END)
        except OSError:
            return  # it is gone already

    def _send(self, message: object) -> None:
        with self._lock:
            self._connection.send(message)

    def _hand_out(self) -> None:
        job = self._pool.control.take()
        if job:
            self._jobs[job.cell.key] = job
        self._send(job)

    def _hear(self, message: Any) -> None:  # noqa: ANN401 -- one of those above
        if isinstance(message, Notice):
            self._pool.notice(message.text)
            return
        control, job = self._pool.control, self._jobs[message.key]
        if isinstance(message, Answers):
            for n_tokens in message.n_tokens:
                control.answered(job, n_tokens)
            return
        del self._jobs[message.key]
        if isinstance(message, CellEnded):
            control.ended(job, message.row)
        else:
            control.left(job, message.error)
        self._hand_out()

    def _gone(self) -> None:
        jobs, self._jobs = [*self._jobs.values()], {}
        self._process.join(ENDING_S)
        for job in jobs:
            self._pool.control.give_back(self._pool.recounted(job))
        if self._pool.control.error is None:
            self._pool.notice(
                f"A process of the sweep ended with {self._process.exitcode}, and left "
                f"{counted(len(jobs), 'cell')} under way to others."
            )


def work(
    connection: Connection, grid: Grid, shared: Shared, n_threads: int, n_connections: int
) -> None:
    """A worker: it plays the cells that its parent sends, until that is `None` for each thread.

    Signals that a terminal sends to all are the parent's to take.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    jobs: SimpleQueue[CellJob | None] = SimpleQueue()
    cancel_token = CancelToken()
    listening = (connection, jobs, n_threads, cancel_token)
    threading.Thread(target=_listen, args=listening, daemon=True).start()
    reporter = _Reporter(connection)
    with (
        shared.rate_targets(time.monotonic) as targets,
        shared.services(targets, time.monotonic, reporter.notice, n_connections) as services,
    ):
        engine = SweepEngine(
            services=services,
            grid=grid,
            benchmark=load_benchmark(grid.base.benchmark),
            listener=reporter,
            call=shared.call,
        )
        engine.play(jobs.get, n_threads, cancel_token)


def _listen(
    connection: Connection,
    jobs: "SimpleQueue[CellJob | None]",
    n_threads: int,
    cancel_token: CancelToken,
) -> None:
    try:
        while (message := connection.recv()) != END:
            jobs.put(message)
    except (EOFError, OSError):
        # The parent is gone. Journals are whole at any moment, and another process may want them.
        os._exit(1)
    cancel_token.end(Stopped("The sweep has ended.", end_reason="interrupted"))
    for _ in range(n_threads):
        jobs.put(None)


class _Reporter:
    """Tells the parent what happens to cells; answers now and then, many at once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._answers: dict[str, list[int]] = {}
        self._told_s = time.monotonic()

    def answered(self, job: CellJob, n_tokens: int) -> None:
        """See `CellListener`."""
        with self._lock:
            self._answers.setdefault(job.cell.key, []).append(n_tokens)
            if time.monotonic() - self._told_s >= TELL_EVERY_S:
                self._tell_answers()

    def ended(self, job: CellJob, row: CellRow) -> None:
        """See `CellListener`."""
        self._tell(CellEnded(job.cell.key, row))

    def left(self, job: CellJob, error: BenchError | None) -> None:
        """See `CellListener`."""
        self._tell(CellInterrupted.of(job.cell.key, error))

    def notice(self, text: str) -> None:
        self._tell(Notice(text))

    def _tell(self, message: object) -> None:
        with self._lock:
            self._tell_answers()
            self._send(message)

    def _tell_answers(self) -> None:
        for key, n_tokens in self._answers.items():
            self._send(Answers(key, tuple(n_tokens)))
        self._answers.clear()
        self._told_s = time.monotonic()

    def _send(self, message: object) -> None:
        try:
            self._connection.send(message)
        except OSError:
            return  # the parent is gone, and so is whoever would read it
