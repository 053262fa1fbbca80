"""What exactly is asked for within a kind: to test a thing is not to be sure of it."""

import re
import tomllib
from collections.abc import Collection
from functools import cache, lru_cache
from pathlib import Path

from msgspec import Struct

from socratic_bench.concurrency import convert

NO_ANSWER = -2
ASPECTS = Path(__file__).with_name("data") / "aspects.toml"


class _Aspect(Struct, frozen=True):
    kind: str
    asks: str
    says: str
    is_strict: bool = False  # whether what answers another side of the kind is no answer
    is_special: bool = False  # whether what answers this is a poor answer to anything else


@lru_cache(maxsize=4096)
def suits(questions: str, kinds: Collection[str], own: str) -> int:
    """1 where a sentence answers just what is asked, 0 where its words do not tell; -1 where it
    answers another side of the same kind, and `NO_ANSWER` where that side is far from it.
    """
    found = [
        (one, bool(asks.search(questions)), bool(says.search(own)))
        for one, asks, says in _aspects()
        if one.kind in kinds
    ]
    if any(is_asked and is_said for _, is_asked, is_said in found):
        return 1
    is_of_another = any(
        is_said and (one.is_special or any(asked for _, asked, _ in found))
        for one, _, is_said in found
    )
    is_strict = any(is_asked and one.is_strict for one, is_asked, _ in found)
    return NO_ANSWER if is_strict and is_of_another else -is_of_another


@cache
def _aspects() -> tuple[tuple[_Aspect, re.Pattern[str], re.Pattern[str]], ...]:
    read = tomllib.loads(ASPECTS.read_text(encoding="utf-8"))["aspects"]
    return tuple(
        (one, re.compile(one.asks, re.IGNORECASE), re.compile(one.says, re.IGNORECASE))
        for one in convert(read, list[_Aspect])
    )
