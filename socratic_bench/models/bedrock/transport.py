"""Bounds the answers that the SDK reads, refuses requests that HTTP cannot carry, and gives types
to errors for which the SDK has none.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from http.client import InvalidURL
from typing import Any

import botocore.awsrequest
from botocore.exceptions import BotoCoreError, HTTPClientError, InvalidConfigError
from botocore.parsers import ResponseParserError, ResponseParserFactory
from urllib3 import HTTPResponse

ANSWER_MAX_BYTES = 32_000_000  # of a model
OTHER_MAX_BYTES = 4_000_000  # of any other service, such as a page of a list of S3
# JSON takes far more memory once it is parsed; prose has a comma in some sixty characters.
ANSWER_MAX_VALUES = 1_000_000
SECRET_HEADERS = ("Authorization", "X-Amz-Security-Token")

# What the standard library and urllib3 raise over an address that is none.
_BAD_ADDRESS = (ValueError, OverflowError, InvalidURL)
# What the SDK's parsers raise over an answer of another form, such as a number without an end.
_PARSER_ERRORS = (ValueError, ArithmeticError, AttributeError, KeyError, TypeError, RecursionError)
_NOT_PRINTABLE = re.compile(rb"[^\x20-\x7e]")
_BROKEN_HEADER = re.compile(rb"\n(?![ \t])|\r(?![ \t\n])")
_BROKEN_ADDRESS = re.compile(r"[\x00-\x20\x7f]")
_ABOUT_ADDRESS = re.compile(r"(?i)\b(endpoint|URL|port|netloc)\b")


class AnswerTooLargeError(Exception):
    """An answer that was not read to its end, since no model needs one so large."""


class UnsendableError(Exception):
    """A request that never left this machine, since HTTP cannot carry it. `header` names the header
    whose value is at fault; the value itself, which may be a secret, is not in the message.
    """

    def __init__(self, message: str, header: str | None = None) -> None:
        super().__init__(message)
        self.header = header


def bound_answers() -> None:
    """Have every session of this process read answers and streams up to a bound only. It covers
    what the SDK asks for by itself, too, such as credentials of STS.
    """
    vars(botocore.awsrequest).update(AWSResponse=_BoundedResponse)


def check_sendable(url: str, headers: Mapping[str, str | bytes]) -> None:
    """Raise `UnsendableError` if the address or a header has a line break or the like."""
    if _BROKEN_ADDRESS.search(url):
        raise UnsendableError("the address of the endpoint has a blank or a control character")
    for name, value in headers.items():
        try:
            raw = value.encode("latin-1") if isinstance(value, str) else value
        except UnicodeEncodeError:
            raw = b"\n"
        # Credentials have printable ASCII characters only.
        if (_NOT_PRINTABLE if name in SECRET_HEADERS else _BROKEN_HEADER).search(raw):
            problem = "a line break, or a sign that it cannot hold"
            raise UnsendableError(f"Invalid header value: {problem}, in {name}", header=name)


def unwrapped_error(error: Exception) -> Exception:
    """One of this module's errors if the SDK has wrapped its cause; else the error itself."""
    cause = error.kwargs.get("error") if isinstance(error, HTTPClientError) else None
    if isinstance(cause, (AnswerTooLargeError, UnsendableError)):
        return cause
    if isinstance(cause, _BAD_ADDRESS) and not isinstance(cause, OSError):
        return UnsendableError(f"{type(cause).__name__}: {cause}")
    return error


def typed_error(error: ValueError) -> Exception:
    """The error of a bad address or setting by a type of its own, where the SDK has none."""
    if isinstance(error, BotoCoreError):
        return error
    if _ABOUT_ADDRESS.search(str(error)):
        return UnsendableError(str(error))
    return InvalidConfigError(error_msg=str(error))


class BoundedParsers(ResponseParserFactory):
    """Makes the SDK's parsers, but these raise `ResponseParserError` over all that they cannot
    read, and `AnswerTooLargeError` over more than `ANSWER_MAX_VALUES` values.
    """

    def create_parser(self, protocol_name: str) -> Any:  # noqa: ANN401 -- the SDK's own
        parser: Any = super().create_parser(protocol_name)
        events = parser._event_stream_parser  # noqa: SLF001 -- reads each event of a stream
        for part in (parser, events) if events else (parser,):
            part.parse = _bounded_parse(part.parse)
        return parser


def _bounded_parse(parse: Callable[..., Any]) -> Callable[..., Any]:
    def bounded_parse(response: Mapping[str, Any], shape: Any) -> Any:  # noqa: ANN401 -- the SDK's
        body = response.get("body")
        if isinstance(body, bytes) and _n_values(body) > ANSWER_MAX_VALUES:
            raise AnswerTooLargeError(f"the answer has more than {ANSWER_MAX_VALUES} values")
        try:
            fields = parse(response, shape)
        except _PARSER_ERRORS as error:
            raise ResponseParserError(f"{type(error).__name__} in the answer") from error
        details = fields.get("Error") if isinstance(fields, dict) else None
        if isinstance(details, dict):
            # These may be no texts if something other than the service answers.
            texts = {name: str(details[name]) for name in ("Code", "Message") if name in details}
            details.update(texts)
        return fields

    return bounded_parse


def _n_values(body: bytes) -> int:
    """At least as many as the values of a JSON body; most are too short to need counting."""
    if len(body) <= ANSWER_MAX_VALUES:
        return len(body)
    return sum(map(body.count, (b",", b"[", b"{")))


class _BoundedBody:
    """The body of a response. `stream`, by which the SDK reads answers and events, has a bound;
    `read` has none, since whoever reads an object of S3 bounds it.
    """

    def __init__(self, body: HTTPResponse, max_bytes: int) -> None:
        self._body = body
        self._max_bytes = max_bytes

    def stream(self, *args: Any, **kwargs: Any) -> Iterator[bytes]:  # noqa: ANN401 -- urllib3's
        n_bytes = 0
        for piece in self._body.stream(*args, **kwargs):
            n_bytes += len(piece)
            if n_bytes > self._max_bytes:
                self._body.close()
                raise AnswerTooLargeError(f"the answer has no end within {n_bytes} bytes")
            yield piece

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever urllib3's has
        return getattr(self._body, name)


class _BoundedResponse(botocore.awsrequest.AWSResponse):
    def __init__(
        self,
        url: str,
        status_code: int,
        headers: Any,  # noqa: ANN401 -- the SDK's own
        raw: HTTPResponse,
    ) -> None:
        max_bytes = ANSWER_MAX_BYTES if "/model/" in url else OTHER_MAX_BYTES
        super().__init__(url, status_code, headers, _BoundedBody(raw, max_bytes))
