"""What the call of a model shows: of the model, and of what the table of models says of it."""

from collections.abc import Callable, Iterator

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
    StoreOutageError,
    UsageError,
    Words,
    message_without_subject,
)
from socratic_bench.ports.provider import Quota
from socratic_bench.retrying import RetryPolicy
from socratic_bench.runs.doctor_calls import CalledTarget
from socratic_bench.settings import CoreConfig
from socratic_bench.storage.keys import trial_key
from socratic_bench.storage.s3 import S3Store
from socratic_bench.storage.stores import open_bucket, open_folder
from socratic_bench.types import Completion, ToolUse, plural

# Failures of the service by which nothing is known of the model: the same call may pass later.
PASSING = ("throttled", "not_ready", "server_error", "model_timeout", "model_error")
THROTTLED = "throttled"
DENIED = "access_denied"
_SLOWER = (
    "That says nothing against access: another caller may use the quota. Run again later, or ask "
    "for a higher quota in the AWS console."
)
# What is left out of requests without a check of its own.
_OTHERS: tuple[tuple[str, CheckName], ...] = (
    ("system", "system_prompt"),
    ("temperature", "temperature"),
)


def readings(asked: CalledTarget, quota: Quota | None) -> list[CheckResult]:
    """Everything that can be told of a target once it was called."""
    shown = _shown(asked, asked.completion) if asked.completion else ()
    return [_answer(asked), *shown, _price(asked), *_quota(asked, quota)]


def n_throttled(asked: CalledTarget) -> int:
    """How many of its requests were refused by throttling."""
    return sum(one.error == THROTTLED for one in asked.attempts)


def _answer(asked: CalledTarget) -> CheckResult:
    if asked.completion is None:
        assert asked.error  # noqa: S101 -- one or the other
        return _unanswered(asked, asked.error)
    throttled = n_throttled(asked)
    said = f"answered in {asked.completion.latency_ms:.0f} ms"
    if throttled:
        said += f", after {plural(throttled, 'request')} that the quota refused"
    return _finding(asked, "answer", "ok", said)


def _unanswered(asked: CalledTarget, error: BenchError) -> CheckResult:
    code = error.code
    if isinstance(error, Stopped):
        return _stopped(asked, error)
    status: CheckStatus = "unknown" if code in PASSING else "failed"
    said = message_without_subject(asked.target.model_id, error)
    hint = _SLOWER if code == THROTTLED else next(iter(error.hints), None)
    return _finding(asked, "answer", status, said, code=code, hint=hint)


def _stopped(asked: CalledTarget, error: Stopped) -> CheckResult:
    """It was not asked to the end; the last failure tells why, if there was one."""
    if error.end_reason == "budget":
        said = "not asked: the budget has no room for it"
        return _finding(asked, "answer", "unknown", said, code=error.code)
    last = asked.attempts[-1].error if asked.attempts else None
    if last in PASSING:
        said = f"no answer for so long: {last.replace('_', ' ')}"
        hint = _SLOWER if last == THROTTLED else None
        return _finding(asked, "answer", "unknown", said, code=last, hint=hint)
    return _finding(asked, "answer", "unknown", "it was not waited for", code=error.code)


def _shown(asked: CalledTarget, answer: Completion) -> Iterator[CheckResult]:
    yield _streaming(asked, answer)
    if asked.target.request.tool:
        yield _tools(asked, answer)
    if "prompt_cache" in asked.capabilities:
        yield _cache_points(asked)
    if asked.target.asked.tier:
        yield _tier(asked, answer)
    for name, check in _OTHERS:
        if _is_refused(asked, name):
            yield _differs(asked, check, f"{check.replace('_', ' ')}s")


def _streaming(asked: CalledTarget, answer: Completion) -> CheckResult:
    if answer.streamed:
        return _finding(asked, "streaming", "ok", "streamed")
    refused = asked.refused.get("streaming")
    if refused and refused.code == DENIED:
        hint = "Allow bedrock:InvokeModelWithResponseStream on the model to stream."
        return _finding(asked, "streaming", "warning", refused.notice, code="differs", hint=hint)
    if _is_refused(asked, "streaming"):
        return _differs(asked, "streaming", "streaming")
    if _is_refused(asked, "streamed_tools"):
        return _differs(asked, "streaming", "tool calls in a stream")
    return _finding(asked, "streaming", "ok", "not streamed: not asked for, or known not to")


def _tools(asked: CalledTarget, answer: Completion) -> CheckResult:
    if any(isinstance(block, ToolUse) for block in answer.message.content):
        return _finding(asked, "tools", "ok", "called the tool that was forced")
    if _is_refused(asked, "forced_tool"):
        return _differs(asked, "tools", "a forced tool choice")
    known, _ = asked.capabilities.get("forced_tool", (True, True))
    if not known:
        said = "asked for JSON in words: the table has no forced tool choice for it"
        return _finding(asked, "tools", "ok", said)
    said = f"did not call the tool that was forced (stop reason {answer.stop_reason})"
    hint = "Take another model for this role: some of its answers may be unreadable."
    return _finding(asked, "tools", "warning", said, code="no_tool_call", hint=hint)


def _cache_points(asked: CalledTarget) -> CheckResult:
    known, now = asked.capabilities["prompt_cache"]
    if known and now:
        return _finding(asked, "cache_points", "ok", "took a cache point")
    if known:
        return _differs(asked, "cache_points", "cache points")
    said = "no cache point sent: not asked for, or known not to take them"
    return _finding(asked, "cache_points", "ok", said)


def _tier(asked: CalledTarget, answer: Completion) -> CheckResult:
    wanted, got = asked.target.asked.tier, answer.served_tier
    if got is None:
        said = f"the service does not say whether it served {wanted}"
        return _finding(asked, "service_tier", "unknown", said)
    if got == wanted:
        return _finding(asked, "service_tier", "ok", f"served as {got}")
    hint = Problem.of("Prices and pace are those of the tier that serves; see {service_tier}.")
    said = f"asked for {wanted}, served as {got}"
    return _finding(asked, "service_tier", "warning", said, code="other_tier", hint=hint)


def _is_refused(asked: CalledTarget, name: str) -> bool:
    """Whether the table has it and the model was seen not to take it."""
    known, now = asked.capabilities.get(name, (False, False))
    return known and not now


def _differs(asked: CalledTarget, check: CheckName, what: str) -> CheckResult:
    said = f"refuses {what}, which the table of models has for it: a run does without"
    hint = "Nothing has to be done; a run finds it out by one more request."
    return _finding(asked, check, "warning", said, code="differs", hint=hint)


def _price(asked: CalledTarget) -> CheckResult:
    target = asked.target
    prices = (target.prices or builtin_prices()).of(target.model_id, target.config.region)
    missing = target.asked.names - set(prices.tiers if prices else ())
    if not missing:
        return _finding(asked, "price", "ok", "known")
    said = "not known" if prices is None else f"not known for {' and '.join(sorted(missing))}"
    hint = Problem.of("Give it with {prices_file}: without it no cost is told and no budget holds.")
    return _finding(asked, "price", "unknown", said, code="unknown_price", hint=hint)


def _quota(asked: CalledTarget, quota: Quota | None) -> Iterator[CheckResult]:
    """The quota against what is to be sent, where there is a target."""
    if quota is None:
        return
    if quota == Quota():
        said = "no quota bears the model's name"
        yield _finding(asked, "quota", "unknown", said)
    target = asked.target
    for what, allowed, wanted in (
        ("requests", quota.requests_per_minute, target.target_rpm),
        ("tokens", quota.tokens_per_minute, target.target_tpm),
    ):
        if allowed is None:
            continue
        said = f"{allowed:,.0f} {what} a minute"
        if wanted is None or wanted <= allowed:
            yield _finding(asked, "quota", "ok", said)
            continue
        hint = "Lower the target, or ask for a higher quota in the AWS console."
        said = f"{said}, but the target is {wanted:,.0f}"
        yield _finding(asked, "quota", "warning", said, code="over_quota", hint=hint)


def _finding(
    asked: CalledTarget,
    check: CheckName,
    status: CheckStatus,
    message: str,
    *,
    code: str | None = None,
    hint: Words | None = None,
) -> CheckResult:
    return CheckResult(
        check=check,
        status=status,
        subject=asked.target.model_id,
        message=message,
        code=code,
        hint=hint,
    )


# Whether the folder and the bucket of a run take what it keeps there.

MAX_ATTEMPTS = 3
BODY = b'{"kind": "trial"}\n'
_KEPT = "written only to be read; it may be removed"


def look_at_folder(config: CoreConfig) -> Iterator[CheckResult]:
    """Nothing without one."""
    folder = open_folder(config)
    if folder is None:
        return
    where = folder.location("")
    try:
        folder.check()
    except UsageError as error:
        yield CheckResult.of("folder", "failed", where, error)
    else:
        yield CheckResult(check="folder", status="ok", subject=where, message="can be written")


def look_at_bucket(
    config: CoreConfig, name: str, sleep: Callable[[float], None]
) -> Iterator[CheckResult]:
    """Write an object of that name, read it back, and take it away; nothing without a bucket."""
    if not config.s3_bucket:
        return
    where = f"s3://{config.s3_bucket}"
    try:
        store = open_bucket(config)
        assert store  # noqa: S101 -- there is a bucket
    except UsageError as error:
        yield CheckResult.of("bucket_write", "failed", where, error)
        return
    key = trial_key(name)
    written = _tried("bucket_write", store, key, sleep, _write)
    yield written
    if written.status != "ok":
        return
    # A run reads and lists to be resumed, and deletes nothing.
    needed: CheckStatus = "failed" if config.resume else "unknown"
    yield _tried("bucket_read", store, key, sleep, _read, needed)
    yield _tried("bucket_delete", store, key, sleep, _delete, "unknown")


def _write(store: S3Store, key: str) -> str:
    """As a journal is written: on the condition that there is no such object."""
    if store.bucket.put_if(key, BODY, etag=None) is None:
        raise ArtifactError(store.location(key), "could not be written: it is there already.")
    return "written"


def _read(store: S3Store, key: str) -> str:
    found = store.bucket.get(key)
    if found is None or found.body != BODY:
        raise ArtifactError(
            store.location(key),
            "could not be read: what is there is not what was written.",
            hint="Check what stands between here and S3, such as a proxy.",
        )
    return "read back"


def _delete(store: S3Store, key: str) -> str:
    store.bucket.delete(key)
    return "deleted"


def _tried(
    check: CheckName,
    store: S3Store,
    key: str,
    sleep: Callable[[float], None],
    work: Callable[[S3Store, str], str],
    denied: CheckStatus = "failed",
) -> CheckResult:
    """What came of it, with a few tries; `denied`: what it means that it was not allowed."""
    where = store.location(key)
    policy = RetryPolicy(max_attempts=MAX_ATTEMPTS, wait_max_s=2.0)
    try:
        done = policy.call(
            lambda: work(store, key),
            passes=lambda error: isinstance(error, StoreOutageError),
            sleep=sleep,
        )
    except BenchError as error:
        found = CheckResult.of(check, denied, where, error)
        return found if check != "bucket_delete" else _left(found)
    return CheckResult(check=check, status="ok", subject=where, message=done)


def _left(found: CheckResult) -> CheckResult:
    return replace(
        found, message=f"{found.message} It stays there: {_KEPT}. A run deletes nothing."
    )
