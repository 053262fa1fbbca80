"""A time that several threads sleep in."""

import heapq
import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from socratic_bench.models.cancel import CancelToken


class SharedTime:
    """A time that several threads sleep in: it moves to the next waking once all of them sleep."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.n_wakings = 0
        self._awake = 0
        self._wakings: list[tuple[float, int, threading.Event]] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def sleep(self, seconds: float) -> None:
        self.wait([], seconds)

    def wait(self, futures: Sequence["Future[Any]"], timeout_s: float | None) -> None:
        """Sleep until a future is done, or for so long."""
        woken = threading.Event()
        if timeout_s is not None:
            with self._lock:
                at_s = self.now_s + timeout_s
                heapq.heappush(self._wakings, (at_s, next(self._numbers), woken))
        for future in futures:
            future.add_done_callback(lambda _: self._wake(woken))
        with self._lock:
            self._rest()
        woken.wait()

    def cancel_token(self) -> CancelToken:
        """One whose waits are sleeps in this time."""
        return CancelToken(monotonic_s=lambda: self.now_s, wait=self.wait)

    def _wake(self, woken: threading.Event) -> None:
        with self._lock:
            if not woken.is_set():
                self.n_wakings += 1
                self._awake += 1
                woken.set()

    def start(self, pool: ThreadPoolExecutor, work: Callable[[], Any]) -> "Future[Any]":
        """Work in another thread, which counts as awake from now on."""
        with self._lock:
            self._awake += 1
        return pool.submit(self._whole, work)

    def run(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """What each of them, in a thread of its own, comes to."""
        self._awake = len(works) + 1
        with ThreadPoolExecutor(len(works)) as pool:
            started: list[Future[Any]] = [pool.submit(self._whole, work) for work in works]
            with self._lock:
                self._rest()
            return [one.result() for one in started]

    def _whole(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        finally:
            with self._lock:
                self._rest()

    def _rest(self) -> None:
        self._awake -= 1
        while self._awake == 0 and self._wakings:
            at_s, _, woken = heapq.heappop(self._wakings)
            if not woken.is_set():
                self.now_s = at_s
                self.n_wakings += 1
                self._awake = 1
                woken.set()
