"""The front door: routes a request to the runtime, the control plane or the inspection."""

import json
import time
from collections import deque
from dataclasses import asdict
from hashlib import sha256
from urllib.parse import unquote

from socratic_bench.emulator.errors import ServiceError
from socratic_bench.emulator.faults import FaultBox, parse_fault
from socratic_bench.emulator.records import RequestRecord
from socratic_bench.emulator.runtime import Outcome, Runtime
from socratic_bench.emulator.settings import Settings
from socratic_bench.emulator.wire import Answer, HttpRequest, response

OPERATIONS = {
    "converse": "Converse",
    "converse-stream": "ConverseStream",
    "count-tokens": "CountTokens",
}


class Service:
    """One emulated endpoint and its memory."""

    def __init__(self, settings: Settings) -> None:
        self.records: deque[RequestRecord] = deque(maxlen=settings.keep_requests)
        self._settings = settings
        self._runtime = Runtime(settings)
        self._seq = 0

    def handle(self, request: HttpRequest) -> Answer:
        path, _, query = request.target.partition("?")
        segments = [unquote(part) for part in path.split("/")[1:]]
        if segments[0] == "_emulator":
            return self._inspect(request, segments[1:])
        self._seq += 1
        outcome = self._outcome(request, segments, query)
        self._record(request, outcome)
        return outcome.answer

    def _outcome(self, request: HttpRequest, segments: list[str], query: str) -> Outcome:
        request_id = f"{self._settings.seed & 0xFFFFFFFF:08x}-0000-4000-8000-{self._seq:012x}"
        outcome = Outcome(
            operation=f"{request.method} {request.target[:80]}", request_id=request_id
        )
        try:
            if b"authorization" not in request.headers and "X-Amz-Signature=" not in query:
                raise ServiceError(
                    403, "MissingAuthenticationTokenException", "Missing Authentication Token"
                )
            match request.method, segments:
                case "POST", ["model", model_id, operation] if operation in OPERATIONS:
                    self._runtime.answer(outcome, model_id, OPERATIONS[operation], request.body)
                case _:
                    raise ServiceError(
                        404, "UnknownOperationException", "The operation is not known here."
                    )
        except ServiceError as error:
            outcome.refuse(error)
        return outcome

    def _record(self, request: HttpRequest, outcome: Outcome) -> None:
        self.records.append(
            RequestRecord(
                seq=self._seq,
                time=time.time(),
                connection=request.connection,
                operation=outcome.operation,
                model_id=outcome.model_id,
                role=outcome.role,
                turn=outcome.turn,
                status=outcome.status,
                fault=outcome.fault,
                body_sha256=sha256(request.body).hexdigest(),
                body=request.body if self._settings.keep_bodies else None,
            )
        )

    def _inspect(self, request: HttpRequest, segments: list[str]) -> Answer:
        status, body = 200, b"{}"
        match request.method, segments:
            case "GET", ["requests"]:
                rows = [asdict(record) | {"body": None} for record in self.records]
                body = json.dumps(rows).encode()
            case "GET", ["health"]:
                body = b'{"status":"ok"}'
            case "POST", ["reset"]:
                self.records.clear()
                self._runtime.reset()
            case "POST", ["faults"]:
                specs = json.loads(request.body)
                self._runtime.faults = FaultBox(
                    [parse_fault(spec) for spec in specs], self._settings.seed
                )
            case _:
                status = 404
        return Answer(((0, response(status, "Content-Type: application/json\r\n", body)),))
