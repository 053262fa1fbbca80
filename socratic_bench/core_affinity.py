"""Keeps the threads of many runs on one core: the interpreter runs one of them at a time, and what
they work on would move from core to core with its lock. There, a thread that wakes up does not take
the core from the one that works: it would only have to wait for the interpreter.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

# So many runs at a time make the interpreter busy enough.
MANY_RUNS = 8
FIRST_LOOK_S, LOOK_S = 0.25, 1.0
# Others may have so much more of the core than is had of another one, before that is moved to.
OTHERS_SHARE = 0.2
CORES = Path("/proc/stat")


class CoreUse(Struct, frozen=True):
    """Seconds: of a clock, that each core has worked for anybody, and that this process has."""

    at_s: float
    busy_s: Mapping[int, float]
    own_s: float

    @classmethod
    def now(cls) -> "CoreUse":
        times = os.times()
        return cls(time.monotonic(), _busy_s(), times.user + times.system)

    def since(self, before: "CoreUse") -> "CoreUse":
        """What has passed, as shares of the time."""
        passed_s = max(self.at_s - before.at_s, 1e-3)
        both = self.busy_s.keys() & before.busy_s.keys()
        busy = {core: (self.busy_s[core] - before.busy_s[core]) / passed_s for core in both}
        return CoreUse(1.0, busy, (self.own_s - before.own_s) / passed_s)

    def choice(self, core: int | None, usable: Sequence[int], process_id: int) -> int | None:
        """The core to work on, of shares: the same, unless others need it and one is less busy."""
        # Processes that begin together would all find the same core to be the least busy.
        first = process_id % len(usable)
        cores = [one for one in (*usable[first:], *usable[:first]) if one in self.busy_s]
        least = min(cores, key=lambda one: round(self.busy_s[one], 1), default=None)
        if core not in cores or least is None:
            return least
        others = self.busy_s[core] - self.own_s
        return least if others > self.busy_s[least] + OTHERS_SHARE else core


class CoreAffinity:
    """The core on which the threads of services are kept, once there are `MANY_RUNS` at a time and
    until there is none. Looks each second whether others need it more. Meanwhile they are scheduled
    as a batch, unless the process was started to be scheduled in some other way than usual.

    Safe to use from several threads. Nothing is kept where the system does not let threads choose
    their core, or does not tell how busy cores are.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: set[int] = set()
        self._n_runs = 0
        self._usable: Sequence[int] = ()
        self._core: int | None = None
        self._is_usual = False
        self._is_over = threading.Event()

    @contextmanager
    def run(self) -> Iterator[None]:
        """Around a run, in its thread."""
        with self._lock:
            self._n_runs += 1
            if self._n_runs == MANY_RUNS and not self._usable:
                self._begin()
        try:
            with self.keep():
                yield
        finally:
            with self._lock:
                self._n_runs -= 1
                if not self._n_runs:
                    self._is_over.set()
                    self._move(None)
                    self._usable = ()

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Around what a thread does for the runs; it may use all cores again after it."""
        thread_id = threading.get_native_id()
        with self._lock:
            self._kept.add(thread_id)
            if self._core is not None:
                self._let_use(thread_id, self._core)
        try:
            yield
        finally:
            with self._lock:
                self._kept.discard(thread_id)
                if self._core is not None:
                    self._let_use(thread_id, None)

    def _begin(self) -> None:
        if hasattr(os, "sched_setaffinity"):
            self._usable = sorted(os.sched_getaffinity(0))
            self._is_usual = os.sched_getscheduler(0) == os.SCHED_OTHER
        if len(self._usable) > 1:
            self._is_over = threading.Event()
            threading.Thread(target=self._watch, args=(self._is_over,), daemon=True).start()

    def _watch(self, is_over: threading.Event) -> None:
        before, wait_s = CoreUse.now(), FIRST_LOOK_S
        while not is_over.wait(wait_s):
            now, wait_s = CoreUse.now(), LOOK_S
            with self._lock:
                if not is_over.is_set():
                    passed = now.since(before)
                    self._move(passed.choice(self._core, self._usable, os.getpid()))
            before = now

    def _move(self, core: int | None) -> None:
        if core != self._core:
            self._core = core
            for thread_id in self._kept:
                self._let_use(thread_id, core)

    def _let_use(self, thread_id: int, core: int | None) -> None:
        with suppress(OSError):  # the thread has ended, or the system allows it no more
            os.sched_setaffinity(thread_id, self._usable if core is None else [core])
            if self._is_usual:
                policy = os.SCHED_OTHER if core is None else os.SCHED_BATCH
                os.sched_setscheduler(thread_id, policy, os.sched_param(0))


def _busy_s() -> Mapping[int, float]:
    """Seconds that each core has worked, https://docs.kernel.org/filesystems/proc.html; of none
    where the system does not tell.
    """
    try:
        rows = [line.split() for line in CORES.read_text().splitlines()]
    except OSError:
        return {}
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    found = {}
    for name, *told in rows:
        if name.startswith("cpu") and name[3:].isdecimal():
            user, nice, system, _idle, _disks, interrupts, soft = map(int, told[:7])
            found[int(name[3:])] = (user + nice + system + interrupts + soft) / ticks_per_s
    return found
