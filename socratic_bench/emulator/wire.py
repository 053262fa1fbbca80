"""One client's connection: reads its requests, and sends the answers at their pace."""

import asyncio
import json
import socket
from collections.abc import Callable
from functools import partial
from typing import Literal

from msgspec import Struct

from socratic_bench.emulator.connections import HELD_LIMIT, ConnectionPool
from socratic_bench.emulator.parser import HEAD_LIMIT, MalformedRequestError, RequestParser

# How long a connection may stay without a further request, and one that is refused without leaving.
IDLE_S = 300
LEAVING_S = 2

Phase = Literal["reading", "playing", "stuck", "leaving"]

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


class HttpRequest(Struct, frozen=True):
    """A whole request. Header names are lower case; `connection` numbers the TCP connections.

    `local` is the address and the port at which the client has reached the endpoint.
    """

    method: str
    target: str
    headers: dict[bytes, bytes]
    body: bytes
    connection: int
    local: tuple[str, int]


class Answer(Struct, frozen=True):
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


class Connection(asyncio.Protocol):
    """One client's connection: reads a request, plays the answer, and only then reads the next."""

    def __init__(
        self,
        handle: Callable[[HttpRequest], Answer],
        pool: ConnectionPool,
        number: int,
        shut: Callable[[float], None],
    ) -> None:
        self._handle = handle
        self._shut = shut
        self._pool = pool
        self._number = number
        self._parser = RequestParser()
        self._held_bytes = 0
        self._last = False
        self._has_asked = False
        self._is_paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._local = ("", 0)
        self.phase: Phase = "reading"
        self.since_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # a TCP server makes no other
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        own = transport.get_extra_info("socket")
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._local = own.getsockname()[:2]
        self._enter("reading")
        if not self._pool.reserve(self):
            self._refuse(503, "Too many connections are open. Close some, and try again.")

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._pool.forget(self)
        self._transport = None
        self._pool.hold(-self._held_bytes)
        self._held_bytes = 0
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.phase == "leaving" or self._transport is None:
            return
        if self.phase == "reading" and self._parser.is_idle:
            self.since_s = self._loop.time()
        self._parser.feed(data)
        if self.phase == "reading":
            self._read()
        elif self._parser.held_bytes > HEAD_LIMIT:
            # Further data from the client waits in the system's buffer meanwhile.
            self._transport.pause_reading()
            self._is_paused = True
        self._account()

    def pause_writing(self) -> None:
        """The client does not take what it asked for."""
        if self.phase == "playing":
            self._enter("stuck")

    def resume_writing(self) -> None:
        if self.phase == "stuck":
            self._enter("playing")
            if self._timer is None:
                self._finish("keep")

    def expire(self, now_s: float) -> None:
        """End what has taken too long: a request, an answer that nobody takes, a silence."""
        waited_s = now_s - self.since_s
        if self.phase == "reading" and self._parser.is_idle:
            if waited_s > (IDLE_S if self._has_asked else self._pool.read_timeout_s):
                self.abort()
        elif waited_s > (LEAVING_S if self.phase == "leaving" else self._pool.read_timeout_s):
            if self.phase == "reading":
                self._refuse(408, "The request did not arrive in time.")
            elif self.phase != "playing":
                self.abort()

    def _enter(self, phase: "Phase") -> None:
        self.phase = phase
        self.since_s = self._loop.time()

    def _account(self) -> None:
        held_bytes = self._parser.held_bytes if self._transport is not None else 0
        if held_bytes == self._held_bytes:
            return
        in_all = self._pool.hold(held_bytes - self._held_bytes)
        self._held_bytes = held_bytes
        if in_all > HELD_LIMIT and self.phase == "reading":
            self._refuse(503, "Too many requests arrive at once. Try again later.")

    def _read(self) -> None:
        came_s = self._loop.time()
        try:
            request = self._next_request()
        except MalformedRequestError as error:
            self._refuse(error.status, str(error))
            return
        if request is not None:
            self.phase = "playing"
            self._play(self._handle(request), came_s)

    def _refuse(self, status: int, message: str) -> None:
        """Say why, and close. What still comes in is let go, so that the answer is read."""
        headers = "Content-Type: application/json\r\nConnection: close\r\n"
        self._write(response(status, headers, json.dumps({"message": message}).encode()))
        self._enter("leaving")
        self._parser = RequestParser()
        self._account()
        if self._transport is not None:
            self._transport.write_eof()

    def _next_request(self) -> HttpRequest | None:
        head = self._parser.next_head()
        if head is not None and head.headers.get(b"expect", b"").lower() == b"100-continue":
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        found = self._parser.next_request()
        if found is None:
            return None
        head, body = found
        self._last, self._has_asked = head.last, True
        return HttpRequest(head.method, head.target, head.headers, body, self._number, self._local)

    def _play(
        self, answer: Answer, since_s: float, position: int = 0, *, waited: bool = False
    ) -> None:
        """Send the pieces from `position` on, the next one's wait counted from `since_s`."""
        loop = self._loop
        self._timer = None
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
            _reset_on_close(self._transport)
            self._transport.abort()
        elif end == "close" or self._last:
            self._enter("stuck")
            self._transport.close()
        elif self.phase == "playing":
            self._enter("reading")
            self._resume(self._transport)

    def _resume(self, transport: asyncio.Transport) -> None:
        """Go on to what the client has sent meanwhile."""
        if self._is_paused:
            transport.resume_reading()
            self._is_paused = False
        if not self._parser.is_idle:
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if self.phase == "reading" and self._transport is not None:
            self._read()
            self._account()


def _reset_on_close(transport: asyncio.Transport) -> None:
    """Make the close a reset: nothing more is sent, and the peer sees the connection torn down."""
    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
