"""Classifies the errors of the SDK and the service: each is of one of the `ERROR_KINDS`."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from botocore import exceptions as sdk
from botocore.eventstream import ParserError as EventStreamParserError
from botocore.parsers import ResponseParserError
from urllib3 import exceptions as http

from socratic_bench.errors import ModelError, Problem, Words, with_sentence
from socratic_bench.models.bedrock.capabilities import refused_field
from socratic_bench.models.bedrock.credentials import CredentialsError, unread_settings_file
from socratic_bench.models.bedrock.error_table import ERROR_KINDS, KIND_OF_CODE
from socratic_bench.models.bedrock.transport import (
    SECRET_HEADERS,
    AnswerTooLargeError,
    UnsendableError,
    unwrapped_error,
)
from socratic_bench.ports.provider import AnswerTimeoutError, ErrorKind, UnreadableAnswerError

_SIGNATURE_CODES = (
    *("InvalidSignatureException", "InvalidSignature", "SignatureDoesNotMatch"),
    "RequestTimeTooSkewed",
)
_SIGNATURE_HINT = (
    "Check the secret key (AWS_SECRET_ACCESS_KEY), that it belongs to the access key id, and this "
    "machine's clock: requests are signed with both."
)
_HEADER_HINT = (
    "Nothing was sent. Give the access key id, the session token or the API key again, without "
    "line breaks and signs that are no part of it (AWS_ACCESS_KEY_ID, AWS_SESSION_TOKEN, "
    "AWS_BEARER_TOKEN_BEDROCK, or the profile)."
)

# Kinds that only the error's message shows: the kind by the error's code (`None`: any), a pattern
# of the message, and the kind that it means.
_BY_MESSAGE = (
    ("throttled", r"tokens per day", "daily_quota"),
    (None, r"marked by provider as legacy|end of its life", "legacy_model"),
    ("invalid_request", r"on-demand throughput", "needs_profile"),
    ("invalid_request", r"model identifier is invalid|invalid model", "unknown_model"),
    (
        "invalid_request",
        (
            r"input is too long|prompt is too long|context (window|length)|too many input tokens"
            r"|exceed.{0,40}max(imum)?.{0,20}(context|input|tokens)"
        ),
        "context_window",
    ),
)

# The first row that fits counts. Errors while a stream is read have the types of other libraries.
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
    (AnswerTooLargeError, "answer_too_large"),
    (UnsendableError, "invalid_endpoint"),
    (UnreadableAnswerError, "unreadable_answer"),
    (AnswerTimeoutError, "read_timeout"),
    (EventStreamParserError, "unreadable_answer"),
    (http.TimeoutError, "read_timeout"),
    (http.HTTPError, "connection_lost"),
    (ResponseParserError, "unreadable_answer"),
    (sdk.BotoCoreError, "invalid_configuration"),
    (RecursionError, "no_credentials"),
    # Only while credentials are looked up: new ones that have expired already; a file that cannot
    # be written, such as the cache of a login that the SDK renews.
    (RuntimeError, "expired_credentials"),
    (FileNotFoundError, "no_credentials"),
    (IsADirectoryError, "no_credentials"),
    (OSError, "unusable_login"),
)
_CREDENTIALS_KINDS = (
    *("role_denied", "expired_credentials", "expired_login", "unusable_login"),
    *("invalid_endpoint", "tls"),
)
_UNREACHABLE = ("connection", "connection_lost", "read_timeout", "unreadable_answer")

# All exceptions that a call can raise. Any other is a defect, and no reason to retry.
TRANSLATED = (
    CredentialsError,
    AnswerTooLargeError,
    UnsendableError,
    sdk.ClientError,
    sdk.BotoCoreError,
    ResponseParserError,
    UnreadableAnswerError,
    AnswerTimeoutError,
    EventStreamParserError,
    http.HTTPError,
)


def error_kind(error: Exception, *, model_id: str, began: bool = False) -> ErrorKind:
    """The kind of an error that the SDK raised for a request to `model_id`. `began`: a stream had
    begun, so a model was at work, whatever the error is called.
    """
    if isinstance(error, ModelError):
        return ErrorKind.of(error, is_retried=ERROR_KINDS[error.code].retried)
    name, message = _classify(error)
    is_about_credentials = isinstance(error, CredentialsError)
    # To get credentials costs no tokens.
    is_free = is_about_credentials or _is_about_role(error)
    # Errors of the connection have a response, too, which is None.
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return _kind(
        name,
        message,
        model_id="" if is_about_credentials else model_id,
        maybe_billed=began or (ERROR_KINDS[name].maybe_billed and not is_free),
        hint=_special_hint(error),
        wait_s=retry_after_s(response.get("ResponseMetadata", {}).get("HTTPHeaders", {})),
    )


def error_kind_of_answer(code: str, message: str, status: int, *, model_id: str) -> ErrorKind:
    """The kind of an error with which the service would answer."""
    name = _answer_kind(code, message, status)
    maybe_billed = ERROR_KINDS[name].maybe_billed
    return _kind(name, f"{code}: {message}", model_id=model_id, maybe_billed=maybe_billed)


def _kind(
    name: str,
    message: str,
    *,
    model_id: str,
    maybe_billed: bool,
    hint: Words | None = None,
    wait_s: float | None = None,
) -> ErrorKind:
    row = ERROR_KINDS[name]
    return ErrorKind(
        code=name,
        message=message,
        model_id=model_id,
        called=row.label,
        end_reason=row.end_reason,
        is_retried=row.retried,
        maybe_billed=maybe_billed,
        hint=hint or Problem.of(row.hint),
        retry_after_s=wait_s,
        refused=refused_field(name, message),
    )


def _classify(error: Exception) -> tuple[str, str]:
    """The name of the error's kind, and what it says."""
    if isinstance(error, CredentialsError):
        return _credentials_kind(error), str(error)
    if isinstance(error, sdk.ClientError):
        return _classify_client_error(error)
    error = unwrapped_error(error)
    if isinstance(error, UnsendableError) and error.header:
        is_secret = error.header in SECRET_HEADERS
        return "no_credentials" if is_secret else "invalid_configuration", str(error)
    name = next((name for kind, name in _BY_TYPE if isinstance(error, kind)), "no_credentials")
    if name == "tls" and "EOF" in str(error):
        # A connection that breaks inside TLS; a certificate that is not trusted reads otherwise.
        name = "connection_lost"
    return name, f"{type(error).__name__}: {error}"


def _credentials_kind(error: CredentialsError) -> str:
    name = _classify(error.cause)[0]
    if name in _UNREACHABLE:
        return "credentials_unreachable"
    if error.is_of_program and name != "expired_credentials":
        return "no_credentials"
    return name if ERROR_KINDS[name].retried or name in _CREDENTIALS_KINDS else "no_credentials"


def _special_hint(error: Exception) -> Words | None:
    """A hint that says more than the hint of the error's kind."""
    if isinstance(error, CredentialsError):
        return _special_hint(error.cause) or error.hint
    if isinstance(error, sdk.ClientError):
        code = str(error.response.get("Error", {}).get("Code", ""))
        return _SIGNATURE_HINT if code in _SIGNATURE_CODES else None
    if isinstance(error, sdk.NoCredentialsError) and (unread := unread_settings_file()):
        return with_sentence(Problem.of(ERROR_KINDS["no_credentials"].hint), f"{unread}.")
    error = unwrapped_error(error)
    is_secret = isinstance(error, UnsendableError) and error.header in SECRET_HEADERS
    return _HEADER_HINT if is_secret else None


def _classify_client_error(error: sdk.ClientError) -> tuple[str, str]:
    details = error.response.get("Error", {})
    # These may be no texts if something other than the service answers.
    code, message = str(details.get("Code", "")), str(details.get("Message", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    text = f"{code}: {message}" if message else f"{code} (HTTP {status})"
    if _is_about_role(error):
        name = _kind_of_code(code, status)
        is_signature = code in _SIGNATURE_CODES
        is_kept = ERROR_KINDS[name].retried or is_signature or name == "expired_credentials"
        return name if is_kept else "role_denied", text
    return _answer_kind(code, message, status), text


def _answer_kind(code: str, message: str, status: int) -> str:
    """The kind of an answer of the service, by its code, message and status."""
    name = _kind_of_code(code, status)
    special = (
        meaning
        for kind, pattern, meaning in _BY_MESSAGE
        if kind in {name, None} and re.search(pattern, message, re.IGNORECASE)
    )
    return next(special, name)


def _kind_of_code(code: str, status: int) -> str:
    return KIND_OF_CODE.get(code[:1].upper() + code[1:]) or _kind_of_status(status)


def _is_about_role(error: Exception) -> bool:
    return isinstance(error, sdk.ClientError) and error.operation_name.startswith("AssumeRole")


def _kind_of_status(status: int) -> str:
    kinds = {403: "access_denied", 404: "unknown_model", 408: "model_timeout", 429: "throttled"}
    if status in kinds:
        return kinds[status]
    return "server_error" if status >= 500 or status < 400 else "invalid_request"  # noqa: PLR2004


def retry_after_s(headers: dict[str, str]) -> float | None:
    """Seconds that the server asks to wait: `x-amz-retry-after` (ms), else `retry-after` (s)."""
    for name, unit in (("x-amz-retry-after", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers[name]) * unit
        except KeyError:
            continue
        except ValueError:
            wait = _until_s(headers[name], headers.get("date"))
        if 0 <= wait < float("inf"):
            return wait
    return None


def _until_s(when: str, now: str | None) -> float:
    """Seconds from one HTTP date to another, both by the server's clock; negative if unknown."""
    try:
        return (parsedate_to_datetime(when) - parsedate_to_datetime(now or "")).total_seconds()
    except (ValueError, TypeError):
        return -1.0
