"""What a model's call shows of it, and whether the stores take what a run keeps there."""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from socratic_bench.catalogue.prices import builtin_prices
from socratic_bench.errors import (
    ArtifactError,
    BenchError,
    CheckName,
    CheckResult,
    CheckStatus,
    Problem,
    Stopped,
    UsageError,
    Words,
    message_without_subject,
)
from socratic_bench.ports.provider import Quota
from socratic_bench.retrying import RetryPolicy
from socratic_bench.runs.doctor_calls import TargetCall
from socratic_bench.settings import CoreConfig
from socratic_bench.storage.delivery import is_outage
from socratic_bench.storage.s3 import S3Store
from socratic_bench.storage.stores import open_bucket, open_folder
from socratic_bench.types import Completion, ToolUse, plural

# Failures of the service by which nothing is known of the model: the same call may pass later.
PASSING = ("throttled", "not_ready", "server_error", "model_timeout", "model_error")
THROTTLED = "throttled"
DENIED = "access_denied"
_THROTTLED_HINT = (
    "That says nothing against access: another caller may use the quota. Run again later, or ask "
    "for a higher quota in the AWS console."
)
# Fields of requests that have no check of their own.
_OTHER_FIELDS: tuple[tuple[str, CheckName], ...] = (
    ("system", "system_prompt"),
    ("temperature", "temperature"),
)


def call_checks(call: TargetCall, quota: Quota | None) -> list[CheckResult]:
    """All checks of a target that was called: answer, capabilities, price and quota."""
    of_answer = _answer_checks(call, call.completion) if call.completion else ()
    return [_answer(call), *of_answer, _price(call), *_quota(call, quota)]


def n_throttled(call: TargetCall) -> int:
    """How many of the call's requests were throttled."""
    return sum(attempt.error == THROTTLED for attempt in call.attempts)


def _answer(call: TargetCall) -> CheckResult:
    if call.completion is None:
        assert call.error  # noqa: S101 -- one or the other
        return _error_check(call, call.error)
    throttled = n_throttled(call)
    message = f"answered in {call.completion.latency_ms:.0f} ms"
    if throttled:
        message += f", after {plural(throttled, 'request')} that the quota refused"
    return _check(call, "answer", "ok", message)


def _error_check(call: TargetCall, error: BenchError) -> CheckResult:
    code = error.code
    if isinstance(error, Stopped):
        return _stopped_check(call, error)
    status: CheckStatus = "unknown" if code in PASSING else "failed"
    message = message_without_subject(call.target.model_id, error)
    hint = _THROTTLED_HINT if code == THROTTLED else next(iter(error.hints), None)
    return _check(call, "answer", status, message, code=code, hint=hint)


def _stopped_check(call: TargetCall, error: Stopped) -> CheckResult:
    """The check of a call that was ended early; its last failure may tell why."""
    if error.end_reason == "budget":
        message = "not asked: the budget has no room for it"
        return _check(call, "answer", "unknown", message, code=error.code)
    last = call.attempts[-1].error if call.attempts else None
    if last in PASSING:
        message = f"no answer for so long: {last.replace('_', ' ')}"
        hint = _THROTTLED_HINT if last == THROTTLED else None
        return _check(call, "answer", "unknown", message, code=last, hint=hint)
    return _check(call, "answer", "unknown", "it was not waited for", code=error.code)


def _answer_checks(call: TargetCall, answer: Completion) -> Iterator[CheckResult]:
    yield _streaming(call, answer)
    if call.target.request.tool:
        yield _tools(call, answer)
    if "prompt_cache" in call.capabilities:
        yield _cache_points(call)
    if call.target.tier.tier:
        yield _tier(call, answer)
    for name, check in _OTHER_FIELDS:
        if _is_refused(call, name):
            yield _differs(call, check, f"{check.replace('_', ' ')}s")


def _streaming(call: TargetCall, answer: Completion) -> CheckResult:
    if answer.streamed:
        return _check(call, "streaming", "ok", "streamed")
    refused = call.refused.get("streaming")
    if refused and refused.code == DENIED:
        hint = "Allow bedrock:InvokeModelWithResponseStream on the model to stream."
        return _check(call, "streaming", "warning", refused.notice, code="differs", hint=hint)
    if _is_refused(call, "streaming"):
        return _differs(call, "streaming", "streaming")
    if _is_refused(call, "streamed_tools"):
        return _differs(call, "streaming", "tool calls in a stream")
    return _check(call, "streaming", "ok", "not streamed: not asked for, or known not to")


def _tools(call: TargetCall, answer: Completion) -> CheckResult:
    if any(isinstance(block, ToolUse) for block in answer.message.content):
        return _check(call, "tools", "ok", "called the tool that was forced")
    if _is_refused(call, "forced_tool"):
        return _differs(call, "tools", "a forced tool choice")
    in_table, _ = call.capabilities.get("forced_tool", (True, True))
    if not in_table:
        message = "asked for JSON in words: the table has no forced tool choice for it"
        return _check(call, "tools", "ok", message)
    message = f"did not call the tool that was forced (stop reason {answer.stop_reason})"
    hint = "Take another model for this role: some of its answers may be unreadable."
    return _check(call, "tools", "warning", message, code="no_tool_call", hint=hint)


def _cache_points(call: TargetCall) -> CheckResult:
    in_table, is_taken = call.capabilities["prompt_cache"]
    if in_table and is_taken:
        return _check(call, "cache_points", "ok", "took a cache point")
    if in_table:
        return _differs(call, "cache_points", "cache points")
    message = "no cache point sent: not asked for, or known not to take them"
    return _check(call, "cache_points", "ok", message)


def _tier(call: TargetCall, answer: Completion) -> CheckResult:
    wanted, served = call.target.tier.tier, answer.served_tier
    if served is None:
        message = f"the service does not say whether it served {wanted}"
        return _check(call, "service_tier", "unknown", message)
    if served == wanted:
        return _check(call, "service_tier", "ok", f"served as {served}")
    hint = Problem.of("Prices and pace are those of the tier that serves; see {service_tier}.")
    message = f"asked for {wanted}, served as {served}"
    return _check(call, "service_tier", "warning", message, code="other_tier", hint=hint)


def _is_refused(call: TargetCall, name: str) -> bool:
    """Whether the table has a capability that the model was seen not to have."""
    in_table, is_taken = call.capabilities.get(name, (False, False))
    return in_table and not is_taken


def _differs(call: TargetCall, check: CheckName, what: str) -> CheckResult:
    message = f"refuses {what}, which the table of models has for it: a run does without"
    hint = "Nothing has to be done; a run finds it out by one more request."
    return _check(call, check, "warning", message, code="differs", hint=hint)


def _price(call: TargetCall) -> CheckResult:
    target = call.target
    prices = (target.prices or builtin_prices()).of(target.model_id, target.config.region)
    missing = target.tier.names - set(prices.tiers if prices else ())
    if not missing:
        return _check(call, "price", "ok", "known")
    message = "not known" if prices is None else f"not known for {' and '.join(sorted(missing))}"
    hint = Problem.of(
        "Add it with {prices_file}: without it, cost is unknown and budgets do not work."
    )
    return _check(call, "price", "unknown", message, code="unknown_price", hint=hint)


def _quota(call: TargetCall, quota: Quota | None) -> Iterator[CheckResult]:
    """The quota, held against the rate targets."""
    if quota is None:
        return
    if quota == Quota():
        message = "no quota bears the model's name"
        yield _check(call, "quota", "unknown", message)
    target = call.target
    for what, allowed, wanted in (
        ("requests", quota.requests_per_minute, target.target_rpm),
        ("tokens", quota.tokens_per_minute, target.target_tpm),
    ):
        if allowed is None:
            continue
        message = f"{allowed:,.0f} {what} a minute"
        if wanted is None or wanted <= allowed:
            yield _check(call, "quota", "ok", message)
            continue
        hint = "Lower the target, or ask for a higher quota in the AWS console."
        message = f"{message}, but the target is {wanted:,.0f}"
        yield _check(call, "quota", "warning", message, code="over_quota", hint=hint)


def _check(
    call: TargetCall,
    check: CheckName,
    status: CheckStatus,
    message: str,
    code: str | None = None,
    hint: Words | None = None,
) -> CheckResult:
    return CheckResult(check, status, call.target.model_id, message, code, hint)


# Whether the folder and the bucket of a run take what it keeps there.

MAX_ATTEMPTS = 3
BODY = b'{"kind": "trial"}\n'
_LEFTOVER = "written only to be read; it may be removed"


def check_folder(config: CoreConfig) -> Iterator[CheckResult]:
    """Whether the output folder can be written; no check without one."""
    folder = open_folder(config)
    if folder is None:
        return
    where = folder.location("")
    try:
        folder.check()
    except UsageError as error:
        yield CheckResult.of("folder", "failed", where, error)
    else:
        yield CheckResult("folder", "ok", where, "can be written")


def check_bucket(
    config: CoreConfig, name: str, sleep: Callable[[float], None]
) -> Iterator[CheckResult]:
    """Write an object of that name, read it back, and delete it; no check without a bucket."""
    if not config.s3_bucket:
        return
    where = f"s3://{config.s3_bucket}"
    try:
        store = open_bucket(config)
        assert store  # noqa: S101 -- there is a bucket
    except UsageError as error:
        yield CheckResult.of("bucket_write", "failed", where, error)
        return
    key = f"journal/trials/{name}.json"
    where = store.location(key)
    policy = RetryPolicy(max_attempts=MAX_ATTEMPTS, wait_max_s=2.0)
    steps: tuple[tuple[CheckName, str, Callable[[S3Store, str], None], CheckStatus], ...] = (
        ("bucket_write", "written", _write, "failed"),
        # A run reads and lists to be resumed, and deletes nothing.
        ("bucket_read", "read back", _read, "failed" if config.resume else "unknown"),
        ("bucket_delete", "deleted", S3Store.delete, "unknown"),
    )
    for check, message, step, denied in steps:
        work = partial(step, store, key)
        try:
            policy.call(work, passes=is_outage, sleep=sleep)
        except BenchError as error:
            result = CheckResult.of(check, denied, where, error)
            stays = f" It stays there: {_LEFTOVER}. A run deletes nothing."
            is_left = check == "bucket_delete"
            yield replace(result, message=f"{result.message}{stays}") if is_left else result
            if check == "bucket_write":
                return
        else:
            yield CheckResult(check, "ok", where, message)


def _write(store: S3Store, key: str) -> None:
    """Write as a journal is written: on the condition that there is no such object."""
    if store.put_if(key, BODY, etag=None) is None:
        raise ArtifactError(store.location(key), "could not be written: it is there already.")


def _read(store: S3Store, key: str) -> None:
    stored = store.get(key)
    if stored is None or stored.body != BODY:
        raise ArtifactError(
            store.location(key),
            "could not be read: what is there is not what was written.",
            hint="Check the network path to S3, such as a proxy.",
        )
