"""Bedrock as a `Provider`: sends a request in the shape that its model takes, reads the answer,
names what went wrong.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from socratic_bench.catalogue.token_bounds import packed_schema
from socratic_bench.errors import ModelError
from socratic_bench.models.bedrock import answers
from socratic_bench.models.bedrock.cache_points import caches_system
from socratic_bench.models.bedrock.capabilities import OWN_FIELDS, Capabilities, capabilities_of
from socratic_bench.models.bedrock.connection import ADVISED, Connection
from socratic_bench.models.bedrock.credentials import CredentialsError
from socratic_bench.models.bedrock.error_kinds import TRANSLATED, error_kind
from socratic_bench.models.bedrock.observed import ObservedCapabilities, Options
from socratic_bench.models.bedrock.sending import Response, WireRequest
from socratic_bench.ports.provider import (
    Answer,
    AnswerTimeoutError,
    ErrorKind,
    Provider,
    RefusedField,
)
from socratic_bench.types import Request

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

    from socratic_bench.catalogue.cache_pricing import Part


class FailedRequestError(Exception):
    """A request failed by what stands as the error's cause; with it what had been tried."""

    def __init__(
        self,
        model_id: str,
        *,
        tried: Capabilities,
        client: "BedrockRuntimeClient | None",
        began: bool,
    ) -> None:
        super().__init__(model_id)
        self.model_id = model_id
        self.tried = tried
        self.client = client
        self.began = began


class BedrockProvider(Provider):
    """See `Provider`. What models refuse is left out of what is sent to them from then on."""

    def __init__(
        self,
        connection: Connection,
        options: Options,
        *,
        monotonic_s: Callable[[], float],
        observed: dict[str, ObservedCapabilities] | None = None,
    ) -> None:
        self._connection = connection
        self._options = options
        self._monotonic_s = monotonic_s
        self._observed = {} if observed is None else observed

    def with_options(self, options: Options) -> "BedrockProvider":
        """One on the same connection, which shares what is seen of models."""
        return BedrockProvider(
            self._connection, options, monotonic_s=self._monotonic_s, observed=self._observed
        )

    def send(self, model_id: str, request: Request, timeout_s: float) -> Answer:
        """See `Provider.send`. Raises `FailedRequestError`."""
        shaped = self._seen(model_id).shaped(request, self._options)
        client: BedrockRuntimeClient | None = None
        sent: WireRequest | None = None
        try:
            client = self._connection.current_client()
            self._connection.make_ready(client)
            sent = WireRequest(
                client, shaped.arguments, timeout_s=timeout_s, monotonic_s=self._monotonic_s
            )
            answer = _answer(sent.response(streamed=shaped.is_streamed))
        except (*TRANSLATED, ModelError) as error:
            began = sent is not None and sent.began
            raise FailedRequestError(
                model_id, tried=shaped.can, client=client, began=began
            ) from error
        self._connection.answered(client)
        temperature = shaped.arguments["inferenceConfig"].get("temperature")
        return replace(answer, temperature=temperature)

    def error_kind(self, error: Exception) -> ErrorKind | None:
        """See `Provider.error_kind`."""
        if isinstance(error, AnswerTimeoutError):
            return error_kind(error, model_id=error.model_id)
        if not isinstance(error, FailedRequestError):
            return None
        cause = error.__cause__
        assert isinstance(cause, Exception)  # noqa: S101 -- `send` raises it from one
        kind = error_kind(cause, model_id=error.model_id, began=error.began)
        kind = (
            self._seen(error.model_id).mended(kind, error.tried)
            or self._connection.renewed(kind, error.client)
            or kind
        )
        look_up = partial(self._connection.hint, kind, _root(cause), error.model_id)
        return replace(kind, look_up=look_up if kind.code in ADVISED else None)

    def sizes(self, model_id: str, request: Request) -> "Sequence[Part]":
        """See `Provider.sizes`."""
        from socratic_bench.models.bedrock.sizes import request_parts

        return request_parts(self._seen(model_id).shaped(request, self._options).arguments)

    def cached_prefix(self, model_id: str, request: Request) -> Hashable | None:
        """See `Provider.cached_prefix`."""
        if not caches_system(request, self._options.limit(self._seen(model_id).now)):
            return None
        tool = request.tool
        # No digest: of the same instructions, the interpreter keeps what they are compared by.
        named = tool and (tool.name, tool.description, packed_schema(tool))
        return (model_id, request.system, named)

    def refused_fields(self, model_id: str) -> Mapping[str, RefusedField]:
        """See `Provider.refused_fields`."""
        return self._seen(model_id).refused

    def capabilities(self, model_id: str) -> Mapping[str, tuple[bool, bool]]:
        """See `Provider.capabilities`; what a run's own options leave out counts as not taken."""
        known, now = capabilities_of(model_id), self._seen(model_id).now
        known, now = self._options.limit(known), self._options.limit(now)
        return {name: (getattr(known, name), getattr(now, name)) for name in OWN_FIELDS}

    def _seen(self, model_id: str) -> ObservedCapabilities:
        seen = self._observed.get(model_id)
        if seen is None:
            seen = ObservedCapabilities(model_id)
            # Another thread may have been quicker.
            seen = self._observed.setdefault(model_id, seen)
        return seen


def _root(error: Exception) -> Exception:
    """What the SDK raised."""
    if isinstance(error, CredentialsError):
        return error.cause
    cause = error.__cause__ if isinstance(error, ModelError) else None
    return cause if isinstance(cause, Exception) else error


def _answer(response: Response) -> Answer:
    fields = response.fields
    message, stop_reason = answers.read_message(fields)
    return Answer(
        message=message,
        stop_reason=answers.neutral(stop_reason),
        provider_stop_reason=stop_reason,
        usage=answers.read_usage(fields),
        latency_ms=response.latency_ms,
        service_latency_ms=answers.read_service_latency(fields),
        request_id=fields.get("ResponseMetadata", {}).get("RequestId"),
        streamed=response.streamed,
        ttft_ms=response.ttft_ms,
        served_model=answers.read_invoked_model(fields),
        served_tier=answers.read_served(fields, "serviceTier", "type"),
        served_latency_profile=answers.read_served(fields, "performanceConfig", "latency"),
    )
