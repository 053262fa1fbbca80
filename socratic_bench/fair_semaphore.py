"""Lets a few requests at a time be put together: the interpreter does one thing at a time, and
threads that wait for it cost it time.
"""

import gc
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")

AT_ONCE = 4
# Nobody waits for longer: what holds the others up may be a program that gives credentials.
MAX_WAIT_S = 1.0

# Each thread that waits for the interpreter wakes up after this time to ask for it, which for
# hundreds of them is most of what they do with the usual 5 ms; all give it away before by
# themselves, since they send, write and wait.
SWITCH_INTERVAL_S = 0.05
# Calls leave hardly any garbage in cycles; looking for it each time that Python's usual 700 objects
# more are there takes one part in eighteen of a process of many dialogues.
GARBAGE_OBJECTS = 50_000

_local = threading.local()


class Pass:
    """Leave to put a request together, until it is given back, once."""

    def __init__(self, semaphore: "FairSemaphore", *, is_held: bool = True) -> None:
        self._semaphore = semaphore
        self._is_held = is_held

    def give_back(self) -> None:
        if self._is_held:
            self._is_held = False
            self._semaphore.release_waiters(1)

    def run(self, work: Callable[[], Result]) -> Result:
        """What `work` returns; it gives the pass back by `sent`, or else when it ends."""
        _local.held = self
        try:
            return work()
        finally:
            _local.held = None
            self.give_back()


def sent() -> None:
    """Give back the pass of this thread, if it has one: from here on a request waits for others."""
    held: Pass | None = getattr(_local, "held", None)
    if held is not None:
        held.give_back()


class FairSemaphore:
    """Hands out passes in the order in which they are asked for; safe to use from several threads,
    which need no lock for it. Nobody waits for longer than `max_wait_s`; `None` sets no bound.
    """

    def __init__(self, at_once: int = AT_ONCE, max_wait_s: float | None = MAX_WAIT_S) -> None:
        self._max_wait_s = max_wait_s
        self._free = deque([None] * at_once)
        self._waiting: deque[Future[None]] = deque()

    def enter(self, wait: Callable[[Future[None], float | None], object]) -> Pass:
        """A pass, at the latest after the longest wait. Raises what `wait` raises."""
        if not self._waiting and self._take():
            return Pass(self)
        place: Future[None] = Future()
        self._waiting.append(place)
        self.release_waiters(0)
        try:
            if not place.done():
                wait(place, self._max_wait_s)
        except TimeoutError:
            return Pass(self, is_held=not place.cancel())
        except BaseException:
            Pass(self, is_held=not place.cancel()).give_back()
            raise
        return Pass(self)

    def release_waiters(self, n_given_back: int) -> None:
        """Have those go on who wait, as many as there are passes."""
        self._free.extend([None] * n_given_back)
        while self._waiting and self._take():
            try:
                place = self._waiting.popleft()
            except IndexError:
                self._free.append(None)
                continue
            if place.set_running_or_notify_cancel():
                place.set_result(None)
            else:
                self._free.append(None)

    def _take(self) -> bool:
        try:
            self._free.pop()
        except IndexError:
            return False
        return True


class _ThroughputTuning:
    lock = threading.Lock()
    n_users = 0
    before_s = 0.0
    thresholds_before = (0, 0, 0)


@contextmanager
def tuned_for_throughput() -> Iterator[None]:
    """Meanwhile the interpreter's switch interval is no shorter than `SWITCH_INTERVAL_S`, and
    garbage is looked for no earlier than `GARBAGE_OBJECTS` say, or never where it is turned off.
    """
    with _ThroughputTuning.lock:
        _ThroughputTuning.n_users += 1
        if _ThroughputTuning.n_users == 1:
            _begin()
    try:
        yield
    finally:
        with _ThroughputTuning.lock:
            _ThroughputTuning.n_users -= 1
            if not _ThroughputTuning.n_users:
                sys.setswitchinterval(_ThroughputTuning.before_s)
                gc.set_threshold(*_ThroughputTuning.thresholds_before)


def _begin() -> None:
    _ThroughputTuning.before_s = sys.getswitchinterval()
    sys.setswitchinterval(max(_ThroughputTuning.before_s, SWITCH_INTERVAL_S))
    _ThroughputTuning.thresholds_before = gc.get_threshold()
    n_objects, *others = _ThroughputTuning.thresholds_before
    if n_objects:
        gc.set_threshold(max(n_objects, GARBAGE_OBJECTS), *others)
