"""HTTP/1.1, as much of it as the SDKs speak: one small parser and one connection class."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 64 * 1024 * 1024

REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    424: "Failed Dependency",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole request. Header names are lower case; `connection` numbers the TCP connections."""

    method: str
    target: str
    headers: dict[bytes, bytes]
    body: bytes
    connection: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes to send, each after a wait in seconds; `began` is called as the first of them leave.

    The first wait counts from when the request was there, each other one from when the piece before
    it was due, so that what the endpoint itself takes adds nothing. After the answer nobody can
    connect for `shut_s` seconds.
    """

    pieces: tuple[tuple[float, bytes], ...]
    end: Literal["keep", "close", "reset"] = "keep"
    began: Callable[[], None] | None = None
    shut_s: float = 0


def response(status: int, headers: str, body: bytes) -> bytes:
    """A response with a length; `headers` are whole lines, each with its line end."""
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class MalformedRequestError(Exception):
    """What came in is not HTTP, or too much of it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Connection(asyncio.Protocol):
    """One client's connection: reads a request, plays the answer, and only then reads the next."""

    def __init__(
        self,
        handle: Callable[[HttpRequest], Answer],
        live: "set[Connection]",
        number: int,
        shut: Callable[[float], None],
    ) -> None:
        self._handle = handle
        self._shut = shut
        self._live = live
        self._number = number
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._busy = False
        self._last = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # a TCP server makes no other
        self._transport = transport
        self._live.add(self)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._live.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._busy:
            self._read()

    def _read(self) -> None:
        came_s = asyncio.get_running_loop().time()
        try:
            request = self._next_request()
        except MalformedRequestError as error:
            body = f'{{"message":"{error}"}}'.encode()
            headers = "Content-Type: application/json\r\nConnection: close\r\n"
            self._play(Answer(((0, response(error.status, headers, body)),), "close"), came_s)
            return
        if request is not None:
            self._busy = True
            self._play(self._handle(request), came_s)

    def _next_request(self) -> HttpRequest | None:
        if self._head is None:
            self._head = _take_head(self._buffer)
            if self._head is None:
                return None
            if self._head.headers.get(b"expect", b"").lower() == b"100-continue":
                self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        head = self._head
        body = _take_chunked(self._buffer) if head.chunked else _take(self._buffer, head.length)
        if body is None:
            return None
        self._head = None
        self._last = head.headers.get(b"connection", b"").lower() == b"close"
        return HttpRequest(head.method, head.target, head.headers, body, self._number)

    def _play(
        self, answer: Answer, since_s: float, position: int = 0, *, waited: bool = False
    ) -> None:
        """Send the pieces from `position` on, the next one's wait counted from `since_s`."""
        loop = asyncio.get_running_loop()
        for number in range(position, len(answer.pieces)):
            wait_s, data = answer.pieces[number]
            if wait_s > 0 and not (waited and number == position):
                since_s += wait_s
                if since_s > loop.time():
                    resume = partial(self._play, answer, since_s, number, waited=True)
                    self._timer = loop.call_at(since_s, resume)
                    return
            if number == 0 and answer.began is not None:
                answer.began()
            self._write(data)
        if answer.shut_s > 0:
            self._shut(answer.shut_s)
        self._finish(answer.end)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _finish(self, end: str) -> None:
        if self._transport is None:
            return
        if end == "reset":
            _linger_not(self._transport)
            self._transport.abort()
        elif end == "close" or self._last:
            self._transport.close()
        else:
            self._busy = False
            if self._buffer:
                asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self._busy and self._transport is not None:
            self._read()


@dataclass(frozen=True, slots=True)
class _Head:
    method: str
    target: str
    headers: dict[bytes, bytes]
    length: int
    chunked: bool


def _take_head(buffer: bytearray) -> _Head | None:
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > HEAD_LIMIT:
            raise MalformedRequestError(431, "The request's head is too large.")
        return None
    first, *lines = bytes(buffer[:end]).split(b"\r\n")
    del buffer[: end + 4]
    words = first.split(b" ")
    if len(words) != 3:  # noqa: PLR2004  # method, target, version
        raise MalformedRequestError(400, "The request line is malformed.")
    headers = {}
    for line in lines:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    return _Head(
        words[0].decode("latin-1"),
        words[1].decode("latin-1"),
        headers,
        _length(headers),
        b"chunked" in headers.get(b"transfer-encoding", b"").lower(),
    )


def _length(headers: dict[bytes, bytes]) -> int:
    text = headers.get(b"content-length", b"0")
    if not text.isdigit():
        raise MalformedRequestError(400, "The Content-Length header is malformed.")
    if int(text) > BODY_LIMIT:
        raise MalformedRequestError(413, "The request's body is too large.")
    return int(text)


def _take(buffer: bytearray, length: int) -> bytes | None:
    if len(buffer) < length:
        return None
    body = bytes(buffer[:length])
    del buffer[:length]
    return body


def _take_chunked(buffer: bytearray) -> bytes | None:
    """Read all chunks, or nothing: an unfinished body stays in the buffer and is read anew."""
    spans, at = [], 0
    while (end := buffer.find(b"\r\n", at)) >= 0:
        start = end + 2
        at = start + _chunk_size(buffer[at:end])
        if at > BODY_LIMIT:
            raise MalformedRequestError(413, "The request's body is too large.")
        if len(buffer) < at + 2:
            break
        spans.append((start, at))
        at += 2
        if spans[-1] == (start, start):
            body = b"".join(bytes(buffer[first:last]) for first, last in spans)
            del buffer[:at]
            return body
    return None


def _chunk_size(line: bytearray) -> int:
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError:
        raise MalformedRequestError(400, "A chunk's size is malformed.") from None


def _linger_not(transport: asyncio.Transport) -> None:
    """Make the close a reset: nothing more is sent, and the peer sees the connection torn down."""
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
