"""The run's document: one dictionary, all top-level keys always present."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from socratic_bench.config import RunConfig
from socratic_bench.documents.clock import milliseconds, seconds, utc
from socratic_bench.documents.cost import Billing, cost_entry
from socratic_bench.documents.result import Place, RunResult
from socratic_bench.documents.tally import (
    Tally,
    sum_usage,
    tally_latency,
    tally_usage,
    usage_fields,
)
from socratic_bench.errors import BenchError
from socratic_bench.ports import Metric, Metrics
from socratic_bench.pricing.rates import Terms
from socratic_bench.pricing.table import builtin_prices
from socratic_bench.secrecy import redact
from socratic_bench.types import ROLES, Completion, Json, Turn, Unjudged
from socratic_bench.version import VERSION

SCHEMA_VERSION = 1
BRIEF_KEYS = (
    "run_id",
    "model",
    "scenario",
    "n_turns",
    "overall_score",
    "compliance_rate",
    "half_life",
    "s3_artifacts",
)


def run_document(result: RunResult) -> dict[str, Json]:
    """See `socratic-runner schema run` for the meaning of each key."""
    from socratic_bench.bedrock.sdk import sdk_version

    metrics = _plain(result.metrics)
    return {
        "kind": "run",
        "schema_version": SCHEMA_VERSION,
        "run_id": result.run_id,
        "status": result.status,
        "benchmark": result.benchmark,
        "model": result.config.model,
        "scenario": result.opening.scenario,
        "prompt": result.opening.prompt,
        "n_turns": result.n_turns,
        "overall_score": metrics.get("overall_score"),
        "compliance_rate": metrics.get("compliance_rate"),
        "half_life": metrics.get("half_life"),
        "metrics": metrics,
        "turns": [turn_entry(result, turn) for turn in result.turns],
        "s3_artifacts": _place(result.s3),
        "output_artifacts": _place(result.folder),
        "timestamps": {
            "started_at": utc(result.started_at),
            "completed_at": utc(result.completed_at),
            "duration_seconds": seconds(result.duration_s),
        },
        "usage": _usage(result),
        "cost": cost_entry(_billing(result), result.tallies),
        "latency": _latency(result),
        "judge": _judge(result),
        "student": _student(result),
        "end_reason": result.end_reason,
        "seed": result.config.seed,
        "thresholds": _thresholds(result.config),
        "inputs": {
            **result.opening.hashes,
            "region": result.config.region,
            "temperature": result.config.temperature,
            "top_p": result.config.top_p,
            "max_tokens": result.config.max_tokens,
            "thinking_budget_tokens": result.config.thinking_budget_tokens,
            "service_tier": result.config.service_tier,
            "latency_profile": result.config.latency_profile,
            "guardrail": str(result.config.guardrail) if result.config.guardrail else None,
            "request_metadata": dict(result.config.request_metadata),
            "stream": result.config.stream,
            "prompt_cache": result.config.prompt_cache,
            "models": _models(result),
            "runner_version": VERSION,
            "sdk_version": sdk_version(),
        },
        "journal": [dict(entry) for entry in result.journal] if result.journal else None,
        "notices": list(result.notices),
        "error": error_entry(result),
    }


def brief_document(document: Mapping[str, Json]) -> dict[str, Json]:
    """The short form: what a shell loop usually wants of a run's document."""
    return {key: document[key] for key in BRIEF_KEYS}


def unstarted_document(
    error: BenchError, *, model: str | None, prompt: str | None, scenario: str | None
) -> dict[str, Json]:
    """The document of a command that was refused or broke before a run came to be."""
    nobody = {role: Tally() for role in ROLES}
    names = ("overall_score", "compliance_rate", "half_life", "half_life_censored")
    return {
        "kind": "run",
        "schema_version": SCHEMA_VERSION,
        "run_id": None,
        "status": "failed",
        "benchmark": "socratic",
        "model": model,
        "scenario": scenario,
        "prompt": prompt,
        "n_turns": 0,
        **dict.fromkeys(names[:3]),
        "metrics": {
            **dict.fromkeys(names),
            **dict.fromkeys(("mean_form", "mean_substance", "mean_purity")),
            "violation_rates": dict.fromkeys(("form", "substance", "purity")),
            **dict.fromkeys(("slope", "score_by_turn", "score_by_pressure", "judged_by_pressure")),
        },
        "turns": [],
        "s3_artifacts": None,
        "output_artifacts": None,
        "timestamps": dict.fromkeys(("started_at", "completed_at", "duration_seconds")),
        "usage": {
            **{role: tally_usage([tally]) for role, tally in nobody.items()},
            "total": tally_usage(list(nobody.values())),
        },
        "cost": None,
        "latency": None,
        "judge": None,
        "student": None,
        "end_reason": error.end_reason,
        "seed": None,
        "thresholds": None,
        "inputs": None,
        "journal": None,
        "notices": [],
        "error": describe(error),
    }


def describe(error: BenchError) -> dict[str, Json]:
    """The error entry of any document."""
    return {
        "code": error.code,
        "message": error.message,
        "hint": redact(error.hint) if error.hint else None,  # it may have been set later
        "retryable": error.retryable,
    }


def error_entry(result: RunResult) -> dict[str, Json] | None:
    """What ended the run early, or which bounds a completed run missed."""
    if result.error is not None:
        return describe(result.error)
    if result.status == "completed" and result.shortfalls:
        return {
            "code": "gate",
            "message": " ".join(result.shortfalls),
            "hint": "The run itself is complete; its scores fall short of what was asked for.",
            "retryable": False,
        }
    return None


def turn_entry(result: RunResult, turn: Turn) -> dict[str, Json]:
    """One turn, its scores first; scores that nobody gave are null, with the reason."""
    verdict = turn.verdict
    names = [d.name for d in result.rubric.dimensions] if result.rubric else []
    scores = verdict.scores if verdict else {}
    return {
        "turn": turn.index,
        "score": verdict.overall_score if verdict else None,
        **{name: scores.get(name) for name in dict.fromkeys([*names, *scores])},
        "question": turn.reply.message.text,
        "heuristics": dict(turn.measures),
        "unjudged_reason": unjudged_reason(result, turn),
        "student": turn.prompt,
        "pressure": turn.pressure,
        "student_flags": flag_list(turn.student_flags),
        "injection_suspected": turn.injection_suspected,
        "replayed": turn.replayed,
        **turn.notes,
        "stop_reason": turn.reply.stop_reason,
        "service_tier": turn.reply.served_tier,
        "latency_profile": turn.reply.served_latency_profile,
        "usage": {
            role: usage_fields(sum_usage([call.usage for call in calls])) if calls else None
            for role, calls in ((role, turn.calls(role)) for role in ROLES)
        },
        "latency": {
            "tutor": None if turn.replayed else call_latency(turn.reply),
            "student": call_latency(turn.student) if turn.student else None,
            "judge": [call_latency(call) for call in turn.judged.calls] if turn.judged else None,
        },
    }


def unjudged_reason(result: RunResult, turn: Turn) -> str | None:
    """Why a turn has no scores: `None` if it has, or if nobody was asked."""
    if turn.replayed:
        return "replayed" if result.is_judged else None
    if isinstance(turn.outcome, Unjudged):
        return turn.outcome.reason
    return "run_ended" if turn.outcome is None and result.is_judged else None


def call_latency(call: Completion) -> dict[str, Json]:
    """The answering attempt's times, here and at the service; waits and requests apart."""
    return {
        "ttft_ms": _rounded(call.ttft_ms),
        "latency_ms": milliseconds(call.latency_ms),
        "service_latency_ms": _rounded(call.service_latency_ms),
        "overhead_ms": _rounded(call.overhead_ms),
        "output_tokens_per_s": _rounded(call.output_tokens_per_s),
        "wait_before_ms": milliseconds(call.wait_before_ms),
        "wait_between_ms": milliseconds(call.wait_between_ms),
        "attempts": len(call.attempts),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else milliseconds(value)


def _plain(metrics: Metrics) -> dict[str, Json]:
    return {name: _plain_metric(value) for name, value in metrics.items()}


def _plain_metric(value: Metric) -> Json:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Sequence) else value


def _place(place: Place | None) -> dict[str, Json] | None:
    return {"raw": place.raw, "curated": place.curated} if place else None


def _usage(result: RunResult) -> dict[str, Json]:
    tallies: Sequence[Tally] = [result.tallies[role] for role in ROLES]
    return {
        **{role: tally_usage([result.tallies[role]]) for role in ROLES},
        "total": tally_usage(tallies),
    }


def _latency(result: RunResult) -> dict[str, Json] | None:
    latency: dict[str, Json] = {role: tally_latency(result.tallies[role]) for role in ROLES}
    return latency if any(latency.values()) else None


def _billing(result: RunResult) -> Billing:
    config = result.config
    return Billing(
        models={
            "tutor": config.model,
            "student": config.student_model,
            "judge": config.judge_model if result.is_judged else None,
        },
        table=result.prices or builtin_prices(),
        region=config.region,
        offline=config.offline,
        tutor_terms=Terms(config.service_tier, config.latency_profile),
    )


def _judge(result: RunResult) -> dict[str, Json] | None:
    if result.rubric is None or not result.is_judged:
        return None
    played = [turn for turn in result.turns if not turn.replayed]
    reasons = Counter(filter(None, (unjudged_reason(result, turn) for turn in played)))
    n_turns = len(played)
    return {
        "model": result.config.judge_model,
        "coverage": round(result.n_judged / n_turns, 4) if n_turns else None,
        "rubric_sha256": result.rubric.sha256,
        "jurors": [{"model": result.config.judge_model, "judged_turns": result.n_judged}],
        "judged_turns": result.n_judged,
        "unjudged_turns": n_turns - result.n_judged,
        "unjudged_reasons": dict(sorted(reasons.items())),
    }


def _student(result: RunResult) -> dict[str, Json]:
    model = result.config.student_model
    return {
        "mode": "model" if model else "scripted",
        "model": model,
        "pressure": result.config.pressure,
        "prompt_sha256": result.opening.hashes.get("student_prompt_sha256"),
        "pressure_sha256": result.opening.hashes.get("pressure_sha256"),
        "closing": result.closing,
        "closing_flags": flag_list(result.closing_flags),
        "fidelity": _fidelity(result),
    }


def _fidelity(result: RunResult) -> dict[str, Json] | None:
    """How often the student was what it should be, over all of its words that were checked."""
    every = [*(turn.student_flags for turn in result.turns), result.closing_flags]
    checked = [flags for flags in every if flags is not None]
    if not checked:
        return None
    counts = Counter(flag for flags in checked for flag in flags)
    return {
        "checked": len(checked),
        "clean": round(sum(not flags for flags in checked) / len(checked), 4),
        "flags": dict(sorted(counts.items())),
        "asked_again": sum(bool(turn.notes.get("student_asked_again")) for turn in result.turns),
    }


def flag_list(flags: tuple[str, ...] | None) -> list[Json] | None:
    """Flags as a document has them; null if nothing was checked."""
    return None if flags is None else list(flags)


def _thresholds(config: RunConfig) -> dict[str, Json]:
    return {
        "compliance": config.compliance_threshold,
        "half_life": config.half_life_threshold,
        "min_judge_coverage": config.min_judge_coverage,
        "fail_under": {gate.metric: gate.minimum for gate in config.gates},
    }


def _models(result: RunResult) -> dict[str, Json]:
    """By role: the id that was asked for, and what the service says of what served it."""
    asked = {
        "tutor": result.config.model,
        "student": result.config.student_model,
        "judge": result.config.judge_model if result.is_judged else None,
    }
    return {role: _pinned(asked[role], result.tallies[role].completions) for role in ROLES}


def _pinned(asked: str | None, calls: Sequence[Completion]) -> Json:
    if asked is None:
        return None
    return {
        "asked": asked,
        "served": _words(call.served_model for call in calls),
        "served_tiers": _words(call.served_tier for call in calls),
    }


def _words(said: Iterable[str | None]) -> list[Json] | None:
    """What was said, each once; `None` if nothing was."""
    found: list[Json] = [*sorted({word for word in said if word is not None})]
    return found or None
