"""Names the kind of the SDK's errors, once, by one of the rows of `ERROR_KINDS`."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from botocore import exceptions as sdk
from botocore.eventstream import ParserError as EventStreamParserError
from botocore.parsers import ResponseParserError
from urllib3 import exceptions as http

from socratic_bench.errors import ModelError, Problem, Words, followed
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

_SIGNATURES = (
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

# What only an error's message tells: the kind it comes with (`None`: any), the words, and what they
# mean.
_BY_WORDS = (
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
    # Of credentials only: new ones that have expired all the same; a file, such as the cache of a
    # login that the SDK renews and cannot write.
    (RuntimeError, "expired_credentials"),
    (FileNotFoundError, "no_credentials"),
    (OSError, "unusable_login"),
)
_OF_CREDENTIALS = (
    *("role_denied", "expired_credentials", "expired_login", "unusable_login"),
    *("invalid_endpoint", "tls"),
)
_UNREACHABLE = ("connection", "connection_lost", "read_timeout", "unreadable_answer")

# Every exception that a call can raise. Anything else is a defect, and no reason to retry.
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
    """The kind of an SDK error of a request to `model_id`.

    `began`: a stream had begun. Then a model was at work, whatever the error is called.
    """
    if isinstance(error, ModelError):
        return ErrorKind.of(error, is_retried=ERROR_KINDS[error.code].retried)
    name, said = _classify(error)
    is_of_credentials = isinstance(error, CredentialsError)
    # What gives credentials costs no tokens.
    is_free = is_of_credentials or _is_about_the_role(error)
    return _kind(
        name,
        said,
        model_id="" if is_of_credentials else model_id,
        maybe_billed=began or (ERROR_KINDS[name].maybe_billed and not is_free),
        hint=_special_hint(error),
        wait_s=retry_after_s(_headers(error)),
    )


def answered_kind(code: str, message: str, status: int, *, model_id: str) -> ErrorKind:
    """The kind of an answer of the service, known before it is given."""
    name = _name_of_answer(code, message, status)
    maybe_billed = ERROR_KINDS[name].maybe_billed
    return _kind(name, f"{code}: {message}", model_id=model_id, maybe_billed=maybe_billed)


def _kind(
    name: str,
    said: str,
    *,
    model_id: str,
    maybe_billed: bool,
    hint: Words | None = None,
    wait_s: float | None = None,
) -> ErrorKind:
    row = ERROR_KINDS[name]
    return ErrorKind(
        code=name,
        message=said,
        model_id=model_id,
        called=row.called,
        end_reason=row.end_reason,
        is_retried=row.retried,
        maybe_billed=maybe_billed,
        hint=hint or Problem.of(row.hint),
        retry_after_s=wait_s,
        refused=refused_field(name, said),
    )


def _headers(error: Exception) -> dict[str, str]:
    # Errors of the connection have a response, too, which is None.
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    headers: dict[str, str] = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return headers


def _classify(error: Exception) -> tuple[str, str]:
    if isinstance(error, CredentialsError):
        return _credentials_kind(error), str(error)
    if isinstance(error, sdk.ClientError):
        return _classify_answer(error)
    error = unwrapped_error(error)
    if isinstance(error, UnsendableError) and error.header:
        is_secret = error.header in SECRET_HEADERS
        return "no_credentials" if is_secret else "invalid_configuration", str(error)
    return _by_type(error), f"{type(error).__name__}: {error}"


def _by_type(error: Exception) -> str:
    name = next((name for kind, name in _BY_TYPE if isinstance(error, kind)), "no_credentials")
    if name == "tls" and "EOF" in str(error):
        # A connection that breaks inside TLS; a certificate that is not trusted reads otherwise.
        return "connection_lost"
    return name


def _credentials_kind(error: CredentialsError) -> str:
    name = _classify(error.cause)[0]
    if name in _UNREACHABLE:
        return "credentials_unreachable"
    if error.is_of_program and name != "expired_credentials":
        return "no_credentials"
    return name if ERROR_KINDS[name].retried or name in _OF_CREDENTIALS else "no_credentials"


def _special_hint(error: Exception) -> Words | None:
    """A hint that says more than the hint of the error's kind."""
    if isinstance(error, CredentialsError):
        return _special_hint(error.cause) or error.hint
    if isinstance(error, sdk.ClientError):
        code = str(error.response.get("Error", {}).get("Code", ""))
        return _SIGNATURE_HINT if code in _SIGNATURES else None
    if isinstance(error, sdk.NoCredentialsError) and (unread := unread_settings_file()):
        return followed(Problem.of(ERROR_KINDS["no_credentials"].hint), f"{unread}.")
    error = unwrapped_error(error)
    is_secret = isinstance(error, UnsendableError) and error.header in SECRET_HEADERS
    return _HEADER_HINT if is_secret else None


def _classify_answer(error: sdk.ClientError) -> tuple[str, str]:
    details = error.response.get("Error", {})
    # These may be no texts if something other than the service answers.
    code, message = str(details.get("Code", "")), str(details.get("Message", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    said = f"{code}: {message}" if message else f"{code} (HTTP {status})"
    if _is_about_the_role(error):
        name = _by_name(code, status)
        is_signature = code in _SIGNATURES
        known = ERROR_KINDS[name].retried or is_signature or name == "expired_credentials"
        return name if known else "role_denied", said
    return _name_of_answer(code, message, status), said


def _name_of_answer(code: str, message: str, status: int) -> str:
    """Which of the `ERROR_KINDS` an answer is, by the code, words and status of the service."""
    name = _by_name(code, status)
    told = (
        meaning
        for of, words, meaning in _BY_WORDS
        if of in {name, None} and re.search(words, message, re.IGNORECASE)
    )
    return next(told, name)


def _by_name(code: str, status: int) -> str:
    return KIND_OF_CODE.get(code[:1].upper() + code[1:]) or _by_status(status)


def _is_about_the_role(error: Exception) -> bool:
    return isinstance(error, sdk.ClientError) and error.operation_name.startswith("AssumeRole")


def _by_status(status: int) -> str:
    known = {403: "access_denied", 404: "unknown_model", 408: "model_timeout", 429: "throttled"}
    if status in known:
        return known[status]
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
