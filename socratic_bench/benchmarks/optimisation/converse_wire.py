"""Converse's requests and answers on the wire, as an external agent sends and gets them."""

import json
import struct
from base64 import b64decode, b64encode
from binascii import crc32
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from socratic_bench.generation import GenerateConfig
from socratic_bench.types import (
    Block,
    Completion,
    Image,
    Message,
    Reasoning,
    Request,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    clean,
)

Wire = dict[str, Any]
# The user's settings hold for every agent alike; an agent that cannot do without these is refused.
_REFUSED = ("guardrailConfig", "promptVariables", "outputConfig")


def read_request(body: Mapping[str, Any], config: GenerateConfig) -> Request:
    """The request of an agent, sampled as the run's settings say. Raises `ValueError` with a
    sentence for what cannot be forwarded.
    """
    inference = body.get("inferenceConfig") or {}
    refused = [name for name in _REFUSED if body.get(name)]
    refused += ["stopSequences"] if inference.get("stopSequences") else []
    if refused:
        raise ValueError(f"This endpoint does not forward {', '.join(refused)}.")
    try:
        messages = tuple(
            Message(
                message["role"],
                # The harness sets cache points of its own.
                tuple(
                    _read_block(block) for block in message["content"] if "cachePoint" not in block
                ),
            )
            for message in body["messages"]
        )
        system = "\n".join(block["text"] for block in body.get("system") or () if "text" in block)
        tools = tuple(_read_tools(body.get("toolConfig") or {}))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"The body is no request of Converse: {error!r}.") from None
    most = inference.get("maxTokens")
    if isinstance(most, int) and 0 < most < config.max_tokens:
        config = replace(config, max_tokens=most)
    forced = (body.get("toolConfig") or {}).get("toolChoice", {}).get("tool")
    return Request(
        messages=messages,
        system=clean(system) or None,
        config=config,
        tool=tools[0] if forced and len(tools) == 1 else None,
        tools=() if forced and len(tools) == 1 else tools,
        is_cacheable_prefix=True,
    )


def _read_tools(tool_config: Mapping[str, Any]) -> Iterator[Tool]:
    for entry in tool_config.get("tools") or ():
        if spec := entry.get("toolSpec"):
            schema = spec["inputSchema"]["json"]
            yield Tool(
                name=spec["name"], description=spec.get("description", ""), input_schema=schema
            )


def _read_block(block: Wire) -> Block:
    match block:
        case {"text": text}:
            return Text(clean(text))
        case {"image": {"format": kind, "source": {"bytes": data}}}:
            return Image(kind, b64decode(data))
        case {"reasoningContent": {"reasoningText": thought}}:
            return Reasoning(clean(thought["text"]), signature=thought.get("signature"))
        case {"reasoningContent": {"redactedContent": data}}:
            return Reasoning("", encrypted=data)
        case {"toolUse": use}:
            return ToolUse(use["toolUseId"], use["name"], use.get("input"))
        case {"toolResult": result}:
            parts = (part.get("text") or json.dumps(part) for part in result["content"])
            is_error = result.get("status") == "error"
            text = clean("\n".join(parts)) or "(no output)"
            return ToolResult(result["toolUseId"], text, is_error=is_error)
        case _:
            raise ValueError(f"This endpoint does not forward blocks of {', '.join(block)}.")


def answer_of(completion: Completion) -> Wire:
    """Converse's answer."""
    content = [*map(_block_of, completion.message.content)]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": completion.provider_stop_reason or completion.stop_reason,
        **_metadata(completion),
    }


def _metadata(completion: Completion) -> Wire:
    usage: Wire = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    if counted := completion.usage:
        cached = counted.cache_read_tokens + counted.cache_write_tokens
        usage = {
            "inputTokens": counted.input_tokens - cached,
            "outputTokens": counted.output_tokens,
            "totalTokens": counted.input_tokens + counted.output_tokens,
            "cacheReadInputTokens": counted.cache_read_tokens,
            "cacheWriteInputTokens": counted.cache_write_tokens,
        }
    return {"usage": usage, "metrics": {"latencyMs": round(completion.latency_ms)}}


def _block_of(block: Block) -> Wire:
    match block:
        case Reasoning(encrypted=str(data)):
            return {"reasoningContent": {"redactedContent": data}}
        case Reasoning():
            signed = {"signature": block.signature} if block.signature else {}
            return {"reasoningContent": {"reasoningText": {"text": block.text, **signed}}}
        case ToolUse():
            use = {"toolUseId": block.id, "name": block.name, "input": block.arguments or {}}
            return {"toolUse": use}
        case Image():
            data = b64encode(block.data).decode()
            return {"image": {"format": block.format, "source": {"bytes": data}}}
        case _:
            return {"text": block.text}


def stream_of(completion: Completion) -> bytes:
    """The events of ConverseStream, all at once."""
    events: list[tuple[str, Wire]] = [("messageStart", {"role": "assistant"})]
    for index, block in enumerate(completion.message.content):
        at = {"contentBlockIndex": index}
        wire = _block_of(block)
        if "toolUse" in wire:
            use = wire["toolUse"]
            named = {"toolUseId": use["toolUseId"], "name": use["name"]}
            events.append(("contentBlockStart", {**at, "start": {"toolUse": named}}))
            wire = {"toolUse": {"input": json.dumps(use["input"])}}
        deltas = [wire]
        if thought := wire.get("reasoningContent", {}).get("reasoningText"):
            deltas = [{"reasoningContent": {name: part}} for name, part in thought.items()]
        events += [("contentBlockDelta", {**at, "delta": delta}) for delta in deltas]
        events.append(("contentBlockStop", at))
    stop_reason = completion.provider_stop_reason or completion.stop_reason
    events += [("messageStop", {"stopReason": stop_reason}), ("metadata", _metadata(completion))]
    return b"".join(_frame(name, json.dumps(payload).encode()) for name, payload in events)


def _frame(event: str, payload: bytes) -> bytes:
    """One message of the event stream: lengths, headers, payload, each with a checksum."""
    headers = b"".join(
        struct.pack(f"!B{len(name)}sBH{len(value)}s", len(name), name, 7, len(value), value)
        for name, value in (
            (b":event-type", event.encode()),
            (b":content-type", b"application/json"),
            (b":message-type", b"event"),
        )
    )
    prelude = struct.pack("!II", len(headers) + len(payload) + 16, len(headers))
    message = prelude + struct.pack("!I", crc32(prelude)) + headers + payload
    return message + struct.pack("!I", crc32(message))
