"""The event stream encoding: frames with two checksums and text headers."""

import json
import struct
from zlib import crc32

from socratic_bench.emulator.dialogue import JsonObject

_STRING = 7


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One message: lengths and their checksum, headers, payload, and the checksum of it all."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack("!I", crc32(prelude)) + head + payload
    return message + struct.pack("!I", crc32(message))


def event(kind: str, body: JsonObject) -> bytes:
    return frame(
        {":event-type": kind, ":content-type": "application/json", ":message-type": "event"},
        json.dumps(body, separators=(",", ":")).encode(),
    )


def exception(kind: str, body: JsonObject) -> bytes:
    return frame(
        {
            ":exception-type": kind,
            ":content-type": "application/json",
            ":message-type": "exception",
        },
        json.dumps(body, separators=(",", ":")).encode(),
    )


def corrupted(data: bytes) -> bytes:
    """The same frame with its last checksum wrong."""
    return data[:-1] + bytes([data[-1] ^ 0xFF])


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return (
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _STRING, len(text)) + text
    )
