"""Bounds the SDK's connections: answers of bounded size and time, errors with names.

Put in at the SDK's own seam: a connection pool's `ConnectionCls`.
"""

import io
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from http.client import InvalidURL
from itertools import count
from typing import Any
from weakref import ref

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from botocore.exceptions import BotoCoreError, HTTPClientError, InvalidConfigError
from urllib3.exceptions import LocationValueError, ProxySchemeUnsupported

from socratic_bench.fair_semaphore import sent
from socratic_bench.in_flight_request import InFlightRequest, aside, sending_here, within_time
from socratic_bench.models.bedrock.thread_bounds import ALLOWED, within_call

ANSWER_MAX_BYTES = 32_000_000
# The most bytes of all answers being read together, so that several do not fill the memory.
UNDER_WAY_MAX_BYTES = 64_000_000
SMALL_BYTES = 1_000_000
TINY_BYTES = 64_000
# Answers such as "100 Continue" that may come before the one that counts.
INTERIM_MAX = 20

# What the standard library raises over a request that cannot be put into HTTP.
_UNSENDABLE = (ValueError, OverflowError, InvalidURL)
SECRET_HEADERS = ("Authorization", "X-Amz-Security-Token")
_UNPLAIN = re.compile(rb"[^\x20-\x7e]")
_ABOUT_ADDRESS = r"(?i)\b(endpoint|URL|port|netloc)\b"  # compiled when wanted
_BROKEN_HEADER = re.compile(rb"\n(?![ \t])|\r(?![ \t\n])")


class AnswerTooLargeError(Exception):
    """An answer that was not read to its end, since it has more than any answer needs."""


class UnsendableError(Exception):
    """A request that never left this machine: it cannot be put into HTTP. `header`: the one that
    holds what no header can, whose value stays untold.
    """

    def __init__(self, message: str, header: str | None = None) -> None:
        super().__init__(message)
        self.header = header


def install_connections() -> None:
    """Have the SDK make its connections by the classes below, in all sessions of this process."""
    AWSHTTPConnectionPool.ConnectionCls = _Connection
    AWSHTTPSConnectionPool.ConnectionCls = _SecureConnection


def carried(error: Exception) -> Exception:
    """The error that the SDK has put into one of its own, if it has a name here; else itself."""
    inner = error.kwargs.get("error") if isinstance(error, HTTPClientError) else None
    if isinstance(inner, (AnswerTooLargeError, UnsendableError)):
        return inner
    # An address, of the endpoint or a proxy, to which no connection can be made at all.
    if isinstance(inner, (LocationValueError, ProxySchemeUnsupported)):
        return UnsendableError(f"{type(inner).__name__}: {inner}")
    return error


def named(error: ValueError) -> Exception:
    """The error with a type of its own: the SDK has none for bad addresses and some settings."""
    if isinstance(error, BotoCoreError):
        return error
    if re.search(_ABOUT_ADDRESS, str(error)):
        return UnsendableError(str(error))
    return InvalidConfigError(error_msg=str(error))


# What `_BoundedConnection` is mixed into; the SDK's connections contradict their own bases' types.
_AnyConnection: Any = object


class _BoundedConnection(_AnyConnection):  # type: ignore[misc]
    """A connection that says when a request cannot be sent, and whose answers have an end."""

    _held: tuple[InFlightRequest, Callable[[], object]] | None = None
    _pieces: list[bytes] | None = None
    timeout: float | None

    def connect(self) -> None:
        self.timeout = within_call(self.timeout)
        try:
            aside(partial(self._connect, sending_here()))
        except OSError:
            raise  # also certificates that are not trusted, which are ValueErrors as well
        except _UNSENDABLE as error:
            raise _unsendable(error) from error
        self._hold()

    def _connect(self, sending: InFlightRequest | None) -> None:
        """In a thread that may have been left behind meanwhile: then nobody else would close it."""
        super().connect()
        if sending and sending.is_aborted:
            self.close()

    def request(
        self,
        method: str,
        url: str,
        body: Any = None,  # noqa: ANN401 -- the SDK's own
        headers: Mapping[str, str | bytes] | None = None,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        headers = headers or {}
        _check_headers(headers)
        is_small = isinstance(body, bytes) and len(body) <= SMALL_BYTES
        self._pieces = [] if is_small and "Expect" not in headers else None
        if vars(self)["sock"] is not None:
            self._hold()
        try:
            self.timeout = within_time(within_call(self.timeout))
            super().request(method, url, body, headers, *args, **kwargs)
            pieces, self._pieces = self._pieces, None
            if pieces:
                self.send(b"".join(pieces))
        except OSError:
            raise  # also certificates that are not trusted, which are ValueErrors as well
        except _UNSENDABLE as error:
            raise _unsendable(error) from error
        finally:
            self._pieces = None
        sent()

    def send(self, data: Any) -> None:  # noqa: ANN401 -- the SDK's own
        """Head and body of a small request go out at once, as the SDK itself means them to."""
        if self._pieces is None:
            super().send(data)
        else:
            self._pieces.append(data)

    def _hold(self) -> None:
        """Until the answer is read, this connection is that of the request which the thread sends:
        if nobody waits for it any more, the connection ends at once.
        """
        self._release()
        sending = sending_here()
        if sending:
            self._held = (sending, partial(_shut, vars(self)["sock"]))
            sending.hold(self._held[1], self.close)

    def _release(self) -> None:
        held, self._held = self._held, None
        if held:
            sending, shut = held
            sending.release(shut)

    def getresponse(self) -> Any:  # noqa: ANN401 -- urllib3's
        make = vars(self)["response_class"]  # a response's own, or the SDK's
        self.response_class = partial(_bounded, make, self._release)
        self.timeout = within_time(within_call(self.timeout))
        try:
            return super().getresponse()
        finally:
            self.response_class = make


class _Connection(_BoundedConnection, AWSHTTPConnection):  # type: ignore[misc]
    """Without TLS."""


class _SecureConnection(_BoundedConnection, AWSHTTPSConnection):  # type: ignore[misc]
    """With TLS."""


def _shut(sock: socket.socket) -> None:
    """Have whoever reads from it read the end."""
    with suppress(OSError):
        # Of the socket itself: TLS has a farewell of its own, which would have to wait.
        socket.socket.shutdown(getattr(sock, "socket", sock), socket.SHUT_RDWR)


def _bounded(
    make: Callable[..., Any],
    on_read: Callable[[], None],
    sock: socket.socket,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """A response that is bounded from its first byte on, the interim ones before it included."""
    response = make(sock, *args, **kwargs)
    # Read from the socket itself, since a second buffer would only take room.
    response.fp = io.BufferedReader(_Bounded(response.fp.detach(), sock, on_read))
    next_status = partial(_next_status, type(response), ref(response), count(1))
    response._read_status = next_status  # noqa: SLF001 -- asked for each of them
    return response


def _next_status(kind: Any, response: "ref[Any]", number: Iterator[int]) -> Any:  # noqa: ANN401
    if next(number) > INTERIM_MAX:
        raise AnswerTooLargeError(f"more than {INTERIM_MAX} interim answers come before the answer")
    return kind._read_status(response())  # noqa: SLF001 -- the SDK has one of its own


class _Bounded(io.RawIOBase):
    """The bytes of one answer, up to the bound, in its time, and as long as all of them fit."""

    _lock = threading.Lock()
    _under_way = 0

    def __init__(
        self, inner: io.RawIOBase, sock: socket.socket, on_read: Callable[[], None]
    ) -> None:
        super().__init__()
        self._inner = inner
        self._sock = sock
        self._timeout_s = sock.gettimeout()
        self._on_read = on_read
        self._n_read = self._n_counted = 0
        self._most = getattr(ALLOWED, "n_bytes", ANSWER_MAX_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 -- any buffer
        timeout_s = within_time(self._timeout_s)
        if timeout_s != self._timeout_s:
            self._sock.settimeout(timeout_s)
        n_new: int = self._inner.readinto(buffer)
        self._n_read += n_new
        # A small answer is never refused because of large ones, and a tiny one does not count.
        is_too_much = (
            self._n_read > TINY_BYTES
            and self._count(self._n_read - self._n_counted) > UNDER_WAY_MAX_BYTES
            and self._n_read > SMALL_BYTES
        )
        if self._n_read > self._most or is_too_much:
            raise AnswerTooLargeError(f"the answer has no end within {self._n_read} bytes")
        return n_new

    def close(self) -> None:
        if not self.closed:
            self._on_read()
            self._inner.close()
            if self._n_counted:
                self._count(-self._n_counted)
        super().close()

    def _count(self, n_bytes: int) -> int:
        self._n_counted += n_bytes
        with _Bounded._lock:
            _Bounded._under_way += n_bytes
            return _Bounded._under_way


def _check_headers(headers: Mapping[str, str | bytes]) -> None:
    """Tell a value that HTTP cannot carry by its header's name: the value may be a secret."""
    for name, value in headers.items():
        try:
            raw = value.encode("latin-1") if isinstance(value, str) else value
        except UnicodeEncodeError:
            raw = b"\n"
        is_secret = name in SECRET_HEADERS
        if not is_secret and b"\n" not in raw and b"\r" not in raw:
            continue
        # No credential has anything but plain signs.
        if (_UNPLAIN if is_secret else _BROKEN_HEADER).search(raw):
            problem = "a line break, or a sign that it cannot hold"
            raise UnsendableError(f"Invalid header value: {problem}, in {name}", header=name)


def _unsendable(error: Exception) -> UnsendableError:
    return UnsendableError(f"{type(error).__name__}: {error}")
