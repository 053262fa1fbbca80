"""An interval of a mean whose points are drawn from the runs themselves, for skewed ones."""

from math import inf
from typing import Literal

from socratic_bench.statistics.bootstrap import N_DRAWS, draws
from socratic_bench.statistics.clusters import FEWEST, NO_ERROR, Clusters, clustered
from socratic_bench.statistics.intervals import Interval, t_interval
from socratic_bench.statistics.quantiles import LEVEL

Method = Literal["t", "bootstrap-t"]
# Of fewer clusters, draws of one of them alone are more than a limit leaves out.
FEWEST_DRAWN = 4


def mean_interval(clusters: Clusters, method: Method) -> Interval | None:
    """By Student's t, or by `bootstrap_t`. Raises `ImportError` without scipy."""
    return t_interval(clustered(clusters)) if method == "t" else bootstrap_t(clusters)


def bootstrap_t(clusters: Clusters, n_draws: int = N_DRAWS) -> Interval | None:
    """Student's t with points of its own distribution in these runs: whole clusters are drawn with
    replacement, as many as there are, and each draw's deviation from the mean is told in that
    draw's standard errors (Efron 1981, Canadian Journal of Statistics 9: 139; of clusters: Cameron,
    Gelbach and Miller 2008, Review of Economics and Statistics 90: 414). A draw without scatter,
    whose mean is another, lies infinitely far off: a limit may be infinite. `None` for a single
    cluster; the same runs have the same limits.

    Raises `ImportError` without numpy.
    """
    import numpy as np

    found = clustered(clusters)
    if found.error is None or len(clusters) < FEWEST:
        return None
    sizes = np.array([len(values) for values in clusters], dtype=float)
    sums = np.array([sum(value - found.mean for value in values) for values in clusters])
    drawn = draws(len(clusters), len(clusters), n_draws)
    n = drawn @ sizes
    means = (drawn @ sums) / n
    squares = (drawn * (sums - np.outer(means, sizes)) ** 2).sum(axis=1)
    errors = np.sqrt(squares * len(clusters) / (len(clusters) - 1)) / n
    means = np.where(np.abs(means) < NO_ERROR, 0.0, means)
    with np.errstate(divide="ignore", invalid="ignore"):
        points = np.where(errors < NO_ERROR, np.where(means, means * inf, 0.0), means / errors)
    ordered = np.sort(np.nan_to_num(points, nan=0.0, posinf=inf, neginf=-inf))
    rank = round((n_draws + 1) * (1 - LEVEL) / 2)
    if not found.error:
        return Interval(found.mean, found.mean)
    return Interval(
        found.mean - float(ordered[-rank]) * found.error,
        found.mean - float(ordered[rank - 1]) * found.error,
    )
