"""One request on the wire and its answer read whole, streamed or not."""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from socratic_bench.models.bedrock.error_kinds import TRANSLATED
from socratic_bench.models.bedrock.streamed import StreamedAnswer
from socratic_bench.models.bedrock.wire import Wire
from socratic_bench.ports.provider import AnswerTimeoutError, UnreadableAnswerError

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

# What the SDK's parser, and reading what it gives, raise over other shapes than the service's own.
_TRIPS = (AttributeError, KeyError, TypeError, RecursionError)


class Response(Struct, frozen=True, kw_only=True):
    """What came back, as Converse's fields. Times are milliseconds from the sending.

    `ttft_ms`: when the first content of a stream was there, `None` without one; `latency_ms`: when
    the last of the answer was there.
    """

    fields: Mapping[str, Any]
    streamed: bool
    ttft_ms: float | None
    latency_ms: float


class WireRequest:
    """A request of Converse's `arguments`, which is sent once.

    `began` tells that the service has begun to stream an answer: from then on a model is at work.
    """

    def __init__(
        self,
        client: "BedrockRuntimeClient",
        arguments: Wire,
        *,
        timeout_s: float,
        monotonic_s: Callable[[], float],
    ) -> None:
        self.began = False
        self._client = client
        self._arguments = arguments
        self._timeout_s = timeout_s
        self._monotonic_s = monotonic_s

    def response(self, *, streamed: bool) -> Response:
        """What came back. Raises what the SDK raises, and `AnswerTimeoutError` for a stream that
        takes longer than its time.
        """
        return self._streamed_response() if streamed else self._whole_response()

    def _whole_response(self) -> Response:
        started_s = self._monotonic_s()
        fields = self._client.converse(**self._arguments)
        latency_ms = (self._monotonic_s() - started_s) * 1000
        return Response(fields=fields, streamed=False, ttft_ms=None, latency_ms=latency_ms)

    def _streamed_response(self) -> Response:
        started_s = self._monotonic_s()
        opened = self._client.converse_stream(**self._arguments)
        self.began = True
        reading = _Reading()
        try:
            for event in _events(opened):
                passed_s = self._monotonic_s() - started_s
                if passed_s > self._timeout_s:
                    raise AnswerTimeoutError(self._arguments["modelId"], self._timeout_s)
                reading.take(event, passed_s * 1000)
        except TRANSLATED:
            opened["stream"].close()
            # What breaks after the last event takes nothing from the answer.
            if reading.done_ms is None:
                raise
        return reading.response(opened["ResponseMetadata"])


class _Reading:
    """A stream's answer and when its parts were there."""

    def __init__(self) -> None:
        self._answer = StreamedAnswer()
        self._first_content_ms: float | None = None
        self.done_ms: float | None = None

    def take(self, event: Mapping[str, Any], passed_ms: float) -> None:
        try:
            self._answer.add(event)
        except _TRIPS as error:
            raise _of_another_shape() from error
        if self._first_content_ms is None and self._answer.has_content:
            self._first_content_ms = passed_ms
        if self.done_ms is None and self._answer.is_complete:
            self.done_ms = passed_ms

    def response(self, sdk_metadata: object) -> Response:
        if self.done_ms is None:
            raise UnreadableAnswerError("the stream ended before the answer did")
        try:
            fields = self._answer.response()
        except _TRIPS as error:
            raise _of_another_shape() from error
        return Response(
            fields={**fields, "ResponseMetadata": sdk_metadata},
            streamed=True,
            ttft_ms=self._first_content_ms,
            latency_ms=self.done_ms,
        )


def _events(opened: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    events = iter(opened["stream"])
    while True:
        try:
            event = next(events, None)
        except (UnicodeDecodeError, struct.error) as error:
            raise UnreadableAnswerError("a frame of the stream has another form") from error
        except _TRIPS as error:
            raise _of_another_shape() from error
        if event is None:
            return
        yield event


def _of_another_shape() -> UnreadableAnswerError:
    return UnreadableAnswerError("the answer has another shape")
