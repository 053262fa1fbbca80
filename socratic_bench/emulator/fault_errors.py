"""The faults that answer with an error of the service, in its own words."""

from collections.abc import Callable

from socratic_bench.emulator.catalogue import on_demand
from socratic_bench.emulator.errors import ServiceError, invalid
from socratic_bench.emulator.faults import Fault

_Make = Callable[[Fault, str], ServiceError]


def error_of(fault: Fault, model_id: str) -> ServiceError | None:
    """The error of a fault, with its advice to wait; `None` for a fault of another sort."""
    make = _ERRORS.get(fault.kind)
    if make is None:
        return None
    error = make(fault, model_id)
    error.retry_after_ms = fault.ms
    return error


def _plain(status: int, name: str, message: str) -> _Make:
    return lambda _fault, _model_id: ServiceError(status, name, message)


def throttling(retry_after_ms: float | None) -> ServiceError:
    message = "Too many requests, please wait before trying again."
    return ServiceError(429, "ThrottlingException", message, retry_after_ms=retry_after_ms)


_ERRORS: dict[str, _Make] = {
    "throttled": lambda _fault, _model_id: throttling(None),
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
    "model_error": lambda _fault, model_id: ServiceError(
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
        403,
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    ),
    "on_demand": lambda _fault, model_id: on_demand(model_id),
    "legacy": _plain(
        404,
        "ResourceNotFoundException",
        "Access denied. This Model is marked by provider as Legacy and you have not been actively "
        "using the model in the last 30 days. Please upgrade to an active model on Amazon Bedrock",
    ),
    "context_window": lambda _fault, _model_id: invalid("Input is too long for requested model."),
    "denied_streaming": lambda _fault, model_id: ServiceError(
        403,
        "AccessDeniedException",
        "User: arn:aws:sts::123456789012:assumed-role/emulated/session is not authorized "
        f"to perform: bedrock:InvokeModelWithResponseStream on resource: {model_id} "
        "because no identity-based policy allows the bedrock:InvokeModelWithResponseStream action",
    ),
}
