"""Figures of a judge corrected by labels of some of what it judged: prediction-powered inference.

Each figure is a weighted mean, or the difference of two models' means. Its error is made of what
each cluster (scenario) adds, so that turns, dialogues and models of one scenario may be alike.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum, sqrt

from msgspec import Struct

from socratic_bench.statistics.intervals import (
    NO_ERROR,
    Clustered,
    Interval,
    t_limits,
    wilson_interval,
)

FEWEST_DIALOGUES = 10  # labelled dialogues of a model without which nothing is said of it
FEWEST_CLUSTERS = 6  # labelled clusters without which a figure has no interval
Influences = Mapping[Hashable, float]


class Judged(Struct, frozen=True):
    """A verdict; `weight` is its share of its dialogue."""

    cluster: Hashable
    judge: float
    weight: float = 1.0


class Labelled(Struct, frozen=True):
    """A verdict with a label; `weight` is its share divided by its sampling probability."""

    cluster: Hashable
    judge: float
    label: float
    weight: float = 1.0


class Sample(Struct, frozen=True):
    """All verdicts on one model, and those of them that have labels; neither is empty."""

    judged: Sequence[Judged]
    labelled: Sequence[Labelled]


class Estimate(Struct, frozen=True, kw_only=True):
    """A figure, its standard error, and the clusters by which it is known. `tuning` is the weight
    of the judge in a corrected figure (lambda).
    """

    value: float
    error: float | None
    n_clusters: int
    tuning: float | None = None

    def interval(self, low: float, high: float, *, is_rate: bool = False) -> Interval | None:
        """The 95 % interval within bounds: Wilson's of a rate, else Student's t. `None` for a
        single cluster, and where all clusters have the same value.
        """
        if is_rate and (0 < self.value < 1 or not self.error):
            mean = min(1.0, max(0.0, self.value))
            n = self.n_clusters
            return wilson_interval(Clustered(mean=mean, n=n, n_clusters=n, error=self.error))
        error = self.error or None
        return t_limits(self.value, error, self.n_clusters, low, high)


def judge_estimate(*samples: Sequence[Judged]) -> Estimate:
    """The judge's mean; of two samples, the first's minus the second's."""
    return _estimate(*_contrast([_judge_mean(judged) for judged in samples]))


def label_estimate(*samples: Sequence[Labelled]) -> Estimate:
    """The labels' mean; of two samples, the first's minus the second's."""
    return _estimate(*_contrast([_label_mean(labelled) for labelled in samples]))


def correct(*samples: Sample) -> Estimate:
    """The labels' figure, moved by lambda times the judge's figure over all verdicts minus that
    over the labelled ones (Angelopoulos, Duchi and Zrnic 2023, PPI++, arXiv 2311.01453).

    The lambda of the least error is shrunk as James and Stein shrink a mean: to 0 where it is not
    distinguishable from 0. To fit it makes errors look smaller than they are, so each cluster's
    part of the error is by the lambda of the others; and the error is at most that of labels alone.
    """
    label, fixed, n = _contrast([_label_mean(sample.labelled) for sample in samples])
    over_all, of_all, _ = _contrast([_judge_mean(sample.judged) for sample in samples])
    over_labelled, of_labelled, _ = _contrast([_judge_mean(sample.labelled) for sample in samples])
    moved = _sum((1, of_all), (-1, of_labelled))
    sums = _Sums.of(fixed, moved)
    tuning = sums.shrunken_tuning(n - 1)
    parts = {
        cluster: fixed.get(cluster, 0.0)
        + value * sums.without(fixed.get(cluster, 0.0), value).shrunken_tuning(n - 2)
        for cluster, value in moved.items()
    }
    alone, corrected = _estimate(label, fixed, n), _estimate(label, parts, n)
    errors = [error for error in (alone.error, corrected.error) if error is not None]
    return Estimate(
        value=label + tuning * (over_all - over_labelled),
        error=min(errors, default=None),
        n_clusters=n,
        tuning=tuning,
    )


class _Sums(Struct, frozen=True):
    """Sums over clusters of squares and of products of the fixed and the moved influences."""

    fixed: float
    moved: float
    products: float

    @classmethod
    def of(cls, fixed: Influences, moved: Influences) -> "_Sums":
        return cls(
            fsum(value**2 for value in fixed.values()),
            fsum(value**2 for value in moved.values()),
            fsum(fixed.get(cluster, 0.0) * value for cluster, value in moved.items()),
        )

    def without(self, fixed: float, moved: float) -> "_Sums":
        """The sums without one cluster."""
        return _Sums(self.fixed - fixed**2, self.moved - moved**2, self.products - fixed * moved)

    def shrunken_tuning(self, freedom: int) -> float:
        """The lambda of least error times 1 - 1 / t², with its own test's t, within 0 and 1."""
        explained = self.products**2 / self.moved if self.moved > 0 else 0.0
        if self.products >= 0 or explained <= 0 or freedom < 1:
            return 0.0
        shrinkage = 1 - max(0.0, self.fixed - explained) / freedom / explained
        return min(1.0, -self.products / self.moved) * max(0.0, shrinkage)


Mean = tuple[float, Influences]


def _judge_mean(judged: Sequence[Judged | Labelled]) -> Mean:
    return _mean((turn.cluster, turn.judge, turn.weight) for turn in judged)


def _label_mean(labelled: Sequence[Labelled]) -> Mean:
    return _mean((turn.cluster, turn.label, turn.weight) for turn in labelled)


def _mean(values: Iterable[tuple[Hashable, float, float]]) -> Mean:
    """The weighted mean of (cluster, value, weight), and by how much each cluster moves it."""
    rows = [*values]
    whole = fsum(weight for *_, weight in rows)
    mean = fsum(value * weight for _, value, weight in rows) / whole
    sums: dict[Hashable, list[float]] = defaultdict(list)
    for cluster, value, weight in rows:
        sums[cluster].append(weight * (value - mean) / whole)
    return mean, {cluster: fsum(parts) for cluster, parts in sums.items()}


def _contrast(means: Sequence[Mean]) -> tuple[float, Influences, int]:
    """The first mean, minus the second if there are two; and the fewest clusters of a mean."""
    signs = (1.0, -1.0)
    value = fsum(sign * mean for sign, (mean, _) in zip(signs, means, strict=False))
    influences = _sum(*((sign, parts) for sign, (_, parts) in zip(signs, means, strict=False)))
    return value, influences, min(len(parts) for _, parts in means)


def _sum(*parts: tuple[float, Influences]) -> Influences:
    total: dict[Hashable, float] = defaultdict(float)
    for factor, influences in parts:
        for cluster, value in influences.items():
            total[cluster] += factor * value
    return total


def _estimate(value: float, influences: Influences, n: int) -> Estimate:
    squares = fsum(influence**2 for influence in influences.values())
    error = sqrt(squares * n / (n - 1)) if n > 1 else None
    if error is not None and error < NO_ERROR:
        error = 0.0
    return Estimate(value=value, error=error, n_clusters=n)
