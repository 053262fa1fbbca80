"""Sends one request of a call: waits for its turn, notes the attempt, reads the answer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from socratic_bench.bedrock import answers, wire
from socratic_bench.bedrock.cache_points import caches_system
from socratic_bench.bedrock.connection import Connection
from socratic_bench.bedrock.credentials import CredentialsError
from socratic_bench.bedrock.exchange import Answer, Exchange
from socratic_bench.bedrock.faults import TRANSLATED, maybe_billed, translate
from socratic_bench.bedrock.learned import Learned
from socratic_bench.bedrock.pace import Pace
from socratic_bench.bedrock.server_wait import retry_after_s
from socratic_bench.bedrock.surroundings import Options, Surroundings
from socratic_bench.bedrock.warmth import Warmth
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.ports import Admission
from socratic_bench.pricing.bounds import most_input_tokens
from socratic_bench.types import Attempt, CallKey, Completion, Message, Request

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

RUN_ENDED = "run_ended"  # the error of a request whose answer nobody waited for any more


class Trail(Struct):
    """The requests that one call has sent so far, and what it has waited since the last one.

    `forgoes`: the last one was refused for a field that the next one leaves out.
    """

    key: CallKey
    attempts: list[Attempt] = field(default_factory=list)
    wait_ms: float = 0.0
    has_renewed: bool = False
    forgoes: bool = False


class Sender:
    """What the requests to one model share."""

    def __init__(
        self,
        connection: Connection,
        model_id: str,
        *,
        learned: Learned,
        pace: Pace,
        surroundings: Surroundings,
        options: Options,
    ) -> None:
        self._connection = connection
        self._model_id = model_id
        self._learned = learned
        self._pace = pace
        self._around = surroundings
        self._metadata = options.metadata
        self._warmth = Warmth()

    def send(self, client: "BedrockRuntimeClient", request: Request, trail: Trail) -> Completion:
        """Send, but not while another request writes the same prefix to the model's cache.

        Raises `ModelError` for this one attempt, which stands in the trail.
        """
        if not caches_system(request, self._learned.now):
            return self._send(client, request, trail)
        prefix = f"{request.system}\0{request.tool}"
        asked_s = self._around.monotonic_s()
        if not self._warmth.enter(prefix, self._around.result):
            trail.wait_ms += (self._around.monotonic_s() - asked_s) * 1000
            return self._send(client, request, trail)
        completion = None
        try:
            completion = self._send(client, request, trail)
            return completion
        finally:
            # Nobody waits for a cache that was refused.
            is_cached = caches_system(request, self._learned.now)
            self._warmth.leave(prefix, is_done=completion is not None or not is_cached)

    def _send(self, client: "BedrockRuntimeClient", request: Request, trail: Trail) -> Completion:
        trail.forgoes = False
        admission = self._admission(request, trail)
        # Only now: while it waited, another request may have been refused for a field.
        can = self._learned.now
        arguments = wire.converse_arguments(self._model_id, request, can, self._metadata)
        exchange = Exchange(
            client,
            arguments,
            streamed=can.streams(arguments),
            timeout_s=self._connection.call_timeout_s,
            monotonic_s=self._around.monotonic_s,
            make_ready=self._connection.make_ready,
        )
        attempt = _Attempt(self._around, trail, request)
        try:
            answer = exchange.answer(self._around.result)
            message, stop_reason = answers.read_message(answer.response)
        except Stopped:
            given_up = attempt.end(self._around.monotonic_s(), RUN_ENDED, maybe_billed=True)
            if admission:
                admission.failed(given_up)
            raise
        except TRANSLATED as error:
            failure = self._failure(error)
            trail.forgoes = self._learned.forgoes(failure, can)
            # Once a stream has begun, a model is at work, whatever the error is called.
            billed = exchange.began or maybe_billed(error, failure.code)
            failed = attempt.end(self._around.monotonic_s(), failure.code, maybe_billed=billed)
            if admission:
                admission.failed(failed)
            self._slow_down(failure, attempt)
            raise failure from (error.cause if isinstance(error, CredentialsError) else error)
        self._pace.answered()
        self._connection.answered(client)
        attempt.end(answer.done_s, None, maybe_billed=True)
        completion = self._completion(answer, attempt, trail, message, stop_reason)
        if admission:
            admission.answered(completion)
        return completion

    def _slow_down(self, failure: ModelError, attempt: "_Attempt") -> None:
        if failure.code == "throttled":
            self._pace.throttled(sent_at_s=attempt.started_s, asked_s=failure.retry_after_s)

    def _admission(self, request: Request, trail: Trail) -> Admission | None:
        purse = self._around.purse
        admission = purse.admit(self._model_id, request, trail.key) if purse else None
        trail.wait_ms += self._pace.enter() * 1000
        return admission

    def _failure(self, error: Exception) -> ModelError:
        failure = translate(error, model_id=self._model_id)
        failure.retry_after_s = retry_after_s(_headers(error))
        return failure

    def _completion(
        self, answer: Answer, attempt: "_Attempt", trail: Trail, message: Message, stop_reason: str
    ) -> Completion:
        response, first_s = answer.response, answer.first_content_s
        return Completion(
            message=message,
            stop_reason=stop_reason,
            usage=answers.read_usage(response),
            latency_ms=(answer.done_s - attempt.started_s) * 1000,
            service_latency_ms=answers.read_service_latency(response),
            attempts=tuple(trail.attempts),
            request_id=response.get("ResponseMetadata", {}).get("RequestId"),
            finished_at=self._around.now(),
            streamed=answer.streamed,
            ttft_ms=None if first_s is None else (first_s - attempt.started_s) * 1000,
            served_model=answers.read_invoked_model(response),
            served_tier=answers.read_served(response, "serviceTier", "type"),
            served_latency_profile=answers.read_served(response, "performanceConfig", "latency"),
        )


class _Attempt:
    """One attempt, from now on until its `end` puts it into the trail."""

    def __init__(self, around: Surroundings, trail: Trail, request: Request) -> None:
        self.started_at, self.started_s = around.now(), around.monotonic_s()
        self._trail = trail
        self._request = request
        self._wait_ms, trail.wait_ms = trail.wait_ms, 0.0

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
