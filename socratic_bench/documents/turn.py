"""One turn: its entry in the document of a run, and the files of the turn and of its verdict."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import asdict

from socratic_bench.documents.clock import milliseconds, utc
from socratic_bench.documents.plain import plain_keys
from socratic_bench.documents.result import RunResult
from socratic_bench.documents.scalars import (
    SCALAR,
    SCHEMA_VERSION,
    Amount,
    Count,
    RunId,
    Scalars,
    Timestamp,
    Version,
    keys,
    part,
)
from socratic_bench.documents.schemas import whole
from socratic_bench.documents.usage import AttemptEntry, CallLatency, Tokens, sum_usage
from socratic_bench.parts import Part, Parts
from socratic_bench.types import ROLES, Completion, Json, Reasoning, Rubric, Turn, Unjudged

Index = Annotated[Count, Meta(description="index of the turn, from 0")]
Sum = Annotated[Amount | None, Meta(description="sum of the dimensions; null if unjudged")]
Scores = Annotated[
    dict[str, float | None],
    Meta(description="the verdict's score of each dimension of the rubric; null if unjudged"),
]
Heuristics = Annotated[
    Scalars, Meta(description="the benchmark's readings of the reply, without a model")
]
StopReason = Annotated[str, Meta(description="the service's stop reason of the reply")]
Tier = Annotated[
    str | None, Meta(description="the tier that served the reply, if the service says it")
]
Profile = Annotated[
    str | None,
    Meta(description="the latency profile that served the reply, if the service says it"),
]
RequestId = Annotated[str | None, Meta(description="the service's id of the answer")]
Suspected = Annotated[
    bool | None,
    Meta(
        description="whether the tutor's reply looks as if it spoke to the judge: delimiters, a "
        "verdict, orders to score; null without a rubric"
    ),
]
Replayed = Annotated[
    bool,
    Meta(description="true if the turn was read from a transcript: not called, judged or counted"),
]


class TurnLatency(Struct, frozen=True, kw_only=True):
    """Milliseconds of the answers that count, by role."""

    speakers: Annotated[dict[str, CallLatency | None], keys("speakers")] = field(name="*speakers")
    judge: list[CallLatency] | None

    @classmethod
    def of(cls, turn: Turn) -> "TurnLatency":
        return cls(
            speakers={
                "tutor": None if turn.replayed else CallLatency.of(turn.reply),
                "student": CallLatency.of(turn.student) if turn.student else None,
            },
            judge=[CallLatency.of(call) for call in turn.judged.calls] if turn.judged else None,
        )


class TurnEntry(Struct, frozen=True, kw_only=True):
    """One turn in the document of a run."""

    turn: Index
    score: Sum
    scores: Scores = field(default_factory=dict)
    flat: Annotated[Part, part("scores")] = field(name="*scores", default_factory=Part)
    question: Annotated[str, Meta(description="the tutor's whole reply")]
    heuristics: Heuristics
    unjudged_reason: Annotated[
        str | None,
        Meta(description="why there are no scores; null if there are, or if no judge was asked"),
    ]
    own: Annotated[Part, part("turn", additionalProperties=SCALAR)] = field(
        name="*own", default_factory=Part
    )
    injection_suspected: Suspected = None
    replayed: Replayed = False
    stop_reason: StopReason
    service_tier: Tier = None
    latency_profile: Profile = None
    usage: Annotated[
        dict[str, Tokens | None],
        keys("subject and others"),
        Meta(
            description="tokens of this turn's calls by role, also of answers for which others "
            "were asked"
        ),
    ]
    latency: TurnLatency

    @classmethod
    def of(cls, result: RunResult, turn: Turn) -> "TurnEntry":
        scores = _scores(turn, result.rubric)
        return cls(
            turn=turn.index,
            score=turn.verdict.overall_score if turn.verdict else None,
            scores=scores,
            flat=result.parts.scores.of(scores),
            question=turn.reply.message.text,
            heuristics=dict(turn.measures),
            unjudged_reason=unjudged_reason(result, turn),
            own=result.parts.turn.of(turn),
            injection_suspected=turn.injection_suspected,
            replayed=turn.replayed,
            stop_reason=turn.reply.stop_reason,
            service_tier=turn.reply.served_tier,
            latency_profile=turn.reply.served_latency_profile,
            usage={role: _tokens(turn.calls(role)) for role in ROLES},
            latency=TurnLatency.of(turn),
        )


class FewTokens(Struct, frozen=True, kw_only=True):
    """Tokens of the reply; null where the service sent no counters."""

    input: Annotated[Count | None, Meta(description="all input tokens")]
    output: Annotated[Count | None, Meta(description="output tokens")]


class CallEntry(Struct, frozen=True, kw_only=True):
    """A call and what it took."""

    stop_reason: Annotated[str, Meta(description="the service's")]
    usage: Tokens
    latency: CallLatency
    attempts: list[AttemptEntry]
    request_id: RequestId

    @classmethod
    def of(cls, call: Completion) -> "CallEntry":
        return cls(**_call(call))


class SetAside(CallEntry, frozen=True, kw_only=True):
    """An answer for which another was asked: an empty reply, or one that swapped the roles."""

    role: Annotated[str, Meta(description="who gave it")]
    text: str


class TurnFile(Struct, frozen=True, kw_only=True):
    """The raw turn (turn_NNN.json)."""

    run_id: RunId
    turn: Index
    student_prompt: Annotated[str, Meta(description="what the student said")]
    ai_response: Annotated[str, Meta(description="the tutor's whole reply")]
    tokens: FewTokens
    latency_ms: Annotated[
        Amount | None,
        Meta(description="milliseconds of the attempt that answered; null of a replayed turn"),
    ]
    timestamp: Annotated[
        Timestamp | None, Meta(description="when the reply was there; null of a replayed turn")
    ]
    kind: Literal["turn"] = "turn"
    schema_version: Version = SCHEMA_VERSION
    scenario: Annotated[str, Meta(description="whose student it is")]
    stop_reason: StopReason
    streamed: Annotated[bool, Meta(description="whether the reply came as a stream")] = False
    service_tier: Tier = None
    latency_profile: Profile = None
    reasoning: Annotated[
        str | None, Meta(description="what the model thought before it spoke, if it says so")
    ] = None
    usage: Tokens
    latency: Annotated[CallLatency | None, Meta(description="null of a replayed turn")]
    attempts: list[AttemptEntry]
    request_id: RequestId
    heuristics: Heuristics
    notes: Annotated[Scalars, Meta(description="what else the benchmark keeps with a turn")]
    student: Annotated[
        CallEntry | None,
        Meta(
            description="the call that made the student's words; null for an opening or a scripted "
            "student"
        ),
    ]
    set_aside: Annotated[
        list[SetAside],
        Meta(
            description="answers for which others were asked; they are paid for and part of the "
            "run's usage"
        ),
    ] = field(default_factory=list)
    own: Annotated[Part, part("turn_file")] = field(name="*own", default_factory=Part)
    injection_suspected: Suspected = None
    replayed: Replayed = False

    @classmethod
    def of(cls, turn: Turn, *, run_id: str, scenario: str, parts: Parts) -> "TurnFile":
        reply, usage = turn.reply, turn.reply.usage
        return cls(
            run_id=run_id,
            turn=turn.index,
            student_prompt=turn.prompt,
            ai_response=reply.message.text,
            tokens=FewTokens(
                input=usage.input_tokens if usage else None,
                output=usage.output_tokens if usage else None,
            ),
            latency_ms=None if turn.replayed else milliseconds(reply.latency_ms),
            timestamp=None if turn.replayed else utc(reply.finished_at),
            scenario=scenario,
            streamed=reply.streamed,
            service_tier=reply.served_tier,
            latency_profile=reply.served_latency_profile,
            reasoning=_reasoning(reply),
            heuristics=dict(turn.measures),
            notes=dict(turn.notes),
            student=CallEntry.of(turn.student) if turn.student else None,
            set_aside=[
                SetAside(role=role, text=call.message.text, **_call(call))
                for role, call in turn.set_aside
            ],
            own=parts.turn_file.of(turn),
            injection_suspected=turn.injection_suspected,
            replayed=turn.replayed,
            **{**_call(reply), **({"latency": None} if turn.replayed else {})},
        )

    @property
    def printed(self) -> dict[str, Json]:
        """As it is stored."""
        return whole(self, "turn")


class JudgeCall(CallLatency, frozen=True, kw_only=True):
    """A call of the judge, with every request of it."""

    attempts: list[AttemptEntry]  # type: ignore[assignment]

    @classmethod
    def of(cls, call: Completion) -> "JudgeCall":
        known = asdict(CallLatency.of(call)) | {"attempts": _attempts(call)}
        return cls(**known)


class JudgeFile(Struct, frozen=True, kw_only=True):
    """The verdict on a turn (judge_NNN.json)."""

    run_id: RunId
    turn: Index
    overall_score: Sum
    flat: Annotated[Part, part("scores", additionalProperties={"type": ["number", "null"]})] = (
        field(name="*scores", default_factory=Part)
    )
    heuristics: Heuristics
    rationale: Annotated[
        dict[str, str | None] | None,
        Meta(description="the judge's reason for each score; null if unjudged"),
    ]
    judge_model: Annotated[str, Meta(description="the judge model, as asked for")]
    timestamp: Timestamp
    kind: Literal["judge"] = "judge"
    schema_version: Version = SCHEMA_VERSION
    scores: Scores = field(default_factory=dict)
    unjudged_reason: Annotated[str | None, Meta(description="why there are no scores")]
    unjudged_message: Annotated[str | None, Meta(description="the same in a sentence")]
    raw_reply: Annotated[
        str | None, Meta(description="what the judge said, if it could not be used")
    ]
    jurors: Annotated[
        list[dict[str, Any]], Meta(description="the verdicts of several judges; empty with one")
    ] = field(default_factory=list)
    usage: Annotated[
        Tokens | None, Meta(description="tokens of the judge's calls; null if there were none")
    ]
    calls: list[JudgeCall]

    @property
    def printed(self) -> dict[str, Json]:
        """As it is stored."""
        return plain_keys(self)

    @classmethod
    def of(
        cls, turn: Turn, *, run_id: str, judge_model: str, rubric: Rubric, parts: Parts
    ) -> "JudgeFile":
        """The verdict, or the reason why there is none, with the raw reply."""
        verdict, outcome = turn.verdict, turn.outcome
        unjudged = outcome if isinstance(outcome, Unjudged) else None
        calls = turn.judged.calls if turn.judged else ()
        scores = _scores(turn, rubric)
        return cls(
            run_id=run_id,
            turn=turn.index,
            overall_score=verdict.overall_score if verdict else None,
            flat=parts.scores.of(scores),
            heuristics=dict(turn.measures),
            rationale=dict(verdict.rationale) if verdict else None,
            judge_model=judge_model,
            timestamp=utc(turn.judged.finished_at if turn.judged else turn.reply.finished_at),
            scores=scores,
            unjudged_reason=unjudged.reason if unjudged else None,
            unjudged_message=unjudged.message if unjudged else None,
            raw_reply=unjudged.raw_reply if unjudged else None,
            usage=_tokens(calls),
            calls=[JudgeCall.of(call) for call in calls],
        )


def unjudged_reason(result: RunResult, turn: Turn) -> str | None:
    """Why a turn has no scores: `None` if it has, or if nobody was asked."""
    if turn.replayed:
        return "replayed" if result.is_judged else None
    if isinstance(turn.outcome, Unjudged):
        return turn.outcome.reason
    return "run_ended" if turn.outcome is None and result.is_judged else None


def _scores(turn: Turn, rubric: Rubric | None) -> dict[str, float | None]:
    """By every dimension of the rubric; without a rubric there are none."""
    scores = turn.verdict.scores if turn.verdict else {}
    names = [dimension.name for dimension in rubric.dimensions] if rubric else []
    return {name: scores.get(name) for name in dict.fromkeys([*names, *scores])}


def _call(call: Completion) -> dict[str, Any]:
    return {
        "stop_reason": call.stop_reason,
        "usage": Tokens.of(call.usage),
        "latency": CallLatency.of(call),
        "attempts": _attempts(call),
        "request_id": call.request_id,
    }


def _attempts(call: Completion) -> list[AttemptEntry]:
    return [AttemptEntry.of(attempt) for attempt in call.attempts]


def _tokens(calls: Sequence[Completion]) -> Tokens | None:
    """Of all calls together; `None` where there was none."""
    return Tokens.of(sum_usage([call.usage for call in calls])) if calls else None


def _reasoning(reply: Completion) -> str | None:
    thoughts = [block.text for block in reply.message.content if isinstance(block, Reasoning)]
    return "\n".join(thoughts) or None
