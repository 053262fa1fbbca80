"""Intervals of a survival curve's figures by drawing clusters anew; numpy comes with scipy."""

from collections.abc import Sequence
from functools import lru_cache
from math import inf, isfinite
from random import Random
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeVar
from zlib import crc32

from msgspec import Struct

from socratic_bench.statistics.intervals import t_point
from socratic_bench.statistics.survival import FEWEST_OF_TIMES, HALF, ROUNDING, Time

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


TimeClusters = Sequence[Sequence[Time]]
N_DRAWS = 1999  # so that a percentile is the value of a rank
SEED = 1
Value = TypeVar("Value")


class Limits(Struct, frozen=True):
    """Of a 95 % interval; `None`: there is no limit on that side."""

    low: float | None
    high: float | None


class SurvivalLimits(Struct, frozen=True):
    median: Limits
    restricted_mean: Limits


UNKNOWN = Limits(None, None)


def survival_limits(
    clusters: TimeClusters, horizon: float, n_draws: int = N_DRAWS
) -> SurvivalLimits:
    """Percentiles of the median and of the restricted mean over draws of whole clusters, with
    replacement: of one cluster less than there are, since draws of all would vary too little (Rao
    and Wu 1988, Journal of the American Statistical Association 83: 231). They are taken as far out
    as Student's point is on the normal distribution, since those of few clusters are too narrow
    (Hesterberg 2015, The American Statistician 69: 371, section 5.3). A draw in which half is not
    reached has a median beyond all times. `None` where `limits_reason` says why. The same times
    have the same limits.

    Raises `ImportError` without numpy.
    """
    if limits_reason(clusters):
        return SurvivalLimits(UNKNOWN, UNKNOWN)
    medians, means = _figures(clusters, horizon, n_draws)
    rank = _rank(len(clusters), n_draws)
    return SurvivalLimits(_limits(medians, medians, rank), _limits(means, means, rank))


def survival_difference_limits(
    first: TimeClusters, second: TimeClusters, horizon: float, n_draws: int = N_DRAWS
) -> SurvivalLimits:
    """The same of the first's figures less the second's, whose clusters are the same ones, in the
    same order, and are drawn together. A draw in which neither median is reached may have had any
    difference. `None` where either has no limits of its own.

    Raises `ImportError` without numpy.
    """
    import numpy as np

    if limits_reason(first) or limits_reason(second):
        return SurvivalLimits(UNKNOWN, UNKNOWN)
    figures = (_figures(clusters, horizon, n_draws) for clusters in (first, second))
    (medians, means), (other_medians, other_means) = figures
    with np.errstate(invalid="ignore"):
        apart = medians - other_medians
    lows, highs = (np.where(np.isnan(apart), any_, apart) for any_ in (-inf, inf))
    means, rank = means - other_means, _rank(len(first), n_draws)
    return SurvivalLimits(_limits(lows, highs, rank), _limits(means, means, rank))


def limits_reason(clusters: TimeClusters) -> Literal["too_few_scenarios", "no_event"] | None:
    """Why times have no limits; `None`: they have."""
    if len(clusters) < FEWEST_OF_TIMES:
        return "too_few_scenarios"
    is_seen = any(time.is_event for times in clusters for time in times)
    return None if is_seen else "no_event"


def _figures(clusters: TimeClusters, horizon: float, n_draws: int) -> tuple["Array", "Array"]:
    """Medians and restricted means, draw by draw."""
    import numpy as np

    grid = np.array(sorted({time.at for times in clusters for time in times}))
    events = np.array(
        [[sum(t.at == at and t.is_event for t in ts) for at in grid] for ts in clusters]
    )
    at_risk = np.array([[sum(t.at >= at for t in ts) for at in grid] for ts in clusters])
    counts = draws(len(clusters), len(clusters) - 1, n_draws)
    shares = np.cumprod(1 - counts @ events / np.maximum(counts @ at_risk, 1), axis=1)
    is_reached = shares <= HALF + ROUNDING
    medians = np.where(is_reached.any(axis=1), grid[is_reached.argmax(axis=1)], inf)
    widths = np.diff(np.minimum([*grid, inf], horizon))
    return medians, min(float(grid[0]), horizon) + shares @ widths


def in_fixed_order(clusters: Sequence[Sequence[Value]]) -> list[Sequence[Value]]:
    """The clusters in an order that what is in them decides alone, so that draws of the same runs
    are the same, wherever these were read from. It is that of a checksum: ordered by size, the same
    draws would favour the same sizes in all samples.
    """
    return sorted(clusters, key=lambda cluster: crc32(repr(sorted(map(repr, cluster))).encode()))


@lru_cache(maxsize=64)
def draws(n_clusters: int, n_drawn: int, n_draws: int) -> "Array":
    """How often each cluster is in each draw of so many, with replacement."""
    import numpy as np

    dice = Random(SEED)
    chosen = np.array(dice.choices(range(n_clusters), k=n_drawn * n_draws))
    rows = np.repeat(np.arange(n_draws), n_drawn)
    counts = np.zeros((n_draws, n_clusters))
    np.add.at(counts, (rows, chosen), 1)
    return counts


def _rank(n_clusters: int, n_draws: int) -> int:
    """Which value from each end is a limit, counted from 1."""
    beyond = NormalDist().cdf(-t_point(n_clusters - 1))
    return max(1, round((n_draws + 1) * beyond))


def _limits(lows: "Array", highs: "Array", rank: int) -> Limits:
    low, high = float(sorted(lows)[rank - 1]), float(sorted(highs)[-rank])
    if low == high:  # draws that all agree say nothing of other clusters
        return UNKNOWN
    return Limits(low if isfinite(low) else None, high if isfinite(high) else None)
