"""What each juror made of a turn, and of an episode as a whole, as files of verdicts have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from msgspec import Struct, field

from socratic_bench.documents.scalars import SCORE_PLACES, Amount, Model, Scalars
from socratic_bench.turns import ClosingVerdict, ClosingVote, Unscored, Verdict, Vote
from socratic_bench.types import doc

Spread = Annotated[
    dict[str, Amount] | None,
    doc(
        "deviation of several verdicts (with n - 1) by dimension and of overall_score; "
        "null with fewer than two"
    ),
]
Reason = Annotated[str | None, doc("why there are no scores")]
InWords = Annotated[str | None, doc("the same in a sentence")]
RawReply = Annotated[str | None, doc("what the judge said, if it could not be used")]


class SampleEntry(Struct, frozen=True, kw_only=True):
    """One verdict of one juror."""

    model: Model
    overall_score: Annotated[
        Amount | None, doc("sum of the dimensions; null if there is no verdict")
    ] = None
    scores: Annotated[
        dict[str, float | None], doc("by dimension; empty if there is no verdict")
    ] = field(default_factory=dict)
    rationale: Annotated[dict[str, str | None] | None, doc("the juror's reason for each score")] = (
        None
    )
    events: Annotated[dict[str, str] | None, doc("quoted words of each event that it saw")] = None
    quotes: Annotated[dict[str, str | None] | None, doc("words that each score rests on")] = None
    unquoted: Annotated[
        list[str] | None, doc("dimensions and events whose quoted words do not stand in the reply")
    ] = None
    unjudged_reason: Reason = None
    unjudged_message: InWords = None
    raw_reply: RawReply = None

    @classmethod
    def of(cls, outcome: Verdict | Unscored, **more: Any) -> Self:  # noqa: ANN401 -- fields of a class that extends this
        if isinstance(outcome, Unscored):
            return cls(**unscored_of(outcome), **more)
        return cls(
            overall_score=rounded(outcome.overall_score),
            scores={name: rounded(score) for name, score in outcome.scores.items()},
            rationale=dict(outcome.rationale),
            **evidence_of(outcome),
            **more,
        )


class JurorEntry(SampleEntry, frozen=True, kw_only=True):
    """What one juror made of a turn: the mean of its samples."""

    spread: Spread = None
    samples: Annotated[
        list[SampleEntry], doc("each of its verdicts; empty where it is asked for one")
    ] = field(default_factory=list)

    @classmethod
    def voted(cls, vote: Vote) -> JurorEntry:
        model = vote.judge_model
        samples = [SampleEntry.of(one, model=model) for one in vote.samples]
        return cls.of(
            vote.outcome,
            model=model,
            spread=all_rounded(vote.spread),
            samples=samples if len(samples) > 1 else [],
        )


class ClosingJuror(Struct, frozen=True, kw_only=True):
    """What one juror made of an episode as a whole."""

    model: Model
    findings: Annotated[list[Scalars] | None, doc("what it found; null: not known")]
    unjudged_reason: Reason = None
    unjudged_message: InWords = None
    raw_reply: RawReply = None

    @classmethod
    def of(cls, vote: ClosingVote) -> ClosingJuror:
        outcome = vote.outcome
        return cls(model=vote.judge_model, findings=findings_of(outcome), **unscored_of(outcome))


def all_rounded(scores: Mapping[str, float] | None) -> dict[str, float] | None:
    """As documents have them; what is not known stays so."""
    return None if scores is None else {name: rounded(one) for name, one in scores.items()}


def rounded(score: float) -> float:
    """A score of a turn: half steps stay exact, means have four places."""
    return round(score, SCORE_PLACES)


def evidence_of(verdict: Verdict | None) -> dict[str, Any]:
    """What a verdict rests on, by the names of its fields."""
    return {name: getattr(verdict, name, None) for name in ("events", "quotes", "unquoted")}


def unscored_of(outcome: object) -> dict[str, Any]:
    """Why there are no scores, by the names of its fields; null where it is no `Unscored`."""
    why = outcome if isinstance(outcome, Unscored) else None
    return {
        "unjudged_reason": why and why.reason,
        "unjudged_message": why and why.message,
        "raw_reply": why and why.raw_reply,
    }


def findings_of(outcome: ClosingVerdict | Unscored) -> list[Any] | None:
    """What was found of an episode as a whole; `None` if nothing is known."""
    return None if isinstance(outcome, Unscored) else [dict(one) for one in outcome.findings]
