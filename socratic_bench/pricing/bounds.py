"""How many input tokens a request can have at most, whatever the model's tokenizer."""

import json

from socratic_bench.types import Block, Reasoning, Request, Text, ToolResult

# No tokenizer makes more than one token of a byte. Messages and blocks cost a few more for their
# frames, and services put instructions of their own before tools (some 350 to 500 tokens).
_FRAME = 16
_BASE = 64
_TOOL = 1024


def most_input_tokens(request: Request) -> int:
    """An upper bound on the input tokens of a request."""
    blocks = [block for message in request.messages for block in message.content]
    total = _BASE + _FRAME * (len(request.messages) + len(blocks))
    total += sum(map(_block_bytes, blocks)) + _bytes(request.system or "")
    if request.tool:
        schema = json.dumps(request.tool.input_schema)
        total += _TOOL + _bytes(request.tool.name + request.tool.description + schema)
    return total


def _block_bytes(block: Block) -> int:
    if isinstance(block, Text | Reasoning | ToolResult):
        return _bytes(block.text)
    return _bytes(block.name + json.dumps(block.arguments))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
