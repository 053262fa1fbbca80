"""Serves the endpoint over HTTP: a thread for each connection, by the standard library's parser."""

import io
import os
import resource
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Self

from socratic_bench.emulator.answers import HttpRequest, Outcome, refusal
from socratic_bench.emulator.service import CONTROL_PATH, RequestRecord, Service
from socratic_bench.emulator.settings import Settings

BODY_LIMIT_BYTES = 32 * 1024 * 1024
CONTROL_LIMIT_BYTES = 64 * 1024
LINE_LIMIT_BYTES = 64 * 1024
BACKLOG = 1024
SPARE_DESCRIPTORS = 100
# How long a connection may stay without a further request, and one that is refused without leaving.
IDLE_S = 300.0
LEAVING_S = 2.0
# Headers that may not be repeated: a proxy in between could read another value.
UNREPEATED = ("Host", "Origin", "Content-Length", "Transfer-Encoding")

# Waits for so many seconds of the clock, or until the event is set.
Wait = Callable[[float, threading.Event], object]


class Emulator:
    """A running endpoint. It listens as soon as it is made, until `close` or the block's end.

    Quotas, caches and the pace of answers go by `clock` in seconds, and `wait` waits by it: the
    system's by default. Raises `OSError` if the address cannot be used.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Wait = lambda seconds, closing: closing.wait(seconds),
    ) -> None:
        self.settings = settings or Settings()
        self.clock = clock
        self.wait = wait
        self.closing = threading.Event()
        self.service = Service(self.settings, clock)
        self._shut_s = 0.0
        self._n_connections = 0
        self._lock = threading.Lock()
        self._connections: set[_Connection] = set()
        self._listening = _listen(host, port)
        name, number = self._listening.getsockname()[:2]
        self._address = (name, number)
        self.service.gate.listens_at(host, name)
        self.url = f"http://{f'[{name}]' if ':' in name else name}:{number}"
        self._thread = threading.Thread(target=self._accept, name="bedrock-emulator", daemon=True)
        self._thread.start()

    @property
    def requests(self) -> list[RequestRecord]:
        """All requests so far, in the order of their arrival."""
        return list(self.service.records)

    def close(self) -> None:
        """Stop listening and drop every connection. A second call does nothing."""
        self.closing.set()
        self._wake()
        self._thread.join()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.abort()
        for connection in connections:
            connection.thread.join()

    def refuse_connections(self, seconds: float) -> None:
        """Let nobody connect for a while; open connections stay."""
        self._shut_s = seconds
        self._wake()

    def forget(self, connection: "_Connection") -> None:
        with self._lock:
            self._connections.discard(connection)

    def _accept(self) -> None:
        while True:
            try:
                accepted = self._listening.accept()[0]
            except OSError:  # woken: see `_wake`
                accepted = None
            if accepted is not None and not (self.closing.is_set() or self._shut_s):
                self._connect(accepted)
                continue
            if accepted is not None:
                accepted.close()
            self._listening.close()
            self.closing.wait(self._shut_s)
            if self.closing.is_set():
                return
            self._shut_s = 0.0
            self._listening = _listen(*self._address)

    def _connect(self, accepted: socket.socket) -> None:
        self._n_connections += 1
        connection = _Connection(accepted, self._n_connections, self)
        with self._lock:
            has_room = len(self._connections) < self.settings.max_connections or self._make_room()
            if has_room:
                self._connections.add(connection)
        if has_room:
            connection.thread.start()
        else:
            connection.refuse(503, "Too many connections are open. Close some, and try again.")
            connection.close()

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for a request, if any waits."""
        waiting = [
            connection for connection in self._connections if connection.waits_since_s is not None
        ]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda connection: connection.waits_since_s or 0.0)
        self._connections.discard(oldest)
        oldest.abort()
        return True

    def _wake(self) -> None:
        """Have the accepting thread look: Linux wakes it by a shutdown, others by a connection."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            socket.create_connection(self._address, timeout=1).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def serve(settings: Settings, *, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Listen until a signal that is not ignored; `ready` gets the URL. For the main thread."""
    has_ended = threading.Event()
    # As many open files as all connections take, as far as the system grants them.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.max_connections + SPARE_DESCRIPTORS
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    with Emulator(settings, host, port) as emulator:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: has_ended.set())
        ready(emulator.url)
        has_ended.wait()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


class _Connection(BaseHTTPRequestHandler):
    """One client's connection: reads a request, sends the answer at its pace, reads the next."""

    protocol_version = "HTTP/1.1"

    def __init__(self, accepted: socket.socket, number: int, emulator: Emulator) -> None:
        # The base class would serve in its constructor, in the thread that accepts.
        self.connection = accepted
        self.close_connection = False
        self.waits_since_s: float | None = time.monotonic()
        self._number = number
        self._emulator = emulator
        self._input = _BoundedInput(accepted)
        self.rfile = self._reader = io.BufferedReader(self._input)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._local = accepted.getsockname()[:2]
        self.thread = threading.Thread(target=self._serve, name="bedrock-connection", daemon=True)

    def abort(self) -> None:
        """Wake the thread out of whatever it waits for on the socket."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.rfile.close()
        self.connection.close()

    def refuse(self, status: int, message: str) -> None:
        """Say why, and close. What still comes in is let go, so that the answer is read."""
        self.close_connection = True
        with suppress(OSError):
            self._send(refusal(status, message))
            self.connection.shutdown(socket.SHUT_WR)
            self._input.deadline_s = time.monotonic() + LEAVING_S
            while self.rfile.read1(LINE_LIMIT_BYTES):
                pass

    def _serve(self) -> None:
        try:
            patience_s = self._emulator.settings.read_timeout_s
            while not self.close_connection and self._waits_for_request(patience_s):
                self._handle_request()
                patience_s = IDLE_S
        except OSError:
            pass  # the client has left, or is aborted
        finally:
            self._emulator.forget(self)
            self.close()

    def _waits_for_request(self, patience_s: float) -> bool:
        """Whether a request begins within so many seconds."""
        self.waits_since_s = time.monotonic()
        self._input.deadline_s = self.waits_since_s + patience_s
        return bool(self._reader.peek(1))

    def _handle_request(self) -> None:
        self._input.deadline_s = time.monotonic() + self._emulator.settings.read_timeout_s
        try:
            self.raw_requestline = self.rfile.readline(LINE_LIMIT_BYTES + 1)
            if len(self.raw_requestline) > LINE_LIMIT_BYTES:
                self.refuse(431, "The request's head is too large.")
                return
            body = self._read_body() if self.parse_request() else None
        except TimeoutError:
            self.refuse(408, "The request did not arrive in time.")
            return
        if body is not None:
            came_s = self._emulator.clock()
            self.waits_since_s = None
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = HttpRequest(self.command, self.path, headers, body, self._number, self._local)
            self._play(self._emulator.service.handle(request), came_s)

    def _read_body(self) -> bytes | None:
        """The request's body; `None` if it is refused, and the client told."""
        limit = CONTROL_LIMIT_BYTES if self.path.startswith(CONTROL_PATH) else BODY_LIMIT_BYTES
        repeated = [name for name in UNREPEATED if len(self.headers.get_all(name, ())) > 1]
        length = self.headers.get("Content-Length", "0").strip()
        if repeated:
            self.refuse(400, f"The header {repeated[0]} stands there twice.")
        elif self.headers.get("Transfer-Encoding"):
            self.refuse(411, "Send the body whole, with a Content-Length.")
        elif not (length.isascii() and length.isdecimal() and len(length) < 16):  # noqa: PLR2004
            self.refuse(400, "The Content-Length header is malformed.")
        elif int(length) > limit:
            self.refuse(413, "The request's body is too large.")
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                return body
            self.close_connection = True  # the client has left
        return None

    def _play(self, answer: Outcome, due_s: float) -> None:
        """Send the pieces, each once its wait since the one before it is over."""
        for number, (wait_s, data) in enumerate(answer.pieces):
            due_s += wait_s
            left_s = due_s - self._emulator.clock()
            if left_s > 0:
                self._emulator.wait(left_s, self._emulator.closing)
            if number == 0 and answer.began is not None:
                answer.began()
            self._send(data)
        if answer.shut_s > 0:
            self._emulator.refuse_connections(answer.shut_s)
        self.close_connection |= answer.end != "keep"
        if answer.end == "reset":  # so that the peer sees a reset instead of an end
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            os.close(self.connection.detach())

    def _send(self, data: bytes) -> None:
        self.connection.settimeout(self._emulator.settings.read_timeout_s)
        self.connection.sendall(data)

    def handle_expect_100(self) -> bool:
        """Tell a client that waits for it to go on."""
        self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what the base class cannot parse, in JSON as all else is."""
        del explain
        self.refuse(431 if code == 414 else code, message or "The request is malformed.")  # noqa: PLR2004


class _BoundedInput(io.RawIOBase):
    """A socket's input, read no longer than until `deadline_s`, a time of `time.monotonic`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.deadline_s = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        return self._connection.recv_into(buffer)
