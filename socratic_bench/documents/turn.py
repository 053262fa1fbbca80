"""One turn in the document of a run, and the fields that the turn's files share with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct, field

from socratic_bench.documents.document import SCALAR, Amount, Count, Scalars, keys, part
from socratic_bench.documents.ended_run import EndedRun
from socratic_bench.documents.jury import Spread, evidence_fields, round_score, round_scores
from socratic_bench.documents.usage import CallLatency, Tokens, sum_usage
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.turns import Outcome, Rubric, Turn, Unscored, Verdict, Vote, deviations
from socratic_bench.types import Completion, ProviderStopReason, doc

Index = Annotated[Count, doc("index of the turn, from 0")]
Sum = Annotated[Amount | None, doc("sum of the dimensions; null if unjudged")]
Scores = Annotated[
    dict[str, float | None],
    doc("score of each dimension of the rubric; null if unjudged"),
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
    ] = field(default_factory=dict)
    between_jurors: Spread
    within_jurors: Annotated[dict[str, Spread], doc("by juror, the spread of its samples")]


class TurnEntry(Struct, frozen=True, kw_only=True):
    """One turn in the document of a run."""

    turn: Index
    score: Sum
    votes: Annotated[
        Votes | None, doc("the jury's votes; null with one verdict of one judge, or if unjudged")
    ] = None
    scores: Scores = field(default_factory=dict)
    flat: Annotated[Part, part("scores")] = field(name="*scores", default_factory=Part)
    events: Events = None
    quotes: Quotes = None
    unquoted: Unquoted = None
    question: Annotated[str, doc("the whole reply of the model under test")]
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
            question=turn.reply.message.text,
            heuristics=dict(turn.measures),
            unjudged_reason=unjudged_reason(result, turn),
            benchmark_keys=parts.turn.of(turn),
            injection_suspected=turn.injection_suspected,
            replayed=turn.replayed,
            stop_reason=turn.reply.stop_reason,
            provider_stop_reason=turn.reply.provider_stop_reason,
            outcome=turn.answered,
            service_tier=turn.reply.served_tier,
            latency_profile=turn.reply.served_latency_profile,
            usage={role: tokens_of(turn.calls(role, tested=parts.tested)) for role in parts.roles},
            latency=TurnLatency.of(turn, parts),
        )


def unjudged_reason(result: EndedRun, turn: Turn) -> str | None:
    """Why a turn has no scores; `None` if it has, or if no judge was asked."""
    if turn.replayed:
        return "replayed" if result.is_judged else None
    if isinstance(turn.outcome, Unscored):
        return turn.outcome.reason
    if result.rubric_of(turn) is None:
        return None
    return "run_ended" if turn.outcome is None and result.is_judged else None


def scores_of(turn: Turn, rubric: Rubric | None) -> dict[str, float | None]:
    """The score of each dimension of the rubric; empty without a rubric."""
    scores = turn.verdict.scores if turn.verdict else {}
    names = [dimension.name for dimension in rubric.dimensions] if rubric else []
    by_name = {name: scores.get(name) for name in dict.fromkeys([*names, *scores])}
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
        scores={vote.judge_model: _scores_of_vote(vote) for vote in votes},
        between_jurors=round_scores(deviations(verdicts)),
        within_jurors={vote.judge_model: round_scores(vote.spread) for vote in votes},
    )


def _scores_of_vote(vote: Vote) -> dict[str, float] | None:
    return round_scores(vote.outcome.scores) if isinstance(vote.outcome, Verdict) else None


def tokens_of(calls: Sequence[Completion]) -> Tokens | None:
    """Tokens of all calls together; `None` without a call."""
    return Tokens.of(sum_usage([call.usage for call in calls])) if calls else None
