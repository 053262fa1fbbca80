"""One request on the wire and its answer read whole, streamed or not, within its time."""

import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from socratic_bench.bedrock.answers import UnreadableAnswerError
from socratic_bench.bedrock.faults import TRANSLATED, OverdueError
from socratic_bench.bedrock.streamed import StreamedAnswer
from socratic_bench.bedrock.wire import Wire
from socratic_bench.values import dataclass

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

Result = TypeVar("Result")

# What the wait for a whole answer has on top of the call's time, so that the SDK's own timeouts,
# which tell more, come first.
GRACE_S = 1.0


class Await(Protocol):
    """Waits for a future: its result, or `TimeoutError`, or whatever ends the run meanwhile."""

    def __call__(self, future: "Future[Result]", timeout_s: float, /) -> "Result": ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, as Converse's fields. Times are of the injected clock, in seconds.

    `first_content_s`: when the first content of a stream was there, `None` without one; `done_s`:
    when the last of the answer was there.
    """

    response: Mapping[str, Any]
    streamed: bool
    first_content_s: float | None
    done_s: float


class Exchange:
    """Sends one request in a thread of its own, so that whoever waits for it can leave.

    `make_ready`: gets the credentials, in that thread, before the request is sent. `began` tells
    that the service has begun to stream an answer.
    """

    def __init__(
        self,
        client: "BedrockRuntimeClient",
        arguments: Wire,
        *,
        streamed: bool,
        timeout_s: float,
        monotonic_s: Callable[[], float],
        make_ready: Callable[[], None],
    ) -> None:
        self.began = False
        self._make_ready = make_ready
        self._client = client
        self._arguments = arguments
        self._streamed = streamed
        self._timeout_s = timeout_s
        self._monotonic_s = monotonic_s
        self._is_given_up = False

    def answer(self, wait: Await) -> Answer:
        """The answer. Raises what the SDK raises, or `OverdueError` if it is not there in time."""
        future: Future[Answer] = Future()
        thread = threading.Thread(target=self._fill, args=(future,), name="exchange", daemon=True)
        thread.start()
        try:
            return wait(future, self._timeout_s + GRACE_S)
        except TimeoutError as error:
            if future.done():
                return future.result()
            raise OverdueError(self._timeout_s) from error
        finally:
            # A stream that nobody waits for any more is closed at its next event.
            self._is_given_up = True

    def _fill(self, future: "Future[Answer]") -> None:
        try:
            self._make_ready()
            future.set_result(self._streamed_answer() if self._streamed else self._whole_answer())
        except BaseException as error:  # noqa: BLE001 -- raised again where it is waited for
            _let_go(error)
            future.set_exception(error)

    def _whole_answer(self) -> Answer:
        response = self._client.converse(**self._arguments)
        done_s = self._monotonic_s()
        return Answer(response=response, streamed=False, first_content_s=None, done_s=done_s)

    def _streamed_answer(self) -> Answer:
        started_s = self._monotonic_s()
        opened = self._client.converse_stream(**self._arguments)
        self.began = True
        reading = _Reading()
        try:
            for event in _events(opened):
                now_s = self._monotonic_s()
                if self._is_given_up or now_s - started_s > self._timeout_s:
                    raise OverdueError(self._timeout_s)
                reading.take(event, now_s)
        except TRANSLATED:
            opened["stream"].close()
            # What breaks after the last event takes nothing from the answer.
            if reading.done_s is None:
                raise
        return reading.answer(opened["ResponseMetadata"])


class _Reading:
    """A stream's answer and when its parts were there."""

    def __init__(self) -> None:
        self._answer = StreamedAnswer()
        self._first_content_s: float | None = None
        self.done_s: float | None = None

    def take(self, event: Mapping[str, Any], now_s: float) -> None:
        _shaped(lambda: self._answer.add(event))
        if self._first_content_s is None and self._answer.has_content:
            self._first_content_s = now_s
        if self.done_s is None and self._answer.is_complete:
            self.done_s = now_s

    def answer(self, sdk_metadata: object) -> Answer:
        if self.done_s is None:
            raise UnreadableAnswerError("the stream ended before the answer did")
        return Answer(
            response={**_shaped(self._answer.response), "ResponseMetadata": sdk_metadata},
            streamed=True,
            first_content_s=self._first_content_s,
            done_s=self.done_s,
        )


def _let_go(error: BaseException) -> None:
    """Of what was read of an answer: an error lives on, and what stands in its frames with it."""
    told: BaseException | None = error
    while told is not None:
        clear_frames(told.__traceback__)
        told = told.__cause__ or told.__context__


def _events(opened: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    events = iter(opened["stream"])
    while (event := _shaped(lambda: _next(events))) is not None:
        yield event


def _next(events: Iterator[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    try:
        return next(events, None)
    except (UnicodeDecodeError, struct.error) as error:
        raise UnreadableAnswerError("a frame of the stream has another form") from error


def _shaped(read: Callable[[], Any]) -> Any:  # noqa: ANN401 -- the SDK's own shapes
    try:
        return read()
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        # The SDK's parser expects the service's own shapes, and trips over any others.
        raise UnreadableAnswerError("the answer has another shape") from error
