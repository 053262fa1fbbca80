"""Figures of a judge corrected by labels of some of what it judged: prediction-powered inference.

Each figure is a mean over dialogues of means over their turns. A label stands for as many turns as
one over the probability with which its turn was drawn.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum, sqrt

from msgspec import Struct

from socratic_bench.statistics.intervals import Interval, t_limits

FEWEST_CLUSTERS = 10  # labelled dialogues without which nothing is corrected
TUNED_FROM = 80  # labelled dialogues from which lambda is fitted
Influences = Mapping[Hashable, float]


class Judged(Struct, frozen=True):
    """What the judge says of a turn; `weight` is the turn's share of its dialogue."""

    cluster: Hashable
    judge: float
    weight: float = 1.0


class Labelled(Struct, frozen=True):
    """The same with a label; `weight` is the turn's share, over the probability of its drawing."""

    cluster: Hashable
    judge: float
    label: float
    weight: float = 1.0


class Estimate(Struct, frozen=True, kw_only=True):
    """A figure and its standard error over so many clusters; `None` for a single one. `tuning` is
    how much of the judge's figure went into a corrected one (lambda).
    """

    value: float
    error: float | None
    n_clusters: int
    tuning: float | None = None

    def interval(self, low: float, high: float) -> Interval | None:
        """Within the scale's bounds."""
        return t_limits(self.value, self.error, self.n_clusters, low, high)


def as_judged(judged: Sequence[Judged]) -> Estimate:
    """The judge's own mean."""
    mean, influences = _mean((one.cluster, one.judge, one.weight) for one in judged)
    return _estimate(mean, influences, len(influences))


def of_labels(labelled: Sequence[Labelled]) -> Estimate:
    """The labels' mean."""
    mean, influences = _mean((one.cluster, one.label, one.weight) for one in labelled)
    return _estimate(mean, influences, len(influences))


def corrected_mean(judged: Sequence[Judged], labelled: Sequence[Labelled]) -> Estimate:
    """The labels' mean, moved by lambda times what the judge's mean over all turns is above its
    mean over the labelled ones (Angelopoulos, Duchi and Zrnic 2023, PPI++, arXiv 2311.01453, with
    weighted labels). Lambda is 1 below 80 labelled clusters, where fitting it costs coverage, and
    from there on what makes the error least, within 0 and 1.

    The error is that of the sum of both parts' influences by cluster, so that labels may be of the
    same dialogues as the verdicts.
    """
    over_all, of_all = _mean((one.cluster, one.judge, one.weight) for one in judged)
    label, of_label = _mean((one.cluster, one.label, one.weight) for one in labelled)
    over_labelled, of_judge = _mean((one.cluster, one.judge, one.weight) for one in labelled)
    shift = _sum((1, of_all), (-1, of_judge))
    n = len(of_label)
    tuning = _least_error(of_label, shift) if n >= TUNED_FROM else 1.0
    return _estimate(
        label + tuning * (over_all - over_labelled),
        _sum((1, of_label), (tuning, shift)),
        n,
        tuning=tuning,
    )


class Uncorrectable(Struct, frozen=True):
    """Why a figure cannot be corrected, in a sentence."""

    reason: str


def corrected_rate(
    judged: Sequence[Judged], labelled: Sequence[Labelled]
) -> Estimate | Uncorrectable:
    """A rate of yes by what the judge misses and what it makes up (Rogan and Gladen 1978, American
    Journal of Epidemiology 107: 71): (p + specificity - 1) / (sensitivity + specificity - 1), with
    the error by the delta method (Lee et al. 2025, arXiv 2511.21140), by cluster.
    """
    yes = [one for one in labelled if one.label]
    no = [one for one in labelled if not one.label]
    if not (yes and no):
        return Uncorrectable(f"All labels say {'yes' if yes else 'no'}.")
    rate, of_rate = _mean((one.cluster, one.judge, one.weight) for one in judged)
    found, of_found = _mean((one.cluster, one.judge, one.weight) for one in yes)
    left, of_left = _mean((one.cluster, 1 - one.judge, one.weight) for one in no)
    gain = found + left - 1
    if gain <= 0:
        return Uncorrectable(
            f"Sensitivity ({found:.2f}) and specificity ({left:.2f}) come to no more than 1: the "
            "judge tells nothing."
        )
    value = (rate + left - 1) / gain
    influences = _sum((1 / gain, of_rate), ((1 - value) / gain, of_left), (-value / gain, of_found))
    n = len({one.cluster for one in labelled})
    return _estimate(value, influences, n)


def _mean(values: Iterable[tuple[Hashable, float, float]]) -> tuple[float, Influences]:
    """The weighted mean of (cluster, value, weight), and by how much each cluster moves it."""
    found = [*values]
    whole = fsum(weight for *_, weight in found)
    mean = fsum(value * weight for _, value, weight in found) / whole
    sums: dict[Hashable, list[float]] = defaultdict(list)
    for cluster, value, weight in found:
        sums[cluster].append(weight * (value - mean) / whole)
    return mean, {cluster: fsum(parts) for cluster, parts in sums.items()}


def _sum(*parts: tuple[float, Influences]) -> Influences:
    found: dict[Hashable, float] = defaultdict(float)
    for factor, influences in parts:
        for cluster, value in influences.items():
            found[cluster] += factor * value
    return found


def _least_error(fixed: Influences, moved: Influences) -> float:
    under = fsum(value**2 for value in moved.values())
    if not under:
        return 1.0
    over = fsum(fixed.get(cluster, 0.0) * value for cluster, value in moved.items())
    return min(1.0, max(0.0, -over / under))


def _estimate(
    value: float, influences: Influences, n: int, tuning: float | None = None
) -> Estimate:
    squares = fsum(one**2 for one in influences.values())
    error = sqrt(squares * n / (n - 1)) if n > 1 else None
    return Estimate(value=value, error=error, n_clusters=n, tuning=tuning)
