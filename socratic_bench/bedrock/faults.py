"""Translates the SDK's errors, once, into `ModelError`s; one table says what each kind means."""

import re

from botocore import exceptions as sdk
from botocore.eventstream import ParserError as EventStreamParserError
from botocore.parsers import ResponseParserError
from urllib3 import exceptions as http

from socratic_bench.bedrock.answers import UnreadableAnswerError
from socratic_bench.errors import ModelError
from socratic_bench.types import EndReason
from socratic_bench.values import dataclass


class OverdueError(Exception):
    """An answer that was not there, to its last byte, within the call's time."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"no whole answer within {timeout_s:g} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A kind of failure, and the one place that says what is done about it.

    Attributes:
        retried: whether the call is tried again, within its attempts.
        maybe_billed: whether the request can have cost tokens: its fate is unknown, or it failed
            after it had reached the model.
        end_reason: how the run ends if the failure stays.
        hint: what to do next.
    """

    retried: bool
    maybe_billed: bool
    end_reason: EndReason
    hint: str


def _passing(hint: str, *, maybe_billed: bool) -> Fault:
    return Fault(retried=True, maybe_billed=maybe_billed, end_reason="unavailable", hint=hint)


def _lasting(end_reason: EndReason, hint: str) -> Fault:
    return Fault(retried=False, maybe_billed=False, end_reason=end_reason, hint=hint)


FAULTS: dict[str, Fault] = {
    "throttled": _passing(
        "Run again later, raise --max-attempts, or ask for a higher quota in the AWS console.",
        maybe_billed=False,
    ),
    "not_ready": _passing(
        "The model was not ready; run again in a few minutes.", maybe_billed=False
    ),
    "server_error": _passing("The service failed; run again later.", maybe_billed=True),
    "model_timeout": _passing(
        "The model took too long; lower --max-tokens or run again later.", maybe_billed=True
    ),
    "model_error": _passing(
        "The model failed on the service's side; run again later.", maybe_billed=True
    ),
    "connection": _passing(
        "Check the network, the proxy and the endpoint (AWS_ENDPOINT_URL_BEDROCK_RUNTIME).",
        maybe_billed=False,
    ),
    "connection_lost": _passing(
        "The connection broke before an answer was there; check the network and the proxy.",
        maybe_billed=True,
    ),
    "read_timeout": _passing(
        "No answer came in time; raise --call-timeout or lower --max-tokens.", maybe_billed=True
    ),
    "unreadable_answer": _passing(
        "What answered was no Converse response; check the endpoint and any proxy before it.",
        maybe_billed=True,
    ),
    "daily_quota": _lasting(
        "unavailable",
        "The account's tokens for this model are used up for the day: run again tomorrow, take "
        "another model or region, or ask for a higher quota in the AWS console.",
    ),
    "context_window": _lasting(
        "context_window", "The dialogue outgrew the model's context window; play fewer --turns."
    ),
    "needs_profile": _lasting(
        "refused_request",
        "Use an inference profile of the model: its id with a region's prefix, such as us. or "
        "global., or its ARN (aws bedrock list-inference-profiles).",
    ),
    "unknown_model": _lasting(
        "unknown_model",
        "Check the model id and that the model is offered in the region "
        "(aws bedrock list-foundation-models); it may be retired or have another version.",
    ),
    "legacy_model": _lasting(
        "unknown_model",
        "The model is legacy or at the end of its life; take a newer version "
        "(aws bedrock list-foundation-models, modelLifecycle).",
    ),
    "invalid_request": _lasting(
        "refused_request", "The model refuses a field of the request; --debug shows which."
    ),
    "refused_setting": _lasting(
        "refused_request", "Leave out the flag, or test a model that takes it."
    ),
    "access_denied": _lasting(
        "access",
        "Allow bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream on the model, and "
        "enable the model's access in the Bedrock console.",
    ),
    "role_denied": _lasting(
        "credentials",
        "Check BEDROCK_ASSUME_ROLE_ARN, that the role trusts your identity, and that you may call "
        "sts:AssumeRole on it.",
    ),
    "no_credentials": _lasting(
        "credentials",
        "Give credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role; "
        "--offline needs none.",
    ),
    "expired_credentials": _lasting(
        "credentials", "Renew the credentials and run again; if they are new, check the clock here."
    ),
    "expired_login": _lasting("credentials", "Log in again with: aws sso login"),
    "unusable_login": _lasting(
        "credentials",
        "Let the SDK write its login cache, ~/.aws/sso/cache, or log in again.",
    ),
    "tls": _lasting("refused_request", "Check the CA bundle (AWS_CA_BUNDLE) and the endpoint."),
}

_BY_CODE = {
    "ThrottlingException": "throttled",
    "Throttling": "throttled",
    "TooManyRequestsException": "throttled",
    "ServiceQuotaExceededException": "throttled",
    "ModelNotReadyException": "not_ready",
    "InternalServerException": "server_error",
    "ServiceUnavailableException": "server_error",
    "ModelTimeoutException": "model_timeout",
    "ModelErrorException": "model_error",
    "ModelStreamErrorException": "model_error",
    "AccessDeniedException": "access_denied",
    "ResourceNotFoundException": "unknown_model",
    "ValidationException": "invalid_request",
    "ExpiredTokenException": "expired_credentials",
    "ExpiredToken": "expired_credentials",
    "RequestExpired": "expired_credentials",
    "UnrecognizedClientException": "no_credentials",
    "InvalidSignatureException": "no_credentials",
    "InvalidClientTokenId": "no_credentials",
    "IncompleteSignatureException": "no_credentials",
    "MissingAuthenticationTokenException": "no_credentials",
}

# What stands in an error's words only: the code that has them, `None` for any, and the meaning.
_BY_WORDS = (
    ("throttled", r"tokens per day", "daily_quota"),
    (
        None,
        r"marked by provider as legacy|end of its life",
        "legacy_model",
    ),
    ("invalid_request", r"on-demand throughput", "needs_profile"),
    (
        "invalid_request",
        r"model identifier is invalid|invalid model",
        "unknown_model",
    ),
    (
        "invalid_request",
        (
            r"input is too long|prompt is too long|context (window|length)|too many input tokens"
            r"|exceed.{0,40}max(imum)?.{0,20}(context|input|tokens)"
        ),
        "context_window",
    ),
)

# Errors that come by a stream, after the SDK has handed it over, have the names of other libraries.
_BY_TYPE: tuple[tuple[type[Exception], str], ...] = (
    (sdk.NoCredentialsError, "no_credentials"),
    (sdk.PartialCredentialsError, "no_credentials"),
    (sdk.NoAuthTokenError, "no_credentials"),
    (sdk.ProfileNotFound, "no_credentials"),
    (sdk.TokenRetrievalError, "expired_login"),
    (sdk.SSOTokenLoadError, "expired_login"),
    (sdk.UnauthorizedSSOTokenError, "expired_login"),
    (sdk.LoginError, "expired_login"),
    (sdk.CredentialRetrievalError, "no_credentials"),
    (sdk.MetadataRetrievalError, "no_credentials"),
    (sdk.SSLError, "tls"),
    (sdk.ReadTimeoutError, "read_timeout"),
    (sdk.ConnectTimeoutError, "connection"),
    (sdk.ConnectionError, "connection"),
    (sdk.HTTPClientError, "connection_lost"),
    (sdk.ParamValidationError, "invalid_request"),
    (UnreadableAnswerError, "unreadable_answer"),
    (OverdueError, "read_timeout"),
    (EventStreamParserError, "unreadable_answer"),
    (http.TimeoutError, "read_timeout"),
    (http.HTTPError, "connection_lost"),
    (ResponseParserError, "unreadable_answer"),
    (sdk.BotoCoreError, "invalid_request"),
    (ValueError, "unreadable_answer"),
    (RuntimeError, "expired_credentials"),
    (OSError, "unusable_login"),
)

# ValueError: a body that the SDK's JSON reader chokes on. RuntimeError: credentials that the SDK
# has just refreshed, and that have expired all the same. OSError: a file of the SDK's, such as the
# cache of a login that it renews and cannot write; what the network does has classes of its own.
TRANSLATED = (
    sdk.ClientError,
    sdk.BotoCoreError,
    ResponseParserError,
    UnreadableAnswerError,
    OverdueError,
    EventStreamParserError,
    http.HTTPError,
    ValueError,
    RuntimeError,
    OSError,
)


def translate(error: Exception, *, model_id: str) -> ModelError:
    """The `ModelError` that stands for an SDK error of a call to `model_id`."""
    keep_first_line(error)
    return _model_error(model_id, *_classify(error))


def answered_error(code: str, message: str, status: int, *, model_id: str) -> ModelError:
    """The `ModelError` that stands for an answer of the service, known before it is given."""
    return _model_error(model_id, answered_fault(code, message, status), f"{code}: {message}")


def _model_error(model_id: str, name: str, said: str) -> ModelError:
    fault = FAULTS[name]
    return ModelError(
        f"{model_id}: {said}",
        code=name,
        end_reason=fault.end_reason,
        retryable=fault.end_reason == "unavailable",
        hint=fault.hint,
    )


def keep_first_line(error: Exception) -> None:
    """Have what a program that gives credentials said end with its first line, wherever it is
    shown: nobody knows what else it tells when it fails.
    """
    if isinstance(error, sdk.CredentialRetrievalError):
        whole = str(error)
        told = str(dict(error.kwargs).get("error_msg", ""))
        first = (told.strip().splitlines() or [""])[0]
        error.args = (whole.removesuffix(told) + first,)


def maybe_billed(error: Exception, code: str) -> bool:
    """Whether a request that failed so can have cost tokens; what refuses a role costs none."""
    return FAULTS[code].maybe_billed and not _is_about_the_role(error)


def _classify(error: Exception) -> tuple[str, str]:
    if isinstance(error, sdk.ClientError):
        return _classify_answer(error)
    name = next(name for kind, name in _BY_TYPE if isinstance(error, kind))
    if name == "tls" and "EOF" in str(error):
        # A connection that breaks inside TLS; a certificate that is not trusted reads otherwise.
        name = "connection_lost"
    return name, f"{type(error).__name__}: {error}"


def _classify_answer(error: sdk.ClientError) -> tuple[str, str]:
    details = error.response.get("Error", {})
    # What is no text may stand there where something else than the service answers.
    code, message = str(details.get("Code", "")), str(details.get("Message", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    said = f"{code}: {message}" if message else f"{code} (HTTP {status})"
    if _is_about_the_role(error):
        name = _by_name(code, status)
        passes_or_expired = FAULTS[name].retried or name == "expired_credentials"
        return name if passes_or_expired else "role_denied", said
    return answered_fault(code, message, status), said


def answered_fault(code: str, message: str, status: int) -> str:
    """Which of the `FAULTS` an answer of the service is, by its code, its words and its status."""
    name = _by_name(code, status)
    told = (
        meaning
        for of, words, meaning in _BY_WORDS
        if of in {name, None} and re.search(words, message, re.IGNORECASE)
    )
    return next(told, name)


def _by_name(code: str, status: int) -> str:
    # The events of a stream write their names with a small first letter.
    return _BY_CODE.get(code[:1].upper() + code[1:]) or _by_status(status)


def _is_about_the_role(error: Exception) -> bool:
    return isinstance(error, sdk.ClientError) and error.operation_name.startswith("AssumeRole")


def _by_status(status: int) -> str:
    known = {403: "access_denied", 404: "unknown_model", 408: "model_timeout", 429: "throttled"}
    if status in known:
        return known[status]
    return "server_error" if status >= 500 or status < 400 else "invalid_request"  # noqa: PLR2004
