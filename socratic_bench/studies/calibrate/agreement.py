"""A judge against people, figure by figure, with intervals where the extra `stats` is there."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, exp, fsum, inf, log, sqrt
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.documents.calibration import (
    AnswerCounts,
    AnswerFigures,
    Cell,
    Disagreement,
    Figure,
    HumanAnswers,
    HumanScores,
    Reference,
    ScoreFigures,
)
from socratic_bench.documents.document import FIGURE_PLACES
from socratic_bench.statistics import agreement
from socratic_bench.statistics.agreement import Counts
from socratic_bench.statistics.intervals import (
    FEWEST,
    Interval,
    Jackknifed,
    fewest,
    jackknifed,
    t_point,
)
from socratic_bench.studies.calibrate.labels import LabelledTurn
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
from socratic_bench.turns import Rubric

Value = TypeVar("Value")
Clusters = Sequence[Sequence[Value]]
Answer = tuple[str | None, float, bool, bool]  # author, strength, the judge's yes, the label's
MOST_CLUSTERS = 1_000_000
# Where the judge and people differ most, with the reasons of both.

MOST = 5  # of each dimension or label
SHOWN_CHARS = 500


class Figures(Struct, frozen=True, kw_only=True):
    """How figures are made: `has_alpha` needs krippendorff. `half_width` is that of intervals which
    are to be reached, `None` if nobody asks for it.
    """

    rubric: Rubric
    has_alpha: bool
    half_width: float | None = None

    def scores(self, readings: Sequence[JudgedLabel], name: str) -> ScoreFigures:
        """Of a dimension, or of their sum."""
        clusters = score_pairs(readings, name, self.rubric)
        human = human_scores([one.turn for one in readings], name, self.rubric)
        deviation = agreement.deviation([pair for cluster in clusters for pair in cluster])
        bias = jackknifed(clusters, agreement.bias)
        kappa = jackknifed(clusters, agreement.weighted_kappa)
        return ScoreFigures(
            n=sum(map(len, clusters)),
            n_clusters=len(clusters),
            **self._agreement(clusters),
            bias=self._figure(bias),
            deviation=told(deviation, deviation_interval(clusters)),
            **_parts(readings, name, deviation),
            macro_f1=self._of(_classes(clusters, name, self.rubric), agreement.macro_f1, 0, 1),
            reference=_reference(self.rubric, name),
            human=HumanScores(n=sum(map(len, human)), **self._agreement(human)) if human else None,
            confusion=_confusion(clusters),
            more_labels=self._more(clusters, {"bias": bias, "weighted_kappa": kappa}),
        )

    def answers(
        self, readings: Sequence[JudgedLabel], name: str, quantity: Quantity
    ) -> AnswerFigures:
        """Of a label of yes or no."""
        clusters = clustered_values(
            (one.turn.cluster, (one.turn.author, strength, quantity.is_yes(strength), label))
            for one in readings
            if (label := one.turn.answer(name)) is not None
            and (strength := one.strength(quantity)) is not None
        )
        flat = [one for cluster in clusters for one in cluster]
        kappa, auc = jackknifed(clusters, _kappa), jackknifed(clusters, _auc)
        counts = _counts(flat)
        return AnswerFigures(
            judged_by=quantity.name,
            n=len(flat),
            n_clusters=len(clusters),
            n_divided=sum(_is_divided(one.turn, name) for one in readings),
            n_yes=counts.both + counts.label_only,
            precision=self._of(clusters, lambda some: _counts(some).precision, 0, 1),
            recall=self._of(clusters, lambda some: _counts(some).recall, 0, 1),
            specificity=self._of(clusters, lambda some: _counts(some).specificity, 0, 1),
            kappa=self._figure(kappa, -1, 1),
            auc=self._figure(auc, 0, 1),
            auc_within_authors=self._of(clusters, _auc_within, 0, 1),
            auc_by_author=_auc_by_author(flat),
            human=self._human_answers(human_answers([one.turn for one in readings], name)),
            confusion=AnswerCounts(**asdict(counts)),
            more_labels=self._more(clusters, {"kappa": kappa, "auc": auc}),
        )

    def _agreement(self, clusters: Clusters[tuple[float, float]]) -> dict[str, Any]:
        alpha = (
            self._of(clusters, _alpha, -1, 1) if self.has_alpha and clusters else Figure(value=None)
        )
        return {
            "weighted_kappa": self._of(clusters, agreement.weighted_kappa, -1, 1),
            "alpha": alpha,
            "mean_absolute_error": self._of(clusters, agreement.mean_absolute_error, 0),
            "spearman": self._of(clusters, agreement.spearman, -1, 1),
        }

    def _human_answers(self, clusters: Clusters[tuple[float, float]]) -> HumanAnswers | None:
        if not clusters:
            return None
        return HumanAnswers(
            n=sum(map(len, clusters)),
            agreement=self._of(clusters, _agreement_rate, 0, 1),
            kappa=self._of(clusters, agreement.weighted_kappa, -1, 1),
        )

    def _of(
        self,
        clusters: Clusters[Value],
        figure: Callable[[Sequence[Value]], float | None],
        low: float = -inf,
        high: float = inf,
    ) -> Figure:
        return self._figure(jackknifed(clusters, figure), low, high)

    def _figure(self, found: Jackknifed, low: float = -inf, high: float = inf) -> Figure:
        return told(found.value, found.interval(low, high))

    def _more(
        self, clusters: Clusters[Any], figures: Mapping[str, Jackknifed]
    ) -> dict[str, int] | None:
        if self.half_width is None:
            return None
        n = sum(map(len, clusters))
        return {
            name: more_labels(found, n, self.half_width)
            for name, found in figures.items()
            if found.error is not None
        }


def deviation_interval(clusters: Clusters[tuple[float, float]]) -> Interval | None:
    """Of the deviation of errors: the jackknife's on its logarithm, which is never below 0."""
    found = jackknifed(clusters, _log_deviation)
    if found.value is None or found.error is None:
        return None
    half = t_point(found.n_clusters - 1) * found.error
    return Interval(exp(found.value - half), exp(found.value + half))


def more_labels(found: Jackknifed, n: int, half_width: float) -> int:
    """How many more, of further dialogues as these, make the half of the interval so wide at most,
    if they vary as these do: its width falls as t over the root of the number of dialogues.
    """
    k, error = found.n_clusters, found.error or 0.0

    def is_enough(clusters: int) -> bool:
        return t_point(clusters - 1) * error * sqrt(k / clusters) <= half_width

    return ceil((fewest(k, is_enough, MOST_CLUSTERS) - k) * n / k)


def told(value: float | None, interval: Interval | None) -> Figure:
    return Figure(value=rounded(value), **limits(interval))


def limits(interval: Interval | None) -> dict[str, Any]:
    """As keys of documents have them."""
    names = ("low", "high")
    return {name: rounded(getattr(interval, name)) if interval else None for name in names}


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, FIGURE_PLACES) + 0.0  # never -0.0


def _parts(readings: Sequence[JudgedLabel], name: str, whole: float | None) -> dict[str, Any]:
    """The deviation in what stays when the judge is asked again, and what does not: the variance of
    errors is that of what stays, and what the mean of samples has kept of what passes.
    """
    known = [found for one in readings if (found := one.repeated(name)) is not None]
    if not known or whole is None:
        return {}
    passing = fsum(variance for variance, _ in known) / len(known)
    kept = fsum(variance / n for variance, n in known) / len(known)
    return {
        "deviation_lasting": rounded(sqrt(max(0.0, whole**2 - kept))),
        "deviation_passing": rounded(sqrt(passing)),
    }


def _reference(rubric: Rubric, name: str) -> Reference | None:
    found = rubric.references.get(name)
    return Reference(name=found[0], macro_f1=found[1]) if found else None


def _classes(
    clusters: Clusters[tuple[float, float]], name: str, rubric: Rubric
) -> Clusters[tuple[float, float]]:
    """Means of labellers, samples or jurors as the nearest score that one of them may give, of two
    as near the lower one: three labels stay three classes.
    """
    dimensions = [one for one in rubric.dimensions if name in (TOTAL, one.name)]
    low, step = sum(one.low for one in dimensions), min(one.step for one in dimensions)

    def nearest(score: float) -> float:
        return low + step * ceil(round((score - low) / step, FIGURE_PLACES) - 0.5)

    return [[(nearest(judge), nearest(label)) for judge, label in some] for some in clusters]


def _log_deviation(pairs: Sequence[tuple[float, float]]) -> float | None:
    found = agreement.deviation(pairs)
    return log(found) if found else None


def _alpha(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < FEWEST:
        return None
    return agreement.ordinal_alpha([[one for one, _ in pairs], [other for _, other in pairs]])


def _agreement_rate(pairs: Sequence[tuple[float, float]]) -> float | None:
    return sum(one == other for one, other in pairs) / len(pairs) if pairs else None


def _counts(answers: Sequence[Answer]) -> Counts:
    return Counts.of((said, label) for _, _, said, label in answers)


def _kappa(answers: Sequence[Answer]) -> float | None:
    return agreement.weighted_kappa([(float(said), float(label)) for _, _, said, label in answers])


def _auc(answers: Sequence[Answer]) -> float | None:
    return agreement.auc([(strength, label) for _, strength, _, label in answers])


def _auc_within(answers: Sequence[Answer]) -> float | None:
    return agreement.auc_within(
        [(author, strength, label) for author, strength, _, label in answers]
    )


def _auc_by_author(answers: Sequence[Answer]) -> dict[str, float | None]:
    groups: dict[str, list[Answer]] = defaultdict(list)
    for one in answers:
        if one[0] is not None:
            groups[one[0]].append(one)
    return {author: rounded(_auc(some)) for author, some in sorted(groups.items())}


def _is_divided(turn: LabelledTurn, name: str) -> bool:
    return turn.answer(name) is None and any(name in label.events for label in turn.labels)


def _confusion(clusters: Clusters[tuple[float, float]]) -> list[Cell]:
    counts = Counter((label, judge) for cluster in clusters for judge, label in cluster)
    return [Cell(label=label, judge=judge, n=n) for (label, judge), n in sorted(counts.items())]


def names_of(rubric: Rubric, labelled: set[str]) -> list[str]:
    """The dimensions that are labelled, and their sum where all of them are."""
    names = [one.name for one in rubric.dimensions if one.name in labelled]
    return [*names, TOTAL] if len(names) == len(rubric.dimensions) else names


def disagreements(
    readings: Sequence[JudgedLabel],
    names: Sequence[str],
    quantities: Mapping[str, Quantity],
    rubric: Rubric,
) -> list[Disagreement]:
    """The worst first, of each dimension and each label of yes or no; `overall_score` aside, whose
    reasons are those of its dimensions.
    """
    of_scores = [
        one
        for name in names
        if name != TOTAL
        for one in _worst([*_of_scores(readings, name, rubric)])
    ]
    of_answers = [
        one
        for name, quantity in quantities.items()
        for one in _worst([*_of_answers(readings, name, quantity)])
    ]
    return [*of_scores, *of_answers]


def _worst(found: list[Disagreement]) -> list[Disagreement]:
    return sorted(found, key=lambda one: -abs(one.judge - one.label))[:MOST]


def _of_scores(
    readings: Sequence[JudgedLabel], name: str, rubric: Rubric
) -> Iterator[Disagreement]:
    for one in readings:
        label, judge = score_of(one.turn, name, rubric), one.scores.get(name)
        if label is not None and judge is not None and label != judge:
            yield _told(one, name, label, judge, _reason(one, name))


def _of_answers(
    readings: Sequence[JudgedLabel], name: str, quantity: Quantity
) -> Iterator[Disagreement]:
    for one in readings:
        label, strength = one.turn.answer(name), one.strength(quantity)
        if label is None or strength is None:
            continue
        said = quantity.is_yes(strength)
        if said != label:
            yield _told(one, name, float(label), float(said), _reason(one, quantity.score or name))


def _reason(one: JudgedLabel, name: str) -> str | None:
    """Of a dimension the judge's sentence, of an event the words that show it."""
    if one.verdict is None:
        return None
    if name == TOTAL:
        return "; ".join(text for text in one.verdict.rationale.values() if text) or None
    return one.verdict.rationale.get(name) or (one.verdict.events or {}).get(name)


def _told(
    one: JudgedLabel, name: str, label: float, judge: float, reason: str | None
) -> Disagreement:
    first = one.turn.first
    return Disagreement(
        of=name,
        dialogue=one.turn.cluster,
        run_id=first.run_id,
        turn=first.turn,
        author=first.author,
        reply=(first.reply or "")[:SHOWN_CHARS],
        label=rounded(label) or 0.0,
        judge=rounded(judge) or 0.0,
        label_reasons=[
            why
            for label in one.turn.labels
            if (why := label.reasons.get(name) or label.reasons.get(WHOLE_REPLY))
        ],
        judge_reason=reason,
    )
