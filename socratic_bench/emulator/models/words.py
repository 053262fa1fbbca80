"""Word lists: what the little grammar of the simulated models knows of English."""

import json
from functools import cache, lru_cache
from pathlib import Path


@lru_cache
def words(*names: str) -> frozenset[str]:
    """The words of some lists of the data file, together."""
    return frozenset(word for name in names for word in _lists()[name].split())


@cache
def _lists() -> dict[str, str]:
    lists: dict[str, str] = json.loads((Path(__file__).parent / "words.json").read_text("utf-8"))
    return lists
