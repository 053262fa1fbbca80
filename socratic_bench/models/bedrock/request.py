"""Shapes a request into Converse's fields, as far as its model takes them: messages, tools, cache
points, thinking; and estimates how many tokens they have.
"""

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from math import isfinite
from typing import Any

from msgspec.structs import replace

from socratic_bench.catalogue.models import Capabilities, ThinkingForm
from socratic_bench.catalogue.tokens import IMAGE_TOKENS, PromptBlock, schema_length
from socratic_bench.generation import GenerateConfig
from socratic_bench.types import (
    Block,
    Image,
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

# Boundary to the SDK, whose shapes are plain dictionaries.
Wire = dict[str, Any]

CACHE_POINT = {"cachePoint": {"type": "default"}}
# Where thinking has levels, a budget chooses one, by the bounds that litellm uses, too
# (DEFAULT_REASONING_EFFORT_*_THINKING_BUDGET).
MEDIUM_TOKENS = 2048
HIGH_TOKENS = 4096
# English text has some four characters a token; each block has a frame of a few tokens.
CHARACTERS_PER_TOKEN = 4
TOKENS_PER_BLOCK = 3
# Taken a little shorter here, so that a prefix near the minimum gets its cache point: it does no
# harm if the prefix turns out to be too short.
_CACHED_CHARACTERS_PER_TOKEN = 3


def converse_arguments(
    model_id: str,
    request: Request,
    capabilities: Capabilities,
    metadata: Sequence[tuple[str, str]] = (),
) -> Wire:
    """The arguments of `converse` and `converse_stream` for this model.

    What the program adds by itself and the model does not take is left out or put into words.
    Settings of the user are sent as they are, so that the user sees the service's refusal.
    """
    shaped = _shaped(request, capabilities)
    messages = [_message(message, has_tools=bool(shaped.tools)) for message in shaped.messages]
    # A system prompt may have been folded into the first message.
    n_folded = len(shaped.messages[0].content) - len(request.messages[0].content)
    for index in _cached_messages(shaped, capabilities):
        place = 1 if index else 1 + n_folded
        messages[index]["content"].insert(place, CACHE_POINT)
    arguments: Wire = {
        "modelId": model_id,
        "messages": messages,
        "inferenceConfig": _inference(request, capabilities),
        **_settings(request.config, capabilities),
    }
    if shaped.system:
        point = [CACHE_POINT] if caches_system(shaped, capabilities) else []
        arguments["system"] = [{"text": shaped.system}, *point]
    if tools := (shaped.tool,) if shaped.tool else shaped.tools:
        arguments["toolConfig"] = {"tools": [{"toolSpec": _tool_spec(tool)} for tool in tools]}
    if shaped.tool:
        arguments["toolConfig"]["toolChoice"] = {"tool": {"name": shaped.tool.name}}
    if metadata:
        arguments["requestMetadata"] = dict(metadata)
    return arguments


def caches_system(request: Request, capabilities: Capabilities) -> bool:
    """Whether tools and system prompt are by themselves a prefix that is long enough to be cached.

    A cache point caches all that stands before it: tools, then the system prompt, then messages.
    Under the model's minimum it has no effect and costs nothing.
    """
    if not (capabilities.prompt_cache and capabilities.system and request.system):
        return False
    length = len(request.system)
    if request.tool and capabilities.forced_tool:
        length += schema_length(request.tool) + len(request.tool.description)
    return length >= capabilities.cache_minimum * _CACHED_CHARACTERS_PER_TOKEN


def estimated_tokens(text: str) -> int:
    """A rough estimate: within some 20 % for English prose, less sure for other languages."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def request_parts(arguments: Wire, *, scale: float = 1.0) -> tuple[PromptBlock, ...]:
    """The blocks of Converse's arguments in the order in which a model reads them. `scale`: counted
    tokens over estimated ones, where the service has counted a request.
    """
    parts: list[PromptBlock] = []
    for place, block in _blocks(arguments):
        if "cachePoint" in block:
            parts[-1] = PromptBlock(parts[-1].content, parts[-1].tokens, is_cached=True)
            continue
        if "image" in block:
            data = block["image"]["source"]["bytes"]
            parts.append(PromptBlock((place, sha256(data).hexdigest()), IMAGE_TOKENS))
            continue
        is_text = "text" in block
        text = block["text"] if is_text else json.dumps(block, separators=(",", ":"), default=str)
        tokens = round((estimated_tokens(text) + TOKENS_PER_BLOCK) * scale)
        parts.append(PromptBlock((place, text), tokens))
    return tuple(parts)


def without_tool(request: Request) -> Request:
    """The request with its tool put into words: the answer is asked for as JSON."""
    system, tool = request.system, request.tool
    if tool:
        schema = json.dumps(tool.input_schema, ensure_ascii=False, separators=(",", ":"))
        instruction = (
            "Answer with exactly one JSON object and nothing before or after it. "
            f"It has to fit this JSON Schema: {schema}"
        )
        system = f"{system}\n\n{instruction}" if system else instruction
    messages = tuple(
        replace(message, content=tuple(map(_as_text, message.content)))
        for message in request.messages
    )
    return replace(request, system=system, tool=None, messages=messages)


def _shaped(request: Request, capabilities: Capabilities) -> Request:
    """The request without a tool or a system prompt that the model does not take."""
    if not (request.tools or (request.tool and capabilities.forced_tool)):
        request = without_tool(request)
    if request.system and not capabilities.system:
        first, *others = request.messages
        folded = replace(first, content=(Text(f"{request.system}\n\n"), *first.content))
        return replace(request, system=None, messages=(folded, *others))
    return request


def _inference(request: Request, capabilities: Capabilities) -> Wire:
    config = request.config
    fields: Wire = {"maxTokens": config.max_tokens}
    if config.temperature is not None:
        fields["temperature"] = config.temperature
    elif request.temperature_if_taken is not None and capabilities.temperature:
        fields["temperature"] = request.temperature_if_taken
    if config.top_p is not None:
        fields["topP"] = config.top_p
    return fields


def _cached_messages(request: Request, capabilities: Capabilities) -> tuple[int, ...]:
    """The messages after which a cache point stands: at most two, so that with the system's there
    are three of the four that the service allows.

    One point is in the last message, where this request writes for the next one; the other is in
    the user's message before, where the last request wrote: so no model has to look back for what
    was written. A point stands behind the message's first block, since the next request lacks a
    note that may follow it.
    """
    if not (capabilities.prompt_cache and request.is_cacheable_prefix):
        return ()
    last = len(request.messages) - 1
    return (last - 2, last) if last > 1 else (last,)


def _settings(config: GenerateConfig, capabilities: Capabilities) -> Wire:
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
        fields["additionalModelRequestFields"] = _thinking_fields(
            capabilities.thinking or "budget", config.thinking_budget_tokens
        )
    return fields


def _as_text(block: Block) -> Block:
    if isinstance(block, ToolUse):
        return Text(json.dumps(block.arguments, ensure_ascii=False))
    if isinstance(block, ToolResult):
        return Text(block.text)
    return block


def _tool_spec(tool: Tool) -> Wire:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "inputSchema": {"json": tool.input_schema}}


def _message(message: Message, *, has_tools: bool) -> Wire:
    """A model that thinks and calls tools has to get its signed reasoning back word for word."""
    blocks = [
        _block(block)
        for block in message.content
        if not isinstance(block, Reasoning)
        or (has_tools and (block.signature is not None or block.encrypted is not None))
    ]
    return {"role": message.role, "content": blocks}


def _block(block: Block) -> Wire:
    if isinstance(block, Reasoning):
        if block.encrypted is not None:
            return {"reasoningContent": {"redactedContent": b64decode(block.encrypted)}}
        thought = {"text": block.text, "signature": block.signature}
        return {"reasoningContent": {"reasoningText": thought}}
    if isinstance(block, Text):
        return {"text": block.text}
    if isinstance(block, Image):
        return {"image": {"format": block.format, "source": {"bytes": block.data}}}
    if isinstance(block, ToolUse):
        arguments = _strict(block.arguments)
        return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": arguments or {}}}
    result: Wire = {"toolUseId": block.id, "content": [{"text": block.text}]}
    if block.is_error:
        result["status"] = "error"
    return {"toolResult": result}


def _strict(value: Json) -> Json:
    """The value as strict JSON: a model's own JSON may hold NaN or half characters."""
    if isinstance(value, dict):
        return {clean(name): _strict(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return clean(value) if isinstance(value, str) else value


def _thinking_fields(form: ThinkingForm, budget_tokens: int) -> dict[str, Json]:
    """What goes into `additionalModelRequestFields`."""
    level = thinking_level(budget_tokens)
    match form:
        case "budget":
            return {"thinking": {"type": "enabled", "budget_tokens": budget_tokens}}
        case "adaptive":
            # Without a display, the thoughts come back empty.
            thinking: Json = {"type": "adaptive", "display": "summarized"}
            return {"thinking": thinking, "output_config": {"effort": level}}
        case "reasoning_effort":
            return {"reasoning_effort": level}
        case "reasoning":
            return {"reasoning": {"effort": level}}
        case "nova":
            # The highest level takes no bound on the tokens of a reply, and each request has one.
            effort = "medium" if level == "high" else level
            return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
        case "reasoning_config":
            # Lower levels are accepted, and do nothing.
            return {"reasoning_config": "high"}


def thinking_level(budget_tokens: int) -> str:
    """The level that stands for a budget of tokens."""
    if budget_tokens < MEDIUM_TOKENS:
        return "low"
    return "medium" if budget_tokens < HIGH_TOKENS else "high"


def _blocks(arguments: Wire) -> Iterator[tuple[str, Wire]]:
    for tool in arguments.get("toolConfig", {}).get("tools", ()):
        yield "tool", tool
    for block in arguments.get("system", ()):
        yield "system", block
    for message in arguments["messages"]:
        for block in message["content"]:
            yield message["role"], block
