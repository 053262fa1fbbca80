"""Whether a run's judge was calibrated against human labels, as the run's document says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.documents.document import Count, RunId, Timestamp
from socratic_bench.types import doc

_BEST_FIRST = ("calibrated", "stale", "uncalibrated")


class JudgeIdentity(Struct, frozen=True, kw_only=True):
    """What makes a judge the same judge: its models, and how they are asked."""

    model: str
    rubric_sha256: str
    temperature: float | None = None
    samples: int = 1
    rule: str | None = None
    context: int = 3
    silent: tuple[str, ...] = ()


class StoredLabels(Struct, frozen=True, kw_only=True):
    n_turns: int
    n_dialogues: int


class StoredCalibration(Struct, frozen=True, kw_only=True):
    """The keys that a run reads of a calibration's document."""

    kind: Literal["calibration"]
    run_id: RunId
    status: str
    completed_at: Timestamp
    judge: JudgeIdentity
    labels: StoredLabels
    n_judged: int


class JudgeStatus(Struct, frozen=True, kw_only=True):
    """Whether a judge is calibrated."""

    status: Annotated[
        Literal["calibrated", "stale", "uncalibrated"],
        doc(
            "stale: the calibration is of this model, but with other settings, or was interrupted; "
            "uncalibrated: no calibration was given (--calibration), or one of another judge"
        ),
    ]
    by: Annotated[RunId | None, doc("id of the calibration; null: none was given")] = None
    calibrated_at: Annotated[Timestamp | None, doc("when it was made; null: none was given")] = None
    n_labelled: Annotated[Count | None, doc("labelled replies in it; null: none was given")] = None
    n_dialogues: Annotated[
        Count | None, doc("dialogues with labelled replies; null: none was given")
    ] = None
    reasons: Annotated[list[str], doc("why it is not calibrated; empty if it is")]

    @classmethod
    def of(cls, judge: JudgeIdentity, calibrations: Sequence[StoredCalibration]) -> JudgeStatus:
        """The status by the calibration that fits best; of those that fit alike, the newest."""
        if not calibrations:
            return cls(status="uncalibrated", reasons=["no calibration was given"])
        newest_first = sorted(calibrations, key=lambda stored: stored.completed_at, reverse=True)
        statuses = [cls._by(judge, calibration) for calibration in newest_first]
        return min(
            statuses, key=lambda status: (_BEST_FIRST.index(status.status), len(status.reasons))
        )

    @classmethod
    def _by(cls, judge: JudgeIdentity, calibration: StoredCalibration) -> JudgeStatus:
        reasons = [*_differences(judge, calibration)]
        is_of_other = _has_other_models(judge, calibration) or not calibration.n_judged
        status = "uncalibrated" if is_of_other else "stale" if reasons else "calibrated"
        return cls(
            status=status,  # type: ignore[arg-type]
            by=calibration.run_id,
            calibrated_at=calibration.completed_at,
            n_labelled=calibration.labels.n_turns,
            n_dialogues=calibration.labels.n_dialogues,
            reasons=reasons,
        )


def _differences(judge: JudgeIdentity, calibration: StoredCalibration) -> Iterator[str]:
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
        yield "the calibration was cut short"


def _has_other_models(judge: JudgeIdentity, calibration: StoredCalibration) -> bool:
    """Whether the jurors are other models; their order does not matter."""
    return sorted(judge.model.split("+")) != sorted(calibration.judge.model.split("+"))


def _in_words(value: object) -> str:
    return "its own" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
