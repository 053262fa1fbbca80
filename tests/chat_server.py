"""An endpoint that speaks OpenAI's chat protocol, with answers as a test wants them."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.fakes import PATIENCE_S

CUT = 0  # the status of an answer that breaks off
QUESTION = "What do you mean by that?"
VERDICT = {"form": 3, "substance": 2.5, "purity": 4}

Fields = dict[str, Any]


class ChatServer(ThreadingHTTPServer):
    """Answers every request, but for the errors in `refuses`, which come first, one a request.

    Attributes:
        refuses: a status, or a status with the message of its error, and its code.
        lacks: fields that a model refuses by name, as services do.
        stops: how each of the next replies stops, and whether it is a refusal.
        has_usage: whether answers count tokens.
        sent: the fields of each request. `keys` are the headers of authorization.
        hangs_at: the request of that number, from 1, gets no answer; then `hangs` is set.
        redirects_to: an address that each request is sent on to.
        only_comments: streams have comments alone, by which services keep connections open.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refuses: list[int | tuple[int, str] | tuple[int, str, str]] = []
        self.lacks: set[str] = set()
        self.stops: list[tuple[str, bool]] = []
        self.has_usage = True
        self.sent: list[Fields] = []
        self.keys: set[str | None] = set()
        self.hangs_at: int | None = None
        self.hangs = threading.Event()
        self.redirects_to = ""
        self.only_comments = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def error(self, fields: Fields) -> tuple[int, str] | tuple[int, str, str] | None:
        """The error by which a request is refused."""
        if self.refuses:
            refusal = self.refuses.pop(0)
            return refusal if isinstance(refusal, tuple) else (refusal, "No.")
        lacking = next((name for name in sorted(self.lacks) if name in fields), None)
        if lacking == "max_tokens":
            text = "'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
            return 400, text
        return (400, f"This model does not support '{lacking}'.") if lacking else None


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        fields = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.sent.append(fields)
        server.keys.add(self.headers["Authorization"])
        if len(server.sent) == server.hangs_at:
            server.hangs.set()
            threading.Event().wait(PATIENCE_S)
        if server.redirects_to:
            self._send(307, b"", location=server.redirects_to)
        elif error := server.error(fields):
            status, message, *code = error
            said = {"message": message, "type": "error", "code": code[0] if code else None}
            body = json.dumps({"error": said}).encode()
            self._send(status or 200, body, is_cut=status == CUT)
        elif fields.get("stream"):
            comments = b": keep-alive\n\n" * 3 if server.only_comments else b""
            body = comments or b"".join(self._events(fields))
            self._send(200, body, kind="text/event-stream")
        else:
            self._send(200, json.dumps(self._completion(fields)).encode())

    def log_message(self, *_: object) -> None:
        """Not to stderr."""

    def _send(
        self,
        status: int,
        body: bytes,
        *,
        kind: str = "application/json",
        location: str = "",
        is_cut: bool = False,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Retry-After", "0")
        self.send_header("x-request-id", f"request-{len(self.server.sent)}")
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.close_connection = self.close_connection or is_cut

    def _completion(self, fields: Fields) -> Fields:
        message: Fields = {"role": "assistant", "content": QUESTION}
        stop = "stop"
        if "tools" in fields:
            function = fields["tools"][0]["function"]
            arguments = json.dumps(_verdict(function["parameters"]))
            call = {"id": "c1", "function": {"name": function["name"], "arguments": arguments}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        elif "JSON Schema" in str(fields["messages"]):
            message["content"] = json.dumps(_verdict({}))
        elif self.server.stops:
            stop, is_refusal = self.server.stops.pop(0)
            if is_refusal:
                message = {"role": "assistant", "content": None, "refusal": QUESTION}
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 20},
        }
        return {
            "id": "chat-1",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": stop}],
            **({"usage": usage} if self.server.has_usage else {}),
        }

    def _events(self, fields: Fields) -> Iterator[bytes]:
        whole = self._completion(fields)
        choice = whole["choices"][0]
        text = choice["message"].get("content") or ""
        deltas: list[Fields] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": "Hm."}]
        deltas += [{"content": text[n : n + 8]} for n in range(0, len(text), 8)]
        if refusal := choice["message"].get("refusal"):
            deltas.append({"refusal": refusal})
        for delta in deltas:
            yield _event({"id": "chat-1", "choices": [{"index": 0, "delta": delta}]})
        end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        yield _event({"id": "chat-1", "choices": [end]})
        if fields.get("stream_options") and "usage" in whole:
            yield _event({"id": "chat-1", "choices": [], "usage": whole["usage"]})
        yield b"data: [DONE]\n\n"


def _event(fields: Fields) -> bytes:
    return b"data: " + json.dumps({"object": "chat.completion.chunk", **fields}).encode() + b"\n\n"


def _verdict(schema: Fields) -> Fields:
    del schema
    return {**VERDICT, "rationale": dict.fromkeys(VERDICT, "So.")}
