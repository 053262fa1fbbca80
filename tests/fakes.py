"""Stand-ins for what a run meets: models, turns, and a service that says what it is told."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

from msgspec import Struct
from msgspec import field as struct_field
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.turn import SocraticTurn
from socratic_bench.emulator.answers import event
from socratic_bench.ports.parts import Parts
from socratic_bench.turns import Dimension, Judged, Rubric, Unscored, Verdict
from socratic_bench.types import Attempt, Block, CallKey, Completion, Message, Request, Text, Usage
from tests.schemas import breaches

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
PATIENCE_S = 120  # how long a test waits for another thread before it gives up; no measure
DIMENSIONS = ("form", "substance", "purity")

RUBRIC = Rubric(
    id="test-1",
    title="Test rubric",
    instructions="Score the reply.",
    dimensions=(
        Dimension(name="form", low=0, high=3, step=0.5, levels={"3": "whole", "0": "none"}),
        Dimension(name="substance", low=0, high=3, step=0.5, levels={"3": "deep"}),
        Dimension(name="purity", low=0, high=4, step=0.5, levels={"4": "neutral"}),
    ),
    sha256="0" * 64,
    speakers=("student", "tutor"),
)


# --- what models say, in the program's own types ---


def attempt(error: str | None = None, *, wait_ms: float = 0.0) -> Attempt:
    return Attempt(
        started_at=NOON,
        duration_ms=250.0,
        wait_ms=wait_ms,
        error=error,
        may_have_been_billed=error != "throttled",
    )


def completion(
    content: str | Sequence[Block] = "What do you mean by that?",
    *,
    stop_reason: str = "end_turn",
    usage: Usage | None = None,
    attempts: Sequence[Attempt] = (),
    latency_ms: float = 250.0,
) -> Completion:
    blocks = (Text(content),) if isinstance(content, str) else tuple(content)
    return Completion(
        message=Message("assistant", blocks),
        stop_reason=stop_reason,
        usage=usage,
        latency_ms=latency_ms,
        service_latency_ms=None,
        attempts=tuple(attempts) or (attempt(),),
        request_id="request-1",
        finished_at=NOON,
    )


class ScriptedModel:
    """Answers with the given completions, texts or errors in turn; remembers what it was asked."""

    def __init__(self, *answers: Completion | str | Exception, model_id: str = "scripted") -> None:
        self.model_id = model_id
        self._answers = list(answers)
        self.calls: list[tuple[Request, CallKey]] = []

    def complete(self, request: Request, key: CallKey) -> Completion:
        self.calls.append((request, key))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return completion(answer) if isinstance(answer, str) else answer


def verdict(form: float, substance: float, purity: float) -> Verdict:
    scores = dict(zip(DIMENSIONS, (form, substance, purity), strict=True))
    return Verdict(scores=scores, rationale=dict.fromkeys(scores, "So."), judge_model="judge")


def verdict_of(score: float) -> Verdict:
    """A verdict of that overall score: form first, then substance, then purity."""
    form = min(3.0, score)
    substance = min(3.0, score - form)
    return verdict(form, substance, score - form - substance)


def turn(
    index: int,
    outcome: Verdict | Unscored | None = None,
    *,
    reply: Completion | None = None,
    student: Completion | None = None,
    calls: Sequence[Completion] = (),
) -> SocraticTurn:
    judged = None
    if outcome is not None:
        judged = Judged(outcome=outcome, calls=tuple(calls), finished_at=NOON)
    return SocraticTurn(
        index=index,
        prompt=f"student {index}",
        reply=reply or completion(f"Why {index}?"),
        others={"student": student} if student else {},
        measures={"has_question": True},
        notes={"student_policy": "scripted", "cut": False},
        judged=judged,
    )


UNJUDGED = Unscored(reason="unreadable_verdict", message="It was prose.", raw_reply="Well done!")


# --- documents ---


def stored(folder: Path, parts: Parts | None = None) -> dict[str, Any]:
    """The artifacts below a folder, by their relative paths; not the journal beside them.

    Each fits its schema, with a benchmark's own `parts` that of its benchmark.
    """
    found = {
        str(path.relative_to(folder)): json.loads(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".jsonl"
    }
    for name, document in found.items():
        assert breaches(document["kind"], document, parts) == [], name
    return found


# --- a service that says what it is told, over real HTTP ---


@dataclass(frozen=True)
class Sent:
    """One request as the service got it."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    method: str = "POST"

    @property
    def model_id(self) -> str:
        return unquote(self.path.rpartition("/model/")[2].split("/")[0])

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def key_id(self) -> str:
        """The access key that signed it."""
        return self.headers.get("Authorization", "").partition("Credential=")[2].split("/")[0]


class Said(Struct, frozen=True):
    """One answer of the service. `held`: not before the event is set (or the service closes)."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = struct_field(default_factory=dict)
    held: threading.Event | None = None
    content_type: str = "application/json"


def as_stream(said: Said) -> Said:
    """What Converse would answer, as the events of a stream; anything else as it is."""
    try:
        body = json.loads(said.body)
        content = body.pop("output")["message"]["content"]
        stop = event("messageStop", {"stopReason": body.pop("stopReason")})
        blocks = [frame for index, block in enumerate(content) for frame in _frames(index, block)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return said
    frames = [event("messageStart", {"role": "assistant"}), *blocks, stop, event("metadata", body)]
    kind = "application/vnd.amazon.eventstream"
    return replace(said, body=b"".join(frames), content_type=kind)


def _frames(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    place = {"contentBlockIndex": index}
    if "toolUse" in block:
        use = dict(block["toolUse"])
        deltas: list[dict[str, Any]] = [{"toolUse": {"input": json.dumps(use.pop("input", {}))}}]
        yield event("contentBlockStart", {"start": {"toolUse": use}, **place})
    elif isinstance(block.get("text"), str):
        text = block["text"]  # in pieces, since a frame has a bound
        deltas = [{"text": text[at : at + 10**6]} for at in range(0, max(1, len(text)), 10**6)]
    else:
        thought = block.get("reasoningContent", {}).get("reasoningText")
        deltas = [block if thought is None else {"reasoningContent": {"text": thought["text"]}}]
    for delta in deltas:
        yield event("contentBlockDelta", {"delta": delta, **place})
    yield event("contentBlockStop", place)


def answer(
    content: str | Sequence[Mapping[str, Any]] = "What do you mean by that?",
    stop_reason: str = "end_turn",
    *,
    held: threading.Event | None = None,
    **more: object,
) -> Said:
    blocks = [{"text": content}] if isinstance(content, str) else list(content)
    body = {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": stop_reason,
        "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
        "metrics": {"latencyMs": 100},
        **more,
    }
    return Said(json.dumps(body).encode(), held=held)


def scored(form: object, substance: object, purity: object, **more: object) -> Said:
    """A judge's verdict by a tool call."""
    given = {"form": form, "substance": substance, "purity": purity}
    given |= {"rationale": dict.fromkeys(DIMENSIONS, "So."), **more}
    use = {"toolUseId": "use-1", "name": "record_verdict", "input": given}
    return answer([{"toolUse": use}], "tool_use")


def refusal(status: int, code: str, message: str = "No.", **headers: str) -> Said:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Said(
        json.dumps({"message": message}).encode(), status, {"x-amzn-ErrorType": code, **given}
    )


Script = Callable[[Sent], Said] | Sequence[Said]


class FakeBedrock:
    """A service on a local port. Each model id has a script: a function of the request, or answers
    in turn, of which the last one goes on for ever. What is no model's has the script of "".
    """

    def __init__(self, scripts: Mapping[str, Script] | None = None) -> None:
        self.scripts = dict(scripts or {})
        self.sent: list[Sent] = []
        self.n_connections = 0
        self._lock = threading.Lock()
        self._given: dict[str, int] = {}
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.service = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def of(self, model_id: str) -> list[Sent]:
        """The requests that one model got."""
        with self._lock:
            return [sent for sent in self.sent if sent.model_id == model_id]

    def reset(self) -> None:
        """Forget the scripts and the requests."""
        with self._lock:
            self.scripts, self.sent, self._given = {}, [], {}

    def take(self, sent: Sent) -> Said:
        with self._lock:
            self.sent.append(sent)
            script = self.scripts.get(sent.model_id, self.scripts.get("", [answer()]))
            number = self._given.get(sent.model_id, 0)
            self._given[sent.model_id] = number + 1
        said = script(sent) if callable(script) else script[min(number, len(script) - 1)]
        while said.held is not None and not said.held.wait(0.01) and not self._closing.is_set():
            pass
        return said

    def drop_connections(self) -> None:
        """Break off whatever is being said."""
        self._server.drop_connections()

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        self._server.shutdown()
        self._server.drop_connections()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    service: FakeBedrock
    daemon_threads = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.live: set[Any] = set()

    def drop_connections(self) -> None:
        for connection in list(self.live):
            try:
                connection.shutdown(2)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.live.add(self.connection)
        self.server.service.n_connections += 1

    def finish(self) -> None:
        self.server.live.discard(self.connection)
        super().finish()

    def handle_expect_100(self) -> bool:
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        raw = self.rfile.read(length)
        if len(raw) < length:
            # Who left in the middle has asked nothing; passed on, it would be waited for in vain.
            self.close_connection = True
            return
        said = self.server.service.take(Sent(self.path, dict(self.headers), raw, self.command))
        if self.path.endswith("/converse-stream"):
            said = as_stream(said)
        if "Date" in said.headers:
            self.send_response_only(said.status)
        else:
            self.send_response(said.status)
        self.send_header("Content-Type", said.content_type)
        if "Content-Length" not in said.headers:
            self.send_header("Content-Length", str(len(said.body)))
        for name, value in said.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said.body)
        self.wfile.flush()

    # The base looks methods up by these names.
    do_GET = do_PUT = do_HEAD = do_POST  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base's name
        """Silent."""


# --- S3 with faults: a server before moto's ---


@contextmanager
def relayed(
    moto_url: str,
    instead: Callable[[Sent], Said | None],
    *,
    passing: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Iterator[FakeBedrock]:
    """A server that passes requests on to moto's, but for those that `instead` answers.

    With `passing` these arrive there all the same; `headers` are put on every answer.
    """

    def answer_to(sent: Sent) -> Said:
        said = instead(sent)
        if said is not None and not passing:
            return said
        passed = _passed_on(moto_url, sent)
        return said or replace(passed, headers={**passed.headers, **(headers or {})})

    with FakeBedrock({"": answer_to}) as fake:
        yield fake


def _passed_on(moto_url: str, sent: Sent) -> Said:
    connection = HTTPConnection(moto_url.partition("://")[2])
    with closing(connection):
        known = {n: v for n, v in sent.headers.items() if n.lower() not in {"expect", "connection"}}
        connection.request(sent.method, sent.path, sent.raw, known)
        told = connection.getresponse()
        body = told.read()
        names = (*_PASSED_ON, "content-length") if sent.method == "HEAD" else _PASSED_ON
        kept = {n.title(): v for n, v in told.getheaders() if n.lower() in names}
        kind = told.getheader("Content-Type", "application/json")
        return Said(body, told.status, kept, content_type=kind)


_PASSED_ON = ("etag", "last-modified", "x-amz-bucket-region", "x-amzn-errortype")


def xml(status: int, code: str, message: str = "No.", **headers: str) -> Said:
    """An error as S3 tells it."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Said(body.encode(), status, given)


# What S3 says to a write that it has taken.
KEPT = Said(b"", headers={"ETag": '"an-etag"'})


def wait_until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        threading.Event().wait(0.001)
