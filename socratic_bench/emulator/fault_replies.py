"""What faults make of an answer: a reply altered, or an error of the service in its own words."""

from collections.abc import Callable

from socratic_bench.emulator.catalogue import on_demand
from socratic_bench.emulator.checks import BLOCKING_GUARDRAIL, guardrail_of
from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.errors import ServiceError, invalid
from socratic_bench.emulator.faults import Fault
from socratic_bench.emulator.models import verdict_faults
from socratic_bench.emulator.models.reply import Reply

HUGE = 10 * 1024 * 1024
_INTERVENTION = Fault(kind="guardrail")
_BLOCKED = "Sorry, the model cannot answer this question."
_THOUGHT: JsonObject = {
    "reasoningContent": {
        "reasoningText": {
            "text": "I keep thinking, and run out of room.",
            "signature": "RW11bGF0ZWQ=",
        }
    }
}


def altered(reply: Reply, fault: Fault | None) -> Reply:
    """The reply as the fault leaves it; the same one for faults of another sort."""
    alter = _ALTERATIONS.get(fault.kind) if fault else None
    return alter(reply) if alter else reply


def guarded(reply: Reply, body: JsonObject) -> Reply:
    """The reply as the request's guardrail leaves it."""
    blocks = guardrail_of(body).rpartition("/")[2].startswith(BLOCKING_GUARDRAIL)
    return altered(reply, _INTERVENTION) if blocks else reply


def _cut(reply: Reply) -> Reply:
    """As if the token limit struck halfway; a tool's input is then lost."""
    block = reply.content[-1]
    if "toolUse" in block:
        block = {"toolUse": block["toolUse"] | {"input": {}}}
    else:
        block = {"text": block["text"][: max(1, len(block["text"]) // 2)]}
    return Reply((*reply.content[:-1], block), "max_tokens")


def _text(text: str, stop_reason: str) -> Callable[[Reply], Reply]:
    return lambda _: Reply(({"text": text},), stop_reason)


_ALTERATIONS: dict[str, Callable[[Reply], Reply]] = {
    "empty_reply": _text("", "end_turn"),
    "filtered": lambda _: Reply((), "content_filtered"),
    "guardrail": _text(_BLOCKED, "guardrail_intervened"),
    "max_tokens": _cut,
    "context_stop": lambda reply: Reply(_cut(reply).content, "model_context_window_exceeded"),
    "reasoning_only": lambda _: Reply((_THOUGHT,), "max_tokens"),
    "malformed_output": lambda _: Reply((), "malformed_model_output"),
    "huge_reply": lambda _: Reply(({"text": "What follows? " * (HUGE // 14 + 1)},)),
    **verdict_faults.ALTERATIONS,
}


_Make = Callable[[str], ServiceError]  # of the model's id


def error_of(fault: Fault, model_id: str) -> ServiceError | None:
    """The error of a fault, with its advice to wait; `None` for a fault of another sort."""
    make = _ERRORS.get(fault.kind)
    if make is None:
        return None
    error = make(model_id)
    error.retry_after_ms = fault.ms
    return error


def _plain(status: int, name: str, message: str) -> _Make:
    return lambda _: ServiceError(status, name, message)


def throttling(retry_after_ms: float | None) -> ServiceError:
    message = "Too many requests, please wait before trying again."
    return ServiceError(429, "ThrottlingException", message, retry_after_ms=retry_after_ms)


_ERRORS: dict[str, _Make] = {
    "throttled": lambda _: throttling(None),
    "daily_quota": _plain(
        429, "ThrottlingException", "Too many tokens per day, please wait before trying again."
    ),
    "quota_exceeded": _plain(
        400,
        "ServiceQuotaExceededException",
        "Your request exceeds the service quota for your account.",
    ),
    "not_ready": _plain(
        429,
        "ModelNotReadyException",
        "Model is not ready for inference. Wait and try your request again.",
    ),
    "internal": _plain(
        500,
        "InternalServerException",
        "The system encountered an unexpected error during processing. Try your request again.",
    ),
    "unavailable": _plain(
        503, "ServiceUnavailableException", "Bedrock is unable to process your request."
    ),
    "model_timeout": _plain(
        408,
        "ModelTimeoutException",
        "Model has timed out in processing the request. Try your request again.",
    ),
    "model_error": lambda model_id: ServiceError(
        424,
        "ModelErrorException",
        "The system encountered an unexpected error during processing. Try your request again.",
        details={"originalStatusCode": 500, "resourceName": model_id},
    ),
    "validation": _plain(400, "ValidationException", "The provided request is not valid."),
    "access_denied": _plain(
        403,
        "AccessDeniedException",
        "You don't have access to the model with the specified model ID.",
    ),
    "not_found": _plain(
        404,
        "ResourceNotFoundException",
        "Could not resolve the foundation model from the provided model identifier.",
    ),
    "expired_token": _plain(
        403, "ExpiredTokenException", "The security token included in the request is expired"
    ),
    "unrecognized_key": _plain(
        403, "UnrecognizedClientException", "The security token included in the request is invalid."
    ),
    "on_demand": on_demand,
    "legacy": _plain(
        404,
        "ResourceNotFoundException",
        "Access denied. This Model is marked by provider as Legacy and you have not been actively "
        "using the model in the last 30 days. Please upgrade to an active model on Amazon Bedrock",
    ),
    "context_window": lambda _: invalid("Input is too long for requested model."),
    "denied_streaming": lambda model_id: ServiceError(
        403,
        "AccessDeniedException",
        "User: arn:aws:sts::123456789012:assumed-role/emulated/session is not authorized "
        f"to perform: bedrock:InvokeModelWithResponseStream on resource: {model_id} "
        "because no identity-based policy allows the bedrock:InvokeModelWithResponseStream action",
    ),
}
