"""The things that a question names anew: only what speaks of one of them answers it.

Which words those are is known for English alone.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Collection
from functools import cache, lru_cache
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    Scenario,
    is_english,
    own_sentences,
)
from socratic_bench.benchmarks.socratic.student.matter import SMALL
from socratic_bench.benchmarks.socratic.student.shared_words import words_of

PARTICULARS = Path(__file__).with_name("data") / "particulars.toml"
_FEW, _SHARE = 3, 0.1  # sentences of a scenario: what more of them have is its topic
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_DETERMINER = r"(?:your|the|an?|his|her|their|my|our|these|those|any)"
_PHRASE = re.compile(rf"\b({_DETERMINER})\s+((?:[\w'-]+\s+){{0,2}}[\w'-]+)", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,] )(?!I\b|God\b)[A-Z][a-z]+(?= |[?,.]|$)")
_BARE = re.compile(
    r"\b(?:do|did|are|were|don't|didn't|aren't|about|of|with|for|in|on|from|like)"
    r" ((?:\w+ )?\w{3,}s)\b"
)
# Whom it is asked about: what somebody else says answers nothing, however near it was named.
_WHO_ELSE = re.compile(
    r"\b(?:do|does|did|would|will|might|could|has|have|had|is|are|was|were|makes?|made) "
    rf"((?:{_DETERMINER} )?(?:\w+ )?\w+) (?:say|think|tell|told|feel|want|do|see|answer|react|mean"
    r"|know|like|need|call|explain|believe|said|want(?:ed)?|doing|think(?:ing)?)\b"
)
# Whatever a question of this kind calls the matter, it is the matter.
_THE_MATTER = re.compile(r"\b(?:describe|view|see) (?:the|your|an?) [\w-]+")
_FACT = re.compile(
    r"\W*(?:(?:and|so|but|then)\W+)?(how (?:long|often|far|old|quickly|fast|big|soon)"
    r"|when|where|who)\b(?!.*\b(?:would|could|might|should|can)\b)",
    re.IGNORECASE,
)
_MINE = {"your": "my", "yours": "mine", "my": "your"}


def particulars(scenario: Scenario, question: str, known: str) -> frozenset[str]:
    """Words of a question that neither carry any talk nor were in what was just said."""
    if not (is_english(scenario) and question):
        return frozenset()
    new = _things(_THE_MATTER.sub(" ", question)) - _things(known) - _topic(scenario)
    return (new - _carriers()) | others(scenario, question)


def others(scenario: Scenario, question: str) -> frozenset[str]:
    """Somebody else of whom it is asked what they say, think or do."""
    if not is_english(scenario):
        return frozenset()
    return frozenset().union(*map(_things, _WHO_ELSE.findall(question))) - _carriers()


def speaks_of(own: str, question: str, things: Collection[str]) -> bool:
    """Whether a sentence has one of the things, and tells a person or a time if that is asked."""
    if things and not _things(own) & {*things}:
        return False
    wanted = [says for asks, says in _wanted() if asks.search(question)]
    return all(one.search(own) for one in wanted)


def named(scenario: Scenario, question: str, things: Collection[str]) -> str:
    """What a student would call the thing that it cannot tell about; empty if that is no noun, or
    nothing that belongs to its matter.
    """
    ours = {*things} & _matter(scenario)
    nouns = chain(_NAME.findall(question), _BARE.findall(question))
    phrases = (_noun(one[1], one[2], ours) for one in _PHRASE.finditer(question))
    plain = (noun for noun in nouns if _things(noun) & ours)
    return next(filter(None, chain(plain, phrases)), "") if ours else ""


def _noun(determiner: str, rest: str, things: Collection[str]) -> str:
    """The words behind a determiner up to one of the things, as the student would say them."""
    words = [*takewhile(lambda word: word.casefold() not in SMALL, rest.split())]
    while words and not _things(words[-1]) & {*things}:
        words.pop()
    first = determiner.casefold()
    return " ".join((_MINE.get(first, first), *words)) if words else ""


def fact_asked(question: str) -> str:
    """Who, when, where or how many, if a question begins with it."""
    found = _FACT.match(question)
    return found[1].capitalize() if found else ""


@lru_cache(maxsize=4096)
def _things(text: str) -> frozenset[str]:
    """The telling words, and whom of the family it names, however it calls them."""
    kin = {_kin()[word] for one in _WORD.findall(text) if (word := _bare(one)) in _kin()}
    return frozenset(one.rstrip("s") for one in words_of(text)) - _kin_stems() | kin


def _bare(word: str) -> str:
    return word.casefold().removesuffix("'s")


@lru_cache(maxsize=64)
def _topic(scenario: Scenario) -> frozenset[str]:
    sentences = own_sentences(scenario).values()
    often = Counter(chain.from_iterable(map(_things, sentences)))
    about = " ".join((*scenario.openings, scenario.belief, scenario.topic))
    most = max(_FEW, _SHARE * len(sentences))
    return _things(about) | {word for word, times in often.items() if times > most}


@lru_cache(maxsize=64)
def _matter(scenario: Scenario) -> frozenset[str]:
    """All that the person knows, thinks of or might know."""
    known = (scenario.knows, scenario.does_not_know, scenario.persona, scenario.because)
    about = " ".join(filter(None, (*known, *scenario.details, *own_sentences(scenario).values())))
    return _topic(scenario) | _things(about)


@cache
def _carriers() -> frozenset[str]:
    return _things(_data()["carriers"])


@cache
def _kin() -> dict[str, str]:
    lines = _data()["kin"].splitlines()
    return {word: line.split()[0] for line in lines for word in line.split()}


@cache
def _kin_stems() -> frozenset[str]:
    return frozenset(word[:5].rstrip("s") for word in _kin())


@cache
def _wanted() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    return tuple((re.compile(one["asks"]), re.compile(one["says"])) for one in _data()["wanted"])


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(PARTICULARS.read_text(encoding="utf-8"))
