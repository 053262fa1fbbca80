"""Whether a mean difference is more than chance: tests that flip signs, and intervals that agree.

One difference a cluster is given. Where models are alike, each is as likely above 0 as below, so
its sign can be flipped. Nothing here needs scipy but `smallest_seen`.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, fsum, log2, sqrt
from random import Random
from statistics import NormalDist, stdev

from socratic_bench.statistics.intervals import LEVEL, NO_ERROR, Interval, t_centre

ALPHA = 1 - LEVEL
POWER = 0.8
# Up to so many differences all subsets are looked at, and above it so many that are drawn.
MOST_EXACT, N_DRAWN, SEED = 16, 9_999, 1


def subset_means(differences: Sequence[float]) -> list[float]:
    """The means of all subsets but the empty one, in order; of many differences those of some
    subsets, which are drawn at random, always the same ones.

    The true centre lies between any two neighbours with the same probability (Hartigan 1969,
    Journal of the American Statistical Association 64: 1303, theorems 1 and 2).
    """
    if len(differences) > MOST_EXACT:
        means = [
            fsum(differences[n] for n in subset) / len(subset)
            for subset in drawn_subsets(len(differences))
        ]
    else:
        sums: list[tuple[float, int]] = [(0.0, 0)]
        for difference in differences:
            sums += [(total + difference, n + 1) for total, n in sums]
        means = [total / n for total, n in sums[1:]]
    return sorted(0.0 if abs(mean) < NO_ERROR else mean for mean in means)


@lru_cache(maxsize=2)
def drawn_subsets(n: int) -> list[list[int]]:
    """The subsets that stand for all of so many differences, by their places."""
    dice = Random(SEED)
    subsets: list[list[int]] = []
    while len(subsets) < N_DRAWN:
        bits = dice.getrandbits(n)
        if bits:
            subsets.append([at for at in range(n) if bits >> at & 1])
    return subsets


def sign_flip_p(means: Sequence[float]) -> float:
    """The two-sided p of no difference, from `subset_means`: the share of ways to flip signs which
    give a sum as far from 0 as the differences have. Flipping a subset does if its mean is 0, or on
    the other side.
    """
    n_beyond = min(sum(mean <= 0 for mean in means), sum(mean >= 0 for mean in means))
    return min(1.0, 2 * (1 + n_beyond) / (1 + len(means)))


def sign_flip_interval(means: Sequence[float], alpha: float = ALPHA) -> Interval | None:
    """The differences that the test of the same `subset_means` does not reject at `alpha`. `None`
    for too few of them, which can reject nothing.
    """
    n_beyond = int(alpha * (1 + len(means)) / 2 + NO_ERROR)
    return Interval(means[n_beyond - 1], means[-n_beyond]) if n_beyond else None


def fewest_clusters(n_tests: int) -> int:
    """How many clusters it takes for the smallest p, 2 / 2^K, to be under .05 after correction."""
    return ceil(1 + log2(n_tests / ALPHA))


def clusters_needed(differences: Sequence[float], n_tests: int) -> int | None:
    """How many clusters would decide in 80 % of cases if all differ as these do, by the normal
    distribution (Guenther 1981, The American Statistician 35: 243). `None` if they do not differ.
    """
    mean = fsum(differences) / len(differences)
    if abs(mean) < NO_ERROR:
        return None
    ratio = (stdev(differences) if len(differences) > 1 else 0.0) / mean
    point = -NormalDist().inv_cdf(ALPHA / n_tests / 2)
    n = (ratio * (point + NormalDist().inv_cdf(POWER))) ** 2 + point**2 / 2 if ratio else 0.0
    return max(fewest_clusters(n_tests), ceil(n))


def smallest_seen(error: float, n_clusters: int, alpha: float = ALPHA) -> float:
    """The true difference that a sample of this size and scatter finds in 80 % of cases, tested at
    `alpha` on two sides: that many standard errors give the noncentral t its power, which is near
    that of flipped signs from ten clusters on.

    Raises `ImportError` without scipy.
    """
    if alpha * 2.0 ** (n_clusters - 2) < 1:  # the test rejects only if all are on one side
        return error * sqrt(n_clusters) * NormalDist().inv_cdf(POWER ** (1 / n_clusters))
    return error * t_centre(1 - POWER, n_clusters - 1, alpha)


def holm_factors(p_values: Sequence[float]) -> list[float]:
    """What each p is multiplied by for their number (Holm 1979, Scandinavian Journal of Statistics
    6: 65); the product may be over 1.
    """
    factors = [1.0] * len(p_values)
    highest = 0.0
    for rank, n in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        factor, p = len(p_values) - rank, p_values[n]
        highest = max(highest, p * factor)
        factors[n] = highest / p if p else factor
    return factors
