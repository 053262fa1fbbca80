"""Shapes a request into Converse's fields and reads its answer back into the vocabulary."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from socratic_bench.bedrock.capabilities import Capabilities
from socratic_bench.types import (
    Block,
    Json,
    Message,
    Reasoning,
    Request,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    Usage,
    clean,
)

# Boundary to boto3, whose shapes are plain dictionaries.
Wire = dict[str, Any]


def converse_arguments(model_id: str, request: Request, can: Capabilities) -> Wire:
    """The keyword arguments of `converse` for this model, without fields that it does not take."""
    system, tool = request.system, request.tool
    if tool and not can.forced_tool:
        system = "\n\n".join(part for part in (system, _json_in_words(tool)) if part)
        tool = None
    messages = request.messages
    if not request.tool or not can.forced_tool:
        messages = tuple(_without_tool_blocks(message) for message in messages)
    if system and not can.system:
        messages, system = _folded(system, messages), None
    arguments: Wire = {
        "modelId": model_id,
        "messages": [_message(message) for message in messages],
        "inferenceConfig": _inference(request, can),
    }
    if system:
        arguments["system"] = [{"text": system}]
    if tool:
        arguments["toolConfig"] = _tool_config(tool)
    return arguments


def _inference(request: Request, can: Capabilities) -> Wire:
    config = request.config
    fields: Wire = {"maxTokens": config.max_tokens}
    if config.temperature is not None and can.temperature:
        fields["temperature"] = config.temperature
    alone = "temperature" not in fields or can.both_samplings
    if config.top_p is not None and can.top_p and alone:
        fields["topP"] = config.top_p
    return fields


def _tool_config(tool: Tool) -> Wire:
    spec = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {"json": tool.input_schema},
    }
    return {"tools": [{"toolSpec": spec}], "toolChoice": {"tool": {"name": tool.name}}}


def _json_in_words(tool: Tool) -> str:
    schema = json.dumps(tool.input_schema, ensure_ascii=False, separators=(",", ":"))
    return (
        "Answer with exactly one JSON object and nothing before or after it. "
        f"It has to fit this JSON Schema: {schema}"
    )


def _folded(system: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    first = messages[0]
    return (replace(first, content=(Text(f"{system}\n\n"), *first.content)), *messages[1:])


def _without_tool_blocks(message: Message) -> Message:
    return replace(message, content=tuple(_in_words(block) for block in message.content))


def _in_words(block: Block) -> Block:
    if isinstance(block, ToolUse):
        return Text(json.dumps(block.arguments, ensure_ascii=False))
    if isinstance(block, ToolResult):
        return Text(block.text)
    return block


def _message(message: Message) -> Wire:
    blocks = [_block(block) for block in message.content if not isinstance(block, Reasoning)]
    return {"role": message.role, "content": blocks}


def _block(block: Text | ToolUse | ToolResult) -> Wire:
    if isinstance(block, Text):
        return {"text": block.text}
    if isinstance(block, ToolUse):
        arguments = _strict(block.arguments)
        return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": arguments or {}}}
    result: Wire = {"toolUseId": block.id, "content": [{"text": block.text}]}
    if block.is_error:
        result["status"] = "error"
    return {"toolResult": result}


def _strict(value: Json) -> Json:
    """The value as any JSON reader takes it: a model's own JSON may hold NaN or half characters."""
    if isinstance(value, dict):
        return {clean(name): _strict(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return clean(value) if isinstance(value, str) else value


# No call has more tokens or milliseconds; what is larger counts nothing and could break a document.
COUNT_MAX = 10**12


class UnreadableAnswerError(Exception):
    """A 200 whose body is not an answer: truncated, empty, HTML or of another shape."""


def read_message(response: Mapping[str, Any]) -> tuple[Message, str]:
    """The message and stop reason of a Converse response. Raises `UnreadableAnswerError`."""
    try:
        content = response["output"]["message"]["content"]
        stop_reason = response["stopReason"]
        blocks = tuple(block for part in content for block in _read_block(part))
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableAnswerError("the answer has no message") from error
    if not isinstance(stop_reason, str):
        raise UnreadableAnswerError("the answer has no stop reason")
    return Message("assistant", blocks), stop_reason


def _read_block(part: Mapping[str, Any]) -> tuple[Block, ...]:
    if "text" in part:
        return (Text(clean(part["text"])),)
    if "toolUse" in part:
        use = part["toolUse"]
        return (ToolUse(use["toolUseId"], use["name"], use.get("input")),)
    if "reasoningContent" in part:
        reasoning = part["reasoningContent"].get("reasoningText", {})
        return (Reasoning(clean(reasoning.get("text", ""))),)
    return ()


def read_usage(response: Mapping[str, Any]) -> Usage | None:
    """The token counters, `None` if one of them is no count; input counts the cache's, too."""
    usage = response.get("usage")
    if not isinstance(usage, Mapping):
        return None
    counts: list[Any] = [usage.get("inputTokens"), usage.get("outputTokens")]
    counts += [usage.get(f"cache{kind}InputTokens", 0) for kind in ("Read", "Write")]
    if not all(type(count) is int and 0 <= count <= COUNT_MAX for count in counts):
        return None
    new, out, read, write = counts
    return Usage(
        input_tokens=new + read + write,
        output_tokens=out,
        cache_read_tokens=read,
        cache_write_tokens=write,
    )


def read_service_latency(response: Mapping[str, Any]) -> float | None:
    """Milliseconds that the service says it took, if it says so."""
    metrics = response.get("metrics")
    latency = metrics.get("latencyMs") if isinstance(metrics, Mapping) else None
    if isinstance(latency, int | float) and 0 <= latency <= COUNT_MAX:
        return float(latency)
    return None
