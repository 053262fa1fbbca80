"""The runtime API: Converse, ConverseStream and CountTokens, from the body to the bytes of the answer."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from socratic_bench.emulator.dialogue import Dialogue, JsonObject, read_dialogue
from socratic_bench.emulator.errors import ServiceError
from socratic_bench.emulator.faults import FaultBox
from socratic_bench.emulator.models.reply import Reply, compose
from socratic_bench.emulator.settings import Settings
from socratic_bench.emulator.stream import reply_events
from socratic_bench.emulator.tokens import input_tokens, output_tokens
from socratic_bench.emulator.wire import Answer, chunk, response


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What becomes of one request; filled in on the way, for the answer and for the record."""

    operation: str
    request_id: str
    model_id: str | None = None
    role: str | None = None
    turn: int | None = None
    fault: str | None = None
    status: int = 200
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    end: Literal["keep", "close", "reset"] = "keep"
    began: Callable[[], None] | None = None

    @property
    def answer(self) -> Answer:
        return Answer(tuple(self.pieces), self.end, self.began)

    def refuse(self, error: ServiceError) -> None:
        self.status = error.status
        headers = f"x-amzn-ErrorType: {error.name}\r\n"
        if error.retry_after_ms is not None:
            headers += f"x-amz-retry-after: {error.retry_after_ms:.0f}\r\n"
        self.pieces = [(0, self.json({"message": error.message, **error.details}, headers))]

    def json(self, body: object, headers: str = "") -> bytes:
        return self.http(
            json.dumps(body, separators=(",", ":")).encode(), "application/json", headers
        )

    def http(self, body: bytes, content_type: str, headers: str = "") -> bytes:
        lines = f"Content-Type: {content_type}\r\nx-amzn-RequestId: {self.request_id}\r\n{headers}"
        return response(self.status, lines, body)


class Runtime:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.faults = FaultBox(settings.faults, settings.seed)

    def reset(self) -> None:
        self.faults = FaultBox(self.faults.faults, self._settings.seed)

    def answer(self, outcome: Outcome, model_id: str, operation: str, raw: bytes) -> None:
        outcome.operation, outcome.model_id = operation, model_id
        body = _parsed(raw)
        if operation == "CountTokens":
            count = input_tokens((body.get("input") or {}).get("converse") or {})
            outcome.pieces = [(0, outcome.json({"inputTokens": count}))]
            return
        dialogue = read_dialogue(model_id, body)
        outcome.role, outcome.turn = dialogue.role, dialogue.turn
        reply = compose(dialogue, body)
        self._send(outcome, dialogue, body, reply)

    def _send(self, outcome: Outcome, dialogue: Dialogue, body: JsonObject, reply: Reply) -> None:
        n_in, n_out = input_tokens(body), output_tokens(list(reply.content))
        usage = {"inputTokens": n_in, "outputTokens": n_out, "totalTokens": n_in + n_out}
        wait = self._settings.latency_of(dialogue.role) / 1000
        metadata: JsonObject = {"usage": usage, "metrics": {"latencyMs": int(wait * 1000)}}
        if outcome.operation == "ConverseStream":
            frames = reply_events(reply, metadata, None)
            head = (
                "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"
                f"x-amzn-RequestId: {outcome.request_id}\r\nTransfer-Encoding: chunked\r\n\r\n"
            ).encode()
            outcome.pieces = [(wait, head + b"".join(map(chunk, frames)) + b"0\r\n\r\n")]
            return
        message = {"role": "assistant", "content": reply.content}
        answer = {"output": {"message": message}, "stopReason": reply.stop_reason, **metadata}
        outcome.pieces = [(wait, outcome.json(answer))]


def _parsed(raw: bytes) -> JsonObject:
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        raise ServiceError(400, "SerializationException", "The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise ServiceError(400, "SerializationException", "The body is not a JSON object.")
    return body
