"""The test that flips signs, its interval, and the difference that it finds, against others."""

from itertools import product
from random import Random
from statistics import fmean

import pytest

from socratic_bench.statistics.differences import (
    ALPHA,
    POWER,
    sign_flip_interval,
    sign_flip_p,
    smallest_seen,
    subset_means,
)


@pytest.mark.parametrize("seed", range(20))
def test_p_is_the_share_of_all_ways_to_flip_signs(seed):
    """Means of three repeats, of which many ways to flip them give the same sum."""
    dice = Random(seed)
    thirds = [dice.randint(-4, 9) for _ in range(10)]
    sums = [sum(map(int.__mul__, thirds, signs)) for signs in product((-1, 1), repeat=10)]
    share = fmean(abs(total) >= abs(sum(thirds)) for total in sums)

    assert sign_flip_p(subset_means([value / 3 for value in thirds])) == share


def test_p_of_thirty_differences_is_that_of_scipys_exact_test():
    """Differences that are their own ranks make it Wilcoxon's."""
    stats = pytest.importorskip("scipy.stats")
    dice = Random(1)
    differences = [rank * dice.choice((-1, 1, 1)) for rank in range(1, 31)]
    means = subset_means(differences)

    assert not means.is_drawn
    assert sign_flip_p(means) == pytest.approx(stats.wilcoxon(differences, mode="exact").pvalue)


@pytest.mark.parametrize("n", [6, 12, 30])
def test_the_interval_holds_what_the_test_does_not_reject(n):
    dice = Random(n)
    differences = [dice.randint(-20, 40) / 4 for _ in range(n)]
    interval = sign_flip_interval(subset_means(differences))

    assert interval is not None
    for centre in (quarters / 4 for quarters in range(-20, 60, 4)):
        p = sign_flip_p(subset_means([value - centre for value in differences]))
        assert (p > ALPHA) == (interval.low <= centre <= interval.high)


def test_of_too_many_differences_ways_to_flip_are_drawn():
    dice = Random(1)
    differences = [dice.gauss(0.5, 1) for _ in range(200)]
    means = subset_means(differences)

    assert means.is_drawn
    assert sign_flip_p(means) < 0.001
    assert sign_flip_interval(means) == sign_flip_interval(subset_means(differences))


def test_a_difference_of_the_size_that_is_called_detectable_is_found_in_four_of_five():
    """Eight normal differences, tested as the first of three pairs."""
    pytest.importorskip("scipy")
    dice, n, alpha = Random(2), 8, ALPHA / 3
    size = smallest_seen(n**-0.5, n, alpha)
    samples = [[dice.gauss(size, 1) for _ in range(n)] for _ in range(600)]
    n_found = sum(sign_flip_p(subset_means(sample)) <= alpha for sample in samples)

    assert n_found / len(samples) == pytest.approx(POWER, abs=0.05)
