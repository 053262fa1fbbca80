"""The doctor: checks what runs need before they are played, all of it at once.

Credentials, stores and quotas are looked at, and each model is called once in its own role.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar, get_args

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
from socratic_bench.models import load_provider
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.cancel import CancelToken
from socratic_bench.ports.provider import Quota
from socratic_bench.redaction import redact
from socratic_bench.runs.context import SteadyClock
from socratic_bench.runs.doctor_calls import PATIENCE_S, Target, TargetCall, call_target, distinct
from socratic_bench.runs.doctor_checks import call_checks, check_bucket, check_folder, n_throttled
from socratic_bench.runs.services import Services
from socratic_bench.settings import CoreConfig, provider_of

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
    limit: SpendingLimit | None = None,
    call: Callable[[str], str] = str,
) -> DoctorDocument:
    """Check the accounts of the targets, the given stores, and every target by one call.

    Whatever goes wrong is in the document; only defects are raised.

    Args:
        targets: the models to call.
        stores: configurations whose output folder and bucket are checked.
        services: those of runs that follow, which then know what was learnt here. Their spending
            limit holds, if they have one.
        cancel_token: ends the look early; the document has what was found by then.
        limit: what these calls may spend, if the services have no limit. It needs all prices.
        call: turns a setting's name into what messages call it.
    """
    token = cancel_token or (services.cancel_token.sibling() if services else CancelToken())
    with ExitStack() as stack:
        if services is None:
            services = stack.enter_context(Services(monotonic_s=token.monotonic_s))
        stack.enter_context(services.cancel_token.parent_of(token))
        diagnosis = _Diagnosis(
            targets=distinct(targets),
            services=services,
            token=token,
            max_cost_usd=limit.limit_usd if limit else None,
            limit=services.spending or limit,
            now=SteadyClock(monotonic_s=token.monotonic_s),
        )
        return diagnosis.document(stores, call)


class _Diagnosis(Struct, frozen=True, kw_only=True):
    """Everything that is looked at, each thing in a thread of its own."""

    targets: Sequence[Target]
    services: Services
    token: CancelToken
    max_cost_usd: float | None
    limit: SpendingLimit | None
    now: SteadyClock

    def document(self, stores: Sequence[CoreConfig], call: Callable[[str], str]) -> DoctorDocument:
        """Begin everything, wait for all results, and put them into the document."""
        calls = [
            start_thread(partial(self._ask, n, target)) for n, target in enumerate(self.targets)
        ]
        looks = [*self._looks(stores)]
        quotas = [
            (group, start_thread(partial(_quotas, group)))
            for group in _grouped(self.targets, lambda at: (*_account(at), at.config.region))
        ]
        answers = [self._answer(n, future) for n, future in enumerate(calls)]
        results = [*_regions(answers)]
        for check, subject, future in looks:
            try:
                results += [*self._result(future)]
            except BenchError as ended:
                results.append(_unchecked(check, subject, ended))
        quota_of: dict[int, Quota] = {}
        for group, reading in quotas:
            results += self._of_quotas(group, reading, quota_of)
        results.sort(key=lambda result: ORDER.index(result.check))
        models = []
        for number, answer in enumerate(answers):
            quota = quota_of.get(number)
            entries = [_entry(result, call) for result in call_checks(answer, quota)]
            models.append(_model(answer, entries, quota))
        checks = [_entry(result, call) for result in results]
        counts = Counter(check.status for check in checks)
        counts.update(check.status for model in models for check in model.checks)
        error = _early_end(self.token.error, answers)
        if error is not None:
            error.call_settings(call)
        costs_usd = [model.cost_usd for model in models]
        is_known = None not in costs_usd
        return DoctorDocument(
            status="failed" if counts["failed"] else "incomplete" if error else "ok",
            n_ok=counts["ok"],
            n_warnings=counts["warning"],
            n_unknown=counts["unknown"],
            n_failed=counts["failed"],
            checks=checks,
            models=models,
            cost_usd=round(sum(usd or 0.0 for usd in costs_usd), USD_PLACES) if is_known else None,
            max_cost_usd=self.max_cost_usd,
            billed=any(not target.config.offline for target in self.targets),
            duration_seconds=round(self.now.elapsed_s(), 3),
            error=ErrorEntry.of(error) if error else None,
        )

    def _looks(self, stores: Sequence[CoreConfig]) -> Iterator[Look]:
        """Begin to look at accounts and stores."""

        def look(results: Callable[[], Iterable[CheckResult]]) -> "Future[list[CheckResult]]":
            return start_thread(lambda: [*results()])

        for group in _grouped(self.targets, _account):
            config = group[0].config
            name = provider_of(group[0].model_id)
            yield "credentials", name, look(partial(load_provider(name).identities, config))
        for group in _grouped(stores, lambda config: config.output_dir):
            if folder := group[0].output_dir:
                yield "folder", folder, look(partial(check_folder, group[0]))
        for group in _grouped(stores, _bucket):
            if bucket := group[0].s3_bucket:
                check = partial(check_bucket, group[0], str(ULID()), self.token.sleep)
                yield "bucket_write", f"s3://{bucket}", look(check)

    def _ask(self, number: int, target: Target) -> TargetCall:
        return call_target(
            target,
            number,
            services=self.services,
            cancel_token=self.token,
            now=self.now,
            limit=self.limit,
        )

    def _answer(self, number: int, future: "Future[TargetCall]") -> TargetCall:
        try:
            return self._result(future)
        except BenchError as error:
            # Its call ends, too, and tells what it may have cost.
            wait([future], ENDING_S)
            return (
                future.result()
                if future.done()
                else TargetCall(target=self.targets[number], error=error)
            )

    def _of_quotas(
        self,
        group: Sequence[Target],
        future: "Future[Mapping[str, Quota]]",
        quota_of: dict[int, Quota],
    ) -> list[CheckResult]:
        region = group[0].config.region or ""
        try:
            quotas = self._result(future)
        except Stopped as error:
            return [_unchecked("quota", region, error)]
        except BenchError as error:
            return [CheckResult.of("quota", "unknown", region, error)]
        for number, target in enumerate(self.targets):
            if target in group and target.model_id in quotas:
                quota_of[number] = quotas[target.model_id]
        return []

    def _result(self, future: "Future[Result]") -> Result:
        """The future's result. Raises `Stopped` after `LOOK_S`: a program that gives credentials
        may hang.
        """
        try:
            return self.token.result(future, LOOK_S)
        except TimeoutError as error:
            raise Stopped(f"No answer within {LOOK_S:g} s.", end_reason="deadline") from error


def _unchecked(check: CheckName, subject: str, error: BenchError) -> CheckResult:
    return CheckResult(check, "unknown", subject, "it was not checked completely", error.code)


def _quotas(group: Sequence[Target]) -> Mapping[str, Quota]:
    config = group[0].config
    names = [*dict.fromkeys(target.model_id for target in group)]
    return load_provider(provider_of(names[0])).quotas(config, names)


def _regions(answers: Sequence[TargetCall]) -> Iterator[CheckResult]:
    """Whether the service answers in each region; one that refuses a request answers, too."""
    for group in _grouped(answers, lambda answer: answer.target.config.region):
        region = group[0].target.config.region
        errors = [answer.error for answer in group if isinstance(answer.error, ModelError)]
        unreached = [error for error in errors if error.code in UNREACHED]
        of_service = [error for error in errors if error.end_reason != "credentials"]
        if region is None:
            continue
        if len(unreached) == len(group):
            yield CheckResult.of("region", "failed", region, unreached[0])
            continue
        is_there = any(answer.completion for answer in group) or len(of_service) > len(unreached)
        message = "the service answers" if is_there else "no model could be asked"
        status: CheckStatus = "ok" if is_there else "unknown"
        yield CheckResult("region", status, region, message)


def _account(target: Target) -> tuple[Hashable, ...]:
    config = target.config
    return (provider_of(target.model_id), config.offline, config.assume_role_arn)


def _bucket(config: CoreConfig) -> Hashable:
    return (config.s3_bucket, config.s3_prefix, config.s3_kms_key_id, config.region, config.resume)


def _grouped(items: Iterable[Any], key: Callable[[Any], Hashable]) -> list[list[Any]]:
    """Group items by a key; groups stand in the order of their first items."""
    groups: dict[Hashable, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return [*groups.values()]


def _early_end(error: BenchError | None, answers: Sequence[TargetCall]) -> BenchError | None:
    """What ended the look, or left a model uncalled, in words about a look."""
    errors = (answer.error for answer in answers if answer.error)
    error = error or next((error for error in errors if error.end_reason == "budget"), None)
    if error is None:
        return None
    copied = error.copied()
    if error.end_reason == "budget":
        copied.hint = Problem.of("Raise {max_cost_usd}.")
    elif error.end_reason == "deadline":
        copied.sentences = ("The deadline passed before everything was checked.",)
        copied.hint = Problem.of("Raise {deadline_s}.")
    return copied


def _entry(result: CheckResult, call: Callable[[str], str]) -> CheckEntry:
    hint = redact(to_text(result.hint, call)) if result.hint else None
    return CheckEntry.of(result, hint=hint)


def _model(target_call: TargetCall, checks: list[CheckEntry], quota: Quota | None) -> TargetEntry:
    target, answer = target_call.target, target_call.completion
    usage = answer.usage if answer else None
    return TargetEntry(
        model_id=target.model_id,
        roles=[*target.roles],
        region=target.config.region,
        service_tier=target.tier.tier,
        served_tier=answer.served_tier if answer else None,
        status=_worst(checks),
        latency_ms=round(answer.latency_ms, 1) if answer else None,
        n_requests=len(target_call.attempts),
        n_throttled=n_throttled(target_call),
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        cost_usd=to_places(target_call.cost_usd, USD_PLACES),
        capabilities=_capabilities(target_call),
        quota=QuotaEntry(
            requests_per_minute=quota.requests_per_minute,
            tokens_per_minute=quota.tokens_per_minute,
            target_rpm=target.target_rpm,
            target_tpm=target.target_tpm,
        )
        if quota
        else None,
        checks=checks,
    )


def _worst(checks: Sequence[CheckEntry]) -> CheckStatus:
    """The status of a model. Unknown prices and quotas do not count against it."""
    answer = checks[0].status
    if answer != "ok":
        return answer
    return "warning" if any(check.status == "warning" for check in checks) else "ok"


def _capabilities(target_call: TargetCall) -> dict[str, Capability]:
    """What the table says of the model, and what the call showed of that, as far as it asked."""
    request = target_call.target.request
    untried = [] if request.tool else ["forced_tool", "streamed_tools"]
    untried += ["temperature"] if request.temperature_if_taken is None else []
    return {
        name: Capability(
            table=in_table, found=is_taken if in_table and name not in untried else None
        )
        for name, (in_table, is_taken) in target_call.capabilities.items()
    }
