"""Whether a run's judge was calibrated against human labels, as the run's document says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.document import Amount, Count, Model, RunId, Sha256, Timestamp
from socratic_bench.statistics.ppi import FEWEST_DIALOGUES
from socratic_bench.types import doc, plural

TOTAL = "overall_score"
_BEST_FIRST = ("calibrated", "stale", "uncalibrated")


class Figure(Struct, frozen=True, kw_only=True):
    """A figure with its 95 % interval, clustered by scenario."""

    value: Annotated[float | None, doc("null: the labels do not give it")]
    low: Annotated[
        float | None,
        doc("lower limit; null with one scenario, or if no scenario changes the value"),
    ] = None
    high: Annotated[float | None, doc("upper limit; null if low is")] = None


class CalibratedJudge(Struct, frozen=True, kw_only=True):
    """The judge and its settings. A run whose judge differs in any of them has another judge."""

    model: Annotated[str, doc("the judge model; several are joined by +")]
    rubric: Annotated[str, doc("name of the rubric")]
    rubric_sha256: Annotated[Sha256, doc("sha256 of the rubric file")]
    temperature: Annotated[
        Amount | None, doc("temperature of its calls; null: the model's default")
    ] = None
    samples: Annotated[
        int, Meta(ge=1, description="verdicts of each juror on a reply, of which the mean counts")
    ] = 1
    rule: Annotated[str | None, doc("how the jurors' scores are combined; null with one judge")] = (
        None
    )
    context: Annotated[
        Count, doc("exchanges before the reply that it sees, besides the opening")
    ] = 3
    silent: Annotated[tuple[Model, ...], doc("jurors that gave no verdict on any reply")] = ()


class StoredLabels(Struct, frozen=True, kw_only=True):
    n_dialogues: int


class StoredAgreement(Struct, frozen=True, kw_only=True):
    """Agreement of the judge with people on one score."""

    n: int
    weighted_kappa: Figure


class StoredCalibration(Struct, frozen=True, kw_only=True):
    """The keys that a run reads of a calibration's document."""

    kind: Literal["calibration"]
    run_id: RunId
    status: str
    completed_at: Timestamp
    judge: CalibratedJudge
    labels: StoredLabels
    n_judged: int
    dimensions: dict[str, StoredAgreement] = {}
    events: dict[str, Any] = {}


class JudgeStatus(Struct, frozen=True, kw_only=True):
    """Whether a judge is calibrated."""

    status: Annotated[
        Literal["calibrated", "stale", "uncalibrated"],
        doc(
            "calibrated: people's labels of the overall score, of 10 dialogues or more, were "
            "compared with verdicts of this judge; stale: the calibration is of this model, but "
            "with other settings, or was interrupted; uncalibrated: no such calibration was given "
            "(--calibration), or one of another judge"
        ),
    ]
    by: Annotated[RunId | None, doc("id of the calibration; null: none was given")] = None
    calibrated_at: Annotated[Timestamp | None, doc("when it was made; null: none was given")] = None
    n_labelled: Annotated[
        Count | None, doc("replies with a label and a verdict of the score; null: none was given")
    ] = None
    n_dialogues: Annotated[
        Count | None, doc("dialogues with labelled replies; null: none was given")
    ] = None
    weighted_kappa: Annotated[
        Figure | None,
        doc("agreement on overall_score (quadratic weights); null: no label of it, or none given"),
    ] = None
    reasons: Annotated[list[str], doc("why it is not calibrated; empty if it is")]

    @classmethod
    def of(cls, judge: CalibratedJudge, calibrations: Sequence[StoredCalibration]) -> JudgeStatus:
        """The status by the calibration that fits best; of those that fit alike, the newest."""
        if not calibrations:
            return cls(status="uncalibrated", reasons=["no calibration was given"])
        newest_first = sorted(calibrations, key=lambda stored: stored.completed_at, reverse=True)
        statuses = [cls._by(judge, calibration) for calibration in newest_first]
        return min(
            statuses, key=lambda status: (_BEST_FIRST.index(status.status), len(status.reasons))
        )

    @classmethod
    def _by(cls, judge: CalibratedJudge, calibration: StoredCalibration) -> JudgeStatus:
        differences = [*_differences(judge, calibration)]
        score = calibration.dimensions.get(TOTAL)
        lacks = [*_lacks(calibration)]
        is_of_other = _has_other_models(judge, calibration) or not calibration.n_judged or lacks
        status = "uncalibrated" if is_of_other else "stale" if differences else "calibrated"
        return cls(
            status=status,  # type: ignore[arg-type]
            by=calibration.run_id,
            calibrated_at=calibration.completed_at,
            n_labelled=score.n if score else 0,
            n_dialogues=calibration.labels.n_dialogues,
            weighted_kappa=score.weighted_kappa if score else None,
            reasons=[*differences, *lacks],
        )


def agreement_text(entry: Mapping[str, Any]) -> str:
    """How many labels a status in a run's document rests on, and how far the judge agrees."""
    kappa = (entry.get("weighted_kappa") or {}).get("value")
    agreement = "not known" if kappa is None else f"{kappa:.2f}"
    replies = plural(entry.get("n_labelled") or 0, "reply", "replies")
    dialogues = plural(entry.get("n_dialogues") or 0, "dialogue")
    return f"{replies} of {dialogues}, kappa {agreement}"


def _lacks(calibration: StoredCalibration) -> Iterator[str]:
    """Why a calibration says too little about a judge's score."""
    if TOTAL not in calibration.dimensions:
        names = ", ".join([*calibration.dimensions, *calibration.events]) or "nothing"
        yield f"the labels are of {names}, not of the whole score"
    elif calibration.labels.n_dialogues < FEWEST_DIALOGUES:
        n = plural(calibration.labels.n_dialogues, "dialogue")
        yield f"the labels are of {n}: it takes {FEWEST_DIALOGUES}"


def _differences(judge: CalibratedJudge, calibration: StoredCalibration) -> Iterator[str]:
    """Each difference between a judge and the one that was calibrated, in words."""
    calibrated = calibration.judge
    if _has_other_models(judge, calibration):
        yield f"the calibration is of {calibrated.model}"
        return
    if not calibration.n_judged:
        yield "it gave no verdict then"
    if judge.rubric_sha256 != calibrated.rubric_sha256:
        yield "it judged by another rubric then"
    for name, word in (
        ("temperature", "temperature"),
        ("samples", "number of samples"),
        ("rule", "rule of a jury"),
        ("context", "number of exchanges shown"),
    ):
        then, now = getattr(calibrated, name), getattr(judge, name)
        if then != now:
            yield f"its {word} was {_in_words(then)} then, and is {_in_words(now)} now"
    for model in sorted({*judge.silent} ^ {*calibrated.silent}):
        yield f"{model} gave no verdict {'now' if model in judge.silent else 'then'}"
    if calibration.status != "completed":
        yield "the calibration was interrupted"


def _has_other_models(judge: CalibratedJudge, calibration: StoredCalibration) -> bool:
    """Whether the jurors are other models; their order does not matter."""
    return sorted(judge.model.split("+")) != sorted(calibration.judge.model.split("+"))


def _in_words(value: object) -> str:
    return "its own" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
