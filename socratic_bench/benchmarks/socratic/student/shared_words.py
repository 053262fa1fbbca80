"""The words that a question shares with a sentence: by them it is answered most aptly."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario, own_sentences

_FEW = 3  # sentences of a scenario: what more of them have says little about one
_STEM = 5  # letters
_WORD = re.compile(r"[^\W\d_]{4,}")
_SHORT_WORD = re.compile(r"[^\W\d_]{3,}")
# Words of any talk, in the languages that are known here.
COMMON = Path(__file__).with_name("data") / "common_words.txt"
# Where there are no blanks: two signs that carry a meaning.
_PAIR = re.compile("(?=([\u3400-\u9fff\u30a0-\u30ff]{2}))")


@lru_cache(maxsize=64)
def words_of(text: str) -> frozenset[str]:
    """The words that say what a text is about, without their endings."""
    stems = {word.casefold()[:_STEM] for word in _WORD.findall(text)}
    return frozenset(stems - _common()) | frozenset(_PAIR.findall(text))


def all_words_of(text: str) -> frozenset[str]:
    """All but the shortest words, also those of any talk, without their endings."""
    words = {word.casefold()[:_STEM] for word in _SHORT_WORD.findall(text)}
    return frozenset(words) | frozenset(_PAIR.findall(text))


@lru_cache(maxsize=64)
def rare_words(scenario: Scenario) -> Mapping[str, frozenset[str]]:
    """By sentence of the scenario, those of its words that few of the others have."""
    found = {own: words_of(own) for own in own_sentences(scenario).values()}
    often = Counter(chain.from_iterable(found.values()))
    return {
        own: frozenset(one for one in words if often[one] <= _FEW) for own, words in found.items()
    }


@cache
def _common() -> frozenset[str]:
    return frozenset(word[:_STEM] for word in COMMON.read_text(encoding="utf-8").split())
