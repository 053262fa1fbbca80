"""What was found, as the document that tells it."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from msgspec import Struct
from ulid import ULID

from socratic_bench.concurrency import start_thread
from socratic_bench.documents.doctor import (
    Capability,
    CheckEntry,
    DoctorDocument,
    QuotaEntry,
    TargetEntry,
)
from socratic_bench.documents.document import USD_PLACES, ErrorEntry, to_places
from socratic_bench.errors import (
    BenchError,
    CheckName,
    CheckResult,
    CheckStatus,
    ModelError,
    Problem,
    Stopped,
    to_text,
)
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.providers import load_provider
from socratic_bench.ports.provider import Quota
from socratic_bench.redaction import redact
from socratic_bench.runs.context import SteadyClock
from socratic_bench.runs.doctor_calls import PATIENCE_S, CalledTarget, Target, ask, distinct
from socratic_bench.runs.doctor_checks import look_at_bucket, look_at_folder, n_throttled, readings
from socratic_bench.runs.services import Services
from socratic_bench.settings import CoreConfig


class Report(Struct, frozen=True, kw_only=True):
    """`checks` are of accounts and stores; `models` what each target's call showed; `quotas` are by
    the target's place among them. `error` is what ended it early.
    """

    checks: Sequence[CheckResult]
    models: Sequence[tuple[CalledTarget, Sequence[CheckResult]]]
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
        told.sentences = ("The deadline passed before everything was looked at.",)
        told.hint = Problem.of("Raise {deadline_s}.")
    return told


def _status(
    counts: Mapping[CheckStatus, int], error: BenchError | None
) -> Literal["ok", "failed", "incomplete"]:
    if counts["failed"]:
        return "failed"
    return "incomplete" if error else "ok"


def _entry(finding: CheckResult, call: Callable[[str], str]) -> CheckEntry:
    hint = redact(to_text(finding.hint, call)) if finding.hint else None
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


def _worst(checks: Sequence[CheckEntry]) -> CheckStatus:
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


# Looks at all of it at once, and sums up what was found.

Result = TypeVar("Result")
Look = tuple[CheckName, str, "Future[list[CheckResult]]"]

ORDER: Sequence[CheckName] = get_args(CheckName)
# A call of a model has given up by then.
LOOK_S = PATIENCE_S + 15
ENDING_S = 1.0
# Failures by which nothing of the service was reached.
UNREACHED = ("connection", "connection_lost", "tls", "invalid_endpoint")


def diagnose(
    targets: Sequence[Target],
    *,
    stores: Sequence[CoreConfig] = (),
    services: Services | None = None,
    cancel_token: CancelToken | None = None,
    max_cost_usd: float | None = None,
    call: Callable[[str], str] = str,
) -> DoctorDocument:
    """Look at the accounts of the targets, the stores of these configurations, and every target by
    one call, all at once.

    `services` are those of the runs that follow, which begin with what is learnt here; if they have
    a spending limit, it counts, and else `max_cost_usd`, for these calls alone. `cancel_token` ends
    it early: the document then says what was found by then. Settings are called as `call` does.
    What goes wrong is told by the document; only defects are raised.
    """
    token = cancel_token or (services.cancel_token.sibling() if services else CancelToken())
    with ExitStack() as stack:
        if services is None:
            services = stack.enter_context(Services(monotonic_s=token.monotonic_s))
        stack.enter_context(services.cancel_token.parent_of(token))
        found = _Diagnosis(distinct(targets), services, token, max_cost_usd)
        return document_of(found.report(stores), call=call)


class _Diagnosis:
    """All that is looked at, each in a thread."""

    def __init__(
        self,
        targets: Sequence[Target],
        services: Services,
        token: CancelToken,
        max_cost_usd: float | None,
    ) -> None:
        self._targets = targets
        self._services = services
        self._token = token
        self._max_cost_usd = max_cost_usd
        self._limit = services.spending
        if self._limit is None and max_cost_usd is not None:
            self._limit = SpendingLimit(max_cost_usd)
        self._now = SteadyClock(monotonic_s=token.monotonic_s)
        self._begun_s = token.monotonic_s()

    def report(self, stores: Sequence[CoreConfig]) -> Report:
        """Everything is begun before anything is waited for."""
        asked = [self._submit(self._ask, n, one) for n, one in enumerate(self._targets)]
        looks = [*self._accounts(), *self._places(stores)]
        quotas = [
            (group, self._submit(_quotas, group)) for group in _grouped(self._targets, _location)
        ]
        answers = [self._answer(n, future) for n, future in enumerate(asked)]
        checks = [*_regions(answers)]
        for check, subject, future in looks:
            checks += self._found(check, subject, future)
        told: dict[int, Quota] = {}
        for group, quota in quotas:
            checks += self._of_quotas(group, quota, told)
        return Report(
            checks=sorted(checks, key=lambda one: ORDER.index(one.check)),
            models=[(one, readings(one, told.get(n))) for n, one in enumerate(answers)],
            quotas=told,
            duration_s=self._token.monotonic_s() - self._begun_s,
            error=self._token.error,
            max_cost_usd=self._max_cost_usd,
        )

    def _submit(self, work: Callable[..., Any], *given: object) -> "Future[Any]":
        return start_thread(partial(work, *given))

    def _accounts(self) -> Iterator[Look]:
        for group in _grouped(self._targets, _account):
            config = group[0].config
            yield "credentials", config.provider, self._submit(_identities, config)

    def _places(self, stores: Sequence[CoreConfig]) -> Iterator[Look]:
        for group in _grouped(stores, lambda one: one.output_dir):
            if folder := group[0].output_dir:
                yield "folder", folder, self._submit(list, look_at_folder(group[0]))
        for group in _grouped(stores, _bucket):
            if bucket := group[0].s3_bucket:
                look = look_at_bucket(group[0], str(ULID()), self._token.sleep)
                yield "bucket_write", f"s3://{bucket}", self._submit(list, look)

    def _ask(self, number: int, target: Target) -> CalledTarget:
        return ask(
            target,
            number,
            services=self._services,
            cancel_token=self._token,
            now=self._now,
            limit=self._limit,
        )

    def _answer(self, number: int, future: "Future[CalledTarget]") -> CalledTarget:
        try:
            return self._waited(future)
        except BenchError as error:
            # Its call ends, too, and tells what it may have cost.
            wait([future], ENDING_S)
            return (
                future.result()
                if future.done()
                else CalledTarget(target=self._targets[number], error=error)
            )

    def _found(
        self, check: CheckName, subject: str, future: "Future[list[CheckResult]]"
    ) -> list[CheckResult]:
        """What was found, or that it was not waited for."""
        try:
            return self._waited(future)
        except BenchError as error:
            return [_unseen(check, subject, error)]

    def _of_quotas(
        self, group: Sequence[Target], future: "Future[Mapping[str, Quota]]", told: dict[int, Quota]
    ) -> list[CheckResult]:
        region = group[0].config.region or ""
        try:
            quotas = self._waited(future)
        except Stopped as error:
            return [_unseen("quota", region, error)]
        except BenchError as error:
            return [CheckResult.of("quota", "unknown", region, error)]
        for number, target in enumerate(self._targets):
            if target in group and target.model_id in quotas:
                told[number] = quotas[target.model_id]
        return []

    def _waited(self, future: "Future[Result]") -> Result:
        """Its result, or `Stopped` where it takes too long: credentials may come by a program that
        hangs.
        """
        try:
            return self._token.result(future, LOOK_S)
        except TimeoutError as error:
            raise Stopped(f"No answer within {LOOK_S:g} s.", end_reason="deadline") from error


def _unseen(check: CheckName, subject: str, error: BenchError) -> CheckResult:
    said = "it was not looked at to the end"
    return CheckResult(
        check=check, status="unknown", subject=subject, message=said, code=error.code
    )


def _identities(config: CoreConfig) -> list[CheckResult]:
    return [*load_provider(config.provider).identities(config)]


def _quotas(group: Sequence[Target]) -> Mapping[str, Quota]:
    config = group[0].config
    names = [*dict.fromkeys(target.model_id for target in group)]
    return load_provider(config.provider).quotas(config, names)


def _regions(answers: Sequence[CalledTarget]) -> Iterator[CheckResult]:
    for group in _grouped(answers, lambda one: one.target.config.region):
        region = group[0].target.config.region
        if region is not None:
            yield _region(region, group)


def _region(region: str, answers: Sequence[CalledTarget]) -> CheckResult:
    """Whether the service is reached where models are called: who refuses is there, too."""
    errors = [one.error for one in answers if isinstance(one.error, ModelError)]
    unreached = [error for error in errors if error.code in UNREACHED]
    of_service = [error for error in errors if error.end_reason != "credentials"]
    if len(unreached) == len(answers):
        return CheckResult.of("region", "failed", region, unreached[0])
    is_there = any(one.completion for one in answers) or len(of_service) > len(unreached)
    said = "the service answers" if is_there else "no model could be asked"
    status: CheckStatus = "ok" if is_there else "unknown"
    return CheckResult(check="region", status=status, subject=region, message=said)


def _account(target: Target) -> tuple[Hashable, ...]:
    config = target.config
    return (config.provider, config.offline, config.assume_role_arn)


def _location(target: Target) -> Hashable:
    return (*_account(target), target.config.region)


def _bucket(config: CoreConfig) -> Hashable:
    return (config.s3_bucket, config.s3_prefix, config.s3_kms_key_id, config.region, config.resume)


def _grouped(items: Iterable[Any], key: Callable[[Any], Hashable]) -> list[list[Any]]:
    """The items of each key, in the order in which the keys come."""
    groups: dict[Hashable, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return [*groups.values()]
