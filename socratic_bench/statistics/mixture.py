"""Whether a few values lie apart from the rest: then an interval of the mean may be far off."""

from collections.abc import Sequence
from itertools import accumulate
from math import fsum, inf, sqrt

from msgspec import Struct

# Below so many clusters nothing can be told of a shape.
FEWEST = 4
# Two groups of values that are truly one differ by more in about 1 % of normal samples at most.
APART, APART_FEW = 5.0, 22.0


class Mixture(Struct, frozen=True, kw_only=True):
    """Values in two groups: how many there are in each, and their means."""

    n_low: int
    n_high: int
    mean_low: float
    mean_high: float


def mixture(values: Sequence[float], n_clusters: int, least: float) -> Mixture | None:
    """The two groups in which values lie, if they do: of all ways to cut the ordered values in two
    the one whose means differ by the most deviations within the groups (Ashman, Bird and Zepf 1994,
    Astronomical Journal 108: 2348, with one deviation for both). They lie apart if that is
    more than 5 + 22 / (K - 3) deviations for K clusters, and at least `least`.

    `None` under four clusters: in three, two values that happen to be alike prove nothing.
    """
    n = len(values)
    if n_clusters < FEWEST or n < FEWEST:
        return None
    ordered = sorted(values)
    middle = fsum(ordered) / n
    sums = [*accumulate(value - middle for value in ordered)]
    squares = fsum((value - middle) ** 2 for value in ordered)
    found, most = None, APART + APART_FEW / (n_clusters - FEWEST + 1)
    for cut in range(1, n):
        low, high = sums[cut - 1] / cut, (sums[-1] - sums[cut - 1]) / (n - cut)
        within = max(0.0, squares - cut * low**2 - (n - cut) * high**2)
        deviation = sqrt(within / (n - 2))
        deviations = (high - low) / deviation if deviation > _ROUNDING * (high - low) else inf
        if high - low >= least and deviations > most:
            most = deviations
            found = Mixture(
                n_low=cut, n_high=n - cut, mean_low=middle + low, mean_high=middle + high
            )
    return found


_ROUNDING = 1e-7
