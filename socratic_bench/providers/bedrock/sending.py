"""Sends one request of a call: waits for its turn, notes the attempt, reads the answer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from socratic_bench.errors import ModelError, Stopped
from socratic_bench.ports import Reservation
from socratic_bench.pricing.bounds import most_input_tokens
from socratic_bench.providers.bedrock import answers, wire
from socratic_bench.providers.bedrock.cache_points import caches_system
from socratic_bench.providers.bedrock.connection import Connection
from socratic_bench.providers.bedrock.context import CallContext, Options
from socratic_bench.providers.bedrock.credentials import CredentialsError
from socratic_bench.providers.bedrock.error_kinds import TRANSLATED, maybe_billed, translate
from socratic_bench.providers.bedrock.in_flight import Answer, InFlightRequest
from socratic_bench.providers.bedrock.observed import ObservedCapabilities
from socratic_bench.providers.bedrock.prompt_cache_gate import PromptCacheGate
from socratic_bench.providers.bedrock.rate_limiter import RateLimiter
from socratic_bench.providers.bedrock.server_wait import retry_after_s
from socratic_bench.types import Attempt, CallKey, Completion, Message, Request

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

RUN_ENDED = "run_ended"  # the error of a request whose answer nobody waited for any more


class CallState(Struct):
    """The requests that one call has sent so far, and what it has waited since the last one.

    `drops`: the last one was refused for a field that the next one leaves out.
    """

    key: CallKey
    attempts: list[Attempt] = field(default_factory=list)
    wait_ms: float = 0.0
    has_renewed: bool = False
    drops: bool = False


class Sender:
    """What the requests to one model share."""

    def __init__(
        self,
        connection: Connection,
        model_id: str,
        *,
        observed: ObservedCapabilities,
        rate_limiter: RateLimiter,
        context: CallContext,
        options: Options,
    ) -> None:
        self._connection = connection
        self._model_id = model_id
        self._observed = observed
        self._rate_limiter = rate_limiter
        self._context = context
        self._metadata = options.metadata
        self._cache_gate = PromptCacheGate()

    def send(
        self, client: "BedrockRuntimeClient", request: Request, state: CallState
    ) -> Completion:
        """Send, but not while another request writes the same prefix to the model's cache.

        Raises `ModelError` for this one attempt, which stands in the trail.
        """
        if not caches_system(request, self._observed.now):
            return self._send(client, request, state)
        prefix = f"{request.system}\0{request.tool}"
        asked_s = self._context.monotonic_s()
        if not self._cache_gate.enter(prefix, self._context.result):
            state.wait_ms += (self._context.monotonic_s() - asked_s) * 1000
            return self._send(client, request, state)
        completion = None
        try:
            completion = self._send(client, request, state)
            return completion
        finally:
            # Nobody waits for a cache that was refused.
            is_cached = caches_system(request, self._observed.now)
            self._cache_gate.leave(prefix, is_done=completion is not None or not is_cached)

    def _send(
        self, client: "BedrockRuntimeClient", request: Request, state: CallState
    ) -> Completion:
        state.drops = False
        reservation = self._admission(request, state)
        # Only now: while it waited, another request may have been refused for a field.
        can = self._observed.now
        arguments = wire.converse_arguments(self._model_id, request, can, self._metadata)
        in_flight = InFlightRequest(
            client,
            arguments,
            streamed=can.streams(arguments),
            timeout_s=self._connection.call_timeout_s,
            monotonic_s=self._context.monotonic_s,
            make_ready=self._connection.make_ready,
        )
        attempt = _Attempt(self._context, state, request)
        try:
            answer = in_flight.answer(self._context.result)
            message, stop_reason = answers.read_message(answer.response)
        except Stopped:
            given_up = attempt.end(self._context.monotonic_s(), RUN_ENDED, maybe_billed=True)
            if reservation:
                reservation.failed(given_up)
            raise
        except TRANSLATED as error:
            failure = self._failure(error)
            state.drops = self._observed.drops(failure, can)
            # Once a stream has begun, a model is at work, whatever the error is called.
            billed = in_flight.began or maybe_billed(error, failure.code)
            failed = attempt.end(self._context.monotonic_s(), failure.code, maybe_billed=billed)
            if reservation:
                reservation.failed(failed)
            self._slow_down(failure, attempt)
            raise failure from (error.cause if isinstance(error, CredentialsError) else error)
        self._rate_limiter.answered()
        self._connection.answered(client)
        attempt.end(answer.done_s, None, maybe_billed=True)
        completion = self._completion(answer, attempt, state, message, stop_reason)
        if reservation:
            reservation.answered(completion)
        return completion

    def _slow_down(self, failure: ModelError, attempt: "_Attempt") -> None:
        if failure.code == "throttled":
            self._rate_limiter.throttled(sent_at_s=attempt.started_s, asked_s=failure.retry_after_s)

    def _admission(self, request: Request, state: CallState) -> Reservation | None:
        cost_limit = self._context.cost_limit
        reservation = cost_limit.reserve(self._model_id, request, state.key) if cost_limit else None
        state.wait_ms += self._rate_limiter.enter() * 1000
        return reservation

    def _failure(self, error: Exception) -> ModelError:
        failure = translate(error, model_id=self._model_id)
        failure.retry_after_s = retry_after_s(_headers(error))
        return failure

    def _completion(
        self,
        answer: Answer,
        attempt: "_Attempt",
        state: CallState,
        message: Message,
        stop_reason: str,
    ) -> Completion:
        response, first_s = answer.response, answer.first_content_s
        return Completion(
            message=message,
            stop_reason=stop_reason,
            usage=answers.read_usage(response),
            latency_ms=(answer.done_s - attempt.started_s) * 1000,
            service_latency_ms=answers.read_service_latency(response),
            attempts=tuple(state.attempts),
            request_id=response.get("ResponseMetadata", {}).get("RequestId"),
            finished_at=self._context.now(),
            streamed=answer.streamed,
            ttft_ms=None if first_s is None else (first_s - attempt.started_s) * 1000,
            served_model=answers.read_invoked_model(response),
            served_tier=answers.read_served(response, "serviceTier", "type"),
            served_latency_profile=answers.read_served(response, "performanceConfig", "latency"),
        )


class _Attempt:
    """One attempt, from now on until its `end` puts it into the trail."""

    def __init__(self, around: CallContext, state: CallState, request: Request) -> None:
        self.started_at, self.started_s = around.now(), around.monotonic_s()
        self._trail = state
        self._request = request
        self._wait_ms, state.wait_ms = state.wait_ms, 0.0

    def end(self, ended_s: float, error: str | None, *, maybe_billed: bool) -> Attempt:
        attempt = Attempt(
            started_at=self.started_at,
            duration_ms=(ended_s - self.started_s) * 1000,
            wait_ms=self._wait_ms,
            error=error,
            may_have_been_billed=maybe_billed,
            input_tokens_at_most=most_input_tokens(self._request) if maybe_billed else None,
            output_tokens_at_most=self._request.config.max_tokens if maybe_billed else None,
        )
        self._trail.attempts.append(attempt)
        return attempt


def _headers(error: Exception) -> dict[str, str]:
    # Errors of the connection have a response, too, which is None.
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    headers: dict[str, str] = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return headers
