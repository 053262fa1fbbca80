"""The events of a streamed answer: the SDK's own reader, with a quick way for what nearly all of
them are. Any other event, such as an error, is read by the SDK.

The encoding: https://smithy.io/2.0/aws/amazon-eventstream.html
"""

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict
from zlib import crc32

from botocore.eventstream import (
    ChecksumMismatch,
    EventStream,
    EventStreamHeaderParser,
    InvalidHeadersLength,
    InvalidPayloadLength,
)
from msgspec import DecodeError
from msgspec.json import Decoder

if TYPE_CHECKING:
    from urllib3 import HTTPResponse

HEADERS_MAX_BYTES = 128 * 1024
PAYLOAD_MAX_BYTES = 24 * 2**20
# Lengths of the frame and of its headers, and their checksum; another one is at the frame's end.
_PRELUDE = struct.Struct("!III")
_CHECKSUM = struct.Struct("!I")
_AROUND_BYTES = _PRELUDE.size + _CHECKSUM.size
_CHECKED_BYTES = _PRELUDE.size - _CHECKSUM.size
_OK = 200


class _Started(TypedDict):
    role: str


class _BlockStarted(TypedDict):
    contentBlockIndex: int
    start: dict[Literal["toolUse"], dict[Literal["toolUseId", "name"], str]]


class _Delta(TypedDict):
    contentBlockIndex: int
    delta: dict[Literal["text", "toolUse"], str | dict[Literal["input"], str]]


class _BlockStopped(TypedDict):
    contentBlockIndex: int


class _Stopped(TypedDict):
    stopReason: str


_Count = Literal[
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "cacheReadInputTokens",
    "cacheWriteInputTokens",
    "latencyMs",
]


# Whatever else these events have is read by nobody. One that has something of another type is not
# plain.
_PLAIN: dict[str, Decoder[Any]] = {
    "messageStart": Decoder(_Started),
    "contentBlockStart": Decoder(_BlockStarted),
    "contentBlockDelta": Decoder(_Delta),
    "contentBlockStop": Decoder(_BlockStopped),
    "messageStop": Decoder(_Stopped),
    "metadata": Decoder(dict[Literal["usage", "metrics"], dict[_Count, int]]),
}
_KINDS = {"text": str, "toolUse": dict}


class _Frame:
    """See `botocore.eventstream.EventStreamMessage`, as far as it is read."""

    __slots__ = ("headers", "payload")

    def __init__(self, headers: dict[str, Any], payload: bytes) -> None:
        self.headers = headers
        self.payload = payload

    def to_response_dict(self) -> dict[str, Any]:
        is_event = self.headers.get(":message-type") not in ("error", "exception")
        status = _OK if is_event else 400
        return {"status_code": status, "headers": self.headers, "body": self.payload}


_EventStream: Any = EventStream  # whose stubs leave out what it is made of


class Events(_EventStream):  # type: ignore[misc]
    """Events one by one, as they come. Raises what the SDK raises."""

    def _create_raw_event_generator(self) -> Iterator[_Frame]:
        return frames(self._raw_stream)

    def _parse_event(self, frame: _Frame) -> Any:  # noqa: ANN401 -- the SDK's own
        if frame.headers.get(":message-type") == "event":
            kind = frame.headers.get(":event-type")
            plain = _plain(kind, frame.payload)
            if plain is not None:
                return {kind: plain}
        return super()._parse_event(frame)


def frames(stream: "HTTPResponse") -> Iterator[_Frame]:
    """The frames of a stream; the rest of one that is cut off is left. Raises the SDK's errors."""
    rest = bytearray()
    for chunk in stream.stream():
        # Most chunks are a frame, which need not be copied.
        data: bytes | bytearray = chunk
        if rest:
            rest += chunk
            data = rest
        at = 0
        while (length := _whole(data, at)) is not None:
            yield _frame(bytes(data[at : at + length]))
            at += length
        if data is rest:
            del rest[:at]
        elif at < len(data):
            rest += data[at:]


def _whole(data: bytes | bytearray, at: int) -> int | None:
    """The length of the frame that begins there, if all of it is there."""
    n_there = len(data) - at
    if n_there < _PRELUDE.size:
        return None
    length: int
    length, n_headers, checksum = _PRELUDE.unpack_from(data, at)
    _check(data[at : at + _CHECKED_BYTES], checksum)
    if n_headers > HEADERS_MAX_BYTES:
        raise InvalidHeadersLength(n_headers)
    if not 0 <= length - n_headers - _AROUND_BYTES <= PAYLOAD_MAX_BYTES:
        raise InvalidPayloadLength(length - n_headers - _AROUND_BYTES)
    return length if n_there >= length else None


def _frame(whole: bytes) -> _Frame:
    [checksum] = _CHECKSUM.unpack_from(whole, len(whole) - _CHECKSUM.size)
    _check(whole[: -_CHECKSUM.size], checksum)
    headers_end = _PRELUDE.size + _PRELUDE.unpack_from(whole)[1]
    headers = _headers(whole[_PRELUDE.size : headers_end])
    return _Frame(headers, whole[headers_end : -_CHECKSUM.size])


@lru_cache(maxsize=64)
def _headers(encoded: bytes) -> dict[str, Any]:
    """Those of most frames are one of a few."""
    headers: dict[str, Any] = EventStreamHeaderParser().parse(encoded)
    return headers


def _check(content: bytes | bytearray, checksum: int) -> None:
    found = crc32(content)
    if found != checksum:
        raise ChecksumMismatch(checksum, found)


def _plain(kind: object, payload: bytes) -> Any:  # noqa: ANN401 -- as it stands in the JSON
    decoder = _PLAIN.get(kind) if isinstance(kind, str) else None
    if decoder is None:
        return None
    try:
        event = decoder.decode(payload)
    except (DecodeError, ValueError):
        return None
    one = event.get("delta", event.get("start"))
    return event if one is None or _is_one(one) else None


def _is_one(found: dict[str, Any]) -> bool:
    """Whether a delta or a start has a single thing, of its type."""
    if len(found) != 1:
        return False
    [(kind, value)] = found.items()
    return isinstance(value, _KINDS[kind])
