"""How a run is ended from outside: each of its waits ends once its token is cancelled."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from socratic_bench.concurrency import start_thread
from socratic_bench.errors import BenchError, Problem, Stopped
from socratic_bench.ports.benchmark import Benchmark

Result = TypeVar("Result")
Futures = Sequence["Future[Any]"]


def wait_for_first(futures: Futures, timeout_s: float | None) -> None:
    """Return when one of the futures is done, or once the time has passed."""
    if not any(future.done() for future in futures):  # `wait` does not count cancelled ones
        wait(futures, timeout_s, FIRST_COMPLETED)


class CancelToken:
    """Ends a run by an error, given once, from any thread; the first one counts.

    With a deadline, waiting beyond it ends the run by itself. `monotonic_s` is the run's clock, and
    `wait` waits by it.
    """

    def __init__(
        self,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
        wait: Callable[[Futures, float | None], None] = wait_for_first,
    ) -> None:
        self.monotonic_s = monotonic_s
        self._wait = wait
        self._ended: Future[BenchError] = Future()
        self._children: set[CancelToken] = set()
        self._deadline_at_s: float | None = None
        self._deadline_s = 0.0
        self._shorter = Benchmark.shorter

    def sibling(self) -> "CancelToken":
        """A token that waits by the same clock and has no deadline."""
        return CancelToken(monotonic_s=self.monotonic_s, wait=self._wait)

    def interrupt(self, signal_number: int) -> None:
        """End the run as a signal would."""
        self.end(
            Stopped.by_signal(
                signal_number,
                "The run was interrupted by {signal}.",
                hint="What was finished is in this document and in the artifacts.",
            )
        )

    def end(self, error: BenchError) -> None:
        """End the run and all that depend on it, unless something has ended it before."""
        with suppress(InvalidStateError):
            self._ended.set_result(error)
        for child in tuple(self._children):
            child.end(Stopped.of(error))

    @contextmanager
    def parent_of(self, child: "CancelToken") -> Iterator[None]:
        """Within the block, the end of this run ends the child's, too, and not vice versa."""
        self._children.add(child)
        try:
            if self.error:
                child.end(Stopped.of(self.error))
            yield
        finally:
            self._children.discard(child)

    @property
    def error(self) -> BenchError | None:
        """What ended the run, if something did."""
        return self._ended.result() if self._ended.done() else None

    def start_deadline(self, deadline_s: float | None, shorter: str = Benchmark.shorter) -> None:
        """End the run so many seconds from now; `shorter` is a benchmark's: see `Benchmark`."""
        self._shorter = shorter
        if deadline_s is not None:
            self._deadline_s = deadline_s
            self._deadline_at_s = self.monotonic_s() + deadline_s

    def check(self) -> None:
        """Raise what ended the run, if something did."""
        if self.remaining_s == 0:
            self.end(
                Stopped(
                    f"The deadline of {self._deadline_s:g} s passed before the run was complete.",
                    end_reason="deadline",
                    hint=Problem.of(f"Raise {{deadline_s}} or {self._shorter}."),
                )
            )
        if self.error:
            raise self.error

    def sleep(self, seconds: float) -> None:
        """Sleep, or raise what ends the run meanwhile."""
        remaining_s = self.remaining_s
        self._wait([self._ended], seconds if remaining_s is None else min(seconds, remaining_s))
        self.check()

    def pause(self, seconds: float, until: "Future[None]") -> None:
        """Wait until the future is done or the run ends, but no longer than so long."""
        self._wait([until, self._ended], seconds)

    def result(self, future: "Future[Result]", timeout_s: float | None = None) -> Result:
        """The future's result, or raise what ends the run before it is there. Raises `TimeoutError`
        if neither has come about after `timeout_s`.
        """
        self.check()
        remaining_s = self.remaining_s
        bounds = [bound for bound in (remaining_s, timeout_s) if bound is not None]
        self._wait([future, self._ended], min(bounds, default=None))
        if not future.done():
            self.check()
            if timeout_s is not None and timeout_s == min(bounds):
                raise TimeoutError
        elif future.exception():
            # The end of the run says more than the error of a call that it cut off.
            self.check()
        return future.result()

    def wait_for(self, futures: "Sequence[Future[None]]") -> None:
        """Return when all are done, or raise what ends the run before."""
        for future in futures:
            self._wait([future, self._ended], self.remaining_s)
            if not future.done():
                self.check()

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the deadline; `None` where there is none."""
        if self._deadline_at_s is None:
            return None
        return max(0.0, self._deadline_at_s - self.monotonic_s())


def run_cancellable(work: Callable[[], Result], cancel_token: CancelToken) -> Result:
    """Do work that may block in another thread: its result, or raise what ends the run before."""
    return cancel_token.result(start_thread(work))
