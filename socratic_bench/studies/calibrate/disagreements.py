"""Where the judge and people differ most, with the reasons of both."""

from collections.abc import Iterator, Mapping, Sequence

from socratic_bench.documents.calibration import Disagreement
from socratic_bench.studies.calibrate.figures import rounded
from socratic_bench.studies.calibrate.quantity import TOTAL, Quantity
from socratic_bench.studies.calibrate.readings import JudgedLabel, score_of
from socratic_bench.studies.labels.session import WHOLE_REPLY
from socratic_bench.turns import Rubric

MOST = 5  # of each dimension or label
SHOWN_CHARS = 500


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
