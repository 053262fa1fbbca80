"""Money that may be spent in all, by one run or by many, in several processes, too."""

import os
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from socratic_bench.models.shared_rows import KEY, MOST_PROCESSES, Rows, SharedRows, is_alive

NANO = 1_000_000_000
# A request may cost a fraction of a nano dollar less than was reserved for it.
ROUNDING_NANO = 1
SPENT = KEY + 1
# For each process: what it has reserved, how many requests are under way, and which process it is.
RESERVED = SPENT + 1
UNDER_WAY = RESERVED + MOST_PROCESSES
PROCESS = UNDER_WAY + MOST_PROCESSES
WIDTH = PROCESS + MOST_PROCESSES
# What other processes leave is looked at so often.
LOOK_AGAIN_S = 0.2

Answer = Literal["reserved", "later", "never"]


class SpendingLimit:
    """Reserves what a request can cost at most before it is sent; safe to use from several threads.

    A request that may fit once others turn out cheaper waits for them, and later requests wait
    behind it. With `shared`, the path of a file on this machine, all processes that name it spend
    from the same limit. What a process that was killed had reserved stays spent: its requests may
    be on the bill.
    """

    def __init__(self, limit_usd: float, *, shared: Path | None = None) -> None:
        self.limit_usd = limit_usd
        self._limit_nano = round(limit_usd * NANO)
        self._rows: Rows = SharedRows(shared, WIDTH) if shared else Rows(WIDTH)
        self._row = self._rows.row("spending")
        self._lock = threading.Lock()
        self._line: deque[object] = deque()
        self._moved: Future[None] = Future()
        with self._rows.locked():
            self._take_place()

    @property
    def spent_usd(self) -> float:
        """USD that are spent, at most."""
        return self._row[SPENT] / NANO

    @property
    def most_usd(self) -> float:
        """USD that are spent, at most, with those reserved for requests that have not settled."""
        with self._rows.locked():
            reserved = sum(self._row[RESERVED : RESERVED + MOST_PROCESSES])
            return (self._row[SPENT] + reserved) / NANO

    @property
    def moved(self) -> "Future[None]":
        """Done once a request may fit that did not before."""
        return self._moved

    def add(self, usd: float) -> None:
        """Count what was spent earlier."""
        with self._rows.locked():
            self._row[SPENT] += round(usd * NANO)

    @contextmanager
    def in_line(self) -> Iterator[object]:
        """A place at the end of the queue, until the request is admitted or given up."""
        place = object()
        with self._lock:
            self._line.append(place)
        try:
            yield place
        finally:
            with self._lock:
                self._line.remove(place)
            self._move_on()

    def reserve(self, place: object, worst_usd: float) -> Answer:
        """Whether the request at this place may be sent; it never will be if it does not fit while
        no other is under way.
        """
        with self._lock:
            if place is not self._line[0]:
                return "later"
        answer = self._reserved(round(worst_usd * NANO))
        if answer == "later" and self._rows.is_shared:
            timer = threading.Timer(LOOK_AGAIN_S, self._move_on)
            timer.daemon = True
            timer.start()
        return answer

    def settle(self, reserved_usd: float, spent_usd: float) -> None:
        """Release a request's reservation and count what it cost."""
        own = self._rows.place
        with self._rows.locked():
            self._row[SPENT] += round(spent_usd * NANO)
            self._row[UNDER_WAY + own] -= 1
            is_last = self._row[UNDER_WAY + own] == 0
            left = 0 if is_last else self._row[RESERVED + own] - round(reserved_usd * NANO)
            self._row[RESERVED + own] = left
        self._move_on()

    def close(self) -> None:
        """Let go of what is shared."""
        self._rows.close()

    def _take_place(self) -> None:
        """What a process that was killed had reserved in this place is spent for good."""
        row, own = self._row, self._rows.place
        if not is_alive(row[PROCESS + own]):
            row[SPENT] += row[RESERVED + own]
            row[RESERVED + own] = row[UNDER_WAY + own] = 0
        row[PROCESS + own] = os.getpid()

    def _reserved(self, worst_nano: int) -> Answer:
        row, own = self._row, self._rows.place
        with self._rows.locked():
            reserved = sum(row[RESERVED : RESERVED + MOST_PROCESSES])
            if row[SPENT] + reserved + worst_nano <= self._limit_nano + ROUNDING_NANO:
                row[RESERVED + own] += worst_nano
                row[UNDER_WAY + own] += 1
                return "reserved"
            return "later" if self._is_any_under_way() else "never"

    def _is_any_under_way(self) -> bool:
        places = (place for place in range(MOST_PROCESSES) if self._row[UNDER_WAY + place])
        return any(is_alive(self._row[PROCESS + place]) for place in places)

    def _move_on(self) -> None:
        with self._lock:
            moved, self._moved = self._moved, Future()
        moved.set_result(None)
