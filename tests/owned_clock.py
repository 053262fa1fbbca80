"""A clock that a test owns: it moves to what is due next once nothing is left to do before that.

However long a busy machine takes for a step, the step takes no time by this clock. So what waits
for what in a run, and how long the whole takes, is the same on every machine.
"""

import heapq
import itertools
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, Self

import pytest
from msgspec.structs import replace

from cli.arguments import parse
from cli.flags import build_parser
from socratic_bench import RunConfig
from socratic_bench.benchmarks.socratic.document import PARTS
from socratic_bench.emulator import MODEL_IDS, Emulator, Settings
from socratic_bench.errors import Stopped
from socratic_bench.models.cancel import wait_for_first
from socratic_bench.runs import CancelToken, run
from socratic_bench.runs.dry_run_clock import AT_ONCE, START_MS
from socratic_bench.settings import Sources, read_config
from tests.command import account

# Between two looks at the threads, each that waited for the interpreter has had it.
LOOK_S = 0.002
# Looks take the processor from those that are looked at: the more of them, the rarer they are.
RAREST_LOOK_S = 0.016
# Where a look comes late, what was sent may come late, too, and with it whom it wakes.
LOOKS_OF_A_BUSY_MACHINE = 5


def play(words: Sequence[str], settings: Settings, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The document of a run, played on a clock of its own at an emulator with these settings.

    What a dry run adds for a machine that takes its time (to start, and for each call) is taken
    here, too, so that both can be compared.
    """
    start_ms = AT_ONCE.usual.first_token_ms
    latencies = {role: settings.latency_of(role) + start_ms for role in PARTS.roles}
    paced = replace(settings, role_latency_ms=latencies)
    with OwnedClock() as clock, clock.emulator(paced) as served:
        config = _read(words, account(served.url), patch)
        if config.deadline_s is not None:
            config = replace(config, deadline_s=config.deadline_s - START_MS / 1000)
        document = dict(run(config, cancel_token=clock.cancel_token()).document)
    document["timestamps"]["duration_seconds"] += START_MS / 1000
    return document


def _read(words: Sequence[str], env: Mapping[str, str], patch: pytest.MonkeyPatch) -> RunConfig:
    """What the words and variables ask for, in this process's environment from now on."""
    for name, value in env.items():
        patch.setenv(name, value)
    flags, misused = parse(build_parser(), words)
    sources = Sources(
        flags=flags,
        environ={**env, "BEDROCK_MODEL_IDS": json.dumps([flags["model"]])},
        read_stdin=str,
        profile_region=lambda: None,
        offline_models=lambda: MODEL_IDS,
    )
    config, misread = read_config(RunConfig, sources)
    assert [*misused, *misread] == []
    return config


class OwnedClock:
    """The time of an emulator and of a run's `cancel_token`.

    Both have to be in this process. Only waits by this clock let it move: a thread that waits for
    the processor, for another thread or for a disk is at work. Threads that there were before, such
    as those that other tests have left, may sleep and wake as they like: the run's are begun by it.
    Time stands still only while one of them is awake, since it may hold the interpreter, and then
    whoever waits for that looks asleep.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self._strangers = {task.name for task in _tasks()} - {str(threading.get_native_id())}
        self._timers: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._is_stopped = False
        threading.Thread(target=self._move, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
            timers = [*self._timers]
        for _, _, call in timers:  # whoever waits still is let go
            call()

    def emulator(self, settings: Settings) -> Emulator:
        """One, whose time this is."""
        return Emulator(settings, clock=lambda: self.now_s, wait=self._wait_for)

    def cancel_token(self) -> CancelToken:
        """For one run at that emulator."""
        return _OwnedToken(self, monotonic_s=lambda: self.now_s, wait=self._wait)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Callable[[], None]:
        """Have this called in so many seconds; returns what cancels that."""
        with self._changed:
            timer = (self.now_s + seconds, next(self._numbers), call)
            heapq.heappush(self._timers, timer)
            self._changed.notify()
        return lambda: self._cancel(timer)

    def _cancel(self, timer: tuple[float, int, Callable[[], object]]) -> None:
        with self._changed, suppress(ValueError):
            self._timers.remove(timer)
            heapq.heapify(self._timers)

    def _wait_for(self, seconds: float, closing: threading.Event) -> None:
        if not closing.is_set():
            is_due = threading.Event()
            self.call_later(seconds, is_due.set)
            is_due.wait()

    def _wait(self, futures: Sequence["Future[Any]"], timeout_s: float | None) -> None:
        if timeout_s is None:
            wait_for_first(futures, None)
            return
        passed: Future[None] = Future()
        cancel = self.call_later(timeout_s, lambda: passed.set_result(None))
        wait_for_first([*futures, passed], None)
        cancel()

    def _move(self) -> None:
        """Move the time to the next timer, again and again, once all other threads are at rest."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._timers or self._is_stopped)
            self._wait_for_rest()
            if self._is_stopped:
                return
            with self._changed:
                if not self._timers:  # cancelled meanwhile
                    continue
                due_s, _, call = heapq.heappop(self._timers)
                self.now_s = max(self.now_s, due_s)
            call()

    def _wait_for_rest(self) -> None:
        before, n_alike, is_busy, look_s = None, 0, False, LOOK_S
        while n_alike < (LOOKS_OF_A_BUSY_MACHINE if is_busy else 1) and not self._is_stopped:
            began_s = monotonic()
            sleep(look_s if before else 0)
            is_busy |= monotonic() - began_s > look_s + LOOK_S
            now = threads_at_rest(self._strangers)
            look_s = LOOK_S if now else min(2 * look_s, RAREST_LOOK_S)
            n_alike = n_alike + 1 if now is not None and now == before else 0
            before = now or {}


class _OwnedToken(CancelToken):
    """Ends the run at its deadline, which no socket knows of: they wait by a real clock, by which
    a busy machine may take longer for a call than is left of the run by this one.
    """

    def __init__(self, clock: OwnedClock, **how: Any) -> None:
        super().__init__(**how)
        self._clock = clock

    def start_deadline(self, deadline_s: float | None, *words: str) -> None:
        super().start_deadline(deadline_s, *words)
        if deadline_s is not None:
            self._clock.call_later(deadline_s, self._pass)

    @property
    def remaining_s(self) -> float | None:
        remaining_s = super().remaining_s
        return None if remaining_s else remaining_s

    def _pass(self) -> None:
        with suppress(Stopped):
            self.check()


def threads_at_rest(strangers: set[str]) -> dict[str, bytes] | None:
    """How often each other thread of this process has slept, strangers aside; `None` if one is
    awake, be it a stranger.
    """
    n_sleeps = {}
    for task in _tasks():
        if task.name == str(threading.get_native_id()):
            continue
        try:
            status = _status(task.path)
        except (FileNotFoundError, ProcessLookupError):
            return None
        if b"\nState:\tS" not in status:
            return None
        if task.name not in strangers:
            n_sleeps[task.name] = status[status.index(b"\nvoluntary_ctxt_switches:") :]
    return n_sleeps


def _tasks() -> list["os.DirEntry[str]"]:
    return [*os.scandir("/proc/self/task")]


def _status(task: str) -> bytes:
    """In as few steps as there are, since it is asked for very often."""
    descriptor = os.open(f"{task}/status", os.O_RDONLY)
    try:
        return os.read(descriptor, 8192)
    finally:
        os.close(descriptor)
