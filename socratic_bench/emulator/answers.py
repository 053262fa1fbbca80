"""Answers in bytes: JSON, a stream of frames, an error, and the ways in which a wire fails."""

import json
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.errors import ServiceError
from socratic_bench.emulator.faults import Fault
from socratic_bench.emulator.stream import corrupted, exception
from socratic_bench.emulator.wire import Answer, chunk, response

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


class Outcome(Struct, kw_only=True):
    """What becomes of one request; filled in on the way, for the answer and for the record."""

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

    @property
    def answer(self) -> Answer:
        return Answer(self.pieces, self.end, self.began, self.shut_s)

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
        head = self._stream_head()
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

    def _stream_head(self) -> bytes:
        return (
            "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"
            f"x-amzn-RequestId: {self.request_id}\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()

    def _spoiled(self, frames: list[bytes]) -> tuple[list[bytes], bool]:
        """The frames as the fault leaves them, and whether the stream still ends as HTTP asks."""
        middle = len(frames) // 2
        before, struck, after = frames[:middle], frames[middle], frames[middle + 1 :]
        kind = self.fault.kind if self.fault else ""
        if kind == "stream_error":
            return [*before, self._stream_error()], True
        spoiled = {
            "cut": before,
            "cut_frame": [*before, struck[: len(struck) // 2]],
            "corrupt": [*before, corrupted(struck), *after],
            "truncated_json": before,
            "no_metadata": frames[:-1],
        }
        return spoiled.get(kind, frames), kind != "cut"

    def _stream_error(self) -> bytes:
        """The kinds of exception event in turn."""
        kind = _STREAM_ERRORS[self.seq % len(_STREAM_ERRORS)]
        return exception(kind, {"message": "The stream was broken off. Try your request again."})

    def _http(self, body: bytes, kind: str = "application/json", headers: str = "") -> bytes:
        lines = f"Content-Type: {kind}\r\nx-amzn-RequestId: {self.request_id}\r\n{headers}"
        return response(self.status, lines, body)
