"""Whether a mean difference is more than chance: tests that flip signs, and intervals that agree.

One difference a cluster is given. Where models are alike, each is as likely above 0 as below, so
its sign can be flipped. Nothing here needs an extra but `smallest_seen`.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, fsum, gcd, log2, sqrt
from random import Random
from statistics import NormalDist, stdev

from msgspec import Struct

from socratic_bench.statistics.intervals import LEVEL, NO_ERROR, Interval, t_centre

ALPHA = 1 - LEVEL
POWER = 0.8
# Sums are of whole parts of this size, of which means of up to ten whole numbers are multiples.
PART, PLACES = 1 / 5_040_000, 9
# Of so few differences, or where it takes no more steps than that, all subsets are counted; else so
# many are drawn.
FEW, MOST_STEPS, N_DRAWN, SEED = 16, 30_000_000, 9_999, 1
# Up to so many clusters the power of the test is simulated with about so many numbers.
MOST_SIMULATED, N_SIMULATED = 12, 1 << 22


class SubsetMeans(Struct, frozen=True):
    """The means of all subsets but the empty one, in order, and how many subsets have at most this
    mean; of too many differences those of some subsets, which are drawn at random, always the same.

    The true centre lies between any two neighbours with the same probability (Hartigan 1969,
    Journal of the American Statistical Association 64: 1303, theorems 1 and 2).
    """

    means: Sequence[float]
    ranks: Sequence[int]
    is_drawn: bool

    @property
    def n(self) -> int:
        return self.ranks[-1] if self.ranks else 0

    def of_rank(self, rank: int) -> float:
        """The mean of a rank, the lowest being the first."""
        return self.means[bisect_left(self.ranks, rank)]

    def n_beyond(self, mean: float = 0.0) -> int:
        """How many subsets have this mean or lie beyond it, on the side where there are fewer."""
        below, up_to = bisect_left(self.means, mean), bisect_right(self.means, mean)
        n_below, n_up_to = (self.ranks[at - 1] if at else 0 for at in (below, up_to))
        return min(n_up_to, self.n - n_below)


def subset_means(differences: Sequence[float]) -> SubsetMeans:
    parts = [round(difference / PART) for difference in differences]
    unit = gcd(*parts) or 1
    counts = _count_subsets([part // unit for part in parts])
    if counts is None:
        means = [
            fsum(differences[n] for n in subset) / len(subset)
            for subset in drawn_subsets(len(differences))
        ]
        means = sorted(round(mean, PLACES) for mean in means)
        return SubsetMeans(means, range(1, N_DRAWN + 1), is_drawn=True)
    by_mean = sorted(
        (round(total * unit * PART / size, PLACES), count)
        for size, by_sum in enumerate(counts)
        for total, count in by_sum.items()
        if size
    )
    ranks = accumulate(count for _, count in by_mean)
    return SubsetMeans([mean for mean, _ in by_mean], [*ranks], is_drawn=False)


def _count_subsets(values: Sequence[int]) -> list[dict[int, int]] | None:
    """By size, how many subsets have each sum; `None` if these are too many to count."""
    n = len(values)
    if n > FEW and n * n * sum(map(abs, values)) > MOST_STEPS:
        return None
    counts: list[dict[int, int]] = [{0: 1}, *(defaultdict(int) for _ in values)]
    for n_before, value in enumerate(values):
        for size in range(n_before, -1, -1):
            for total, count in counts[size].items():
                counts[size + 1][total + value] += count
    return counts


@lru_cache(maxsize=2)
def drawn_subsets(n: int) -> list[list[int]]:
    """The subsets that stand for all of so many differences, by their places."""
    dice = Random(SEED)
    drawn = (dice.getrandbits(n) or 1 for _ in range(N_DRAWN))
    return [[at for at in range(n) if bits >> at & 1] for bits in drawn]


def sign_flip_p(means: SubsetMeans) -> float:
    """The two-sided p of no difference: the share of ways to flip signs which give a sum as far
    from 0 as the differences have. Flipping a subset does if its mean is 0, or on the other side.
    """
    return min(1.0, 2 * (1 + means.n_beyond()) / (1 + means.n))


def sign_flip_interval(means: SubsetMeans, alpha: float = ALPHA) -> Interval | None:
    """The differences that the test of the same means does not reject at `alpha`. `None` for too
    few of them, which can reject nothing.
    """
    n_beyond = _most_beyond(means.n, alpha)
    if not n_beyond:
        return None
    return Interval(means.of_rank(n_beyond), means.of_rank(means.n + 1 - n_beyond))


def _most_beyond(n_subsets: int, alpha: float) -> int:
    """The rank of the means that are the limits at `alpha`; 0 if there are none."""
    return int(Fraction(alpha) * (1 + n_subsets) / 2 + Fraction(NO_ERROR))


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
    `alpha` on two sides: by simulation for normal differences, or by the noncentral t, whose power
    is near that of flipped signs for many clusters.

    Raises `ImportError` without scipy.
    """
    if n_clusters > MOST_SIMULATED:
        return error * t_centre(1 - POWER, n_clusters - 1, alpha)
    rank = _most_beyond(2**n_clusters - 1, alpha)
    return error * sqrt(n_clusters) * _seen_deviations(n_clusters)[rank - 1]


@lru_cache(maxsize=MOST_SIMULATED)
def _seen_deviations(n_clusters: int) -> Sequence[float]:
    """By rank of the limits, how many deviations a difference must have to be found in 80 % of
    samples: as many as the limit of a sample around 0 lies from 0 in 20 % of them or fewer.
    """
    import numpy as np

    is_in = np.arange(1, 2**n_clusters)[:, None] >> np.arange(n_clusters) & 1
    samples = np.random.default_rng(SEED).normal(size=(N_SIMULATED >> n_clusters, n_clusters))
    means = np.sort(samples @ (is_in / is_in.sum(axis=1, keepdims=True)).T, axis=1)
    n_ranks = 1 + int(ALPHA * 2**n_clusters / 2)
    limits = np.concatenate([-means[:, :n_ranks], means[:, : -n_ranks - 1 : -1]])
    deviations: list[float] = np.quantile(limits, POWER, axis=0).tolist()
    return deviations


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
