"""One figure of a model, three ways: as judged, corrected by labels, and of labels alone."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct

from socratic_bench.documents.calibration import Corrected, Estimated, ThreeWays
from socratic_bench.statistics.ppi import (
    FEWEST_CLUSTERS,
    Estimate,
    Judged,
    Labelled,
    Uncorrectable,
    correct_mean,
    correct_rate,
    judge_mean,
    label_mean,
)
from socratic_bench.studies.calibrate.figures import limits, rounded
from socratic_bench.types import plural

Flag = Literal["labels_of_others", "outside_labelled_range"]
SLACK = 1e-9


class Values(Struct, frozen=True, kw_only=True):
    """What there is of one figure: `judged` of the model's turns, labels of `own` turns, and of
    `all` models'. `low` and `high` bound it; a rate is of yes or no.
    """

    judged: Sequence[Judged]
    own: Sequence[Labelled]
    all: Sequence[Labelled]
    low: float
    high: float
    is_rate: bool = False


def three_ways(values: Values) -> ThreeWays:
    return ThreeWays(
        judge_mean=_judged(values), corrected=_corrected(values), label_mean=_labels(values)
    )


def _judged(values: Values) -> Estimated:
    n_dialogues = _dialogues(values.judged)
    if not values.judged:
        return Estimated(value=None, n=0, n_dialogues=0, reason="No turn has a verdict on it.")
    return _told(judge_mean(values.judged), values, len(values.judged), n_dialogues)


def _labels(values: Values) -> Estimated:
    n_dialogues = _dialogues(values.own)
    if n_dialogues < FEWEST_CLUSTERS:
        reason = _too_few(n_dialogues, "of this model")
        return Estimated(value=None, n=len(values.own), n_dialogues=n_dialogues, reason=reason)
    return _told(label_mean(values.own), values, len(values.own), n_dialogues)


def _told(found: Estimate, values: Values, n: int, n_dialogues: int) -> Estimated:
    interval = limits(found.interval(values.low, values.high))
    return Estimated(value=rounded(found.value), **interval, n=n, n_dialogues=n_dialogues)


def _corrected(values: Values) -> Corrected:
    """By labels of the model's own turns, where enough dialogues have some; else by all."""
    is_own = _dialogues(values.own) >= FEWEST_CLUSTERS
    labelled = values.own if is_own else values.all
    found = _estimate(values, labelled)
    flags: list[Flag] = [] if is_own or not labelled else ["labels_of_others"]
    flags += _beyond(values, labelled)
    told: dict[str, Any] = {
        "method": "rogan-gladen" if values.is_rate else "prediction-powered",
        "n_labels": len(labelled),
        "n_labelled_dialogues": _dialogues(labelled),
        "flags": flags,
    }
    if isinstance(found, Uncorrectable):
        return Corrected(value=None, reason=found.reason, **told)
    interval = limits(found.interval(values.low, values.high))
    return Corrected(value=rounded(found.value), **interval, tuning=rounded(found.tuning), **told)


def _estimate(values: Values, labelled: Sequence[Labelled]) -> Estimate | Uncorrectable:
    n_dialogues = _dialogues(labelled)
    if n_dialogues < FEWEST_CLUSTERS:
        return Uncorrectable(_too_few(n_dialogues, "in all"))
    if not values.judged:
        return Uncorrectable("No turn has a verdict on it.")
    correct = correct_rate if values.is_rate else correct_mean
    found = correct(values.judged, labelled)
    if isinstance(found, Uncorrectable) or _is_within_bounds(found.value, values):
        return found
    return Uncorrectable(
        f"The corrected figure, {found.value:.3f}, is not within {values.low:g} and "
        f"{values.high:g}."
    )


def _is_within_bounds(figure: float, values: Values) -> bool:
    return values.low - SLACK <= figure <= values.high + SLACK


def _beyond(values: Values, labelled: Sequence[Labelled]) -> Iterator[Flag]:
    """Of a rate every judge's answer is among 0 and 1, so that only means can be beyond."""
    if values.judged and labelled and not values.is_rate:
        mean = judge_mean(values.judged).value
        said = [one.judge for one in labelled]
        if not min(said) <= mean <= max(said):
            yield "outside_labelled_range"


def _dialogues(values: Sequence[Judged] | Sequence[Labelled]) -> int:
    return len({one.cluster for one in values})


def _too_few(n_dialogues: int, whose: str) -> str:
    return (
        f"Labels drawn with a known probability are of {plural(n_dialogues, 'dialogue')} {whose}: "
        f"it takes {FEWEST_CLUSTERS}."
    )
