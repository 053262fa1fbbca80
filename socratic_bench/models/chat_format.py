"""Requests and answers in the format of OpenAI's chat completions."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from socratic_bench.catalogue.tokens import IMAGE_TOKENS, PromptBlock
from socratic_bench.models.bedrock.request import (
    TOKENS_PER_BLOCK,
    estimated_tokens,
    thinking_level,
    without_tool,
)
from socratic_bench.ports.provider import Answer, AnswerTimeoutError, UnreadableAnswerError
from socratic_bench.types import (
    Block,
    Image,
    Message,
    Reasoning,
    Request,
    StopReason,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    Usage,
    clean,
)

Fields = dict[str, Any]

ANSWER_MAX_CHARACTERS = 16_000_000
STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}


def chat_fields(model: str, request: Request, lacks: frozenset[str], *, stream: bool) -> Fields:
    """The fields of a request for a chat completion, without those that the model `lacks`."""
    if request.tool and "tools" in lacks:
        request = without_tool(request)
    system = [{"role": "system", "content": request.system}] if request.system else []
    messages = [part for message in request.messages for part in _messages(message)]
    fields: Fields = {"model": model, "messages": [*system, *messages]}
    fields |= _settings(request, lacks)
    if request.tool:
        fields |= _tool_fields(request.tool)
    elif request.tools:
        fields["tools"] = [_function(tool) for tool in request.tools]
    elif stream and "stream" not in lacks:
        fields["stream"] = True
        if "stream_options" not in lacks:
            fields["stream_options"] = {"include_usage": True}
    return fields


def _settings(request: Request, lacks: frozenset[str]) -> Fields:
    config = request.config
    temperature, budget = config.temperature, config.thinking_budget_tokens
    if temperature is None and "temperature" not in lacks:
        temperature = request.temperature_if_taken
    fields = {
        "max_completion_tokens" if "max_tokens" in lacks else "max_tokens": config.max_tokens,
        "temperature": temperature,
        "top_p": config.top_p,
        "service_tier": config.service_tier,
        "reasoning_effort": None if budget is None else thinking_level(budget),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _tool_fields(tool: Tool) -> Fields:
    return {
        "tools": [_function(tool)],
        "tool_choice": {"type": "function", "function": {"name": tool.name}},
    }


def _function(tool: Tool) -> Fields:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.input_schema),
    }
    return {"type": "function", "function": function}


def message_blocks(request: Request) -> tuple[PromptBlock, ...]:
    """The blocks of a request in the order in which a model reads them, tokens estimated."""
    texts = [("system", request.system or "")]
    images: list[PromptBlock] = []
    for tool in (request.tool, *request.tools):
        if tool:
            texts.insert(0, ("tool", json.dumps(dict(tool.input_schema))))
    for message in request.messages:
        for block in message.content:
            if isinstance(block, Image):
                digest = sha256(block.data).hexdigest()
                images.append(PromptBlock((message.role, digest), IMAGE_TOKENS))
            elif isinstance(block, ToolUse):
                texts.append((message.role, json.dumps(block.arguments)))
            else:
                texts.append((message.role, block.text))
    blocks = (
        PromptBlock((place, text), estimated_tokens(text) + TOKENS_PER_BLOCK)
        for place, text in texts
    )
    return (*blocks, *images)


def _messages(message: Message) -> Iterator[Fields]:
    """A message of ours as the protocol's: each result of a tool is one of its own."""
    parts: list[Fields] = []
    calls: list[Fields] = []
    for block in message.content:
        if isinstance(block, Text):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            parts.append({"type": "image_url", "image_url": {"url": block.data_url}})
        elif isinstance(block, ToolUse):
            function = {"name": block.name, "arguments": json.dumps(block.arguments)}
            calls.append({"id": block.id, "type": "function", "function": function})
        elif isinstance(block, ToolResult):
            yield {"role": "tool", "tool_call_id": block.id, "content": block.text}
    if parts or calls:
        only_text = all(part["type"] == "text" for part in parts)
        content: Any = "".join(part["text"] for part in parts) if only_text else parts
        yield {
            "role": message.role,
            "content": content or None,
            **({"tool_calls": calls} if calls else {}),
        }


class AnswerReader:
    """Sends one request and reads its answer, within its time and a bound on its length.

    `began`: an answer had begun, so a model was at work.
    """

    def __init__(self, model_id: str, timeout_s: float, monotonic_s: Callable[[], float]) -> None:
        self.began = False
        self._model_id, self._timeout_s, self._monotonic_s = model_id, timeout_s, monotonic_s
        self._started_s = monotonic_s()
        self._ttft_ms: float | None = None
        self._first_text_ms: float | None = None

    def read(self, client: Any, fields: Fields) -> Answer:  # noqa: ANN401 -- the extra's
        """Raises what the SDK raises, `AnswerTimeoutError` or `UnreadableAnswerError`."""
        is_streamed = "stream" in fields
        with client.chat.completions.with_streaming_response.create(**fields) as response:
            self.began = True
            try:
                whole = self._joined(response.parse()) if is_streamed else self._body(response)
                answer = self._answer(whole, is_streamed=is_streamed)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                raise UnreadableAnswerError("the answer is not a chat completion") from error
            return replace(
                answer, request_id=response.headers.get("x-request-id") or answer.request_id
            )

    def _body(self, response: Any) -> Fields:  # noqa: ANN401 -- the extra's
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            self._check(len(body))
        whole: Fields = json.loads(body)
        return whole

    def _joined(self, stream: Iterable[Any]) -> Fields:
        """The chunks of a stream as one completion."""
        texts: list[str] = []
        thoughts: list[str] = []
        refusals: list[str] = []
        about: Fields = {}
        stop: str | None = None
        n_characters = 0
        for chunk in stream:
            fields = chunk.to_dict()
            about |= {name: fields[name] for name in ("id", "model", "usage") if fields.get(name)}
            for choice in fields.get("choices") or ():
                delta = choice.get("delta") or {}
                for name, kept in (
                    *(("content", texts), ("refusal", refusals)),
                    *(("reasoning_content", thoughts), ("reasoning", thoughts)),
                ):
                    if isinstance(text := delta.get(name), str) and text:
                        kept.append(text)
                        n_characters += len(text)
                        self._ttft_ms = self._ttft_ms or self._elapsed_ms()
                        if kept is texts:
                            self._first_text_ms = self._first_text_ms or self._elapsed_ms()
                stop = choice.get("finish_reason") or stop
            self._check(n_characters)
        if stop is None:
            raise UnreadableAnswerError("the stream has no end")
        message = {"content": "".join(texts), "refusal": "".join(refusals) or None}
        message["reasoning_content"] = "".join(thoughts) or None
        return {**about, "choices": [{"message": message, "finish_reason": stop}]}

    def _answer(self, whole: Fields, *, is_streamed: bool) -> Answer:
        choice = whole["choices"][0]
        message, stop = choice["message"], choice["finish_reason"]
        blocks = tuple(_blocks(message))
        if not isinstance(stop, str):
            raise UnreadableAnswerError("the answer has no stop reason")
        has_called = any(isinstance(block, ToolUse) for block in blocks)
        reason: StopReason = STOP_REASONS.get(stop, "other")
        if message.get("refusal"):
            reason = "refusal"
        elif has_called and reason == "end_turn":  # a tool that was forced
            reason = "tool_use"
        return Answer(
            message=Message("assistant", blocks),
            stop_reason=reason,
            provider_stop_reason=clean(stop),
            usage=_usage(whole.get("usage")),
            latency_ms=self._elapsed_ms(),
            request_id=whole.get("id") if isinstance(whole.get("id"), str) else None,
            streamed=is_streamed,
            ttft_ms=self._ttft_ms,
            first_text_ms=self._first_text_ms,
        )

    def _check(self, n_characters: int) -> None:
        if n_characters > ANSWER_MAX_CHARACTERS:
            raise UnreadableAnswerError("the answer has no end in sight")
        if self._elapsed_ms() > self._timeout_s * 1000:
            raise AnswerTimeoutError(self._model_id, self._timeout_s)

    def _elapsed_ms(self) -> float:
        return (self._monotonic_s() - self._started_s) * 1000


def _blocks(message: Fields) -> Iterator[Block]:
    thought = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(thought, str):
        yield Reasoning(clean(thought))
    text = message.get("content") or message.get("refusal")
    if isinstance(text, str):
        yield Text(clean(text))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        try:
            yield ToolUse(call["id"], function["name"], json.loads(function["arguments"]))
        except ValueError:  # cut off, say
            yield Text(clean(function["arguments"]))


def _usage(usage: Any) -> Usage | None:  # noqa: ANN401 -- whatever the endpoint sends
    """The token counters; `None` if the endpoint sent none, or one of them is no count."""
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    counts: list[Any] = [usage.get("prompt_tokens"), usage.get("completion_tokens"), cached or 0]
    if not all(type(count) is int and count >= 0 for count in counts):
        return None
    input_tokens, output_tokens, read = counts
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=min(read, input_tokens),
    )
