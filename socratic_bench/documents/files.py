"""The files of a run: one per turn, one per verdict, and one for the closing verdict."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from socratic_bench.documents.document import (
    SCHEMA_VERSION,
    TIME_PLACES,
    Amount,
    Count,
    Printable,
    RunId,
    Scalars,
    Timestamp,
    Version,
    part,
    utc,
)
from socratic_bench.documents.turn import (
    Answered,
    ClosingJuror,
    Events,
    Explanation,
    Heuristics,
    Index,
    JurorEntry,
    Profile,
    Quotes,
    RawReply,
    Reason,
    Replayed,
    Scores,
    StopReason,
    Sum,
    Suspected,
    Tier,
    Unquoted,
    evidence_fields,
    finding_list,
    round_score,
    scores_of,
    tokens_of,
    unscored_fields,
)
from socratic_bench.documents.usage import (
    AttemptEntry,
    Attempts,
    CallEntry,
    CallLatency,
    RequestId,
    Tokens,
    call_fields,
)
from socratic_bench.ports.benchmark import Sample
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.turns import ClosingResult, JuryRule, Rubric, Turn
from socratic_bench.types import Completion, ProviderStopReason, Reasoning, doc


class FewTokens(Struct, frozen=True, kw_only=True):
    """Tokens of the reply; null where the service sent no counters."""

    input: Annotated[Count | None, doc("all input tokens")]
    output: Annotated[Count | None, doc("output tokens")]


class DiscardedAnswer(CallEntry, frozen=True, kw_only=True):
    """An answer that was discarded and asked for again, such as an empty reply."""

    role: Annotated[str, doc("role of its model")]
    text: Annotated[str, doc("its text")]


class TurnFile(Printable, frozen=True, kw_only=True):
    """The raw turn (turn_NNN.json)."""

    run_id: RunId
    turn: Index
    prompt_keys: Annotated[Part, part("turn_prompt")] = field(
        name="*prompt_keys", default_factory=Part
    )
    ai_response: Annotated[str, doc("the whole reply of the model under test")]
    tokens: Annotated[FewTokens, doc("input and output tokens of the reply")]
    latency_ms: Annotated[
        Amount | None, doc("milliseconds of the attempt that answered; null for a recorded reply")
    ]
    timestamp: Annotated[
        Timestamp | None, doc("when the reply was complete; null for a recorded one")
    ]
    kind: Literal["turn"] = "turn"
    schema_version: Version = SCHEMA_VERSION
    sample: Annotated[Part, part("sample", is_known=True)] = field(
        name="*sample", default_factory=Part
    )
    stop_reason: StopReason
    provider_stop_reason: ProviderStopReason = None
    outcome: Answered = "answered"
    streamed: Annotated[bool, doc("whether the reply came as a stream")] = False
    service_tier: Tier = None
    latency_profile: Profile = None
    reasoning: Annotated[
        str | None, doc("the model's reasoning before the reply, if it shows it")
    ] = None
    usage: Annotated[Tokens, doc("tokens of the reply")]
    latency: Annotated[CallLatency | None, doc("times of the reply; null for a recorded one")]
    attempts: Attempts
    request_id: RequestId
    heuristics: Heuristics
    notes: Annotated[Scalars, doc("what else the benchmark stores with a turn")]
    calls: Annotated[Part, part("turn_calls")] = field(name="*calls", default_factory=Part)
    set_aside: Annotated[
        list[DiscardedAnswer],
        doc("answers that were discarded; they are paid for and part of the run's usage"),
    ] = []
    benchmark_keys: Annotated[Part, part("turn_file")] = field(
        name="*benchmark_keys", default_factory=Part
    )
    injection_suspected: Suspected = None
    replayed: Replayed = False

    @classmethod
    def of(cls, turn: Turn, *, run_id: str, sample: Sample, parts: Parts) -> TurnFile:
        reply, usage = turn.reply, turn.reply.usage
        is_recorded = not reply.finished_at.timestamp()
        return cls(
            run_id=run_id,
            turn=turn.index,
            prompt_keys=parts.turn_prompt.of(turn),
            ai_response=reply.message.text,
            tokens=FewTokens(
                input=usage.input_tokens if usage else None,
                output=usage.output_tokens if usage else None,
            ),
            latency_ms=None if is_recorded else round(reply.latency_ms, TIME_PLACES),
            timestamp=None if is_recorded else utc(reply.finished_at),
            sample=parts.sample.of(sample),
            outcome=turn.answered,
            streamed=reply.streamed,
            service_tier=reply.served_tier,
            latency_profile=reply.served_latency_profile,
            reasoning="\n".join(
                block.text for block in reply.message.content if isinstance(block, Reasoning)
            )
            or None,
            heuristics=dict(turn.measures),
            notes=dict(turn.notes),
            calls=parts.turn_calls.of(turn),
            set_aside=[
                DiscardedAnswer(role=role, text=call.message.text, **call_fields(call))
                for role, call in turn.set_aside
            ],
            benchmark_keys=parts.turn_file.of(turn),
            injection_suspected=turn.injection_suspected,
            replayed=turn.replayed,
            **{**call_fields(reply), **({"latency": None} if is_recorded else {})},
        )


class JudgeCall(CallLatency, frozen=True, kw_only=True):
    """A call of the judge with its requests."""

    attempts: Attempts  # type: ignore[assignment]

    @classmethod
    def of(cls, call: Completion) -> JudgeCall:
        attempts = [AttemptEntry.of(attempt) for attempt in call.attempts]
        return cls(**asdict(CallLatency.of(call)) | {"attempts": attempts})


class JudgeFile(Printable, frozen=True, kw_only=True):
    """The verdict on a turn (judge_NNN.json)."""

    run_id: RunId
    turn: Index
    overall_score: Sum
    flat: Annotated[Part, part("scores", additionalProperties={"type": ["number", "null"]})] = (
        field(name="*scores", default_factory=Part)
    )
    heuristics: Heuristics
    rationale: Annotated[
        dict[str, str | None] | None, doc("the judge's reason for each score; null if unjudged")
    ]
    judge_model: Annotated[str, doc("the judge model, as asked for")]
    timestamp: Annotated[Timestamp, doc("when the verdict was complete, UTC")]
    kind: Literal["judge"] = "judge"
    schema_version: Version = SCHEMA_VERSION
    scores: Scores = {}
    events: Events = None
    quotes: Quotes = None
    unquoted: Unquoted = None
    rubric: Annotated[str | None, doc("name of the rubric")] = None
    unjudged_reason: Reason
    unjudged_message: Explanation
    raw_reply: RawReply
    jury_rule: Annotated[
        JuryRule | None, doc("how the jurors' scores were combined; null with one judge")
    ] = None
    jurors: Annotated[
        list[JurorEntry], doc("each juror's verdict; empty with a single verdict")
    ] = []
    usage: Annotated[Tokens | None, doc("tokens of the judge's calls; null if there were none")]
    calls: Annotated[list[JudgeCall], doc("the judge's calls for this turn")]

    @classmethod
    def of(
        cls, turn: Turn, *, run_id: str, judge_model: str, rubric: Rubric, parts: Parts
    ) -> JudgeFile:
        """The verdict, or the reason why there is none, with the raw reply."""
        verdict = turn.verdict
        calls = turn.judged.calls if turn.judged else ()
        votes = turn.judged.votes if turn.judged else ()
        scores = scores_of(turn, rubric)
        return cls(
            run_id=run_id,
            turn=turn.index,
            overall_score=round_score(verdict.overall_score) if verdict else None,
            flat=parts.scores.of(scores),
            heuristics=dict(turn.measures),
            rationale=dict(verdict.rationale) if verdict else None,
            judge_model=judge_model,
            timestamp=utc(turn.judged.finished_at if turn.judged else turn.reply.finished_at),
            scores=scores,
            **evidence_fields(verdict),
            rubric=rubric.id,
            **unscored_fields(turn.outcome),
            jury_rule=turn.judged.rule if turn.judged else None,
            jurors=[JurorEntry.of_vote(vote) for vote in votes],
            usage=tokens_of(calls),
            calls=[JudgeCall.of(call) for call in calls],
        )


class ClosingFile(Printable, frozen=True, kw_only=True):
    """The judge's answer on the episode as a whole (closing_verdict.json)."""

    run_id: RunId
    kind: Literal["closing_verdict"] = "closing_verdict"
    schema_version: Version = SCHEMA_VERSION
    findings: Annotated[
        list[Scalars] | None,
        doc("its findings, under names that the benchmark chooses; null: not known"),
    ]
    unjudged_reason: Annotated[str | None, doc("why nothing is known, in one word")]
    unjudged_message: Explanation
    raw_reply: RawReply
    judge_model: Annotated[str, doc("the judge model, as asked for")]
    jurors: Annotated[list[ClosingJuror], doc("each juror's answer; empty with one judge")] = []
    timestamp: Annotated[Timestamp, doc("when the verdict was complete, UTC")]
    usage: Annotated[Tokens | None, doc("tokens of the judge's calls; null if there were none")]
    calls: Annotated[list[JudgeCall], doc("the judge's calls for it")]

    @classmethod
    def of(cls, concluded: ClosingResult, *, run_id: str, judge_model: str) -> ClosingFile:
        """The verdict, or the reason why there is none, with the raw reply."""
        return cls(
            run_id=run_id,
            findings=finding_list(concluded.outcome),
            **unscored_fields(concluded.outcome),
            judge_model=judge_model,
            jurors=[ClosingJuror.of(vote) for vote in concluded.votes],
            timestamp=utc(concluded.finished_at),
            usage=tokens_of(concluded.calls),
            calls=[JudgeCall.of(call) for call in concluded.calls],
        )
