"""Whether a run's judge was held to people's labels, as its document says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.documents.scalars import Count, RunId, Timestamp
from socratic_bench.types import doc

_ORDER = ("calibrated", "stale", "uncalibrated")


class JudgeIdentity(Struct, frozen=True, kw_only=True):
    """Of a judge, what makes it another one if it differs: whose verdicts, and how they are asked
    for.
    """

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
    """What a run reads of a calibration's document."""

    kind: Literal["calibration"]
    run_id: RunId
    status: str
    completed_at: Timestamp
    judge: JudgeIdentity
    labels: StoredLabels
    n_judged: int


class JudgeStatus(Struct, frozen=True, kw_only=True):
    """What is known of a judge by people's labels."""

    status: Annotated[
        Literal["calibrated", "stale", "uncalibrated"],
        doc(
            "stale: the calibration is of this model, but judged otherwise, or was cut "
            "short; uncalibrated: none was given (--calibration), or one of another judge"
        ),
    ]
    by: Annotated[RunId | None, doc("the calibration; null: none was given")] = None
    calibrated_at: Annotated[Timestamp | None, doc("when it was made; null: none was given")] = None
    n_labelled: Annotated[Count | None, doc("labelled replies in it; null: none was given")] = None
    n_dialogues: Annotated[
        Count | None, doc("dialogues that these are of; null: none was given")
    ] = None
    reasons: Annotated[list[str], doc("why it is not calibrated; empty if it is")]

    @classmethod
    def of(cls, judge: JudgeIdentity, held: Sequence[StoredCalibration]) -> JudgeStatus:
        """By the calibration that fits best; of those that fit alike, the newest."""
        if not held:
            return cls(status="uncalibrated", reasons=["no calibration was given"])
        newest_first = sorted(held, key=lambda one: one.completed_at, reverse=True)
        found = [cls._by(judge, one) for one in newest_first]
        return min(found, key=lambda one: (_ORDER.index(one.status), len(one.reasons)))

    @classmethod
    def _by(cls, judge: JudgeIdentity, held: StoredCalibration) -> JudgeStatus:
        reasons = [*_differences(judge, held)]
        is_other = _is_other(judge, held) or not held.n_judged
        status = "uncalibrated" if is_other else "stale" if reasons else "calibrated"
        return cls(
            status=status,  # type: ignore[arg-type]
            by=held.run_id,
            calibrated_at=held.completed_at,
            n_labelled=held.labels.n_turns,
            n_dialogues=held.labels.n_dialogues,
            reasons=reasons,
        )


def _differences(judge: JudgeIdentity, held: StoredCalibration) -> Iterator[str]:
    if _is_other(judge, held):
        yield f"the calibration is of {held.judge.model}"
        return
    if not held.n_judged:
        yield "it gave no verdict then"
    if judge.rubric_sha256 != held.judge.rubric_sha256:
        yield "it judged by another rubric then"
    for name, word in (
        ("temperature", "temperature"),
        ("samples", "number of samples"),
        ("rule", "rule of a jury"),
        ("context", "number of exchanges shown"),
    ):
        then, now = getattr(held.judge, name), getattr(judge, name)
        if then != now:
            yield f"its {word} was {_shown(then)} then, and is {_shown(now)} now"
    for one in sorted({*judge.silent} ^ {*held.judge.silent}):
        yield f"{one} gave no verdict {'now' if one in judge.silent else 'then'}"
    if held.status != "completed":
        yield "the calibration was cut short"


def _is_other(judge: JudgeIdentity, held: StoredCalibration) -> bool:
    """The same jurors are the same jury, in whatever order."""
    return sorted(judge.model.split("+")) != sorted(held.judge.model.split("+"))


def _shown(value: object) -> str:
    return "its own" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
