"""Intervals at 95 % that hold for clusters like those that were drawn, and what narrows them."""

from bisect import bisect_left
from collections.abc import Callable
from math import ceil, inf, sqrt

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.statistics.clusters import Clustered
from socratic_bench.statistics.quantiles import t_point


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
    if value is None or error is None:
        return None
    half = t_point(n_clusters - 1) * error
    return Interval(max(low, value - half), min(high, value + half))


def t_interval(found: Clustered) -> Interval | None:
    """That of a mean, without bounds."""
    return t_limits(found.mean, found.error, found.n_clusters)


def wilson_interval(found: Clustered) -> Interval | None:
    """Of a rate: Wilson's (1927) with Student's point in the place of the normal one, and the
    effective sample size p (1 - p) / error² in that of the trials (Franco et al. 2019, Journal of
    Survey Statistics and Methodology 7: 334, section 2). Where clusters do not differ, as at 0 and
    1, each counts as one trial, so that it is never of zero width. `None` for a single cluster.
    """
    if found.error is None:
        return None
    rate = found.mean
    n = rate * (1 - rate) / found.error**2 if found.error else found.n_clusters
    squared = t_point(found.n_clusters - 1) ** 2
    middle = (rate + squared / (2 * n)) / (1 + squared / n)
    half = sqrt(squared * (rate * (1 - rate) / n + squared / (4 * n * n))) / (1 + squared / n)
    # At 0 and 1 a limit is the rate itself, but for rounding.
    return Interval(min(rate, middle - half), max(rate, middle + half))


Make = Callable[[Clustered], Interval | None]


def runs_to_halve(found: Clustered, interval: Make = t_interval) -> int | None:
    """How many more runs, of further clusters as large as these, would halve the `interval`, which
    is `t_interval` or `wilson_interval`, if clusters varied as these do: their error falls with the
    root of their number, and Student's point with their number. `None` where there is no interval,
    or none to halve.
    """
    if not (width := _width(found, found.n_clusters, interval)):
        return None
    n = fewest(found.n_clusters, lambda n: _width(found, n, interval) <= width / 2)
    return ceil((n - found.n_clusters) * found.n / found.n_clusters)


def fewest(least: int, is_enough: Callable[[int], bool], most: float = inf) -> int:
    """How many clusters are enough, `least` of them at least; where not even `most` are, about so
    many. More than enough are enough, too.
    """
    low = high = least
    while high < most and not is_enough(high):
        low, high = high, 2 * high
    return low + bisect_left(range(low, high), x=True, key=is_enough)


def _width(found: Clustered, n_clusters: int, interval: Make) -> float:
    """That of so many clusters; 0 where there is none."""
    error = found.error and found.error * sqrt(found.n_clusters / n_clusters)
    made = interval(replace(found, n_clusters=n_clusters, error=error))
    return made.high - made.low if made else 0.0
