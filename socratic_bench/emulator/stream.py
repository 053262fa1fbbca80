"""The event stream: a reply as the events of ConverseStream, and their frames."""

import json
import re
import struct
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Literal
from zlib import crc32

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.models.reply import Reply

# Made once: a reply has dozens of events.
_compact = json.JSONEncoder(separators=(",", ":")).encode
_PIECE = re.compile(r"\s*\S+\s*\S*\s*\S*|\s+")


def reply_events(reply: Reply, metadata: JsonObject, extra: JsonObject | None) -> list[bytes]:
    """All frames, from messageStart to metadata. The text comes in pieces of a few words."""
    frames = [event("messageStart", {"role": "assistant"})]
    for index, block in enumerate(reply.content):
        frames.extend(_block_events(index, block))
    stop: JsonObject = {"stopReason": reply.stop_reason}
    if extra is not None:
        stop["additionalModelResponseFields"] = extra
    frames.append(event("messageStop", stop))
    frames.append(event("metadata", metadata))
    return frames


def _block_events(index: int, block: JsonObject) -> Iterator[bytes]:
    if "toolUse" in block:
        start = {key: block["toolUse"][key] for key in ("toolUseId", "name")}
        yield event("contentBlockStart", {"start": {"toolUse": start}, "contentBlockIndex": index})
    for delta in _deltas(block):
        yield event("contentBlockDelta", {"delta": delta, "contentBlockIndex": index})
    yield event("contentBlockStop", {"contentBlockIndex": index})


def _deltas(block: JsonObject) -> Iterator[JsonObject]:
    if "text" in block:
        yield from ({"text": piece} for piece in _pieces(block["text"]))
    elif "toolUse" in block:
        text = json.dumps(block["toolUse"]["input"])
        yield from ({"toolUse": {"input": piece}} for piece in _pieces(text))
    elif "reasoningText" in block["reasoningContent"]:
        thought = block["reasoningContent"]["reasoningText"]
        yield from ({"reasoningContent": {"text": piece}} for piece in _pieces(thought["text"]))
        yield {"reasoningContent": {"signature": thought["signature"]}}


def _pieces(text: str) -> list[str]:
    """A few words each; of a huge text, at most a few hundred pieces."""
    if len(text) > 100_000:  # noqa: PLR2004
        return [text[at : at + 50_000] for at in range(0, len(text), 50_000)]
    return _PIECE.findall(text)


_STRING = 7


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One message: lengths and their checksum, headers, payload, and the checksum of it all."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack("!I", crc32(prelude)) + head + payload
    return message + struct.pack("!I", crc32(message))


def event(kind: str, body: JsonObject, message: Literal["event", "exception"] = "event") -> bytes:
    headers = {
        f":{message}-type": kind,
        ":content-type": "application/json",
        ":message-type": message,
    }
    return frame(headers, _compact(body).encode())


exception = partial(event, message="exception")


def corrupted(data: bytes) -> bytes:
    """The same frame with its last checksum wrong."""
    return data[:-1] + bytes([data[-1] ^ 0xFF])


@lru_cache(maxsize=64)
def _header(name: str, value: str) -> bytes:
    """Those of most frames are one of a few."""
    text = value.encode()
    return (
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _STRING, len(text)) + text
    )
