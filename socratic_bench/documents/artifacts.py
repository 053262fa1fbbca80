"""The files of a run: one per turn, one per verdict, and the curated one of a complete run."""

from socratic_bench.documents.clock import milliseconds, utc
from socratic_bench.documents.run import BRIEF_KEYS, SCHEMA_VERSION, call_latency, flag_list
from socratic_bench.documents.tally import sum_usage, usage_fields
from socratic_bench.types import Attempt, Completion, Json, Reasoning, Turn, Unjudged


def turn_document(run_id: str, scenario: str, turn: Turn) -> dict[str, Json]:
    """The raw turn: what the student said, what the tutor replied, and what it took."""
    reply = turn.reply
    usage = reply.usage
    return {
        "run_id": run_id,
        "turn": turn.index,
        "student_prompt": turn.prompt,
        "ai_response": reply.message.text,
        "tokens": {
            "input": usage.input_tokens if usage else None,
            "output": usage.output_tokens if usage else None,
        },
        "latency_ms": None if turn.replayed else milliseconds(reply.latency_ms),
        "timestamp": None if turn.replayed else utc(reply.finished_at),
        "kind": "turn",
        "schema_version": SCHEMA_VERSION,
        "scenario": scenario,
        "stop_reason": reply.stop_reason,
        "streamed": reply.streamed,
        "service_tier": reply.served_tier,
        "latency_profile": reply.served_latency_profile,
        "reasoning": _reasoning(reply),
        "usage": usage_fields(usage),
        "latency": None if turn.replayed else call_latency(reply),
        "attempts": [_attempt(attempt) for attempt in reply.attempts],
        "request_id": reply.request_id,
        "heuristics": dict(turn.measures),
        "notes": dict(turn.notes),
        "student": _call(turn.student) if turn.student else None,
        "set_aside": [
            {"role": role, "text": call.message.text, **_call(call)}
            for role, call in turn.set_aside
        ],
        "pressure": turn.pressure,
        "student_flags": flag_list(turn.student_flags),
        "injection_suspected": turn.injection_suspected,
        "replayed": turn.replayed,
    }


def judge_document(
    run_id: str, turn: Turn, outcome: object, *, judge_model: str, dimensions: list[str]
) -> dict[str, Json]:
    """The verdict on one turn; an unjudged turn has null scores, the reason and the raw reply."""
    verdict = turn.verdict
    unjudged = outcome if isinstance(outcome, Unjudged) else None
    calls = turn.judged.calls if turn.judged else ()
    finished_at = turn.judged.finished_at if turn.judged else turn.reply.finished_at
    return {
        "run_id": run_id,
        "turn": turn.index,
        "overall_score": verdict.overall_score if verdict else None,
        **{name: verdict.scores.get(name) if verdict else None for name in dimensions},
        "heuristics": dict(turn.measures),
        "rationale": dict(verdict.rationale) if verdict else None,
        "judge_model": judge_model,
        "timestamp": utc(finished_at),
        "kind": "judge",
        "schema_version": SCHEMA_VERSION,
        "unjudged_reason": unjudged.reason if unjudged else None,
        "unjudged_message": unjudged.message if unjudged else None,
        "raw_reply": unjudged.raw_reply if unjudged else None,
        "jurors": [],
        "usage": usage_fields(sum_usage([call.usage for call in calls])) if calls else None,
        "calls": [
            {**call_latency(call), "attempts": [_attempt(attempt) for attempt in call.attempts]}
            for call in calls
        ],
    }


def curated_document(document: dict[str, Json]) -> dict[str, Json]:
    """The run's document with the short form's keys first; its presence means a complete run."""
    first = {key: document[key] for key in BRIEF_KEYS if key != "s3_artifacts"}
    rest = {key: value for key, value in document.items() if key not in first}
    return {**first, "timestamps": document["timestamps"], **rest, "kind": "curated"}


def _reasoning(reply: Completion) -> str | None:
    thoughts = [block.text for block in reply.message.content if isinstance(block, Reasoning)]
    return "\n".join(thoughts) or None


def _attempt(attempt: Attempt) -> dict[str, Json]:
    return {
        "started_at": utc(attempt.started_at),
        "duration_ms": milliseconds(attempt.duration_ms),
        "wait_ms": milliseconds(attempt.wait_ms),
        "error": attempt.error,
        "may_have_been_billed": attempt.may_have_been_billed,
    }


def _call(call: Completion) -> dict[str, Json]:
    return {
        "stop_reason": call.stop_reason,
        "usage": usage_fields(call.usage),
        "latency": call_latency(call),
        "attempts": [_attempt(attempt) for attempt in call.attempts],
        "request_id": call.request_id,
    }
