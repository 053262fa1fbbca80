"""What a prompt cache will read and write, predicted from the requests by the published rules.

Bedrock caches the prefix before each cache point, if it has the model's minimum of tokens, and
finds what was written before at the point itself or up to 20 blocks before it.
"""

from collections.abc import Sequence

from msgspec import Struct

LOOK_BACK = 20
# Where a model's instructions stand, as `Part.content` begins with it.
INSTRUCTIONS = ("tool", "system")


class Part(Struct, frozen=True):
    """One block of a request, in the order in which a model reads them. `is_cached`: up to here."""

    content: tuple[str, ...]
    tokens: int
    is_cached: bool = False


class PrefixCache:
    """One model's simulated cache, whose entries live on from turn to turn.

    `shared` are those that several runs have in common: it knows them from its beginning, and adds
    the ends of instructions to them. Dialogues alike in a forecast differ once they are played.
    """

    def __init__(self, shared: set[int] | None = None) -> None:
        self._shared = set() if shared is None else shared
        self._known = set(self._shared)

    def use(self, parts: Sequence[Part], minimum: int) -> tuple[int, int]:
        """Tokens that the request reads and writes; what it writes can be read from then on."""
        ends = _ends(parts)
        points = [at for at, part in enumerate(parts) if part.is_cached and ends[at][1] >= minimum]
        if not points:
            return 0, 0
        read = max(self._found(ends, at, minimum) for at in points)
        self._known.update(ends[at][0] for at in points)
        self._shared.update(ends[at][0] for at in points if parts[at].content[0] in INSTRUCTIONS)
        return read, ends[points[-1]][1] - read

    def _found(self, ends: Sequence[tuple[int, int]], at: int, minimum: int) -> int:
        for digest, tokens in reversed(ends[max(0, at - LOOK_BACK) : at + 1]):
            if tokens >= minimum and digest in self._known:
                return tokens
        return 0


def _ends(parts: Sequence[Part]) -> list[tuple[int, int]]:
    """After each part: a fingerprint of all up to there, within this process, and its tokens."""
    ends, digest, tokens = [], 0, 0
    for part in parts:
        digest, tokens = hash((digest, part.content)), tokens + part.tokens
        ends.append((digest, tokens))
    return ends
