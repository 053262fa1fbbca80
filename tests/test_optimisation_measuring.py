"""Verdicts of the benchmark optimisation by a simulated clock: false ones, and missed ones."""

from functools import partial
from math import exp
from random import Random

import pytest

from socratic_bench.benchmarks.optimisation.measuring import (
    LOOK_LEVEL,
    Sample,
    Verdict,
    is_decided,
    judge,
    measure,
    order_interval,
)

N_EVALUATIONS = 200
JUDGING = {"deciding": ["load"], "metric": "seconds", "min_effect": 0.05}


def evaluate(key, *, noise=0.05, drift=0.0, speed=None, looks=(9, 18, 36)) -> Verdict:
    """One evaluation on a clock that only knows planted speeds, noise and drift."""
    random = Random(key)
    n_taken = 0

    def take(arm, workload, number, seed):
        nonlocal n_taken
        n_taken += 1
        slow = 1 + drift * n_taken / 27
        seconds = slow * exp(random.gauss(0, noise)) / (speed or {}).get(arm, 1.0)
        return Sample(arm=arm, workload=workload, round=number, seed=seed, seconds=seconds,
                      setup_seconds=0.1, checksum="x")  # fmt: skip

    samples = measure(
        ("base", "human", "agent"), ["load"], take,
        lambda taken: is_decided(judge(taken, **JUDGING)), key=str(key), looks=looks,
    )  # fmt: skip
    return judge(samples, **JUDGING)


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
def test_equal_patches_are_seldom_called_different(noise):
    verdicts = [evaluate(key, noise=noise) for key in range(N_EVALUATIONS)]
    false = [v for v in verdicts if v.improved or v.performance in ("beats", "worse")]
    assert len(false) <= 0.05 * N_EVALUATIONS
    if noise == 0.02:
        assert sum(v.performance == "similar" for v in verdicts) >= 0.9 * N_EVALUATIONS


def test_a_faster_patch_is_found():
    speed = {"human": 1.3, "agent": 1.3}
    verdicts = [evaluate(key, speed=speed) for key in range(N_EVALUATIONS)]
    assert sum(v.improved is True for v in verdicts) >= 0.95 * N_EVALUATIONS
    better = [evaluate(key, speed={"agent": 1.3}) for key in range(N_EVALUATIONS)]
    assert sum(v.performance == "beats" for v in better) >= 0.95 * N_EVALUATIONS
    slower = [evaluate(key, speed={"human": 1.3}) for key in range(N_EVALUATIONS)]
    assert sum(v.performance == "worse" for v in slower) >= 0.95 * N_EVALUATIONS


def test_a_drifting_machine_favours_nobody():
    verdicts = [evaluate(key, noise=0.02, drift=0.1) for key in range(N_EVALUATIONS)]
    false = [v for v in verdicts if v.improved or v.performance in ("beats", "worse")]
    assert len(false) <= 0.05 * N_EVALUATIONS


def test_the_interval_covers_over_three_looks():
    """The true ratio is within the interval at every look at once, in 95 % of evaluations."""
    random, n_covered, n = Random(3), 0, 2000
    for _ in range(n):
        values = [exp(random.gauss(0, 0.07)) for _ in range(36)]
        intervals = map(order_interval, (values[:9], values[:18], values))
        n_covered += all(low <= 1 <= high for low, high in intervals)
    assert n_covered >= 0.95 * n
    assert order_interval([1.0] * 5) == (None, None)
    assert order_interval([*range(1, 10)]) == (1, 9)
    assert pytest.approx(0.9833, abs=1e-4) == LOOK_LEVEL


def test_rounds_are_interleaved_with_one_new_input_each():
    taken = []

    def take(arm, workload, number, seed):
        taken.append((number, workload, arm, seed))
        return Sample(arm=arm, workload=workload, round=number, seed=seed, seconds=1.0,
                      setup_seconds=0.1, checksum="x")  # fmt: skip

    measure(("base", "human", "agent"), ["a", "b"], take, lambda _: False, key="k", looks=(3,))
    assert [arm for _, load, arm, _ in taken if load == "a"] == [
        *("base", "human", "agent"),
        *("human", "agent", "base"),
        *("agent", "base", "human"),
    ]
    assert len({(load, seed) for _, load, _, seed in taken}) == 6


def test_several_workloads_count_alike():
    seconds = {("a", "base"): 4.0, ("b", "base"): 1.0}
    take = partial(_planted, seconds)
    samples = measure(("base", "human", "agent"), ["a", "b"], take, lambda _: True, key="k")
    verdict = judge(samples, deciding=["a", "b"], metric="seconds", min_effect=0.05)
    assert verdict.over_base.median == pytest.approx(2.0)
    assert verdict.improved is True
    assert judge(samples, deciding=["b"], metric="seconds", min_effect=0.05).improved is False


def _planted(seconds, arm, workload, number, seed):
    return Sample(
        arm=arm,
        workload=workload,
        round=number,
        seed=seed,
        seconds=seconds.get((workload, arm), 1.0),
        setup_seconds=0.1,
        checksum="x",
    )
