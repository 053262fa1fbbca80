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


def judge_mean(judged: Sequence[Judged]) -> Estimate:
    """The judge's own mean."""
    mean, influences = _mean((turn.cluster, turn.judge, turn.weight) for turn in judged)
    return _estimate(mean, influences, len(influences))


def label_mean(labelled: Sequence[Labelled]) -> Estimate:
    """The labels' mean."""
    mean, influences = _mean((turn.cluster, turn.label, turn.weight) for turn in labelled)
    return _estimate(mean, influences, len(influences))


def correct_mean(judged: Sequence[Judged], labelled: Sequence[Labelled]) -> Estimate:
    """The labels' mean, moved by lambda times what the judge's mean over all turns is above its
    mean over the labelled ones (Angelopoulos, Duchi and Zrnic 2023, PPI++, arXiv 2311.01453, with
    weighted labels). Lambda is 1 below 80 labelled clusters, where fitting it costs coverage, and
    from there on what makes the error least, within 0 and 1.

    The error is that of the sum of both parts' influences by cluster, so that labels may be of the
    same dialogues as the verdicts.
    """
    over_all, of_all = _mean((turn.cluster, turn.judge, turn.weight) for turn in judged)
    label, of_label = _mean((turn.cluster, turn.label, turn.weight) for turn in labelled)
    over_labelled, of_judge = _mean((turn.cluster, turn.judge, turn.weight) for turn in labelled)
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


def correct_rate(
    judged: Sequence[Judged], labelled: Sequence[Labelled]
) -> Estimate | Uncorrectable:
    """A rate of yes by what the judge misses and what it makes up (Rogan and Gladen 1978, American
    Journal of Epidemiology 107: 71): (p + specificity - 1) / (sensitivity + specificity - 1), with
    the error by the delta method (Lee et al. 2025, arXiv 2511.21140), by cluster.
    """
    yes = [turn for turn in labelled if turn.label]
    no = [turn for turn in labelled if not turn.label]
    if not (yes and no):
        return Uncorrectable(f"All labels say {'yes' if yes else 'no'}.")
    rate, of_rate = _mean((turn.cluster, turn.judge, turn.weight) for turn in judged)
    sensitivity, of_sensitivity = _mean((turn.cluster, turn.judge, turn.weight) for turn in yes)
    specificity, of_specificity = _mean((turn.cluster, 1 - turn.judge, turn.weight) for turn in no)
    gain = sensitivity + specificity - 1
    if gain <= 0:
        return Uncorrectable(
            f"Sensitivity ({sensitivity:.2f}) and specificity ({specificity:.2f}) come to no more "
            "than 1: the judge tells nothing."
        )
    value = (rate + specificity - 1) / gain
    influences = _sum(
        (1 / gain, of_rate), ((1 - value) / gain, of_specificity), (-value / gain, of_sensitivity)
    )
    n = len({turn.cluster for turn in labelled})
    return _estimate(value, influences, n)


def _mean(values: Iterable[tuple[Hashable, float, float]]) -> tuple[float, Influences]:
    """The weighted mean of (cluster, value, weight), and by how much each cluster moves it."""
    rows = [*values]
    whole = fsum(weight for *_, weight in rows)
    mean = fsum(value * weight for _, value, weight in rows) / whole
    sums: dict[Hashable, list[float]] = defaultdict(list)
    for cluster, value, weight in rows:
        sums[cluster].append(weight * (value - mean) / whole)
    return mean, {cluster: fsum(parts) for cluster, parts in sums.items()}


def _sum(*parts: tuple[float, Influences]) -> Influences:
    total: dict[Hashable, float] = defaultdict(float)
    for factor, influences in parts:
        for cluster, value in influences.items():
            total[cluster] += factor * value
    return total


def _least_error(fixed: Influences, moved: Influences) -> float:
    under = fsum(value**2 for value in moved.values())
    if not under:
        return 1.0
    over = fsum(fixed.get(cluster, 0.0) * value for cluster, value in moved.items())
    return min(1.0, max(0.0, -over / under))


def _estimate(
    value: float, influences: Influences, n: int, tuning: float | None = None
) -> Estimate:
    squares = fsum(influence**2 for influence in influences.values())
    error = sqrt(squares * n / (n - 1)) if n > 1 else None
    return Estimate(value=value, error=error, n_clusters=n, tuning=tuning)
