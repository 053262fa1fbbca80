"""The threads of many runs stay on one core, which others may have if they need it."""

import os
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import pytest

from socratic_bench import CancelToken, RunConfig, Services, run
from socratic_bench.core_affinity import MANY_RUNS, CoreUse
from socratic_bench.emulator import Emulator, Settings
from tests.command import account
from tests.fakes import PATIENCE_S

HANGS_MS = 600_000.0


def usable() -> Collection[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()


@pytest.mark.skipif(len(usable()) < 2, reason="there is one core, or threads cannot choose")
@pytest.mark.parametrize(("n_runs", "n_cores"), [(MANY_RUNS, 1), (1, len(usable()))])
def test_threads_of_many_runs_stay_on_one_core_until_they_end(monkeypatch, n_runs, n_cores):
    token, before = CancelToken(), usable()
    config = RunConfig(model="any", prompt="Hi", region="us-east-1", turns=1)
    with (
        Emulator(Settings(any_model=True, latency_ms=HANGS_MS)) as emulator,
        Services() as services,
        ThreadPoolExecutor(n_runs) as pool,
    ):
        for name, value in account(emulator.url).items():
            monkeypatch.setenv(name, value)

        def cores() -> Collection[int]:
            return services.threads.submit(usable).result(PATIENCE_S)

        def policy() -> int:
            return services.threads.submit(lambda: os.sched_getscheduler(0)).result(PATIENCE_S)

        playing = [
            pool.submit(run, config, services=services, cancel_token=token) for _ in range(n_runs)
        ]
        until_s = time.monotonic() + PATIENCE_S
        while (len(emulator.requests), len(cores())) != (n_runs, n_cores):
            assert time.monotonic() < until_s
            time.sleep(0.01)
        assert usable() == before
        assert policy() == (os.SCHED_BATCH if n_runs == MANY_RUNS else os.SCHED_OTHER)
        assert os.sched_getscheduler(0) == os.SCHED_OTHER
        token.interrupt(2)
        for one in playing:
            one.result(PATIENCE_S)
        assert (cores(), policy()) == (before, os.SCHED_OTHER)
        assert {*map(frozenset, pool.map(lambda _: usable(), range(n_runs)))} == {frozenset(before)}


@pytest.mark.parametrize(
    ("core", "busy", "own", "chosen"),
    [
        (None, {0: 0.9, 1: 0.1}, 0.5, 1),
        (0, {0: 1.0, 1: 0.1}, 0.95, 0),  # what keeps it busy is this process
        (0, {0: 1.0, 1: 0.1}, 0.5, 1),
        (0, {0: 1.0, 1: 0.9}, 0.5, 0),  # others need the other one as much
        (0, {1: 0.1}, 0.5, 1),  # taken away
        (None, {}, 0.5, None),  # the system does not tell
    ],
)
def test_the_core_is_changed_for_others_that_need_it(core, busy, own, chosen):
    assert CoreUse(1.0, busy, own).choice(core, (0, 1), process_id=1) == chosen


def test_processes_that_begin_together_choose_several_cores():
    idle = CoreUse(1.0, dict.fromkeys(range(4), 0.01), 0.0)

    assert {idle.choice(None, range(4), process_id=one) for one in range(100, 104)} == {0, 1, 2, 3}


def test_shares_are_of_the_time_that_has_passed():
    before, now = CoreUse(10.0, {0: 5.0, 1: 7.0}, 2.0), CoreUse(12.0, {0: 6.0, 1: 7.0}, 3.0)

    assert now.since(before) == CoreUse(1.0, {0: 0.5, 1: 0.0}, 0.5)
