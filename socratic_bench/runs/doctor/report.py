"""What was found, as the document that tells it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from socratic_bench.documents.doctor import (
    Capability,
    CheckEntry,
    DoctorDocument,
    QuotaEntry,
    TargetEntry,
)
from socratic_bench.documents.error import ErrorEntry
from socratic_bench.documents.scalars import USD_PLACES, to_places
from socratic_bench.errors import BenchError, Problem, in_words
from socratic_bench.findings import Finding, Quota, Status
from socratic_bench.redaction import redact
from socratic_bench.runs.doctor.asking import CalledTarget
from socratic_bench.runs.doctor.readings import n_throttled


class Report(Struct, frozen=True, kw_only=True):
    """`checks` are of accounts and stores; `models` what each target's call showed; `quotas` are by
    the target's place among them. `error` is what ended it early.
    """

    checks: Sequence[Finding]
    models: Sequence[tuple[CalledTarget, Sequence[Finding]]]
    quotas: Mapping[int, Quota]
    duration_s: float
    error: BenchError | None
    max_cost_usd: float | None


def document_of(report: Report, *, call: Callable[[str], str]) -> DoctorDocument:
    """The document, in which settings are called as `call` does."""
    checks = [_entry(finding, call) for finding in report.checks]
    models = [
        _model(asked, [_entry(one, call) for one in found], report.quotas.get(number))
        for number, (asked, found) in enumerate(report.models)
    ]
    counts = Counter(one.status for one in checks)
    counts.update(one.status for model in models for one in model.checks)
    error = _early_end(report)
    if error is not None:
        error.call_settings(call)
    costs = [model.cost_usd for model in models]
    return DoctorDocument(
        status=_status(counts, error),
        n_ok=counts["ok"],
        n_warnings=counts["warning"],
        n_unknown=counts["unknown"],
        n_failed=counts["failed"],
        checks=checks,
        models=models,
        cost_usd=None if None in costs else round(sum(one or 0.0 for one in costs), USD_PLACES),
        max_cost_usd=report.max_cost_usd,
        billed=any(not asked.target.config.offline for asked, _ in report.models),
        duration_seconds=round(report.duration_s, 3),
        error=ErrorEntry.of(error) if error else None,
    )


def _early_end(report: Report) -> BenchError | None:
    """What ended the look, or left a model unasked, in words that are about a look."""
    unasked = (asked.error for asked, _ in report.models if asked.error)
    budget = next((error for error in unasked if error.end_reason == "budget"), None)
    error = report.error or budget
    if error is None:
        return None
    told = error.copied()
    if error.end_reason == "budget":
        told.hint = Problem.of("Raise {max_cost_usd}.")
    elif error.end_reason == "deadline":
        told.said = ("The deadline passed before everything was looked at.",)
        told.hint = Problem.of("Raise {deadline_s}.")
    return told


def _status(
    counts: Mapping[Status, int], error: BenchError | None
) -> Literal["ok", "failed", "incomplete"]:
    if counts["failed"]:
        return "failed"
    return "incomplete" if error else "ok"


def _entry(finding: Finding, call: Callable[[str], str]) -> CheckEntry:
    hint = redact(in_words(finding.hint, call)) if finding.hint else None
    return CheckEntry.of(finding, hint=hint)


def _model(asked: CalledTarget, checks: list[CheckEntry], quota: Quota | None) -> TargetEntry:
    target, answer = asked.target, asked.completion
    usage = answer.usage if answer else None
    cost_usd = asked.cost_usd
    return TargetEntry(
        model_id=target.model_id,
        roles=[*target.roles],
        region=target.config.region,
        service_tier=target.asked.tier,
        served_tier=answer.served_tier if answer else None,
        status=_worst(checks),
        latency_ms=round(answer.latency_ms, 1) if answer else None,
        n_requests=len(asked.attempts),
        n_throttled=n_throttled(asked),
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        cost_usd=to_places(cost_usd, USD_PLACES),
        capabilities=_capabilities(asked),
        quota=_quota(asked, quota),
        checks=checks,
    )


def _worst(checks: Sequence[CheckEntry]) -> Status:
    """Whether it answers; prices and quotas that are not known say nothing against a model."""
    answer = checks[0].status
    if answer != "ok":
        return answer
    return "warning" if any(one.status == "warning" for one in checks) else "ok"


def _capabilities(asked: CalledTarget) -> dict[str, Capability]:
    """Of what the table has, the call shows as much as it asked for."""
    request = asked.target.request
    unasked = [] if request.tool else ["forced_tool", "streamed_tools"]
    unasked += ["temperature"] if request.temperature_if_taken is None else []
    return {
        name: Capability(table=known, found=now if known and name not in unasked else None)
        for name, (known, now) in asked.capabilities.items()
    }


def _quota(asked: CalledTarget, quota: Quota | None) -> QuotaEntry | None:
    if quota is None:
        return None
    return QuotaEntry(
        requests_per_minute=quota.requests_per_minute,
        tokens_per_minute=quota.tokens_per_minute,
        target_rpm=asked.target.target_rpm,
        target_tpm=asked.target.target_tpm,
    )
