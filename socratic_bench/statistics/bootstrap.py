"""Intervals of a survival curve's figures by drawing clusters anew; numpy comes with scipy."""

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from socratic_bench.statistics.clusters import FEWEST
from socratic_bench.statistics.quantiles import LEVEL
from socratic_bench.statistics.survival import HALF, ROUNDING, Time

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

N_DRAWS = 1999  # so that a percentile is the value of a rank
SEED = 1


class Limits(Struct, frozen=True):
    """Of a 95 % interval; `None`: there is no limit on that side."""

    low: float | None
    high: float | None


class SurvivalLimits(Struct, frozen=True):
    median: Limits
    restricted_mean: Limits


UNKNOWN = Limits(None, None)


def survival_limits(
    clusters: Sequence[Sequence[Time]], horizon: float, n_draws: int = N_DRAWS
) -> SurvivalLimits:
    """Percentiles of the median and of the restricted mean over draws of whole clusters, with
    replacement: of one cluster less than there are, since draws of all would vary too little (Rao
    and Wu 1988, Journal of the American Statistical Association 83: 231). A draw in which half is
    not reached has a median beyond all times. `None` for a single cluster, and where no event was
    seen. The same times have the same limits.

    Raises `ImportError` without numpy.
    """
    import numpy as np

    if len(clusters) < FEWEST or not any(one.is_event for times in clusters for one in times):
        return SurvivalLimits(UNKNOWN, UNKNOWN)
    grid = np.array(sorted({one.at for times in clusters for one in times}))
    events = np.array(
        [[sum(t.at == at and t.is_event for t in ts) for at in grid] for ts in clusters]
    )
    at_risk = np.array([[sum(t.at >= at for t in ts) for at in grid] for ts in clusters])
    drawn = _draws(len(clusters), n_draws)
    shares = np.cumprod(1 - drawn @ events / np.maximum(drawn @ at_risk, 1), axis=1)
    is_reached = shares <= HALF + ROUNDING
    medians = np.where(is_reached.any(axis=1), grid[is_reached.argmax(axis=1)], inf)
    widths = np.diff(np.minimum([*grid, inf], horizon))
    means = min(float(grid[0]), horizon) + shares @ widths
    return SurvivalLimits(_percentiles(medians), _percentiles(means))


@lru_cache(maxsize=64)
def _draws(n_clusters: int, n_draws: int) -> "Array":
    """How often each cluster is in each draw."""
    import numpy as np

    dice = Random(SEED)
    chosen = np.array(dice.choices(range(n_clusters), k=(n_clusters - 1) * n_draws))
    rows = np.repeat(np.arange(n_draws), n_clusters - 1)
    counts = np.zeros((n_draws, n_clusters))
    np.add.at(counts, (rows, chosen), 1)
    return counts


def _percentiles(values: "Array") -> Limits:
    ordered = sorted(map(float, values))
    rank = round((len(ordered) + 1) * (1 - LEVEL) / 2)
    low, high = ordered[rank - 1], ordered[-rank]
    return Limits(None if low == inf else low, None if high == inf else high)
