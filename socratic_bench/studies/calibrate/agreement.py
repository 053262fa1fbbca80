"""Agreement between a judge and people's labels, with confidence intervals where the extra `stats`
is installed.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import ceil, exp, fsum, inf, log, sqrt
from typing import Any, TypeVar

from msgspec import Struct

from socratic_bench.documents.calibration import (
    AnswerCounts,
    AnswerFigures,
    Cell,
    Disagreement,
    HumanAnswers,
    HumanScores,
    Reference,
    ScoreFigures,
)
from socratic_bench.documents.document import FIGURE_PLACES
from socratic_bench.documents.judge_status import Figure
from socratic_bench.statistics import agreement
from socratic_bench.statistics.intervals import (
    FEWEST,
    Interval,
    Jackknifed,
    clustered,
    fewest,
    jackknifed,
    t_point,
    wilson_interval,
)
from socratic_bench.studies.calibrate.readings import (
    TOTAL,
    JudgedLabel,
    Quantity,
    clustered_values,
    human_answers,
    human_scores,
    score_of,
    score_pairs,
)
from socratic_bench.studies.calibrate.session import WHOLE_REPLY
from socratic_bench.studies.figures import limits_of, rounded
from socratic_bench.turns import Rubric

Value = TypeVar("Value")
Clusters = Sequence[Sequence[Value]]
Answer = tuple[str | None, float, bool, bool]  # author, strength, the judge's yes, the label's
MOST_CLUSTERS = 1_000_000
MOST = 5  # of each dimension or label
SHOWN_CHARS = 500


class Figures(Struct, frozen=True, kw_only=True):
    """Computes figures; intervals shall be as narrow as `half_width`. `has_alpha`: krippendorff."""

    rubric: Rubric
    has_alpha: bool
    half_width: float | None = None

    def scores(self, readings: Sequence[JudgedLabel], name: str) -> ScoreFigures:
        """Agreement on a dimension, or on the sum of all dimensions."""
        clusters = score_pairs(readings, name, self.rubric)
        human = human_scores([reading.turn for reading in readings], name, self.rubric)
        deviation = agreement.deviation([pair for cluster in clusters for pair in cluster])
        counts = Counter((label, judge) for cluster in clusters for judge, label in cluster)
        reference = self.rubric.references.get(name)
        bias = jackknifed(clusters, agreement.bias)
        kappa = jackknifed(clusters, agreement.weighted_kappa)
        return ScoreFigures(
            n=sum(map(len, clusters)),
            n_clusters=len(clusters),
            **self._agreement(clusters),
            bias=_to_figure(bias),
            deviation=Figure(value=rounded(deviation), **limits_of(deviation_interval(clusters))),
            **_parts(readings, name, deviation),
            macro_f1=_jackknifed_figure(
                _classes(clusters, name, self.rubric), agreement.macro_f1, 0, 1
            ),
            reference=Reference(name=reference[0], macro_f1=reference[1]) if reference else None,
            human=HumanScores(n=sum(map(len, human)), **self._agreement(human)) if human else None,
            confusion=[
                Cell(label=label, judge=judge, n=n) for (label, judge), n in sorted(counts.items())
            ],
            more_labels=self._more(clusters, {"bias": bias, "weighted_kappa": kappa}),
        )

    def answers(
        self, readings: Sequence[JudgedLabel], name: str, quantity: Quantity
    ) -> AnswerFigures:
        """Agreement on a yes/no label."""
        turns = [reading.turn for reading in readings]
        clusters = clustered_values(
            (
                reading.turn.cluster,
                (reading.turn.author, strength, quantity.is_yes(strength), label),
            )
            for reading in readings
            if (label := reading.turn.answer(name)) is not None
            and (strength := reading.strength(quantity)) is not None
        )
        flat = [answer for cluster in clusters for answer in cluster]
        auc = jackknifed(clusters, _auc)
        kappa = jackknifed(
            clusters,
            lambda answers: agreement.weighted_kappa(
                [(judged, label) for _, _, judged, label in answers]
            ),
        )
        confusion = Counter((judged, label) for _, _, judged, label in flat)
        return AnswerFigures(
            judged_by=quantity.name,
            n=len(flat),
            n_clusters=len(clusters),
            n_divided=sum(
                turn.answer(name) is None and any(name in label.events for label in turn.labels)
                for turn in turns
            ),
            n_yes=confusion[True, True] + confusion[False, True],
            precision=_rate(clusters, lambda judged, label: label if judged else None),
            recall=_rate(clusters, lambda judged, label: judged if label else None),
            specificity=_rate(clusters, lambda judged, label: None if label else not judged),
            kappa=_to_figure(kappa, -1, 1),
            auc=_to_figure(auc, 0, 1),
            auc_within_authors=_jackknifed_figure(
                clusters,
                lambda answers: agreement.auc_within(
                    [(author, strength, label) for author, strength, _, label in answers]
                ),
                *(0, 1),
            ),
            auc_by_author=_auc_by_author(flat),
            human=_human_answers(human_answers(turns, name)),
            confusion=AnswerCounts(
                both=confusion[True, True],
                judge_only=confusion[True, False],
                label_only=confusion[False, True],
                neither=confusion[False, False],
            ),
            more_labels=self._more(clusters, {"kappa": kappa, "auc": auc}),
        )

    def _agreement(self, clusters: Clusters[tuple[float, float]]) -> dict[str, Any]:
        alpha = (
            _jackknifed_figure(clusters, _alpha, -1, 1)
            if self.has_alpha and clusters
            else Figure(value=None)
        )
        return {
            "weighted_kappa": _jackknifed_figure(clusters, agreement.weighted_kappa, -1, 1),
            "alpha": alpha,
            "mean_absolute_error": _jackknifed_figure(clusters, agreement.mean_absolute_error, 0),
            "spearman": _jackknifed_figure(clusters, agreement.spearman, -1, 1),
        }

    def _more(
        self, clusters: Clusters[Any], figures: Mapping[str, Jackknifed]
    ) -> dict[str, int] | None:
        if self.half_width is None:
            return None
        n = sum(map(len, clusters))
        return {
            name: more_labels(estimate, n, self.half_width)
            for name, estimate in figures.items()
            if estimate.error
        }


def deviation_interval(clusters: Clusters[tuple[float, float]]) -> Interval | None:
    """Of the standard deviation of errors: the jackknife's on its logarithm, so never below 0."""

    def log_deviation(pairs: Sequence[tuple[float, float]]) -> float | None:
        deviation = agreement.deviation(pairs)
        return log(deviation) if deviation else None

    estimate = jackknifed(clusters, log_deviation)
    if estimate.value is None or not estimate.error:
        return None
    half = t_point(estimate.n_clusters - 1) * estimate.error
    return Interval(exp(estimate.value - half), exp(estimate.value + half))


def more_labels(estimate: Jackknifed, n: int, half_width: float) -> int:
    """Number of further labels, from dialogues that vary like these, that bring the interval's
    half-width down to `half_width`. The width falls as t over the root of the number of dialogues.
    """
    k, error = estimate.n_clusters, estimate.error or 0.0

    def is_enough(clusters: int) -> bool:
        return t_point(clusters - 1) * error * sqrt(k / clusters) <= half_width

    return ceil((fewest(k, is_enough, MOST_CLUSTERS) - k) * n / k)


def _human_answers(clusters: Clusters[tuple[float, float]]) -> HumanAnswers | None:
    if not clusters:
        return None
    same = [[float(first == second) for first, second in pairs] for pairs in clusters]
    return HumanAnswers(
        n=sum(map(len, clusters)),
        agreement=_rate_figure(same),
        kappa=_jackknifed_figure(clusters, agreement.weighted_kappa, -1, 1),
    )


def _rate(clusters: Clusters[Answer], is_hit: Callable[[bool, bool], bool | None]) -> Figure:
    """A rate over the answers for which `is_hit` says whether the judge is right."""
    hits = [[is_hit(judged, label) for _, _, judged, label in answers] for answers in clusters]
    known_hits = [[float(hit) for hit in some if hit is not None] for some in hits]
    return _rate_figure([some for some in known_hits if some])


def _rate_figure(clusters: Clusters[float]) -> Figure:
    if not clusters:
        return Figure(value=None)
    mean = clustered(clusters)
    return Figure(value=rounded(mean.mean), **limits_of(wilson_interval(mean)))


def _jackknifed_figure(
    clusters: Clusters[Value],
    figure: Callable[[Sequence[Value]], float | None],
    low: float = -inf,
    high: float = inf,
) -> Figure:
    return _to_figure(jackknifed(clusters, figure), low, high)


def _to_figure(estimate: Jackknifed, low: float = -inf, high: float = inf) -> Figure:
    """Without an error that scenarios show there is no interval: it would have no width."""
    interval = estimate.interval(low, high) if estimate.error else None
    return Figure(value=rounded(estimate.value), **limits_of(interval))


def names_of(rubric: Rubric, labelled: set[str]) -> list[str]:
    """Names of the labelled dimensions, and of their sum if all are labelled."""
    names = [dimension.name for dimension in rubric.dimensions if dimension.name in labelled]
    return [*names, TOTAL] if len(names) == len(rubric.dimensions) else names


def disagreements(
    readings: Sequence[JudgedLabel],
    names: Sequence[str],
    quantities: Mapping[str, Quantity],
    rubric: Rubric,
) -> list[Disagreement]:
    """The largest disagreements of each dimension and each yes/no label, the largest first. Those
    in `overall_score` are left out: their reasons are those of its dimensions.
    """
    worst: list[Disagreement] = []
    for name in names:
        if name != TOTAL:
            scores = [
                (reading, score_of(reading.turn, name, rubric), reading.scores.get(name))
                for reading in readings
            ]
            worst += _worst(scores, name, name)
    for name, quantity in quantities.items():
        answers = [
            (reading, reading.turn.answer(name), reading.answer(quantity)) for reading in readings
        ]
        worst += _worst(answers, name, quantity.score or name)
    return worst


def _worst(
    values: Sequence[tuple[JudgedLabel, float | None, float | None]], name: str, reason_name: str
) -> list[Disagreement]:
    apart = [
        (reading, float(label), float(judge))
        for reading, label, judge in values
        if label is not None and judge is not None and label != judge
    ]
    largest = sorted(apart, key=lambda entry: -abs(entry[2] - entry[1]))[:MOST]
    return [
        Disagreement(
            of=name,
            dialogue=(first := reading.turn.first).dialogue_id,
            run_id=first.run_id,
            turn=first.turn,
            author=first.author,
            reply=(first.reply or "")[:SHOWN_CHARS],
            label=rounded(label) or 0.0,
            judge=rounded(judge) or 0.0,
            label_reasons=[
                why
                for own in reading.turn.labels
                if (why := own.reasons.get(name) or own.reasons.get(WHOLE_REPLY))
            ],
            judge_reason=_reason(reading, reason_name),
        )
        for reading, label, judge in largest
    ]


def _reason(reading: JudgedLabel, name: str) -> str | None:
    """The judge's rationale of a dimension, or its quote for an event."""
    if reading.verdict is None:
        return None
    if name == TOTAL:
        return "; ".join(text for text in reading.verdict.rationale.values() if text) or None
    return reading.verdict.rationale.get(name) or (reading.verdict.events or {}).get(name)


def _parts(readings: Sequence[JudgedLabel], name: str, whole: float | None) -> dict[str, Any]:
    """The deviation of errors in two parts: what lasts when the judge is asked again, and what
    varies between its answers. The variance of errors is that of the lasting part plus the part of
    the varying one that the mean of samples retains.
    """
    repeats = [repeat for reading in readings if (repeat := reading.repeated(name)) is not None]
    if not repeats or whole is None:
        return {}
    passing = fsum(variance for variance, _ in repeats) / len(repeats)
    remaining = fsum(variance / n for variance, n in repeats) / len(repeats)
    return {
        "deviation_lasting": rounded(sqrt(max(0.0, whole**2 - remaining))),
        "deviation_passing": rounded(sqrt(passing)),
    }


def _classes(
    clusters: Clusters[tuple[float, float]], name: str, rubric: Rubric
) -> Clusters[tuple[float, float]]:
    """Round means to the nearest score of a single judge, so that few labels stay few classes."""
    dimensions = [dimension for dimension in rubric.dimensions if name in (TOTAL, dimension.name)]
    low = sum(dimension.low for dimension in dimensions)
    step = min(dimension.step for dimension in dimensions)

    def nearest(score: float) -> float:
        return low + step * ceil(round((score - low) / step, FIGURE_PLACES) - 0.5)

    return [[(nearest(judge), nearest(label)) for judge, label in pairs] for pairs in clusters]


def _alpha(pairs: Sequence[tuple[float, float]]) -> float | None:
    return agreement.ordinal_alpha([*zip(*pairs, strict=True)]) if len(pairs) >= FEWEST else None


def _auc(answers: Sequence[Answer]) -> float | None:
    return agreement.auc([(strength, label) for _, strength, _, label in answers])


def _auc_by_author(answers: Sequence[Answer]) -> dict[str, float | None]:
    groups: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer[0] is not None:
            groups[answer[0]].append(answer)
    return {author: rounded(_auc(given)) for author, given in sorted(groups.items())}
