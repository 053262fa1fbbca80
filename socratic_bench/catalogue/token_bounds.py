"""An upper bound on the input tokens of a request, for any tokenizer."""

import json
from functools import lru_cache

import orjson

from socratic_bench.types import Block, Reasoning, Request, Text, Tool, ToolResult

# No tokenizer makes more than one token of a byte. Messages and blocks have a few more tokens
# around them, and services put instructions of their own before tools (350 to 500 tokens).
_TOKENS_AROUND_BLOCK = 16
_BASE_TOKENS = 64
_TOOL_TOKENS = 1024


def most_input_tokens(request: Request) -> int:
    """An upper bound on the input tokens of a request."""
    blocks = [block for message in request.messages for block in message.content]
    total = _BASE_TOKENS + _TOKENS_AROUND_BLOCK * (len(request.messages) + len(blocks))
    total += sum(map(_block_bytes, blocks)) + _bytes(request.system or "")
    if request.tool:
        tool = request.tool
        total += _TOOL_TOKENS + _bytes(tool.name + tool.description) + schema_length(tool)
    return total


def schema_length(tool: Tool) -> int:
    """The number of characters, all ASCII, of a tool's JSON Schema as it is sent."""
    return _schema_length_as_sent(packed_schema(tool))


def packed_schema(tool: Tool) -> bytes:
    """A tool's JSON Schema in compact JSON."""
    schema = dict(tool.input_schema)
    try:
        return orjson.dumps(schema)
    except TypeError:  # for half a character, say, which JSON can escape
        return json.dumps(schema).encode()


@lru_cache(maxsize=64)
def _schema_length_as_sent(packed: bytes) -> int:
    # A run has few tools, and uses each of them again and again.
    return len(json.dumps(json.loads(packed)))


def _block_bytes(block: Block) -> int:
    if isinstance(block, Text | Reasoning | ToolResult):
        return _bytes(block.text)
    return _bytes(block.name + json.dumps(block.arguments))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
