"""Shapes a request into Converse's fields, as far as the model takes them."""

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any

from msgspec.structs import replace

from socratic_bench.generation import GenerateConfig
from socratic_bench.models.bedrock.cache_points import (
    CACHE_POINT,
    cached_messages,
    caches_system,
)
from socratic_bench.models.bedrock.capabilities import Capabilities
from socratic_bench.models.bedrock.thinking import thinking_fields
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
    clean,
)

# Boundary to boto3, whose shapes are plain dictionaries.
Wire = dict[str, Any]


def converse_arguments(
    model_id: str, request: Request, can: Capabilities, metadata: Sequence[tuple[str, str]] = ()
) -> Wire:
    """The arguments of `converse` and `converse_stream` for this model.

    What the program adds by itself and the model does not take is left out or put into words.
    Settings of the user are sent as they are, so that the user sees the service's refusal.
    """
    shaped = _shaped(request, can)
    messages = [_message(message) for message in shaped.messages]
    # A system prompt may have been folded into the first message.
    n_folded = len(shaped.messages[0].content) - len(request.messages[0].content)
    for index in cached_messages(shaped, can):
        place = 1 if index else 1 + n_folded
        messages[index]["content"].insert(place, CACHE_POINT)
    arguments: Wire = {
        "modelId": model_id,
        "messages": messages,
        "inferenceConfig": _inference(request, can),
        **_settings(request.config, can),
    }
    if shaped.system:
        point = [CACHE_POINT] if caches_system(shaped, can) else []
        arguments["system"] = [{"text": shaped.system}, *point]
    if shaped.tool:
        arguments["toolConfig"] = _tool_config(shaped.tool)
    if metadata:
        arguments["requestMetadata"] = dict(metadata)
    return arguments


def _shaped(request: Request, can: Capabilities) -> Request:
    """The request without a tool or a system prompt that the model does not take."""
    system, tool, messages = request.system, request.tool, request.messages
    if tool and not can.forced_tool:
        system = "\n\n".join(part for part in (system, _json_in_words(tool)) if part)
        tool = None
    if not tool:
        messages = tuple(map(_without_tool_blocks, messages))
    if system and not can.system:
        messages, system = _folded(system, messages), None
    return replace(request, system=system, tool=tool, messages=messages)


def _inference(request: Request, can: Capabilities) -> Wire:
    config = request.config
    fields: Wire = {"maxTokens": config.max_tokens}
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    elif request.temperature_if_taken is not None and can.temperature:
        fields["temperature"] = request.temperature_if_taken
    if config.top_p is not None:
        fields["topP"] = config.top_p
    return fields


def _settings(config: GenerateConfig, can: Capabilities) -> Wire:
    fields: Wire = {}
    if config.service_tier:
        fields["serviceTier"] = {"type": config.service_tier}
    if config.latency_profile:
        fields["performanceConfig"] = {"latency": config.latency_profile}
    if config.guardrail:
        fields["guardrailConfig"] = {
            "guardrailIdentifier": config.guardrail.id,
            "guardrailVersion": config.guardrail.version,
        }
    if config.thinking_budget_tokens is not None:
        fields["additionalModelRequestFields"] = thinking_fields(
            can.thinking or "budget", config.thinking_budget_tokens
        )
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
    if _one_text(message) is not None:
        return message
    return replace(message, content=tuple(_in_words(block) for block in message.content))


def _in_words(block: Block) -> Block:
    if isinstance(block, ToolUse):
        return Text(json.dumps(block.arguments, ensure_ascii=False))
    if isinstance(block, ToolResult):
        return Text(block.text)
    return block


def _one_text(message: Message) -> str | None:
    """A shortcut for nearly all messages, of which a long dialogue sends many in each call."""
    content = message.content
    block = content[0] if len(content) == 1 else None
    return block.text if isinstance(block, Text) else None


def _message(message: Message) -> Wire:
    text = _one_text(message)
    if text is not None:
        return {"role": message.role, "content": [{"text": text}]}
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
