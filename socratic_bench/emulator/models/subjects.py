"""Finds in a text what can be talked about: noun phrases, fragments worth quoting, and claims.

A few word lists stand in for a grammar. Where they cannot tell, the words are quoted as they stand,
since a quotation reads well in any sentence; so do code, other languages and mere punctuation.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from socratic_bench.emulator.models.phrases import noun_phrases, words

READ_LIMIT = 1500
NOTHING = {False: "what you wrote", True: "what I wrote"}
CODE = {False: "the code you wrote", True: "my code"}

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_SPLIT = re.compile(
    r"[,;:!?()\[\]{}\n\"“”«»…]+|\.+(?=\s|$)|\.{2,}|\s[-\u2013\u2014]+\s"
    r"|\b(?:but|because|so|which|while|although|that|whether|if|when)\b",
    re.IGNORECASE,
)
_AND = re.compile(r"\band\b", re.IGNORECASE)
_ENGLISH_SHARE = 0.15
_ASCII_SHARE = 0.9
_CODE_MARK = re.compile(r"[{}();=<>]|\bdef |\breturn\b|=>|::|</")
_QUOTE_WORDS = (3, 8)
_CLAIM_WORDS = (3, 9)
_FEW_WORDS = 3


class Subject(Struct, frozen=True):
    """What a text is about.

    `phrases` fit after a preposition; `quotes` are fragments and `claims` whole statements, both in
    quotation marks. There is always a phrase.
    """

    phrases: tuple[str, ...]
    quotes: tuple[str, ...]
    claims: tuple[str, ...]


@lru_cache(maxsize=4096)
def subject_of(text: str, *, own: bool = False) -> Subject:
    """Read a text of the other side, whose "my" becomes "your", or one's own."""
    text = text[-READ_LIMIT:].replace("\u2019", "'")
    if len(_CODE_MARK.findall(text)) > max(3, len(text) // 25):
        return Subject((CODE[own],), (), ())
    if not _is_english(text):
        return Subject((_title(text) or NOTHING[own],), (), ())
    quotes = tuple(dict.fromkeys(_quotes(text)))[:6]
    phrases = tuple(dict.fromkeys(noun_phrases(text, own=own)))[:3]
    phrases = phrases or quotes[:1] or (_title(text) or NOTHING[own],)
    return Subject(phrases, quotes, tuple(_claims(text))[:4])


def _is_english(text: str) -> bool:
    found = [word.lower() for word in _WORD.findall(text)]
    letters = sum(map(len, found))
    plain = sum(len(word) for word in found if word.isascii())
    lists = ("english", "pronouns", "auxiliaries", "determiners", "prepositions", "conjunctions")
    known = sum(word in words(*lists) for word in found)
    familiar = len(found) <= _FEW_WORDS or known >= len(found) * _ENGLISH_SHARE
    return familiar and plain >= letters * _ASCII_SHARE


def _title(text: str) -> str | None:
    """The first words in quotation marks, of a text that nothing else can be made of."""
    found = _WORD.findall(text)[:4]
    return f'"{" ".join(found)[:40]}"' if found else None


def _fragments(text: str) -> Iterator[str]:
    """Clauses, roughly. What stands between two things is not torn apart."""
    for part in _SPLIT.split(text):
        if "between" in part:
            yield part
        else:
            yield from _AND.split(part)


def _quotes(text: str) -> Iterator[str]:
    """Fragments between stops, freed of the small words around them."""
    weak = words(
        "pronouns", "auxiliaries", "conjunctions", "adverbs", "prepositions", "weak_starts"
    )
    ends = words("prepositions", "conjunctions", "auxiliaries", "determiners") | {"to", "me"}
    low, high = _QUOTE_WORDS
    for fragment in _fragments(text):
        found = fragment.split()
        while found and found[0].lower() in weak:
            found.pop(0)
        while found and found[-1].lower() in ends:
            found.pop()
        if low <= len(found) <= high and any(map(_is_content, found)):
            yield f'"{" ".join(found)[:70]}"'


def _is_content(word: str) -> bool:
    word = word.lower()
    return len(word) > 3 and word.isalpha() and not _is_small(word)  # noqa: PLR2004


def _is_small(word: str) -> bool:
    lists = ("pronouns", "auxiliaries", "conjunctions", "adverbs", "prepositions", "determiners")
    return word in words(*lists, "verbs", "generic", "vague", "loaded")


def _claims(text: str) -> Iterator[str]:
    """Statements about something else than the speaker: a subject first, a verb behind it."""
    low, high = _CLAIM_WORDS
    for fragment in _fragments(text):
        found = fragment.split()
        opens = bool(found) and (_is_content(found[0]) or found[0].lower() in ("my", "the", "our"))
        verb = any(word.lower() in words("auxiliaries", "verbs") for word in found[1:-1])
        asked = text[text.find(fragment) + len(fragment) :][:1] == "?"
        if low <= len(found) <= high and opens and verb and not asked:
            yield f'"{" ".join(found)[:70]}"'
