"""Whether a mean difference is more than chance, and how large one would have had to be to be seen.

Every function raises `ImportError` without scipy, the extra `stats`, but for `holm`.
"""

from collections.abc import Sequence

from socratic_bench.statistics.intervals import LEVEL, Clustered, t_centre, t_share

ALPHA = 1 - LEVEL
POWER = 0.8


def paired_p(difference: Clustered) -> float | None:
    """The two-sided p of no difference: Student's t on the differences of pairs, clustered, with a
    degree of freedom less than clusters. `None` for a single cluster.

    Where differences do not scatter at all there is no t: then it is that of the exact test which
    flips the signs of K clusters, 2 / 2^K (1 where the difference is 0).
    """
    if difference.error is None:
        return None
    if not difference.error:
        return 2.0 ** (1 - difference.n_clusters) if difference.mean else 1.0
    return 2 * t_share(-abs(difference.mean / difference.error), difference.n_clusters - 1)


def smallest_seen(difference: Clustered) -> float | None:
    """The true difference that a sample of this size and scatter finds in 80 % of cases, tested at
    5 % on two sides: that many standard errors give the noncentral t its power. `None` for a single
    cluster, or without scatter.
    """
    if not difference.error:
        return None
    return difference.error * t_centre(1 - POWER, difference.n_clusters - 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p corrected for their number (Holm 1979, Scandinavian Journal of Statistics 6: 65)."""
    corrected = [1.0] * len(p_values)
    highest = 0.0
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, n in enumerate(ranked):
        highest = max(highest, min(1.0, p_values[n] * (len(p_values) - rank)))
        corrected[n] = highest
    return corrected
