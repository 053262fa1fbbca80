"""Bounds the answers that the SDK reads, and refuses requests that it could not send safely."""

import re
from collections.abc import Iterator, Mapping
from http.client import InvalidURL
from typing import TYPE_CHECKING, Any

import botocore.awsrequest
from botocore.exceptions import BotoCoreError, HTTPClientError, InvalidConfigError

if TYPE_CHECKING:
    from urllib3 import HTTPResponse

ANSWER_MAX_BYTES = 32_000_000
SECRET_HEADERS = ("Authorization", "X-Amz-Security-Token")

# What the standard library and urllib3 raise over an address that is none.
_BAD_ADDRESS = (ValueError, OverflowError, InvalidURL)
_UNPLAIN = re.compile(rb"[^\x20-\x7e]")
_BROKEN_HEADER = re.compile(rb"\n(?![ \t])|\r(?![ \t\n])")
_BROKEN_ADDRESS = re.compile(r"[\x00-\x20\x7f]")
_ABOUT_ADDRESS = re.compile(r"(?i)\b(endpoint|URL|port|netloc)\b")


class AnswerTooLargeError(Exception):
    """An answer that was not read to its end, since it is larger than any answer needs to be."""


class UnsendableError(Exception):
    """A request that never left this machine, since HTTP cannot carry it.

    `header` names the header whose value is at fault; the value, which may be a secret, is not in
    the message.
    """

    def __init__(self, message: str, header: str | None = None) -> None:
        super().__init__(message)
        self.header = header


def bound_answers() -> None:
    """Have every session of this process read answers of bounded size only."""
    vars(botocore.awsrequest).update(AWSResponse=_BoundedResponse)


def check_sendable(url: str, headers: Mapping[str, str | bytes]) -> None:
    """Raise `UnsendableError` for a request with a line break, say, in its address or a header."""
    if _BROKEN_ADDRESS.search(url):
        raise UnsendableError("the address of the endpoint holds a blank or a control character")
    for name, value in headers.items():
        try:
            raw = value.encode("latin-1") if isinstance(value, str) else value
        except UnicodeEncodeError:
            raw = b"\n"
        # Credentials have printable ASCII characters only.
        if (_UNPLAIN if name in SECRET_HEADERS else _BROKEN_HEADER).search(raw):
            problem = "a line break, or a sign that it cannot hold"
            raise UnsendableError(f"Invalid header value: {problem}, in {name}", header=name)


def carried(error: Exception) -> Exception:
    """The error that the SDK has put into one of its own, if it has a name here; else itself."""
    inner = error.kwargs.get("error") if isinstance(error, HTTPClientError) else None
    if isinstance(inner, (AnswerTooLargeError, UnsendableError)):
        return inner
    if isinstance(inner, _BAD_ADDRESS) and not isinstance(inner, OSError):
        return UnsendableError(f"{type(inner).__name__}: {inner}")
    return error


def named(error: ValueError) -> Exception:
    """The error with a type of its own: the SDK has none for bad addresses and some settings."""
    if isinstance(error, BotoCoreError):
        return error
    if _ABOUT_ADDRESS.search(str(error)):
        return UnsendableError(str(error))
    return InvalidConfigError(error_msg=str(error))


class _BoundedBody:
    """A response's body; `stream`, by which the SDK reads answers and events, has a bound.

    `read` has none: it reads the objects of S3, whose size its caller bounds.
    """

    def __init__(self, body: "HTTPResponse") -> None:
        self._body = body

    def stream(self, *args: Any, **kwargs: Any) -> Iterator[bytes]:  # noqa: ANN401 -- urllib3's
        n_bytes = 0
        for piece in self._body.stream(*args, **kwargs):
            n_bytes += len(piece)
            if n_bytes > ANSWER_MAX_BYTES:
                self._body.close()
                raise AnswerTooLargeError(f"the answer has no end within {n_bytes} bytes")
            yield piece

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever urllib3's has
        return getattr(self._body, name)


class _BoundedResponse(botocore.awsrequest.AWSResponse):
    """A response whose body has a bound."""

    def __init__(
        self,
        url: str,
        status_code: int,
        headers: Any,  # noqa: ANN401 -- the SDK's own
        raw: "HTTPResponse",
    ) -> None:
        super().__init__(url, status_code, headers, _BoundedBody(raw))
