"""The verdicts of each juror, on a turn and on an episode as a whole, and how far jurors agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, field

from socratic_bench.documents.document import (
    SCORE_PLACES,
    Amount,
    Count,
    Model,
    Scalars,
    to_places,
)
from socratic_bench.statistics import agreement
from socratic_bench.turns import ClosingVerdict, ClosingVote, Unscored, Verdict, Vote
from socratic_bench.types import doc

SCORE = "overall_score"

Spread = Annotated[
    dict[str, Amount] | None,
    doc(
        "standard deviation (with n - 1) of several verdicts, by dimension and of overall_score; "
        "null with fewer than two"
    ),
]
Reason = Annotated[str | None, doc("why there are no scores")]
Explanation = Annotated[str | None, doc("the reason in a sentence")]
RawReply = Annotated[str | None, doc("the judge's reply, if it could not be used")]
# The jurors' scores of one turn: by juror and dimension, `None` if the juror gave no verdict.
JurorScores = Mapping[str, Mapping[str, float] | None]


class SampleEntry(Struct, frozen=True, kw_only=True):
    """One verdict of one juror."""

    model: Model
    overall_score: Annotated[Amount | None, doc("sum of the dimensions; null: no verdict")] = None
    scores: Annotated[dict[str, float | None], doc("by dimension; empty: no verdict")] = field(
        default_factory=dict
    )
    rationale: Annotated[dict[str, str | None] | None, doc("the juror's reason for each score")] = (
        None
    )
    events: Annotated[dict[str, str] | None, doc("quotation for each event that it saw")] = None
    quotes: Annotated[dict[str, str | None] | None, doc("quotation for each score")] = None
    unquoted: Annotated[
        list[str] | None, doc("dimensions and events whose quotation is not in the reply")
    ] = None
    unjudged_reason: Reason = None
    unjudged_message: Explanation = None
    raw_reply: RawReply = None

    @classmethod
    def of(cls, outcome: Verdict | Unscored, **more: Any) -> Self:  # noqa: ANN401 -- fields of a subclass
        if isinstance(outcome, Unscored):
            return cls(**unscored_fields(outcome), **more)
        return cls(
            overall_score=round_score(outcome.overall_score),
            scores={name: round_score(score) for name, score in outcome.scores.items()},
            rationale=dict(outcome.rationale),
            **evidence_fields(outcome),
            **more,
        )


class JurorEntry(SampleEntry, frozen=True, kw_only=True):
    """The verdict of one juror on a turn: the mean of its samples."""

    spread: Spread = None
    samples: Annotated[
        list[SampleEntry], doc("each of its verdicts; empty if it was asked for one")
    ] = field(default_factory=list)

    @classmethod
    def of_vote(cls, vote: Vote) -> JurorEntry:
        model = vote.judge_model
        samples = [SampleEntry.of(sample, model=model) for sample in vote.samples]
        return cls.of(
            vote.outcome,
            model=model,
            spread=round_scores(vote.spread),
            samples=samples if len(samples) > 1 else [],
        )


class ClosingJuror(Struct, frozen=True, kw_only=True):
    """The answer of one juror on an episode as a whole."""

    model: Model
    findings: Annotated[list[Scalars] | None, doc("its findings; null: not known")]
    unjudged_reason: Reason = None
    unjudged_message: Explanation = None
    raw_reply: RawReply = None

    @classmethod
    def of(cls, vote: ClosingVote) -> ClosingJuror:
        findings, reasons = finding_list(vote.outcome), unscored_fields(vote.outcome)
        return cls(model=vote.judge_model, findings=findings, **reasons)


class Agreement(Struct, frozen=True, kw_only=True):
    """How far jurors agree in one dimension, or in the overall score."""

    n_jurors: Annotated[Count, doc("jurors that gave verdicts")]
    n_turns: Annotated[Count, doc("turns with verdicts of two or more jurors")]
    alpha: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None,
        doc(
            "Krippendorff's alpha, ordinal; null without the extra stats, or if all scores are "
            "the same"
        ),
    ]
    absolute_error: Annotated[
        Amount | None, doc("mean distance of two jurors on a turn; null without such turns")
    ]

    @classmethod
    def of(cls, turns: Iterable[JurorScores]) -> dict[str, Agreement]:
        """By dimension, and overall; empty with fewer than two jurors."""
        votes = [{juror: _with_sum(scores) for juror, scores in turn.items()} for turn in turns]
        jurors = [*dict.fromkeys(juror for turn in votes for juror in turn)]
        dimensions = dict.fromkeys(
            name for turn in votes for scores in turn.values() for name in scores
        )
        if len(jurors) < 2:  # noqa: PLR2004 -- agreement needs two
            return {}
        return {
            name: cls._of([[turn.get(juror, {}).get(name) for turn in votes] for juror in jurors])
            for name in dimensions
        }

    @classmethod
    def _of(cls, ratings: agreement.Ratings) -> Agreement:
        units = [*zip(*ratings, strict=True)]
        alpha = agreement.ordinal_alpha(ratings) if agreement.is_available() else None
        return cls(
            n_jurors=sum(any(score is not None for score in of_juror) for of_juror in ratings),
            n_turns=sum(sum(score is not None for score in unit) > 1 for unit in units),
            alpha=to_places(alpha, SCORE_PLACES),
            absolute_error=to_places(agreement.absolute_error(ratings), SCORE_PLACES),
        )


def round_scores(scores: Mapping[str, float] | None) -> dict[str, float] | None:
    """The scores as documents have them; `None` stays `None`."""
    return None if scores is None else {name: round_score(score) for name, score in scores.items()}


def round_score(score: float) -> float:
    """A score of a turn: half steps stay exact, means have four places."""
    return round(score, SCORE_PLACES)


def evidence_fields(verdict: Verdict | None) -> dict[str, Any]:
    """The fields with the quotations of a verdict."""
    return {name: getattr(verdict, name, None) for name in ("events", "quotes", "unquoted")}


def unscored_fields(outcome: object) -> dict[str, Any]:
    """The fields that say why there are no scores; `None` in each if there are."""
    unscored = outcome if isinstance(outcome, Unscored) else None
    return {
        "unjudged_reason": unscored and unscored.reason,
        "unjudged_message": unscored and unscored.message,
        "raw_reply": unscored and unscored.raw_reply,
    }


def finding_list(outcome: ClosingVerdict | Unscored) -> list[Any] | None:
    """The findings on an episode as a whole; `None` if they are not known."""
    return None if isinstance(outcome, Unscored) else [dict(f) for f in outcome.findings]


def _with_sum(scores: Mapping[str, float] | None) -> Mapping[str, float]:
    return {**scores, SCORE: round(sum(scores.values()), SCORE_PLACES)} if scores else {}
