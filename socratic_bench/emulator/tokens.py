"""How many tokens a request and a reply are: a rough rule, the same for every call that counts."""

import json
from collections.abc import Sequence

from socratic_bench.emulator.dialogue import JsonObject

CHARACTERS = 4
_BLOCK = 3
_MEDIA = 1000
_AS_JSON = {"toolUse", "toolResult", "toolSpec", "reasoningContent"}


def text_tokens(text: str) -> int:
    return (len(text) + CHARACTERS - 1) // CHARACTERS


def block_tokens(block: JsonObject) -> int:
    """Tokens of a content, system or tool block; a cache point has none."""
    if "text" in block:
        return text_tokens(block["text"]) + _BLOCK
    if "cachePoint" in block:
        return 0
    if block.keys() & _AS_JSON:
        return text_tokens(json.dumps(block, separators=(",", ":"))) + _BLOCK
    return _MEDIA


def input_tokens(body: JsonObject) -> int:
    blocks = [*(body.get("toolConfig") or {}).get("tools", ()), *(body.get("system") or ())]
    total = sum(map(block_tokens, blocks))
    for message in body.get("messages") or ():
        total += sum(map(block_tokens, message["content"]))
    return total


def output_tokens(content: Sequence[JsonObject]) -> int:
    """What a reply is billed for: at least one, also for an empty text."""
    return max(1, sum(block_tokens(block) - _BLOCK for block in content))
