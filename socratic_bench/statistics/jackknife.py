"""Intervals of any figure over clusters: leave one out at a time."""

from collections.abc import Callable, Sequence
from math import fsum, inf, sqrt
from typing import TypeVar

from msgspec import Struct

from socratic_bench.statistics.clusters import FEWEST
from socratic_bench.statistics.intervals import Interval, t_limits

Value = TypeVar("Value")
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
    values = [value for cluster in clusters for value in cluster]
    whole = figure(values)
    groups = _grouped(clusters)
    k = len(groups)
    error = None
    if k >= FEWEST and whole is not None:
        without = [figure(_without(groups, n)) for n in range(k)]
        known = [one for one in without if one is not None]
        if len(known) == k:
            middle = fsum(known) / k
            error = sqrt((k - 1) / k * fsum((one - middle) ** 2 for one in known))
    return Jackknifed(value=whole, error=error, n_clusters=k)


def _grouped(clusters: Sequence[Sequence[Value]]) -> list[list[Value]]:
    k = min(len(clusters), MOST_LEFT_OUT)
    return [[value for one in clusters[n::k] for value in one] for n in range(k)]


def _without(groups: Sequence[Sequence[Value]], left_out: int) -> list[Value]:
    return [value for n, group in enumerate(groups) if n != left_out for value in group]
