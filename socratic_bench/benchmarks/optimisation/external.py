"""An external agent: a command that works isolated and calls its model through the harness."""

import json
import os
import secrets
import socketserver
import subprocess
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import IO, Self

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.optimisation.agent import AgentResult, Limits, StopReason
from socratic_bench.benchmarks.optimisation.conversation import Conversation, LineLog
from socratic_bench.benchmarks.optimisation.converse_wire import (
    Wire,
    answer_of,
    read_request,
    stream_of,
)
from socratic_bench.benchmarks.optimisation.isolation import GRACE_S, Isolation
from socratic_bench.benchmarks.optimisation.work_clock import WorkClock
from socratic_bench.errors import BenchError, ModelError
from socratic_bench.generation import GenerateConfig
from socratic_bench.types import Completion

MAX_BODY_BYTES = 32 * 2**20
MAX_STREAM_BYTES = 64 * 2**20  # of what an agent prints
POLL_S = 0.1
_CALLS = ("converse", "converse-stream")
# Errors that concern one request alone: the agent may go on. Any other one loses the item.
_OF_REQUEST = "refused_request"


class ServedCall(Struct, frozen=True):
    """A request that was answered."""

    body: Wire


class Endpoint:
    """Answers Converse requests at a socket, for one agent that knows `token`.

    The agent sees neither credentials nor other models: whatever id it asks for, it gets the model
    under test. `stop` is the limit that it has reached, `error` what ended the run or the item.
    """

    def __init__(
        self,
        path: Path,
        conversation: Conversation,
        config: GenerateConfig,
        *,
        limit: Callable[[int], StopReason | None],
        log: LineLog[ServedCall],
    ) -> None:
        self.token = secrets.token_hex(16)
        self.stop: StopReason | None = None
        self.error: BenchError | None = None
        self.n_calls = 0
        self._conversation = conversation
        self._config = config
        self._limit = limit
        self._log = log
        self._lock = threading.Lock()
        path.unlink(missing_ok=True)
        # The path of a socket may have 107 bytes.
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            self._server = _Server(f"/proc/self/fd/{folder}/{path.name}", _handler_of(self))
        finally:
            os.close(folder)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, authorization: str, raw: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a request."""
        try:
            self._admit(path, authorization)
            completion = self._complete(raw)
        except _RefusedError as refused:
            return refused.status, json.dumps({"message": str(refused)}).encode()
        if path.endswith(_CALLS[1]):
            return 200, stream_of(completion)
        return 200, json.dumps(answer_of(completion)).encode()

    def _admit(self, path: str, authorization: str) -> None:
        model, _, call = path.removeprefix("/model/").rpartition("/")
        if call not in _CALLS or not model:
            raise _RefusedError(404, "This endpoint has Converse and ConverseStream alone.")
        if f"Credential={self.token}/" not in authorization:
            raise _RefusedError(403, "The security token included in the request is invalid.")
        with self._lock:
            self.stop = self.stop or self._limit(self.n_calls)
            if self.stop:
                raise _RefusedError(400, f"The agent has reached a limit: {self.stop}.")
            self.n_calls += 1

    def _complete(self, raw: bytes) -> Completion:
        try:
            body = json.loads(raw)
            completion = self._conversation.complete(read_request(body, self._config))
        except ValueError as error:
            raise _RefusedError(400, str(error)) from error
        except BenchError as error:
            if not (isinstance(error, ModelError) and error.end_reason == _OF_REQUEST):
                self.error = error
            raise _RefusedError(400, error.message) from error
        with self._lock:
            self._log.add(ServedCall(body))
        return completion


class _RefusedError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64


def _handler_of(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > MAX_BODY_BYTES:
                self._send(413, b'{"message": "The request is too large."}')
                self.close_connection = True
                return
            raw = self.rfile.read(length)
            self._send(*endpoint.answer(self.path, self.headers.get("Authorization", ""), raw))

        def _send(self, status: int, body: bytes) -> None:
            is_stream = status == 200 and self.path.endswith(_CALLS[1])  # noqa: PLR2004
            kind = "application/vnd.amazon.eventstream" if is_stream else "application/json"
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if status != 200:  # noqa: PLR2004
                self.send_header("x-amzn-ErrorType", _ERROR_NAMES[status])
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

        def address_string(self) -> str:
            return "agent"

    return Handler


_ERROR_NAMES = {
    400: "ValidationException",
    403: "UnrecognizedClientException",
    404: "ResourceNotFoundException",
    413: "ValidationException",
}


class ExternalAgent(Struct, kw_only=True):
    """Runs the command in isolation until it ends, or a limit ends it: TERM, 10 s, KILL.

    `check` raises what ends the run.
    """

    conversation: Conversation
    isolation: Isolation
    workspace: Path
    check: Callable[[], None]
    log: LineLog[ServedCall]
    clock: WorkClock
    limits: Limits

    def play(
        self,
        command: str,
        config: GenerateConfig,
        socket: Path,
        printed: tuple[IO[bytes], IO[bytes]],
    ) -> AgentResult:
        """Run the agent. Raises what ends the run, or loses the item."""
        endpoint = Endpoint(socket, self.conversation, config, limit=self._limit, log=self.log)
        variables = {**self.isolation.environment, **environment_of(endpoint.token)}
        isolation = replace(self.isolation, environment=variables)
        out, errors = printed
        with (
            endpoint,
            isolation.start(command, self.workspace, stdout=out, stderr=errors) as process,
        ):
            stop = self._wait(process, endpoint, printed)
            if process.poll() is None:
                isolation.end(process, self.workspace, grace_s=GRACE_S)
        if endpoint.error:
            raise endpoint.error
        code = process.returncode
        message = "" if stop or code == 0 else f"The agent's command ended with exit code {code}."
        return AgentResult(
            stop=stop or ("finished" if code == 0 else "agent_crash"),
            message=message,
            n_steps=endpoint.n_calls,
            worked_s=round(self.clock.worked_s, 3),
        )

    def _wait(
        self, process: subprocess.Popen[bytes], endpoint: Endpoint, printed: tuple[IO[bytes], ...]
    ) -> StopReason | None:
        """Wait until the command ends; or why it is to be ended."""
        while True:
            try:
                process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                pass
            else:
                return endpoint.stop
            self.check()
            if endpoint.error or endpoint.stop:
                return endpoint.stop
            if self.clock.worked_s >= self.limits.working_s:
                return "timeout"
            if any(Path(file.name).stat().st_size > MAX_STREAM_BYTES for file in printed):
                return "agent_crash"

    def _limit(self, n_calls: int) -> StopReason | None:
        return self.limits.reached(n_calls, self.conversation.n_tokens, self.clock.worked_s)


def environment_of(token: str) -> Mapping[str, str]:
    """What the SDK needs to call the endpoint: no credentials, but the agent's token as a key."""
    return {
        "AWS_ACCESS_KEY_ID": token,
        "AWS_SECRET_ACCESS_KEY": token,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
