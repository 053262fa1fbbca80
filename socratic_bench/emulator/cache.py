"""Prompt caching: which part of a request's prefix was seen before, by its exact content."""

import json
from collections.abc import Callable, Iterator
from hashlib import blake2b

from msgspec import Struct

from socratic_bench.emulator.dialogue import JsonObject, block_tokens

LOOK_BACK = 20
_TTL_S = {"5m": 300.0, "1h": 3600.0}
_LIMIT = 20_000
_ENCODE = json.JSONEncoder(sort_keys=True).encode


class CacheUse(Struct, frozen=True, kw_only=True):
    """What one request reads and writes, in tokens. `commit` makes what it wrote readable."""

    read: int
    write: int
    ttl: str
    commit: Callable[[], None]


class _Boundary(Struct, frozen=True):
    """A place between two blocks: digest and tokens of all before it, and a cache point's ttl."""

    digest: bytes
    tokens: int
    ttl: str | None


class PromptCache:
    """Prefixes by digest, each with the time at which it is forgotten."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[bytes, float] = {}

    def use(self, model_id: str, body: JsonObject, minimum: int) -> CacheUse | None:
        """`None` for a request without a cache point. Prefixes under the minimum do not count."""
        if not any("cachePoint" in block for _, block in _blocks(body)):
            return None
        boundaries = _boundaries(model_id, body)
        points = [at for at, boundary in enumerate(boundaries) if boundary.ttl]
        long_enough = [at for at in points if boundaries[at].tokens >= minimum]
        now = self._clock()
        read = max(
            (self._readable_tokens(boundaries, at, now, minimum) for at in long_enough), default=0
        )
        last = boundaries[long_enough[-1]].tokens if long_enough else 0
        ttl = boundaries[points[-1]].ttl or "5m"
        entries = [(boundaries[at].digest, boundaries[at].ttl or "5m") for at in long_enough]
        return CacheUse(read=read, write=last - read, ttl=ttl, commit=lambda: self._keep(entries))

    def clear(self) -> None:
        self._until.clear()

    def _readable_tokens(
        self, boundaries: list[_Boundary], at: int, now: float, minimum: int
    ) -> int:
        """The longest known prefix at a cache point or at most `LOOK_BACK` blocks before it."""
        for boundary in reversed(boundaries[max(0, at - LOOK_BACK) : at + 1]):
            if boundary.tokens >= minimum and self._until.get(boundary.digest, 0) > now:
                # Reading keeps an entry alive.
                self._until[boundary.digest] = max(self._until[boundary.digest], now + _TTL_S["5m"])
                return boundary.tokens
        return 0

    def _keep(self, written: list[tuple[bytes, str]]) -> None:
        now = self._clock()
        if len(self._until) > _LIMIT:
            self._until = {digest: until for digest, until in self._until.items() if until > now}
        for digest, ttl in written:
            self._until[digest] = max(self._until.get(digest, 0), now + _TTL_S[ttl])


def _boundaries(model_id: str, body: JsonObject) -> list[_Boundary]:
    """The places after each block, a cache point's place being that of the block before it."""
    hasher = blake2b(model_id.encode(), digest_size=16)
    boundaries = [_Boundary(hasher.digest(), 0, None)]
    tokens = 0
    for place, block in _blocks(body):
        if "cachePoint" in block:
            ttl = block["cachePoint"].get("ttl") or "5m"
            boundaries[-1] = _Boundary(boundaries[-1].digest, tokens, ttl)
            continue
        content = block["text"] if len(block) == 1 and "text" in block else _ENCODE(block)
        hasher.update(f"{place}\x1f{content}\x1e".encode("utf-8", "replace"))
        tokens += block_tokens(block)
        boundaries.append(_Boundary(hasher.digest(), tokens, None))
    return boundaries


def _blocks(body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """All blocks in the order in which a model reads them, each with the place it stands in."""
    for tool in (body.get("toolConfig") or {}).get("tools", ()):
        yield "tool", tool
    for block in body.get("system") or ():
        yield "system", block
    for number, message in enumerate(body.get("messages") or ()):
        for block in message["content"]:
            yield f"{number}{message['role']}", block
