"""One Converse request on the wire, and its answer, streamed or whole, read into the vocabulary."""

import json
import struct
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from msgspec.structs import replace

from socratic_bench.models.bedrock.errors import TRANSLATED
from socratic_bench.models.bedrock.request import Wire
from socratic_bench.ports.provider import Answer, AnswerTimeoutError, UnreadableAnswerError
from socratic_bench.types import Block, Message, Reasoning, StopReason, Text, ToolUse, Usage, clean

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

# No call has more tokens or milliseconds; a larger count is dropped, as it could break a document.
COUNT_MAX = 10**12

# The neutral words are Bedrock's own, but for these.
_STOP_REASONS: dict[str, StopReason] = {word: word for word in get_args(StopReason)}
_STOP_REASONS["malformed_model_output"] = "malformed_output"
# What the SDK's parser, and reading what it gives, raise over other shapes than the service's own.
_SHAPE_ERRORS = (AttributeError, KeyError, TypeError, RecursionError)
_OTHER_SHAPE = "the answer has another shape"


class ConverseCall:
    """A request of Converse's `arguments`, which is sent once. `began` tells whether the service
    has begun to stream an answer: from then on a model works.
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

    def answer(self, *, streamed: bool) -> Answer:
        """What came back. Raises what the SDK raises, `UnreadableAnswerError`, and
        `AnswerTimeoutError` for a stream that takes longer than its time.
        """
        return self._streamed_answer() if streamed else self._whole_answer()

    def _whole_answer(self) -> Answer:
        started_s = self._monotonic_s()
        fields = self._client.converse(**self._arguments)
        return read_answer(fields, latency_ms=(self._monotonic_s() - started_s) * 1000)

    def _streamed_answer(self) -> Answer:
        started_s = self._monotonic_s()
        opened = self._client.converse_stream(**self._arguments)
        self.began = True
        answer = StreamedAnswer()
        try:
            for event in _events(opened):
                passed_s = self._monotonic_s() - started_s
                if passed_s > self._timeout_s:
                    raise AnswerTimeoutError(self._arguments["modelId"], self._timeout_s)
                answer.add(event, passed_s * 1000)
        except TRANSLATED:
            opened["stream"].close()
            # What breaks after the last event takes nothing from the answer.
            if answer.complete_ms is None:
                raise
        if answer.complete_ms is None:
            raise UnreadableAnswerError("the stream ended before the answer did")
        fields = {**answer.fields(), "ResponseMetadata": opened["ResponseMetadata"]}
        read = read_answer(fields, latency_ms=answer.complete_ms)
        return replace(
            read, streamed=True, ttft_ms=answer.first_content_ms, first_text_ms=answer.first_text_ms
        )


def _events(opened: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    events = iter(opened["stream"])
    while True:
        try:
            event = next(events, None)
        except (UnicodeDecodeError, struct.error) as error:
            raise UnreadableAnswerError("a frame of the stream has another form") from error
        except _SHAPE_ERRORS as error:
            raise UnreadableAnswerError(_OTHER_SHAPE) from error
        if event is None:
            return
        yield event


class StreamedAnswer:
    """Puts the events of ConverseStream together into the answer that Converse would have given.

    It is complete only with its stop reason, which comes after the last block, and its metadata,
    which come last. `first_content_ms` and `complete_ms` say when it had some content, and all.
    """

    def __init__(self) -> None:
        self.first_content_ms: float | None = None
        self.first_text_ms: float | None = None
        self.complete_ms: float | None = None
        self._blocks: dict[int, _Block] = {}
        self._stop: Mapping[str, Any] | None = None
        self._metadata: Mapping[str, Any] | None = None

    def add(self, event: Mapping[str, Any], passed_ms: float) -> None:
        """Take the next event; an unknown kind adds nothing. Raises `UnreadableAnswerError`."""
        try:
            self._add(event)
        except _SHAPE_ERRORS as error:
            raise UnreadableAnswerError(_OTHER_SHAPE) from error
        if self.first_content_ms is None and self._blocks:
            self.first_content_ms = passed_ms
        if self.first_text_ms is None and any(block.has_text for block in self._blocks.values()):
            self.first_text_ms = passed_ms
        if self.complete_ms is None and self._stop is not None and self._metadata is not None:
            self.complete_ms = passed_ms

    def _add(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}}:
                self._blocks.setdefault(index, _Block()).add(delta)
            case {"contentBlockStart": {"start": {"toolUse": use}, "contentBlockIndex": index}}:
                self._blocks.setdefault(index, _Block()).tool_use = use
            case {"messageStop": stop}:
                self._stop = stop
            case {"metadata": metadata}:
                self._metadata = metadata
            case _:
                pass

    def fields(self) -> dict[str, Any]:
        """Converse's fields of a complete answer. Raises `UnreadableAnswerError`."""
        try:
            content = [block.content() for _, block in sorted(self._blocks.items())]
            ends = {**(self._metadata or {}), **(self._stop or {})}
        except _SHAPE_ERRORS as error:
            raise UnreadableAnswerError(_OTHER_SHAPE) from error
        return {**ends, "output": {"message": {"role": "assistant", "content": content}}}


class _Block:
    def __init__(self) -> None:
        self.tool_use: Mapping[str, Any] | None = None
        self._texts: list[str] = []
        self._inputs: list[str] = []
        self._thoughts: list[str] = []
        self._signatures: list[str] = []
        self._encrypted = b""
        self._is_reasoning = False

    def add(self, delta: Mapping[str, Any]) -> None:
        if "text" in delta:
            self._texts.append(delta["text"])
        elif "toolUse" in delta:
            self._inputs.append(delta["toolUse"]["input"])
        elif "reasoningContent" in delta:
            self._is_reasoning = True
            thought = delta["reasoningContent"]
            self._thoughts.append(thought.get("text", ""))
            self._signatures.append(thought.get("signature", ""))
            self._encrypted += thought.get("redactedContent", b"")

    @property
    def has_text(self) -> bool:
        """Whether it has begun to answer: by a text that is not empty, or the input of a tool."""
        return any(self._texts) or bool(self._inputs)

    def content(self) -> dict[str, Any]:
        if self.tool_use is not None:
            arguments = "".join(self._inputs)
            try:
                return {"toolUse": {**self.tool_use, "input": json.loads(arguments or "{}")}}
            except (ValueError, RecursionError):
                # What is not JSON, such as what the token limit cut off, is no tool call.
                return {"text": arguments}
        if self._encrypted:
            return {"reasoningContent": {"redactedContent": self._encrypted}}
        if self._is_reasoning:
            thought = {"text": "".join(self._thoughts)}
            if signature := "".join(self._signatures):
                thought["signature"] = signature
            return {"reasoningContent": {"reasoningText": thought}}
        return {"text": "".join(self._texts)}


def read_answer(fields: Mapping[str, Any], *, latency_ms: float) -> Answer:
    """The answer in the vocabulary of all providers. Raises `UnreadableAnswerError`."""
    message, stop_reason = read_message(fields)
    trace = fields.get("trace")
    return Answer(
        message=message,
        stop_reason=neutral_stop_reason(stop_reason),
        provider_stop_reason=stop_reason,
        usage=read_usage(fields),
        latency_ms=latency_ms,
        service_latency_ms=read_service_latency(fields),
        request_id=fields.get("ResponseMetadata", {}).get("RequestId"),
        # Only a prompt router says which model it chose.
        served_model=read_word(trace, "promptRouter", "invokedModelId"),
        served_tier=read_word(fields, "serviceTier", "type"),
        served_latency_profile=read_word(fields, "performanceConfig", "latency"),
    )


def read_message(fields: Mapping[str, Any]) -> tuple[Message, str]:
    """The message and stop reason of Converse's fields. Raises `UnreadableAnswerError`."""
    try:
        content = fields["output"]["message"]["content"]
        stop_reason = fields["stopReason"]
        blocks = _joined(block for part in content for block in _read_block(part))
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableAnswerError("the answer has no message") from error
    if not isinstance(stop_reason, str):
        raise UnreadableAnswerError("the answer has no stop reason")
    return Message("assistant", blocks), stop_reason


def neutral_stop_reason(stop_reason: str) -> StopReason:
    """The word for it that holds for all providers."""
    return _STOP_REASONS.get(stop_reason, "other")


def _joined(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Texts that follow each other as one: a secret to be masked may begin in the one before."""
    joined: list[Block] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if isinstance(block, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + block.text)
        else:
            joined.append(block)
    return tuple(joined)


def _read_block(part: Mapping[str, Any]) -> tuple[Block, ...]:
    if "text" in part:
        return (Text(clean(part["text"])),)
    if "toolUse" in part:
        use = part["toolUse"]
        return (ToolUse(use["toolUseId"], use["name"], use.get("input")),)
    if "reasoningContent" in part:
        content = part["reasoningContent"]
        reasoning, encrypted = content.get("reasoningText", {}), content.get("redactedContent")
        return (
            Reasoning(
                clean(reasoning.get("text", "")),
                signature=reasoning.get("signature"),
                encrypted=b64encode(encrypted).decode() if encrypted else None,
            ),
        )
    return ()


def read_usage(fields: Mapping[str, Any]) -> Usage | None:
    """The token counters, `None` if one of them is no count; input counts the cache's, too."""
    usage = fields.get("usage")
    if not isinstance(usage, Mapping):
        return None
    counts: list[Any] = [usage.get("inputTokens"), usage.get("outputTokens")]
    counts += [usage.get(f"cache{kind}InputTokens", 0) for kind in ("Read", "Write")]
    if not all(type(count) is int and 0 <= count <= COUNT_MAX for count in counts):
        return None
    uncached, output, cache_read, cache_write = counts
    return Usage(
        input_tokens=uncached + cache_read + cache_write,
        output_tokens=output,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
    )


def read_service_latency(fields: Mapping[str, Any]) -> float | None:
    """Milliseconds that the service says it took, if it says so."""
    metrics = fields.get("metrics")
    latency = metrics.get("latencyMs") if isinstance(metrics, Mapping) else None
    if isinstance(latency, int | float) and 0 <= latency <= COUNT_MAX:
        return float(latency)
    return None


def read_word(fields: object, field: str, name: str) -> str | None:
    """What the service says of how it served the request, such as its tier."""
    value = fields.get(field) if isinstance(fields, Mapping) else None
    word = value.get(name) if isinstance(value, Mapping) else None
    return clean(word) if isinstance(word, str) else None
