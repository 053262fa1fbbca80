"""The front door: routes a request to the runtime, the control plane or the inspection."""

import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from urllib.parse import unquote

from socratic_bench.emulator import MODEL_IDS, control_plane
from socratic_bench.emulator.answers import Outcome
from socratic_bench.emulator.errors import ServiceError
from socratic_bench.emulator.faults import FaultBox, parse_fault
from socratic_bench.emulator.records import RequestRecord
from socratic_bench.emulator.runtime import OPERATIONS, Runtime
from socratic_bench.emulator.settings import Settings
from socratic_bench.emulator.wire import Answer, HttpRequest, response


class Service:
    """One emulated endpoint and its memory."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.records: deque[RequestRecord] = deque(maxlen=settings.keep_requests)
        self._settings = settings
        self._runtime = Runtime(settings, clock)
        self._seq = 0

    def handle(self, request: HttpRequest) -> Answer:
        path, _, query = request.target.partition("?")
        # An ARN has slashes of its own, percent-encoded: split first, decode once.
        segments = [unquote(part) for part in path.split("/")[1:]]
        if segments[:1] == ["_emulator"]:
            return self._inspect(request, segments[1:])
        self._seq += 1
        outcome = Outcome(
            seq=self._seq,
            operation=f"{request.method} {path[:80]}",
            request_id=f"{self._settings.seed & 0xFFFFFFFF:08x}-0000-4000-8000-{self._seq:012x}",
        )
        try:
            self._route(request, outcome, segments, query)
        except ServiceError as error:
            outcome.refuse(error)
        self._record(request, outcome)
        return outcome.answer

    def _route(
        self, request: HttpRequest, outcome: Outcome, segments: list[str], query: str
    ) -> None:
        if b"authorization" not in request.headers and "X-Amz-Signature=" not in query:
            raise ServiceError(
                403, "MissingAuthenticationTokenException", "Missing Authentication Token"
            )
        match request.method, segments:
            case "POST", ["model", model_id, operation] if operation in OPERATIONS:
                outcome.operation = OPERATIONS[operation]
                self._runtime.answer(outcome, model_id, request.body)
            case "GET", _:
                outcome.send_json(control_plane.answer(segments, query, MODEL_IDS))
            case _:
                raise ServiceError(
                    404, "UnknownOperationException", "The operation is not known here."
                )

    def _record(self, request: HttpRequest, outcome: Outcome) -> None:
        self.records.append(
            RequestRecord(
                seq=outcome.seq,
                time=time.time(),
                connection=request.connection,
                operation=outcome.operation,
                model_id=outcome.model_id,
                role=outcome.role,
                turn=outcome.turn,
                status=outcome.status,
                fault=outcome.fault.kind if outcome.fault else None,
                body_sha256=sha256(request.body).hexdigest(),
                body=request.body if self._settings.keep_bodies else None,
            )
        )

    def _inspect(self, request: HttpRequest, segments: list[str]) -> Answer:
        """The emulator's own pages, for tests that run it in another process."""
        status = 200
        body: object = {}
        match request.method, segments:
            case "GET", ["health"]:
                body = {"status": "ok", "validation": self._runtime.validator.active}
            case "GET", ["pace"]:
                body = self._settings.pace()
            case "GET", ["requests"]:
                body = [_row(record) for record in tuple(self.records)]
            case "POST", ["reset"]:
                self.records.clear()
                self._runtime.reset()
            case "POST", ["faults"]:
                status, body = self._order_faults(request.body)
            case _:
                status, body = 404, {"message": "The emulator has no such page."}
        data = json.dumps(body).encode()
        return Answer(((0, response(status, "Content-Type: application/json\r\n", data)),))

    def _order_faults(self, raw: bytes) -> tuple[int, dict[str, object]]:
        """Replace the faults by a JSON list of specs."""
        try:
            faults = [parse_fault(spec) for spec in json.loads(raw)]
        except (ValueError, AttributeError, TypeError) as error:
            return 400, {"message": str(error)}
        self._runtime.faults = FaultBox(faults, self._settings.seed)
        return 200, {"faults": len(faults)}


def _row(record: RequestRecord) -> dict[str, object]:
    body = record.body.decode("utf-8", "replace") if record.body is not None else None
    return asdict(record) | {"body": body}
