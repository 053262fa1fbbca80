"""What each juror made of a turn, and of an episode as a whole, as files of verdicts have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, field

from socratic_bench.documents.document import SCORE_PLACES, Amount, Count, Model, Scalars, to_places
from socratic_bench.statistics import agreement
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


# How far jurors agree on replies that all of them saw.

SCORE = "overall_score"
# What jurors make of one turn: by juror, its score of each dimension, `None` if it gave none.
Votes = Mapping[str, Mapping[str, float] | None]


class Agreement(Struct, frozen=True, kw_only=True):
    """Of one dimension, or of the score."""

    n_jurors: Annotated[Count, doc("jurors that gave verdicts")]
    n_turns: Annotated[Count, doc("turns with the verdicts of two jurors or more")]
    alpha: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None,
        doc(
            "Krippendorff's alpha, ordinal; null without the extra stats, or where all "
            "scores are the same"
        ),
    ]
    absolute_error: Annotated[
        Amount | None, doc("mean distance of two jurors on a turn; null without any")
    ]

    @classmethod
    def of(cls, turns: Iterable[Votes]) -> dict[str, Agreement]:
        """By dimension, and the score; nothing where fewer than two jurors voted."""
        votes = [{name: _with_sum(scores) for name, scores in turn.items()} for turn in turns]
        jurors = [*dict.fromkeys(name for turn in votes for name in turn)]
        given = [scores for turn in votes for scores in turn.values() if scores]
        names = dict.fromkeys(name for scores in given for name in scores)
        if len(jurors) < 2:  # noqa: PLR2004 -- there is nobody to agree with
            return {}
        return {
            name: cls._of([[(turn.get(one) or {}).get(name) for turn in votes] for one in jurors])
            for name in names
        }

    @classmethod
    def _of(cls, ratings: agreement.Ratings) -> Agreement:
        units = [*zip(*ratings, strict=True)]
        alpha = agreement.ordinal_alpha(ratings) if agreement.is_available() else None
        return cls(
            n_jurors=sum(any(score is not None for score in one) for one in ratings),
            n_turns=sum(sum(score is not None for score in unit) > 1 for unit in units),
            alpha=to_places(alpha, SCORE_PLACES),
            absolute_error=to_places(agreement.absolute_error(ratings), SCORE_PLACES),
        )


def _with_sum(scores: Mapping[str, float] | None) -> Mapping[str, float]:
    return {**scores, SCORE: round(sum(scores.values()), SCORE_PLACES)} if scores else {}
