"""Which kind of general question a tutor asks: for a reason, an example, the other side."""

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.cues import pattern_of, straight, words_by_kind

KINDS = Path(__file__).with_name("data") / "kinds.toml"
_QUOTED = re.compile(
    r"\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u201e[^\u201c\u201d]*[\u201c\u201d]|\u00ab[^\u00bb]*\u00bb"
    r"|\u300c[^\u300d]*\u300d|\u300e[^\u300f]*\u300f|(?<!\w)'(?:[^']|'(?=\w))+'(?!\w)"
)
_THE_MATTER = re.compile(r"\b(?:the|this|a|no) matters?\b", re.IGNORECASE)
_SURE, _WEAK, _WEAKEST = range(3)  # how well a word tells a kind
# What a word to be defined has behind it, and what is none.
_BEHIND = re.compile(
    r"(?:\b(?:for|to|in|when|as|if|and|about|here|that|para|f\u00fcr)\b|[,;:?\uff1f.]).*", re.DOTALL
)
_NO_WORD = re.compile(
    r"\b(?:the|these|those|this|your?|it|its|them|they|all|die|der|das|dem|den|dein\w*|eso|esto|los|las"
    r"|una)\b",
    re.IGNORECASE,
)
OF_ANOTHER = "of another"  # no kind: asks what somebody else thinks or did, where a thing was
_QUESTION = re.compile(r"[^?\uff1f\u3002!]+[?\uff1f\u3002!]*")


class KindAsked(Struct, frozen=True):
    """The kind of a question, and whether its words leave little doubt about it."""

    name: str
    is_sure: bool


@lru_cache(maxsize=64)
def kinds_asked(questions: str) -> tuple[KindAsked, ...]:
    """The leading kind of each question that has one, in order; what is quoted asks nothing.

    Where some are sure, those alone. A question about somebody else's reason, or where another
    thing comes from, is none about the student's view: it is `OF_ANOTHER`.
    """
    text = _THE_MATTER.sub("it", unquoted(questions))
    found = [one for part in _QUESTION.findall(text) if (one := _kind_asked(part))]
    sure = [one for one in found if one.is_sure]
    return tuple(dict.fromkeys(sure or found))


def unquoted(questions: str, fewest_words: int = 1) -> str:
    """The questions, with a mark in place of what they quote of so many words or more."""

    def without(quoted: re.Match[str]) -> str:
        return "_" if len(quoted[0].split()) >= fewest_words else quoted[0]

    return _QUOTED.sub(without, straight(questions))


def _kind_asked(question: str) -> KindAsked | None:
    only_seems = {name for name, pattern in _others() if pattern.search(question)}
    if "any" in only_seems:
        return KindAsked(OF_ANOTHER, is_sure=True)
    found = [
        (weakness, at.start(), -len(at[0]), name)
        for name, weakness, pattern in _patterns()
        if (at := pattern.search(question))
    ]
    if not found:
        return None
    weakness, _, _, name = min(found)
    if name in only_seems:
        return KindAsked(OF_ANOTHER, is_sure=True)
    return KindAsked(name, is_sure=weakness == _SURE)


def word_defined(question: str) -> str:
    """The words whose meaning is asked for; empty where it is that of a whole thought."""
    text = straight(question)
    found = next((at[1] for one in _defining() if (at := one.search(text))), "")
    return _NO_WORD.sub("", _BEHIND.sub("", found))


@cache
def _patterns() -> tuple[tuple[str, int, re.Pattern[str]], ...]:
    """Each kind's phrases and words, with how weakly they tell it."""
    data = _data()
    weak = {word for words in data["weak"].splitlines() for word in words.split("|")}
    too_general, found = data["too_general"].splitlines(), []
    for name, words in words_by_kind().items():
        phrases = data["phrases"][name].splitlines()
        found += [(name, _SURE, re.compile(one, re.IGNORECASE)) for one in phrases]
        by_weakness: dict[int, list[str]] = {}
        for word in (one for one in words if one not in too_general):
            how = _WEAKEST if name == "more" else _WEAK if word.rstrip("*") in weak else _SURE
            by_weakness.setdefault(how, []).append(word)
        found += [(name, how, pattern_of(tuple(some))) for how, some in by_weakness.items()]
    return tuple(found)


@cache
def _others() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """By kind, what tells that a question only seems to be of it; `any`: of whichever."""
    return tuple(
        (name, re.compile("|".join(phrases.splitlines()), re.IGNORECASE | re.DOTALL))
        for name, phrases in _data()["of_another"].items()
    )


@cache
def _defining() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(one, re.IGNORECASE) for one in _data()["defining"].splitlines())


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(KINDS.read_text(encoding="utf-8"))
