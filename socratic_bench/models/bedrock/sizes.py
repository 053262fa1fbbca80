"""About how many tokens a request has, block by block, before anybody has counted them."""

import json
from collections.abc import Iterator

from socratic_bench.catalogue.cache_pricing import Part
from socratic_bench.models.bedrock.wire import Wire

# English text has some four characters a token; each block has a frame of a few tokens.
CHARACTERS = 4
FRAME = 3


def text_tokens(text: str) -> int:
    """A rough estimate: within some 20 % for English prose, less sure for other languages."""
    return -(-len(text) // CHARACTERS)


def request_parts(arguments: Wire, *, scale: float = 1.0) -> tuple[Part, ...]:
    """The blocks of Converse's arguments in the order in which a model reads them.

    `scale`: counted tokens over estimated ones, where the service has counted a request.
    """
    parts: list[Part] = []
    for place, block in _blocks(arguments):
        if "cachePoint" in block:
            parts[-1] = Part(parts[-1].content, parts[-1].tokens, is_cached=True)
            continue
        text = block["text"] if "text" in block else _compact(block)
        tokens = round((text_tokens(text) + FRAME) * scale)
        parts.append(Part((place, text), tokens))
    return tuple(parts)


def _blocks(arguments: Wire) -> Iterator[tuple[str, Wire]]:
    for tool in arguments.get("toolConfig", {}).get("tools", ()):
        yield "tool", tool
    for block in arguments.get("system", ()):
        yield "system", block
    for message in arguments["messages"]:
        for block in message["content"]:
            yield message["role"], block


def _compact(block: Wire) -> str:
    return json.dumps(block, separators=(",", ":"))
