"""The money that one run, or all runs of a process together, may spend."""

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Literal

NANO = 1_000_000_000
# A request may cost a fraction of a nano dollar less than was reserved for it.
ROUNDING_NANO = 1

Answer = Literal["reserved", "later", "never"]


class SpendingLimit:
    """Reserves what a request can cost at most before it is sent; safe to use from several threads.

    A request that may fit once others turn out cheaper waits for them, and later requests wait
    behind it.
    """

    def __init__(self, limit_usd: float) -> None:
        self.limit_usd = limit_usd
        self._limit_nano = round(limit_usd * NANO)
        self._lock = threading.Lock()
        self._spent_nano = self._reserved_nano = self._n_under_way = 0
        self._queue: deque[object] = deque()
        self._moved: Future[None] = Future()

    @property
    def spent_usd(self) -> float:
        """USD that are spent, at most."""
        return self._spent_nano / NANO

    @property
    def most_usd(self) -> float:
        """USD that are spent, at most, with those reserved for requests that have not settled."""
        with self._lock:
            return (self._spent_nano + self._reserved_nano) / NANO

    @property
    def moved(self) -> "Future[None]":
        """Done once a request may fit that did not before."""
        return self._moved

    def add(self, usd: float) -> None:
        """Count what was spent earlier."""
        with self._lock:
            self._spent_nano += round(usd * NANO)

    @contextmanager
    def in_line(self) -> Iterator[object]:
        """A place at the end of the queue, until the request is admitted or given up."""
        place = object()
        with self._lock:
            self._queue.append(place)
        try:
            yield place
        finally:
            with self._lock:
                self._queue.remove(place)
            self._move_on()

    def reserve(self, place: object, worst_usd: float) -> Answer:
        """Whether the request at this place may be sent; it never will be if it does not fit while
        no other is under way.
        """
        worst_nano = round(worst_usd * NANO)
        with self._lock:
            if place is not self._queue[0]:
                return "later"
            taken_nano = self._spent_nano + self._reserved_nano
            if taken_nano + worst_nano > self._limit_nano + ROUNDING_NANO:
                return "later" if self._n_under_way else "never"
            self._reserved_nano += worst_nano
            self._n_under_way += 1
            return "reserved"

    def settle(self, reserved_usd: float, spent_usd: float) -> None:
        """Release a request's reservation and count what it cost."""
        with self._lock:
            self._spent_nano += round(spent_usd * NANO)
            self._reserved_nano -= round(reserved_usd * NANO)
            self._n_under_way -= 1
        self._move_on()

    def _move_on(self) -> None:
        with self._lock:
            moved, self._moved = self._moved, Future()
        moved.set_result(None)
