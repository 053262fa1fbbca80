"""Reads HTTP/1.1 requests as they arrive, each part of them up to a bound."""

import re

from msgspec import Struct

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 32 * 1024 * 1024
CONTROL_LIMIT = 64 * 1024
CONTROL_PATH = "/_emulator/"

_LENGTH = re.compile(rb"\d{1,15}")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?")
_CHUNK_LINE_LIMIT = 256
# Headers that may not be repeated: a proxy in between could read another value.
_ONCE = frozenset((b"host", b"origin", b"content-length", b"transfer-encoding"))


class MalformedRequestError(Exception):
    """What came in is not HTTP, or too much of it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Head(Struct, frozen=True):
    """A request without its body. Header names are lower case."""

    method: str
    target: str
    headers: dict[bytes, bytes]
    length: int
    chunked: bool
    last: bool

    @property
    def body_limit(self) -> int:
        return CONTROL_LIMIT if self.target.startswith(CONTROL_PATH) else BODY_LIMIT


class RequestParser:
    """Takes bytes in, and gives whole requests out, one after the other."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._head: Head | None = None
        self._chunks = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    @property
    def held_bytes(self) -> int:
        """What is kept of requests that are not whole yet, or not asked for."""
        return len(self._buffer) + len(self._chunks)

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a request is there."""
        return self._head is None and not self._buffer

    def next_head(self) -> Head | None:
        """The head of the request that arrives, the first time that it is whole."""
        if self._head is not None:
            return None
        self._head = self._take_head()
        return self._head

    def next_request(self) -> tuple[Head, bytes] | None:
        """The next request once it is whole; its head has to be taken first."""
        head = self._head
        if head is None:
            return None
        body = self._take_chunked(head.body_limit) if head.chunked else self._take(head.length)
        if body is None:
            return None
        self._head = None
        return head, body

    def _take_head(self) -> Head | None:
        end = self._buffer.find(b"\r\n\r\n", self._searched)
        if end > HEAD_LIMIT or (end < 0 and len(self._buffer) > HEAD_LIMIT):
            raise MalformedRequestError(431, "The request's head is too large.")
        self._searched = max(0, len(self._buffer) - 3) if end < 0 else 0
        if end < 0:
            return None
        head = _read_head(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]
        return head

    def _take(self, length: int) -> bytes | None:
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def _take_chunked(self, limit: int) -> bytes | None:
        """Move every chunk that is whole; the body, once the last one was there."""
        while (end := self._buffer.find(b"\r\n", 0, _CHUNK_LINE_LIMIT)) >= 0:
            found = _CHUNK_SIZE.fullmatch(bytes(self._buffer[:end]))
            if found is None:
                raise MalformedRequestError(400, "A chunk's size is malformed.")
            size, start = int(found[1], 16), end + 2
            if len(self._chunks) + size > limit:
                raise MalformedRequestError(413, "The request's body is too large.")
            if len(self._buffer) < start + size + 2:
                return None
            if self._buffer[start + size : start + size + 2] != b"\r\n":
                raise MalformedRequestError(400, "A chunk is longer than it says.")
            self._chunks += self._buffer[start : start + size]
            del self._buffer[: start + size + 2]
            if size == 0:
                body, self._chunks = bytes(self._chunks), bytearray()
                return body
        if len(self._buffer) >= _CHUNK_LINE_LIMIT:
            raise MalformedRequestError(400, "A chunk's size is malformed.")
        return None


def _read_head(text: bytes) -> Head:
    first, *lines = text.split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):  # noqa: PLR2004  # method, target, version
        raise MalformedRequestError(400, "The request line is malformed.")
    headers: dict[bytes, bytes] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name in _ONCE and name in headers:
            raise MalformedRequestError(400, f"The header {name.decode()} stands there twice.")
        headers[name] = value.strip()
    chunked = b"chunked" in headers.get(b"transfer-encoding", b"").lower()
    if chunked and b"content-length" in headers:
        raise MalformedRequestError(400, "Content-Length and Transfer-Encoding exclude each other.")
    head = Head(
        words[0].decode("latin-1"),
        words[1].decode("latin-1"),
        headers,
        _length(headers),
        chunked,
        words[2] == b"HTTP/1.0" or headers.get(b"connection", b"").lower() == b"close",
    )
    if head.length > head.body_limit:
        raise MalformedRequestError(413, "The request's body is too large.")
    return head


def _length(headers: dict[bytes, bytes]) -> int:
    text = headers.get(b"content-length", b"0")
    if not _LENGTH.fullmatch(text):
        raise MalformedRequestError(400, "The Content-Length header is malformed.")
    return int(text)
