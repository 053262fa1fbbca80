"""Simulates a prompt cache: the tokens that requests read and write by the published rules.

Bedrock caches the prefix before each cache point, if it has the model's minimum of tokens. It finds
a cached prefix that ends at the point itself or up to 20 blocks before it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

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
