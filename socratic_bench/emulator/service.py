"""Routes a request to the runtime, the control plane or the emulator's own pages."""

import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import parse_qs, unquote

from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.emulator.answers import HttpRequest, Outcome, response
from socratic_bench.emulator.catalogue import Traits, listed_models, traits_of
from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.errors import (
    ServiceError,
    invalid,
    unknown_operation,
    unknown_resource,
)
from socratic_bench.emulator.faults import JOB_OPERATION, FaultInjector, parse_fault
from socratic_bench.emulator.jobs import Jobs
from socratic_bench.emulator.models import MODEL_IDS
from socratic_bench.emulator.runtime import OPERATIONS, Runtime
from socratic_bench.emulator.settings import Settings

# Operations of the service that the emulator does not have.
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


REGION = "us-east-1"
ACCOUNT = "123456789012"
PROFILE_REGIONS = ("us", "eu")
_PROFILE_ARN = f"arn:aws:bedrock:{REGION}:{ACCOUNT}:inference-profile"
PAGE = 100
_NUMBER = re.compile(r"[0-9]{1,9}")


_HOST_AND_PORT = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]/@\s]+)(?::(\d{1,5}))?")
_OTHER_SITES = ("cross-site", "same-site")


class RequestRecord(Struct, frozen=True, kw_only=True):
    """One request and how it was answered, at a Unix time; what a request lacks is `None`."""

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
    """One emulated endpoint and the requests that it has received."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.records: deque[RequestRecord] = deque(maxlen=settings.keep_requests)
        self.settings = settings
        self.gate = Gate(settings.allowed_hosts)
        self._runtime = Runtime(settings, clock)
        self._seq = 0
        self._jobs = Jobs(self._answer_record)

    def handle(self, request: HttpRequest) -> Outcome:
        path, _, query = request.target.partition("?")
        try:
            self.gate.check(request.headers, request.local)
        except ServiceError as error:
            outcome = self._outcome("refused")
            outcome.refuse(error)
            return outcome
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
        self._log(outcome, request.body, request.connection)
        return outcome

    def _log(self, outcome: Outcome, body: bytes, connection: int) -> None:
        self.records.append(
            RequestRecord(
                seq=outcome.seq,
                time=time.time(),
                connection=connection,
                operation=outcome.operation,
                model_id=outcome.model_id[:MODEL_ID_LENGTH] if outcome.model_id else None,
                role=outcome.role,
                turn=outcome.turn,
                status=outcome.status,
                fault=outcome.fault.kind if outcome.fault else None,
                body_sha256=sha256(body).hexdigest(),
                body=body if self.settings.keep_bodies else None,
            )
        )

    def _answer_record(self, model_id: str, body: JsonObject) -> JsonObject:
        """The answer to a record of a batch job, which is logged like a request."""
        self._seq += 1
        outcome = self._outcome("BatchRecord")
        try:
            return self._runtime.answer_record(outcome, model_id, body)
        except ServiceError as error:
            outcome.status = error.status
            raise
        finally:
            self._log(outcome, json.dumps(body).encode(), 0)

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
            case "POST", ["optimize-prompt"]:
                outcome.operation = "OptimizePrompt"
                self._runtime.optimise(outcome, request.body)
            case _, ["model-invocation-job" | "model-invocation-jobs", *_]:
                self._answer_about_job(request, outcome, segments)
            case _ if name := _unplayed(request):
                outcome.operation = name
                raise unknown_operation(
                    f"{name} is not played here. Send a dialogue as Converse or ConverseStream, "
                    "with a body that is the same for all models."
                )
            case "GET", _:
                any_model = self.settings.any_model
                outcome.send_json(control_plane_body(segments, query, any_model=any_model))
            case _:
                raise unknown_operation()

    def _answer_about_job(
        self, request: HttpRequest, outcome: Outcome, segments: list[str]
    ) -> None:
        match request.method, segments:
            case "POST", ["model-invocation-job"]:
                outcome.operation = JOB_OPERATION
                body = json.loads(request.body)
                outcome.model_id = body["modelId"]
                fault = self._runtime.job_fault(body["modelId"])
                outcome.send_json(self._jobs.create(body, fault))
            case "GET", ["model-invocation-job", arn]:
                outcome.operation = "GetModelInvocationJob"
                outcome.send_json(self._jobs.look(arn))
            case "GET", ["model-invocation-jobs"]:
                outcome.operation = "ListModelInvocationJobs"
                outcome.send_json(self._jobs.list())
            case _:
                raise unknown_operation()

    def _inspect(self, request: HttpRequest, page: str) -> Outcome:
        """The emulator's own pages, for tests that run it in another process."""
        status = 200
        body: object = {}
        match request.method, page:
            case "GET", "health":
                body = {"status": "ok"}
            case "GET", "pace":
                body = self.settings.pace()
            case "GET", "requests":
                body = [*map(_row, tuple(self.records)[-LISTED_REQUESTS:])]
            case "POST", "reset":
                self.records.clear()
                self._runtime.reset()
            case "POST", "faults":
                status, body = self._order_faults(request.body)
            case _:
                status, body = 404, {"message": "The emulator has no such page."}
        outcome = self._outcome(page)
        data = json.dumps(body).encode()
        outcome.pieces = ((0, response(status, "Content-Type: application/json\r\n", data)),)
        return outcome

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
    operation = f"{request.method} {request.target.partition('?')[0]}"
    names = UNPLAYED_OPERATIONS.items()
    return next((name for path, name in names if re.fullmatch(path, operation)), None)


def _row(record: RequestRecord) -> dict[str, object]:
    body = record.body.decode("utf-8", "replace") if record.body is not None else None
    return asdict(record) | {"body": body}


class Gate:
    """Refuses requests from web pages: callers have to use one of the endpoint's own names.

    A browser sends a page's requests to this machine, too, and a site can point its own name here
    (DNS rebinding). Both show in what the browser says of itself: `Host`, `Origin`,
    `Sec-Fetch-Site`.

    These are the loopback device's, the address (and port) at which a client has reached it, the
    one that it was told to listen on, and those that its user allows.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = {name.lower() for name in allowed}
        self._bound: set[str] = set()
        self._is_own = lru_cache(maxsize=256)(self._names_the_endpoint)

    def listens_at(self, *names: str) -> None:
        """Take a name or an address on which the endpoint listens for one of its own."""
        self._bound.update(name.lower() for name in names)
        self._is_own.cache_clear()

    def check(self, headers: Mapping[str, str], local: tuple[str, int]) -> None:
        """Raise an error for a request that another name or another site's page has led here."""
        host = headers.get("host")
        if host is None:
            raise ServiceError(400, "ValidationException", "The request has no Host header.")
        if not self._is_own(host, local):
            name = host[:100]
            raise _denied(
                f"This endpoint is not called {name!r}. If that is a name of its own, start it "
                "with --allowed-host and that name."
            )
        own_origin = f"http://{host.lower()}"
        origin = headers.get("origin", own_origin).lower()
        if origin != own_origin or headers.get("sec-fetch-site") in _OTHER_SITES:
            raise _denied("A page of another site may not call this endpoint.")

    def _names_the_endpoint(self, host: str, local: tuple[str, int]) -> bool:
        text = host.lower()
        match = _HOST_AND_PORT.fullmatch(text)
        if match is None:
            return False
        name = match[1].removesuffix(".")
        if {name, text} & self._allowed or name == "localhost" or name.endswith(".localhost"):
            return True
        bare = name.strip("[]")
        address = _address(bare)
        if address is not None and address.is_loopback:
            return True
        at_home = bare in self._bound or (address is not None and address == _address(local[0]))
        return at_home and match[2] in (None, str(local[1]))


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _denied(message: str) -> ServiceError:
    return ServiceError(403, "AccessDeniedException", message)


def control_plane_body(segments: list[str], query: str, *, any_model: bool) -> JsonObject:
    """The body for a GET on the control plane. It knows every id that a model answers to."""
    arguments = {name: values[-1] for name, values in parse_qs(query).items()}
    match segments:
        case ["foundation-models"]:
            kind = arguments.get("byInferenceType")
            summaries = map(_summary, (*map(traits_of, MODEL_IDS), *listed_models()))
            rows = [row for row in summaries if kind in (None, *row["inferenceTypesSupported"])]
            return {"modelSummaries": rows}
        case ["foundation-models", model_id]:
            return {"modelDetails": _summary(_traits_or_refuse(model_id, any_model=any_model))}
        case ["foundation-model-availability", model_id]:
            return {
                "modelId": _traits_or_refuse(model_id, any_model=any_model).base_id,
                "agreementAvailability": {"status": "AVAILABLE"},
                "authorizationStatus": "AUTHORIZED",
                "entitlementAvailability": "AVAILABLE",
                "regionAvailability": "AVAILABLE",
            }
        case ["inference-profiles"]:
            profiles = [
                _profile(f"{region}.{traits.base_id}", traits)
                for traits in listed_models()
                for region in PROFILE_REGIONS
            ]
            return _page(profiles, arguments)
        case ["inference-profiles", profile]:
            return _find_profile(profile, any_model=any_model)
        case _:
            raise unknown_operation()


def _traits_or_refuse(model_id: str, *, any_model: bool) -> Traits:
    traits = traits_of(model_id)
    if traits.is_known or any_model:
        return traits
    raise unknown_resource("Could not resolve the foundation model from the model identifier.")


def _arn(traits: Traits) -> str:
    return f"arn:aws:bedrock:{REGION}::foundation-model/{traits.base_id}"


def _summary(traits: Traits) -> JsonObject:
    return {
        "modelArn": _arn(traits),
        "modelId": traits.base_id,
        "modelName": traits.name or traits.base_id.partition(".")[2].partition("-v1")[0],
        "providerName": traits.base_id.partition(".")[0].capitalize(),
        "inputModalities": ["TEXT"],
        "outputModalities": ["TEXT"],
        "responseStreamingSupported": True,
        "customizationsSupported": [],
        "inferenceTypesSupported": ["INFERENCE_PROFILE" if traits.profile_only else "ON_DEMAND"],
        "modelLifecycle": {"status": "LEGACY" if traits.end_of_life else "ACTIVE"},
    }


def _profile(name: str, traits: Traits) -> JsonObject:
    display_name = traits.name or traits.base_id.partition(".")[2]
    region = name.removesuffix(f".{traits.base_id}")
    return {
        "inferenceProfileName": f"{region.upper()} {display_name}".replace(".", "-"),
        "inferenceProfileArn": f"{_PROFILE_ARN}/{name}",
        "inferenceProfileId": name,
        "models": [{"modelArn": _arn(traits)}],
        "status": "ACTIVE",
        "type": "SYSTEM_DEFINED",
    }


def _find_profile(name: str, *, any_model: bool) -> JsonObject:
    traits, short = traits_of(name), name.rpartition("/")[2]
    if short != traits.base_id and (traits.is_known or any_model):
        return _profile(short, traits)
    raise unknown_resource("The inference profile was not found.")


def _page(profiles: list[JsonObject], arguments: dict[str, str]) -> JsonObject:
    """One page of the listing. The token is the number of the first profile on the next page."""
    start, size = arguments.get("nextToken", "0"), arguments.get("maxResults", str(PAGE))
    if not (_NUMBER.fullmatch(start) and _NUMBER.fullmatch(size) and int(size)):
        raise invalid("The pagination arguments are not valid.")
    if arguments.get("type") == "APPLICATION":
        profiles = []
    end = int(start) + int(size)
    page: JsonObject = {"inferenceProfileSummaries": profiles[int(start) : end]}
    return page | ({"nextToken": str(end)} if end < len(profiles) else {})
