"""Noun phrases, found by what stands around them: determiners, prepositions and verbs."""

import json
import re
from collections.abc import Iterator
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


WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+(?:['-][^\W_]+)*|[^\w\s]|\n")
_LONGEST = 3
_STOPS = ".!?\n"
# The lists of words that end a noun phrase.
_BREAKING = (
    *("pronouns", "auxiliaries", "conjunctions", "adverbs", "verbs"),
    *("prepositions", "determiners", "loaded"),
)


def noun_phrases(text: str, *, own: bool) -> Iterator[str]:
    """The phrases in their order; with `own` one's own "my" stays, and "your" becomes "my"."""
    tokens = _TOKEN.findall(text)
    at = 0
    while at < len(tokens):
        phrase, at = _phrase_at(tokens, at, own=own)
        if phrase:
            yield phrase


def topic_of(text: str, *, own: bool) -> tuple[str | None, str | None]:
    """The first phrase that stands where people name what they talk about, and that one can have a
    view of; and once more if it can also be defined.
    """
    tokens = _TOKEN.findall(text)
    at = 0
    while at < len(tokens):
        phrase, end = _phrase_at(tokens, at, own=own)
        if phrase and _is_sound(phrase) and _is_talked_about(tokens, at, end):
            return phrase, phrase if _is_term(phrase) else None
        at = end
    return None, None


def _is_sound(phrase: str) -> bool:
    """No measure, no time, and no clause that was cut before its verb."""
    found = phrase.lower().split()
    cut = len(found) > 1 and found[-1].endswith("ing")
    return not (words("measures") & {*found} or cut or any(map(str.isdigit, phrase)))


def _is_talked_about(tokens: list[str], at: int, end: int) -> bool:
    before = tokens[at - 1].lower() if at else "."
    after = tokens[end].lower() if end < len(tokens) else "."
    if len(tokens) <= _LONGEST or before in words("topical"):
        return True
    if before in ("is", "are"):
        return after == "?"
    acts = after in words("auxiliaries", "verbs", "loaded") | {"always", "never", "just", "that"}
    return before in _STOPS and acts and (end > at + 1 or _is_common(tokens[at], after))


def _is_common(word: str, after: str) -> bool:
    """Whether the capital of a sentence's only first word is not that of a name."""
    is_plural = word.endswith("s") and after in words("plural")
    return is_plural or word.endswith(tuple(words("abstract")))


def _is_term(phrase: str) -> bool:
    first, *_, last = ["", *phrase.split()] if " " not in phrase else phrase.split()
    is_one = not last.endswith("s") or last.endswith(("ss", "ics", "sis")) or first.endswith("ing")
    return is_one and last.islower() and first not in words("determiners") - {"a", "an"} | {"your"}


def _phrase_at(tokens: list[str], at: int, *, own: bool) -> tuple[str | None, int]:
    """The noun phrase that begins at a token, if one is evident, and where to read on."""
    lead = _lead(tokens[at].lower(), own=own)
    start = at if lead is None else at + 1
    end = start
    while end < len(tokens) and not _breaks(tokens[end].lower()):
        end += 1
    found = _plain(tokens, start, end)
    evident = lead is not None or _is_evident(tokens, at, end)
    if not (evident and _acceptable(found, lead)):
        return None, max(end, at + 1)
    return _joined(tokens, [lead, *found] if lead else found, end, own=own)


def _lead(word: str, *, own: bool) -> str | None:
    """The determiner as the speaker would say it; `None` if the word is not one to build on."""
    if word in ("my", "our"):
        return word if own else "your"
    if word == "your":
        return "my" if own else None
    if word in ("a", "an", "the", "his", "her", "their"):
        return word
    return "" if word in words("determiners") else None


def _breaks(word: str) -> bool:
    """Whether a word ends a noun phrase."""
    return (
        word in words(*_BREAKING)
        or word in ("to", "at", "by", "your")
        or (word.endswith("ly") and word not in words("adverbs_not"))
        or not word[0].isalnum()
    )


def _is_evident(tokens: list[str], at: int, end: int) -> bool:
    """Whether a bare noun stands where one must: after a preposition, before a verb, or alone."""
    before = tokens[at - 1].lower() if at else "."
    after = tokens[end].lower() if end < len(tokens) else "."
    if before in words("prepositions"):
        return True
    if before in ("is", "are"):
        return after == "?"
    if before in words("objects_of"):
        return after in ".!?,;\n"
    if before in _STOPS or before in ("that", "and", "but", "because", "if", "whether"):
        return after in words("auxiliaries", "verbs") or len(tokens) <= _LONGEST
    return False


def _plain(tokens: list[str], start: int, end: int) -> list[str]:
    """The words, with the capital of a sentence's first word taken off where it is only that."""
    found = tokens[start:end]
    opens = start == 0 or tokens[start - 1] in _STOPS
    if found and opens and found[0][1:].islower():
        found[0] = found[0].lower()
    return found


def _acceptable(found: list[str], lead: str | None) -> bool:
    if not 1 <= len(found) <= _LONGEST:
        return False
    last = found[-1]
    if lead in ("my", "your", "our"):
        return last.lower() not in words("generic")
    named = len(last) > 2 or (last.isupper() and len(last) > 1)  # noqa: PLR2004
    vague = len(found) == 1 and last.lower() in words("vague")
    return named and not vague and last.lower() not in words("generic") and not found[0].isdigit()


def _joined(tokens: list[str], found: list[str], end: int, *, own: bool) -> tuple[str, int]:
    """Go on to a second phrase: "the meaning of life", "quitting my job"."""
    word = tokens[end].lower() if end + 1 < len(tokens) else ""
    if word in words("joiners"):
        second, after = _phrase_at(tokens, end + 1, own=own)
        if second:
            return f"{' '.join(found)} {word} {second}", after
    if found[-1].endswith("ing") and word and _lead(word, own=own):
        second, after = _phrase_at(tokens, end, own=own)
        if second:
            return f"{' '.join(found)} {second}", after
    return " ".join(found), end
