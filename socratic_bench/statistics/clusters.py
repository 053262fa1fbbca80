"""A mean over runs that come in clusters, its error, and what its variance is made of."""

from collections.abc import Sequence
from math import fsum, sqrt

from msgspec import Struct

Clusters = Sequence[Sequence[float]]
FEWEST = 2
# Below this an error is that of floating point alone.
NO_ERROR = 1e-9


class Clustered(Struct, frozen=True, kw_only=True):
    """The mean of `n` values in `n_clusters` clusters, and its standard error: `None` for a single
    cluster, which says nothing of others.
    """

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
    middle = fsum(value for values in clusters for value in values) / n
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
    kinds = [kind for cluster in clusters for kind in cluster]
    freedom = sum(len(kind) - 1 for kind in kinds)
    if len(clusters) < FEWEST or not freedom:
        return None
    within = fsum(_squares(kind) for kind in kinds) / freedom
    flat = [[value for kind in cluster for value in kind] for cluster in clusters]
    means = [fsum(values) / len(values) for values in flat]
    of_means = _squares(means) / (len(means) - 1)
    added = within * fsum(1 / len(values) for values in flat) / len(flat)
    return Parts(max(0.0, of_means - added), within)


def _squares(values: Sequence[float]) -> float:
    middle = fsum(values) / len(values)
    return fsum((value - middle) ** 2 for value in values)
