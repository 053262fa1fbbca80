"""A model on Bedrock as a `Model`: shape, call, read, retry, remember what it refuses."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from socratic_bench.bedrock import wire
from socratic_bench.bedrock.capabilities import Capabilities, capabilities_of, refused_field
from socratic_bench.bedrock.connection import RENEWABLE, Connection
from socratic_bench.bedrock.faults import TRANSLATED, maybe_billed, translate
from socratic_bench.bedrock.pace import Pace
from socratic_bench.bedrock.retry import Uniform, retry_after_s, retrying
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.ports import Purse
from socratic_bench.pricing.bounds import most_input_tokens
from socratic_bench.types import Attempt, CallKey, Completion, Request
from socratic_bench.values import dataclass

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a call takes from outside: time, chance, a sleep that the run can end, and an ear."""

    now: Callable[[], datetime]
    monotonic_s: Callable[[], float]
    sleep: Callable[[float], None]
    uniform: Uniform
    notice: Callable[[str], None]
    purse: Purse | None = None


@dataclass(slots=True)
class _Trail:
    """The requests that one call has sent so far, and what it has waited since the last one."""

    key: CallKey
    attempts: list[Attempt] = field(default_factory=list)
    wait_ms: float = 0.0
    has_renewed: bool = False


class BedrockModel:
    """One model id on one connection; calls may come from several threads."""

    def __init__(
        self,
        connection: Connection,
        model_id: str,
        *,
        pace: Pace,
        max_attempts: int,
        surroundings: Surroundings,
    ) -> None:
        self.model_id = model_id
        self._connection = connection
        self._pace = pace
        self._max_attempts = max_attempts
        self._around = surroundings
        self._can = capabilities_of(model_id)
        self._lock = threading.Lock()

    def complete(self, request: Request, key: CallKey) -> Completion:
        """See `Model.complete`. An error carries the requests that were sent."""
        trail = _Trail(key)

        def pause(seconds: float) -> None:
            trail.wait_ms += seconds * 1000
            self._around.sleep(seconds)

        loop = retrying(max_attempts=self._max_attempts, sleep=pause, uniform=self._around.uniform)
        try:
            return loop(self._try, request, trail)
        except Stopped as stopped:
            if stopped.end_reason == "budget":  # another end is one object for all calls
                stopped.attempts = tuple(trail.attempts)
            raise
        except ModelError as error:
            error.attempts = tuple(trail.attempts)
            error.hint = self._connection.hint(error, self.model_id)
            raise

    def _try(self, request: Request, trail: _Trail) -> Completion:
        """One try of the retry budget; a field refused or a credential spent uses up none of it."""
        while True:
            can, client = self._can, self._connection.client
            try:
                return self._send(client, request, can, trail)
            except ModelError as error:
                if not self._forgoes(error, can) and not self._renews(error, client, trail):
                    raise

    def _send(
        self, client: "BedrockRuntimeClient", request: Request, can: Capabilities, trail: _Trail
    ) -> Completion:
        purse = self._around.purse
        admission = purse.admit(self.model_id, request, trail.key) if purse else None
        trail.wait_ms += self._pace.enter() * 1000
        started_at, started_s = self._around.now(), self._around.monotonic_s()
        wait_ms, trail.wait_ms = trail.wait_ms, 0.0

        def note(error: str | None, *, may_have_been_billed: bool) -> float:
            duration_ms = (self._around.monotonic_s() - started_s) * 1000
            lost = error is not None and may_have_been_billed
            attempt = Attempt(
                started_at=started_at,
                duration_ms=duration_ms,
                wait_ms=wait_ms,
                error=error,
                may_have_been_billed=may_have_been_billed,
                input_tokens_at_most=most_input_tokens(request) if lost else None,
                output_tokens_at_most=request.config.max_tokens if lost else None,
            )
            trail.attempts.append(attempt)
            if admission and error is not None:
                admission.failed(attempt)
            return duration_ms

        arguments = wire.converse_arguments(self.model_id, request, can)
        try:
            response = _converse(client, arguments)
            message, stop_reason = wire.read_message(response)
        except TRANSLATED as error:
            failure = translate(error, model_id=self.model_id)
            failure.retry_after_s = retry_after_s(_headers(error))
            note(failure.code, may_have_been_billed=maybe_billed(error, failure.code))
            if failure.code == "throttled":
                self._pace.throttled(sent_at_s=started_s, asked_s=failure.retry_after_s)
            raise failure from error
        self._pace.answered()
        self._connection.answered(client)
        latency_ms = note(None, may_have_been_billed=True)
        completion = Completion(
            message=message,
            stop_reason=stop_reason,
            usage=wire.read_usage(response),
            latency_ms=latency_ms,
            service_latency_ms=wire.read_service_latency(response),
            attempts=tuple(trail.attempts),
            request_id=response.get("ResponseMetadata", {}).get("RequestId"),
            finished_at=self._around.now(),
        )
        if admission:
            admission.answered(completion)
        return completion

    def _forgoes(self, error: ModelError, tried: Capabilities) -> bool:
        """Whether the error refuses a field that can be left out; it is remembered if so."""
        refused = refused_field(error.message) if error.code == "invalid_request" else None
        if refused is None or not getattr(tried, refused):
            return False
        with self._lock:
            news = getattr(self._can, refused)
            self._can = self._can.without(refused)
        if news:
            self._around.notice(f"{self.model_id} refuses {refused}: the run goes on without it.")
        return True

    def _renews(self, error: ModelError, spent: "BedrockRuntimeClient", trail: _Trail) -> bool:
        """Whether there are credentials to go on with; a call asks for them once."""
        if error.code not in RENEWABLE or trail.has_renewed:
            return False
        trail.has_renewed = True
        return self._connection.renew(spent)


def _converse(client: "BedrockRuntimeClient", arguments: wire.Wire) -> Mapping[str, Any]:
    try:
        return client.converse(**arguments)
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        # The SDK's parser expects the service's own shapes, and trips over any others.
        raise wire.UnreadableAnswerError("the answer has another shape") from error


def _headers(error: Exception) -> dict[str, str]:
    # Errors of the connection have a response, too, which is None.
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    headers: dict[str, str] = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return headers
