"""One turn in the document of a run, and the verdicts of each juror, on a turn and on the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, field

from socratic_bench.documents.document import (
    SCALAR,
    SCORE_PLACES,
    Amount,
    Count,
    Model,
    Scalars,
    keys,
    part,
    to_places,
)
from socratic_bench.documents.judge import EndedRun
from socratic_bench.documents.usage import CallLatency, Tokens, sum_usage
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.statistics import agreement
from socratic_bench.turns import (
    ClosingVerdict,
    ClosingVote,
    Outcome,
    Rubric,
    Turn,
    Unscored,
    Verdict,
    Vote,
    deviations,
)
from socratic_bench.types import Completion, ProviderStopReason, Usage, doc

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
    scores: Annotated[dict[str, float | None], doc("by dimension; empty: no verdict")] = {}
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
    ] = []

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
        names = dict.fromkeys(name for turn in votes for scores in turn.values() for name in scores)
        if len(jurors) < 2:  # noqa: PLR2004 -- agreement needs two
            return {}
        return {
            name: cls._of([[turn.get(juror, {}).get(name) for turn in votes] for juror in jurors])
            for name in names
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


Index = Annotated[Count, doc("index of the turn, from 0")]
Sum = Annotated[Amount | None, doc("sum of the dimensions; null if unjudged")]
Scores = Annotated[
    dict[str, float | None], doc("score of each dimension of the rubric; null if unjudged")
]
Events = Annotated[
    dict[str, str] | None,
    doc(
        "quotation for each of the rubric's events that the judge saw; null if unjudged, or "
        "if the rubric has no events"
    ),
]
Quotes = Annotated[
    dict[str, str | None] | None,
    doc("quotation for each score; null if unjudged, or if the rubric asks for no quotations"),
]
Unquoted = Annotated[
    list[str] | None,
    doc(
        "dimensions and events whose quotation is missing or not in the reply; null if unjudged, "
        "or if the rubric asks for no quotations"
    ),
]
Heuristics = Annotated[Scalars, doc("what the benchmark measures in the reply without a model")]
StopReason = Annotated[str, doc("why the reply ended, in the same words for all providers")]
Answered = Annotated[Outcome, doc("how the model answered; no value is a failure of the run")]
Tier = Annotated[str | None, doc("service tier that served the reply, if the service names it")]
Profile = Annotated[
    str | None, doc("latency profile that served the reply, if the service names it")
]
Suspected = Annotated[
    bool | None,
    doc(
        "whether the reply seems to address the judge: delimiters, a verdict, orders to score; "
        "null without a rubric"
    ),
]
Replayed = Annotated[
    bool, doc("whether the turn is from a transcript: not called, judged or counted")
]


class TurnLatency(Struct, frozen=True, kw_only=True):
    """Milliseconds of the answers that are used, by role."""

    actors: Annotated[
        dict[str, Annotated[CallLatency | None, doc("of its answer; null: not called")]],
        keys("actors"),
    ] = field(name="*actors")
    judge: Annotated[list[CallLatency] | None, doc("of each call of the judge; null if unjudged")]

    @classmethod
    def of(cls, turn: Turn, parts: Parts) -> TurnLatency:
        answers = turn.others if turn.replayed else {**turn.others, parts.tested: turn.reply}
        return cls(
            actors={
                actor.name: CallLatency.of(answer)
                if (answer := answers.get(actor.name)) and answer.attempts
                else None
                for actor in parts.actors
            },
            judge=[CallLatency.of(call) for call in turn.judged.calls] if turn.judged else None,
        )


class Votes(Struct, frozen=True, kw_only=True):
    """The votes of a jury on a turn; the verdicts themselves are in its file."""

    n_jurors: Annotated[Count, doc("jurors that were asked")]
    n_votes: Annotated[Count, doc("jurors that gave a verdict")]
    scores: Annotated[
        dict[str, dict[str, float] | None],
        doc("by juror, its score of each dimension; null if it gave no verdict"),
    ] = {}
    between_jurors: Spread
    within_jurors: Annotated[dict[str, Spread], doc("by juror, the spread of its samples")]


class TurnEntry(Struct, frozen=True, kw_only=True):
    """One turn in the document of a run."""

    turn: Index
    score: Sum
    votes: Annotated[
        Votes | None, doc("the jury's votes; null with one verdict of one judge, or if unjudged")
    ] = None
    scores: Scores = {}
    flat: Annotated[Part, part("scores")] = field(name="*scores", default_factory=Part)
    events: Events = None
    quotes: Quotes = None
    unquoted: Unquoted = None
    reply: Annotated[
        str, doc("reply of the model under test; absent in runs of earlier versions")
    ] = ""
    question: Annotated[str, doc("the same as reply")]
    heuristics: Heuristics
    unjudged_reason: Annotated[
        str | None, doc("why there are no scores; null if there are, or if no judge was asked")
    ]
    benchmark_keys: Annotated[Part, part("turn", additionalProperties=SCALAR)] = field(
        name="*benchmark_keys", default_factory=Part
    )
    injection_suspected: Suspected = None
    replayed: Replayed = False
    stop_reason: StopReason
    provider_stop_reason: ProviderStopReason = None
    outcome: Answered = "answered"
    service_tier: Tier = None
    latency_profile: Profile = None
    usage: Annotated[
        dict[str, Annotated[Tokens | None, doc("of its calls; null: not called")]],
        keys("tested and others"),
        doc("tokens of this turn's calls by role, discarded answers included"),
    ]
    latency: Annotated[TurnLatency, doc("milliseconds of the answers that are used, by role")]

    @classmethod
    def of(cls, result: EndedRun, turn: Turn) -> TurnEntry:
        parts, scores = result.parts, scores_of(turn, result.rubric_of(turn))
        return cls(
            turn=turn.index,
            score=round_score(turn.verdict.overall_score) if turn.verdict else None,
            votes=votes_of(turn),
            scores=scores,
            flat=parts.scores.of(scores),
            **evidence_fields(turn.verdict),
            reply=turn.reply.message.text,
            question=turn.reply.message.text,
            heuristics=dict(turn.measures),
            unjudged_reason=result.unjudged_reason(turn),
            benchmark_keys=parts.turn.of(turn),
            injection_suspected=turn.injection_suspected,
            replayed=turn.replayed,
            stop_reason=turn.reply.stop_reason,
            provider_stop_reason=turn.reply.provider_stop_reason,
            outcome=turn.answered,
            service_tier=turn.reply.served_tier,
            latency_profile=turn.reply.served_latency_profile,
            # A model under test without calls, as after a failed set-up, used no tokens.
            usage={
                role: tokens_of(turn.calls(role, tested=parts.tested))
                or (Tokens.of(Usage()) if role == parts.tested else None)
                for role in parts.roles
            },
            latency=TurnLatency.of(turn, parts),
        )


def scores_of(turn: Turn, rubric: Rubric | None) -> dict[str, float | None]:
    """The score of each dimension of the rubric; empty without a rubric."""
    scores = turn.verdict.scores if turn.verdict else {}
    names = dict.fromkeys([*(rubric.names if rubric else ()), *scores])
    by_name = {name: scores.get(name) for name in names}
    return {name: None if score is None else round_score(score) for name, score in by_name.items()}


def votes_of(turn: Turn) -> Votes | None:
    """The votes on a turn; `None` if one judge gave one verdict."""
    votes = turn.judged.votes if turn.judged else ()
    if not votes:
        return None
    verdicts = [vote.outcome for vote in votes if isinstance(vote.outcome, Verdict)]
    return Votes(
        n_jurors=len(votes),
        n_votes=len(verdicts),
        scores={
            vote.judge_model: round_scores(vote.outcome.scores)
            if isinstance(vote.outcome, Verdict)
            else None
            for vote in votes
        },
        between_jurors=round_scores(deviations(verdicts)),
        within_jurors={vote.judge_model: round_scores(vote.spread) for vote in votes},
    )


def tokens_of(calls: Sequence[Completion]) -> Tokens | None:
    """Tokens of all calls together; `None` without a call."""
    return Tokens.of(sum_usage([call.usage for call in calls])) if calls else None
