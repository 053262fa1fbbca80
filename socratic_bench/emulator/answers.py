"""Answers in bytes: JSON, a stream of events in frames, errors, and faults of the wire."""

import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Literal
from zlib import crc32

from msgspec import Struct

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.errors import ServiceError
from socratic_bench.emulator.faults import Fault
from socratic_bench.emulator.models.reply import Reply

REFUSED_S = 0.2
_LOGIN = b"<html><body><h1>Welcome</h1><p>Please sign in to the network.</p></body></html>"
# Status, body and its type, by fault.
_OTHER_ANSWERS = {
    "bad_gateway": (502, b"<html><body><h1>502 Bad Gateway</h1></body></html>", "text/html"),
    "empty_body": (200, b"", "application/json"),
    "html": (200, _LOGIN, "text/html"),
    "no_output": (200, b"{}", "application/json"),
}
_STREAM_ERRORS = ("internalServerException", "throttlingException", "modelStreamErrorException")
_LAST_CHUNK = b"0\r\n\r\n"
# Made once: a reply has dozens of events.
_compact = json.JSONEncoder(separators=(",", ":")).encode
_PIECE = re.compile(r"\s*(?:\S+\s*){1,8}|\s+")


class HttpRequest(Struct, frozen=True):
    """A whole request: header names in lower case, its connection's number, where it arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    connection: int
    local: tuple[str, int]


class Outcome(Struct, kw_only=True):
    """What becomes of one request; filled in on the way, for the answer and for the record.

    `pieces` are bytes to send, each after a wait in seconds; `began` is called as the first of them
    leave. The first wait counts from when the request was there, each other one from when the piece
    before it was due, so that what the endpoint itself takes adds nothing. After the answer nobody
    can connect for `shut_s` seconds.
    """

    seq: int
    operation: str
    request_id: str
    model_id: str | None = None
    role: str | None = None
    turn: int | None = None
    fault: Fault | None = None
    status: int = 200
    wait_s: float = 0
    pieces: tuple[tuple[float, bytes], ...] = ()
    end: Literal["keep", "close", "reset"] = "keep"
    began: Callable[[], None] | None = None
    shut_s: float = 0

    def refuse(self, error: ServiceError) -> None:
        """Answer with an error. A fault that fakes one is as slow as an answer would have been."""
        self.status = error.status
        headers = f"x-amzn-ErrorType: {error.name}\r\n"
        if error.retry_after_ms is not None:
            headers += f"x-amz-retry-after: {error.retry_after_ms:.0f}\r\n"
        body = json.dumps({"message": error.message, **error.details}).encode()
        self.pieces = ((self.wait_s, self._http(body, headers=headers)),)

    def send_json(self, body: JsonObject) -> None:
        data = json.dumps(body, separators=(",", ":")).encode()
        match self.fault.kind if self.fault else "":
            case "corrupt":
                whole = self._http(b"\x00\xff\xfe" + data[::-1])
            case "truncated_json":
                whole = self._http(data[: len(data) * 2 // 3])
            case "cut":
                whole = self._http(data)
                whole, self.end = whole[: len(whole) - len(data) // 2], "close"
            case _:
                whole = self._http(data)
        self.pieces = ((self.wait_s, whole),)

    def send_without_body(self) -> bool:
        """Whether the fault leaves nothing of the model's answer; if so it is sent."""
        if self.fault is None:
            return False
        if self.fault.kind in ("reset", "refused"):
            self.pieces, self.end = ((self.wait_s, b""),), "reset"
            if self.fault.kind == "refused":
                self.shut_s = REFUSED_S if self.fault.ms is None else self.fault.ms / 1000
        elif self.fault.kind in _OTHER_ANSWERS:
            self.status, body, kind = _OTHER_ANSWERS[self.fault.kind]
            self.pieces = ((self.wait_s, self._http(body, kind)),)
        else:
            return False
        return True

    def send_stream(self, frames: list[bytes], pace_s: float) -> None:
        """All frames as chunks: at once, or, with a pace, each after its wait."""
        head = (
            "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"
            f"x-amzn-RequestId: {self.request_id}\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()
        frames, whole = self._spoiled(frames)
        chunks = [chunk(frame) for frame in frames]
        if whole:
            chunks.append(_LAST_CHUNK)
        else:
            self.end = "close"
        if pace_s > 0:
            self.pieces = ((self.wait_s, head), *((pace_s, data) for data in chunks))
        else:
            self.pieces = ((self.wait_s, head + b"".join(chunks)),)

    def _spoiled(self, frames: list[bytes]) -> tuple[list[bytes], bool]:
        """The frames as the fault leaves them, and whether the stream still ends as HTTP asks."""
        middle = len(frames) // 2
        before, struck, after = frames[:middle], frames[middle], frames[middle + 1 :]
        kind = self.fault.kind if self.fault else ""
        if kind == "stream_error":
            # The kinds of exception event in turn.
            error = _STREAM_ERRORS[self.seq % len(_STREAM_ERRORS)]
            message = {"message": "The stream was broken off. Try your request again."}
            return [*before, exception(error, message)], True
        spoiled = {
            "cut": before,
            "cut_frame": [*before, struck[: len(struck) // 2]],
            "corrupt": [*before, corrupted(struck), *after],
            "truncated_json": before,
            "no_metadata": frames[:-1],
        }
        return spoiled.get(kind, frames), kind != "cut"

    def _http(self, body: bytes, kind: str = "application/json", headers: str = "") -> bytes:
        lines = f"Content-Type: {kind}\r\nx-amzn-RequestId: {self.request_id}\r\n{headers}"
        return response(self.status, lines, body)


def response(status: int, headers: str, body: bytes) -> bytes:
    """A response with a length; `headers` are whole lines, each with its line end."""
    reason = HTTPStatus(status).phrase
    head = f"HTTP/1.1 {status} {reason}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body


def refusal(status: int, message: str) -> bytes:
    """The response to a request that is not read to its end; the connection closes after it."""
    headers = "Content-Type: application/json\r\nConnection: close\r\n"
    return response(status, headers, json.dumps({"message": message}).encode())


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def reply_events(reply: Reply, metadata: JsonObject, extra: JsonObject | None) -> list[bytes]:
    """All frames, from messageStart to metadata. The text comes in pieces of eight words."""
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
    """Eight words each; of a huge text, at most a few hundred pieces."""
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
