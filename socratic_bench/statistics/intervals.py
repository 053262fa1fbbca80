"""Means of clustered values and their intervals at 95 %.

In order: points of Student's distribution (scipy is imported here alone, and not for `t_point`);
a clustered mean with its standard error; t and Wilson intervals and the runs that would halve them;
the jackknife for any other figure; values that lie in two groups.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import ceil, cos, fsum, inf, isnan, pi, sin, sqrt, tan
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

LEVEL = 0.95
HALVINGS = 40
# The normal distribution's own point, and from how many degrees of freedom on Student's is near it.
Z = 1.959963984540054
NEARLY_NORMAL = 200


def is_available() -> bool:
    """Whether scipy can be imported, which takes a third of a second."""
    try:
        t_share(0.0, 1)
    except ImportError:
        return False
    return True


@lru_cache(maxsize=4096)
def t_point(freedom: int) -> float:
    """How many standard errors reach to each side of a mean at 95 %, by degrees of freedom. It
    needs no scipy: a run tells intervals without the extra, too.

    The finite sums of Abramowitz and Stegun (1972), 26.7.3 and 26.7.4, are solved by bisection; for
    many degrees of freedom the expansion 26.7.5 about the normal point is as exact.
    """
    if freedom > NEARLY_NORMAL:
        return _expanded(freedom)
    low, high = 0.0, pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(middle, freedom) < LEVEL else (low, middle)
    return sqrt(freedom) * tan(low)


def _within(angle: float, freedom: int) -> float:
    """The share of Student's distribution within tan(angle) sqrt(freedom) of its middle."""
    odd, square = freedom % 2, cos(angle) ** 2
    if freedom == 1:
        return 2 * angle / pi
    term = total = cos(angle) if odd else 1.0
    for n in range(2 + odd, freedom - 1, 2):
        term *= square * (n - 1) / n
        total += term
    total *= sin(angle)
    return 2 / pi * (angle + total) if odd else total


def _expanded(freedom: int) -> float:
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
        (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92160,
    )
    return Z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


@lru_cache(maxsize=4096)
def t_centre(share: float, freedom: int, alpha: float = 1 - LEVEL) -> float:
    """The centre of the noncentral distribution of which this share lies within the point that
    `alpha` is beyond, to both sides. Raises `ImportError` without scipy.
    """
    from scipy.special import nctdtr, nctdtrinc, stdtrit  # type: ignore[import-untyped]

    point = float(stdtrit(freedom, 1 - alpha / 2))
    # Its inverse looks at one side only, and is right to a few parts in a million.
    guess = float(nctdtrinc(freedom, share, point))
    low, high = 0.99 * guess, 1.01 * guess
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = float(nctdtr(freedom, middle, -point))  # not a number where it is next to nothing
        within = float(nctdtr(freedom, middle, point)) - (0.0 if isnan(below) else below)
        low, high = (middle, high) if within > share else (low, middle)
    return (low + high) / 2


def t_share(t: float, freedom: int) -> float:
    """The share of Student's distribution below `t`. Raises `ImportError` without scipy."""
    from scipy.special import stdtr

    return float(stdtr(freedom, t))


Value = TypeVar("Value")
Clusters = Sequence[Sequence[float]]
FEWEST = 2
# Below this an error is that of floating point alone.
NO_ERROR = 1e-9


class Clustered(Struct, frozen=True, kw_only=True):
    """The mean of clustered values; a single cluster says nothing of others: no `error`."""

    mean: float
    n: int
    n_clusters: int
    error: float | None


class Parts(Struct, frozen=True):
    """What the variance of single values is made of: between clusters, and within one."""

    between: float
    within: float


def clustered(clusters: Clusters) -> Clustered:
    """The mean of all values. Its standard error is robust against any likeness of the values in a
    cluster: the squared sums of deviations by cluster (Miller 2024, arXiv 2411.00640, section 2.2),
    times K / (K - 1) for K clusters. Of clusters of one size it is that of the mean of their means.
    """
    n, n_clusters = sum(map(len, clusters)), len(clusters)
    middle = fsum(flatten(clusters)) / n
    error = None
    if n_clusters >= FEWEST:
        squares = fsum(fsum(value - middle for value in values) ** 2 for values in clusters)
        error = sqrt(squares * n_clusters / (n_clusters - 1)) / n
        error = 0.0 if error < NO_ERROR else error
    return Clustered(mean=middle, n=n, n_clusters=n_clusters, error=error)


def parts(clusters: Sequence[Clusters]) -> Parts | None:
    """The variance of each cluster's values, which are given by kind: values of a kind are repeats.

    One-way analysis of variance with random effects, by unweighted means (Searle, Casella and
    McCulloch 1992, Variance Components, section 3.6): within is the pooled variance of repeats,
    between is the variance of the clusters' means less what repeats add to it, at least 0. `None`
    without two clusters, or without a kind that was repeated.
    """
    kinds = flatten(clusters)
    freedom = sum(len(kind) - 1 for kind in kinds)
    if len(clusters) < FEWEST or not freedom:
        return None
    within = fsum(_squares(kind) for kind in kinds) / freedom
    flat = [*map(flatten, clusters)]
    means = [fsum(values) / len(values) for values in flat]
    of_means = _squares(means) / (len(means) - 1)
    added = within * fsum(1 / len(values) for values in flat) / len(flat)
    return Parts(max(0.0, of_means - added), within)


def flatten(lists: Iterable[Sequence[Value]]) -> list[Value]:
    """The values of all lists, in order."""
    return [value for values in lists for value in values]


def _squares(values: Sequence[float]) -> float:
    middle = fsum(values) / len(values)
    return fsum((value - middle) ** 2 for value in values)


class Interval(Struct, frozen=True):
    low: float
    high: float


def t_limits(
    value: float | None, error: float | None, n_clusters: int, low: float = -inf, high: float = inf
) -> Interval | None:
    """Student's t with a degree of freedom less than clusters (Cameron and Miller 2015, A
    Practitioner's Guide to Cluster-Robust Inference, section VI.D), within bounds; `None` where
    there is no error, as for a single cluster.
    """
    if value is None or not error:
        return None
    half = t_point(n_clusters - 1) * error
    return Interval(max(low, value - half), min(high, value + half))


def t_interval(mean: Clustered) -> Interval | None:
    """That of a mean, without bounds."""
    return t_limits(mean.mean, mean.error, mean.n_clusters)


def wilson_interval(mean: Clustered) -> Interval | None:
    """Of a rate: Wilson's (1927) with Student's point in the place of the normal one, and the
    effective sample size p (1 - p) / error² in that of the trials (Franco et al. 2019, Journal of
    Survey Statistics and Methodology 7: 334, section 2). Where clusters do not differ, as at 0 and
    1, each counts as one trial, so that it is never of zero width. `None` for a single cluster.
    """
    if mean.error is None:
        return None
    rate = mean.mean
    n = rate * (1 - rate) / mean.error**2 if mean.error else mean.n_clusters
    squared = t_point(mean.n_clusters - 1) ** 2
    middle = (rate + squared / (2 * n)) / (1 + squared / n)
    half = sqrt(squared * (rate * (1 - rate) / n + squared / (4 * n * n))) / (1 + squared / n)
    # At 0 and 1 a limit is the rate itself, but for rounding.
    return Interval(min(rate, middle - half), max(rate, middle + half))


Make = Callable[[Clustered], Interval | None]


def runs_to_halve(mean: Clustered, interval: Make = t_interval) -> int | None:
    """How many more runs, of further clusters as large as these, would halve the `interval`, which
    is `t_interval` or `wilson_interval`, if clusters varied as these do: their error falls with the
    root of their number, and Student's point with their number. `None` where there is no interval,
    or none to halve.
    """
    if not (width := _width(mean, mean.n_clusters, interval)):
        return None
    n = fewest(mean.n_clusters, lambda n: _width(mean, n, interval) <= width / 2)
    return ceil((n - mean.n_clusters) * mean.n / mean.n_clusters)


def fewest(least: int, is_enough: Callable[[int], bool], most: float = inf) -> int:
    """How many clusters are enough, `least` of them at least; where not even `most` are, about so
    many. More than enough are enough, too.
    """
    low = high = least
    while high < most and not is_enough(high):
        low, high = high, 2 * high
    return low + bisect_left(range(low, high), x=True, key=is_enough)


def _width(mean: Clustered, n_clusters: int, interval: Make) -> float:
    """That of so many clusters; 0 where there is none."""
    error = mean.error and mean.error * sqrt(mean.n_clusters / n_clusters)
    limits = interval(replace(mean, n_clusters=n_clusters, error=error))
    return limits.high - limits.low if limits else 0.0


# More are put together, so that time grows with the number of values alone.
MOST_LEFT_OUT = 200


class Jackknifed(Struct, frozen=True, kw_only=True):
    """A figure over all values, and its standard error over so many clusters; `None` for one
    cluster, and where the figure is not known without one of them.
    """

    value: float | None
    error: float | None
    n_clusters: int

    def interval(self, low: float = -inf, high: float = inf) -> Interval | None:
        return t_limits(self.value, self.error, self.n_clusters, low, high)


def jackknifed(
    clusters: Sequence[Sequence[Value]], figure: Callable[[Sequence[Value]], float | None]
) -> Jackknifed:
    """The error is the delete-a-group jackknife's (Kott 2001, Journal of Official Statistics 17:
    521): (K - 1) / K times the squared differences of the figures without each of K clusters from
    their mean.
    """
    whole = figure(flatten(clusters))
    k = min(len(clusters), MOST_LEFT_OUT)
    groups = [flatten(clusters[n::k]) for n in range(k)]
    error = None
    if k >= FEWEST and whole is not None:
        without = [figure(flatten([*groups[:n], *groups[n + 1 :]])) for n in range(k)]
        values_without = [value for value in without if value is not None]
        if len(values_without) == k:
            error = sqrt((k - 1) / k * _squares(values_without))
            error = 0.0 if error < NO_ERROR else error
    return Jackknifed(value=whole, error=error, n_clusters=k)


# Below so many clusters nothing can be told of a shape.
_ROUNDING = 1e-7
MIN_CLUSTERS_OF_GROUPS = 4
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
    if n_clusters < MIN_CLUSTERS_OF_GROUPS or n < MIN_CLUSTERS_OF_GROUPS:
        return None
    ordered = sorted(values)
    middle = fsum(ordered) / n
    sums = [*accumulate(value - middle for value in ordered)]
    squares = fsum((value - middle) ** 2 for value in ordered)
    groups, most = None, APART + APART_FEW / (n_clusters - MIN_CLUSTERS_OF_GROUPS + 1)
    for cut in range(1, n):
        low, high = sums[cut - 1] / cut, (sums[-1] - sums[cut - 1]) / (n - cut)
        within = max(0.0, squares - cut * low**2 - (n - cut) * high**2)
        deviation = sqrt(within / (n - 2))
        deviations = (high - low) / deviation if deviation > _ROUNDING * (high - low) else inf
        if high - low >= least and deviations > most:
            most = deviations
            means = {"mean_low": middle + low, "mean_high": middle + high}
            groups = Mixture(n_low=cut, n_high=n - cut, **means)
    return groups
