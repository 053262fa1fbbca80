"""Tokens of requests: an upper bound for any tokenizer, and what a simulated prompt cache reads."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import orjson
from msgspec import Struct

from socratic_bench.types import Block, Image, Reasoning, Request, Text, Tool, ToolResult

# No tokenizer makes more than one token of a byte. Messages and blocks have a few more tokens
# around them, and services put instructions of their own before tools (350 to 500 tokens).
_TOKENS_AROUND_BLOCK = 16
_BASE_TOKENS = 64
_TOOL_TOKENS = 1024
# Models count an image by its size, and shrink what is too large: 4,784 tokens at most of Claude,
# fewer of most others, and some 1,600 of a usual picture.
MOST_IMAGE_TOKENS, IMAGE_TOKENS = 8_192, 1_600


def most_input_tokens(request: Request) -> int:
    """An upper bound on the input tokens of a request."""
    blocks = [block for message in request.messages for block in message.content]
    total = _BASE_TOKENS + _TOKENS_AROUND_BLOCK * (len(request.messages) + len(blocks))
    total += sum(map(_block_bytes, blocks)) + _bytes(request.system or "")
    for tool in (*((request.tool,) if request.tool else ()), *request.tools):
        total += _TOOL_TOKENS + _bytes(tool.name + tool.description) + schema_length(tool)
    return total


def schema_length(tool: Tool) -> int:
    """The number of characters, all ASCII, of a tool's JSON Schema as it is sent."""
    return _length_as_sent(packed_schema(tool))


def packed_schema(tool: Tool) -> bytes:
    schema = dict(tool.input_schema)
    try:
        return orjson.dumps(schema)
    except TypeError:  # for half a character, say, which JSON can escape
        return json.dumps(schema).encode()


@lru_cache(maxsize=64)
def _length_as_sent(packed: bytes) -> int:
    # A run has few tools, and uses each of them again and again.
    return len(json.dumps(json.loads(packed)))


def _block_bytes(block: Block) -> int:
    if isinstance(block, Image):
        return MOST_IMAGE_TOKENS
    if isinstance(block, Text | ToolResult):
        return _bytes(block.text)
    if isinstance(block, Reasoning):
        return sum(_bytes(part or "") for part in (block.text, block.signature, block.encrypted))
    return _bytes(block.name + json.dumps(block.arguments))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


LOOK_BACK_BLOCKS = 20
# The first entry of `PromptBlock.content` of a model's instructions.
INSTRUCTIONS = ("tool", "system")


class PromptBlock(Struct, frozen=True):
    """One block of a request; `is_cached`: a cache point follows it."""

    content: tuple[str, ...]
    tokens: int
    is_cached: bool = False


class PrefixCache:
    """One model's simulated cache, whose entries last for the run.

    Bedrock caches the prefix before each cache point, if it has the model's minimum of tokens. It
    finds a cached prefix that ends at the point itself or up to 20 blocks before it.

    `shared` are fingerprints of prefixes that several runs have in common: the cache has them from
    the beginning, and adds those of instructions. Prefixes of dialogues are not shared, since
    dialogues that are alike in an estimate differ when they are played.
    """

    def __init__(self, shared: set[int] | None = None) -> None:
        self._shared = set() if shared is None else shared
        self._cached = set(self._shared)

    def use(self, blocks: Sequence[PromptBlock], minimum: int) -> tuple[int, int]:
        """The tokens that a request reads and writes; later requests can read what it writes."""
        prefixes = _prefixes(blocks)
        points = [
            index
            for index, block in enumerate(blocks)
            if block.is_cached and prefixes[index].tokens >= minimum
        ]
        if not points:
            return 0, 0
        read = max(self._tokens_read(prefixes, point, minimum) for point in points)
        self._cached.update(prefixes[point].fingerprint for point in points)
        self._shared.update(
            prefixes[point].fingerprint
            for point in points
            if blocks[point].content[0] in INSTRUCTIONS
        )
        return read, prefixes[points[-1]].tokens - read

    def _tokens_read(self, prefixes: Sequence["_Prefix"], point: int, minimum: int) -> int:
        for prefix in reversed(prefixes[max(0, point - LOOK_BACK_BLOCKS) : point + 1]):
            if prefix.tokens >= minimum and prefix.fingerprint in self._cached:
                return prefix.tokens
        return 0


class _Prefix(NamedTuple):
    """All blocks up to one of them: a fingerprint, valid within this process, and their tokens."""

    fingerprint: int
    tokens: int


def _prefixes(blocks: Sequence[PromptBlock]) -> list[_Prefix]:
    """The prefix that ends with each block."""
    prefixes, fingerprint, tokens = [], 0, 0
    for block in blocks:
        fingerprint, tokens = hash((fingerprint, block.content)), tokens + block.tokens
        prefixes.append(_Prefix(fingerprint, tokens))
    return prefixes
