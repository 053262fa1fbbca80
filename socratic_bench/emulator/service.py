"""The front door: routes a request to the runtime, the control plane or the inspection."""

import json
import re
import time
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.emulator import control_plane
from socratic_bench.emulator.answers import Answer, HttpRequest, Outcome, response
from socratic_bench.emulator.errors import ServiceError, unknown_operation
from socratic_bench.emulator.faults import FaultInjector, parse_fault
from socratic_bench.emulator.gate import Gate
from socratic_bench.emulator.runtime import OPERATIONS, Runtime
from socratic_bench.emulator.settings import Settings

# What the service has besides, and the emulator does not play.
UNPLAYED_OPERATIONS = {
    r"POST /model/[^/]+/invoke": "InvokeModel",
    r"POST /model/[^/]+/invoke-with-response-stream": "InvokeModelWithResponseStream",
    r"POST /model/[^/]+/invoke-with-bidirectional-stream": "InvokeModelWithBidirectionalStream",
    r"POST /async-invoke": "StartAsyncInvoke",
    r"GET /async-invoke": "ListAsyncInvokes",
    r"GET /async-invoke/[^/]+": "GetAsyncInvoke",
    r"POST /guardrail/[^/]+/version/[^/]+/apply": "ApplyGuardrail",
    r"POST /guardrail-checks/invoke": "InvokeGuardrailChecks",
}
CONTROL_PATH = "/_emulator/"
LISTED_REQUESTS = 10_000
MOST_FAULTS = 1000
MODEL_ID_LENGTH = 256


class RequestRecord(Struct, frozen=True, kw_only=True):
    """One request and how it was answered. `time` is Unix time; what a request lacks is `None`.

    `body` is kept only where the settings ask for it.
    """

    seq: int
    time: float
    connection: int
    operation: str
    model_id: str | None
    role: str | None
    turn: int | None
    status: int
    fault: str | None
    body_sha256: str
    body: bytes | None = None


class Service:
    """One emulated endpoint and its memory."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.records: deque[RequestRecord] = deque(maxlen=settings.keep_requests)
        self.settings = settings
        self.gate = Gate(settings.allowed_hosts)
        self._runtime = Runtime(settings, clock)
        self._seq = 0

    def handle(self, request: HttpRequest) -> Answer:
        path, _, query = request.target.partition("?")
        try:
            self.gate.check(request.headers, request.local)
        except ServiceError as error:
            outcome = self._outcome("refused")
            outcome.refuse(error)
            return outcome.answer
        if path.startswith(CONTROL_PATH):
            return self._inspect(request, path.removeprefix(CONTROL_PATH))
        self._seq += 1
        outcome = self._outcome(f"{request.method[:16]} {path[:80]}")
        # An ARN has slashes of its own, percent-encoded: split first, decode once.
        segments = [unquote(part) for part in path.split("/")[1:]]
        try:
            self._route(request, outcome, segments, query)
        except ServiceError as error:
            outcome.refuse(error)
        self._record(request, outcome)
        return outcome.answer

    def _outcome(self, operation: str) -> Outcome:
        number = f"{self.settings.seed & 0xFFFFFFFF:08x}-0000-4000-8000-{self._seq:012x}"
        return Outcome(seq=self._seq, operation=operation, request_id=number)

    def _route(
        self, request: HttpRequest, outcome: Outcome, segments: list[str], query: str
    ) -> None:
        if "authorization" not in request.headers and "X-Amz-Signature=" not in query:
            raise ServiceError(
                403, "MissingAuthenticationTokenException", "Missing Authentication Token"
            )
        match request.method, segments:
            case "POST", ["model", model_id, operation] if operation in OPERATIONS:
                outcome.operation = OPERATIONS[operation]
                self._runtime.answer(outcome, model_id, request.body)
            case _ if name := _unplayed(request):
                outcome.operation = name
                raise unknown_operation(
                    f"{name} is not played here. Send a dialogue as Converse or ConverseStream, "
                    "with a body that is the same for all models."
                )
            case "GET", _:
                any_model = self.settings.any_model
                outcome.send_json(control_plane.answer(segments, query, any_model=any_model))
            case _:
                raise unknown_operation()

    def _record(self, request: HttpRequest, outcome: Outcome) -> None:
        self.records.append(
            RequestRecord(
                seq=outcome.seq,
                time=time.time(),
                connection=request.connection,
                operation=outcome.operation,
                model_id=outcome.model_id[:MODEL_ID_LENGTH] if outcome.model_id else None,
                role=outcome.role,
                turn=outcome.turn,
                status=outcome.status,
                fault=outcome.fault.kind if outcome.fault else None,
                body_sha256=sha256(request.body).hexdigest(),
                body=request.body if self.settings.keep_bodies else None,
            )
        )

    def _inspect(self, request: HttpRequest, page: str) -> Answer:
        """The emulator's own pages, for tests that run it in another process."""
        status = 200
        body: object = {}
        match request.method, page:
            case "GET", "health":
                body = {"status": "ok"}
            case "GET", "pace":
                body = self.settings.pace()
            case "GET", "requests":
                body = [_row(record) for record in tuple(self.records)[-LISTED_REQUESTS:]]
            case "POST", "reset":
                self.records.clear()
                self._runtime.reset()
            case "POST", "faults":
                status, body = self._order_faults(request.body)
            case _:
                status, body = 404, {"message": "The emulator has no such page."}
        data = json.dumps(body).encode()
        return Answer(((0, response(status, "Content-Type: application/json\r\n", data)),))

    def _order_faults(self, raw: bytes) -> tuple[int, dict[str, object]]:
        """Replace the faults by a JSON list of specs."""
        try:
            faults = [parse_fault(spec) for spec in json.loads(raw)]
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            return 400, {"message": str(error)}
        if len(faults) > MOST_FAULTS:
            return 400, {"message": f"More than {MOST_FAULTS} faults cannot be ordered at once."}
        self._runtime.faults = FaultInjector(faults, self.settings.seed)
        return 200, {"faults": len(faults)}


def _unplayed(request: HttpRequest) -> str | None:
    asked = f"{request.method} {request.target.partition('?')[0]}"
    names = UNPLAYED_OPERATIONS.items()
    return next((name for path, name in names if re.fullmatch(path, asked)), None)


def _row(record: RequestRecord) -> dict[str, object]:
    body = record.body.decode("utf-8", "replace") if record.body is not None else None
    return asdict(record) | {"body": body}
