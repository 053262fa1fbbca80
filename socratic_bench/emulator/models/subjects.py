"""Finds in a text what can be talked about: noun phrases and fragments worth quoting.

A few word lists stand in for a grammar. Where they cannot tell, the words are quoted as they stand,
since a quotation reads well in any sentence; so do code, other languages and mere punctuation.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

READ_LIMIT = 1500
NOTHING = "what you wrote"
CODE = "the code you wrote"

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[^\w\s]|\n")
_WORD = re.compile(r"[^\W\d_]{2,}|[^\W\d_]+['\u2019-]\w+")
_CLAUSE = re.compile(
    r"[.,;:!?()\[\]{}\n\"“”«»…]+|\s[-\u2013\u2014]+\s|\b(?:but|and|because|so|which|while|although)\b"
)
_CODE_MARK = re.compile(r"[{}();=<>]|\bdef |\breturn\b|=>|::|</")
_LONGEST_PHRASE = 3
_QUOTE_WORDS = (2, 7)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a text is about: phrases that fit after a preposition, and fragments in quotation marks."""

    phrases: tuple[str, ...]
    quotes: tuple[str, ...]


@lru_cache(maxsize=4096)
def subject_of(text: str, *, speaker_is_other: bool = True) -> Subject:
    """Read a text; with `speaker_is_other` its "my" becomes "your", otherwise "your" becomes "my"."""
    text = text[-READ_LIMIT:]
    if len(_CODE_MARK.findall(text)) > max(3, len(text) // 25):
        return Subject((CODE,), ())
    quotes = tuple(dict.fromkeys(_quotes(text)))[:6]
    phrases = (
        tuple(dict.fromkeys(_phrases(text, flip=speaker_is_other)))[:6] if _is_english(text) else ()
    )
    if not phrases:
        phrases = tuple(quotes[:1]) or (_title(text) or NOTHING,)
    return Subject(phrases, quotes)


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(_lists()[name].split())


@cache
def _lists() -> dict[str, str]:
    data: dict[str, str] = json.loads((Path(__file__).parent / "words.json").read_text("utf-8"))
    return data


def _is_english(text: str) -> bool:
    words = [word.lower() for word in _WORD.findall(text)]
    letters = sum(len(word) for word in words)
    plain = sum(len(word) for word in words if word.isascii())
    few = len(words) <= _LONGEST_PHRASE
    return plain >= letters * 0.9 and (few or any(word in _words("english") for word in words))


def _title(text: str) -> str | None:
    words = _WORD.findall(text)[:5]
    return f'"{" ".join(words)[:40]}"' if words else None


def _quotes(text: str) -> Iterator[str]:
    low, high = _QUOTE_WORDS
    for fragment in _CLAUSE.split(text):
        words = [word for word in fragment.split() if any(letter.isalpha() for letter in word)]
        while words and words[0].lower().replace("\u2019", "'") in _words("weak_starts"):
            words.pop(0)
        while words and words[-1].lower() in _words("weak_starts"):
            words.pop()
        if low <= len(words) <= high and _has_content(words):
            yield f'"{" ".join(words)[:60]}"'


def _has_content(words: list[str]) -> bool:
    return any(not _breaks(word.lower()) and len(word) > 2 for word in words)  # noqa: PLR2004


def _breaks(word: str) -> bool:
    """Whether a word ends a noun phrase."""
    return (
        any(
            word in _words(name)
            for name in ("pronouns", "auxiliaries", "conjunctions", "adverbs", "verbs", "avoid")
        )
        or word in _words("prepositions")
        or word in _words("determiners")
        or word in ("to", "at", "by")
        or (word.endswith("ly") and word not in _words("adverbs_not"))
        or not word[0].isalpha()
    )


def _phrases(text: str, *, flip: bool) -> Iterator[str]:
    """Noun phrases that stand after a determiner or a preposition, or make up the text."""
    tokens = _TOKEN.findall(text.replace("\u2019", "'"))
    if len(tokens) <= _LONGEST_PHRASE and all(
        not _breaks(token.lower()) for token in tokens[:-1] or tokens
    ):
        title = " ".join(_plain(tokens, 0, len(tokens)))
        if title:
            yield title
            return
    at = 0
    while at < len(tokens):
        phrase, at = _phrase_at(tokens, at, flip=flip)
        if phrase:
            yield phrase


def _phrase_at(tokens: list[str], at: int, *, flip: bool) -> tuple[str | None, int]:
    """The noun phrase that begins at a token, if there is evidence for one, and where to read on."""
    start, lead = at, _lead(tokens[at].lower(), flip=flip)
    if lead is None:
        starts = at == 0 or tokens[at - 1] in ".!?\n"
        evident = at > 0 and tokens[at - 1].lower() in _words("prepositions")
        if _breaks(tokens[at].lower()) or not (evident or starts):
            return None, at + 1
    else:
        start = at + 1
    end = _content_end(tokens, start)
    words = _plain(tokens, start, end)
    if not _acceptable(tokens, at, end, words):
        return None, max(end, at + 1)
    if lead:
        words.insert(0, lead)
    return _joined(tokens, words, end, flip=flip)


def _lead(word: str, *, flip: bool) -> str | None:
    """The determiner as the other side would say it; `None` if the word is not one."""
    mine, yours = _words("possessive_first"), _words("possessive_second")
    if word in (mine if flip else yours):
        return "your" if flip else "my"
    if word in _words("determiners") - (mine if flip else frozenset()):
        return word if word in ("a", "an", "the", "his", "her", "their") else ""
    return None


def _content_end(tokens: list[str], start: int) -> int:
    end = start
    while end < len(tokens) and not _breaks(tokens[end].lower()):
        end += 1
    return end


def _plain(tokens: list[str], start: int, end: int) -> list[str]:
    """The words, with the capital of a sentence's first word taken off where it is only that."""
    words = [token for token in tokens[start:end] if token[0].isalnum()]
    opens = start == 0 or tokens[start - 1] in ".!?\n"
    if words and opens and words[0][1:].islower():
        words[0] = words[0].lower()
    return words


def _acceptable(tokens: list[str], at: int, end: int, words: list[str]) -> bool:
    if not 1 <= len(words) <= _LONGEST_PHRASE or len(words[-1]) <= 2:  # noqa: PLR2004
        return len(words) == 1 and words[0].isupper() and len(words[0]) > 1
    opens = at == 0 or tokens[at - 1] in ".!?\n"
    if opens and not _lead(tokens[at].lower(), flip=True):
        return end < len(tokens) and tokens[end].lower() in _words("auxiliaries") | _words(
            "conjunctions"
        )
    return True


def _joined(tokens: list[str], words: list[str], end: int, *, flip: bool) -> tuple[str, int]:
    """Go on over "of" and "in" to a second phrase: "the meaning of life"."""
    if end + 1 < len(tokens) and tokens[end].lower() in _words("joiners"):
        second, after = _phrase_at(tokens, end + 1, flip=flip)
        if second:
            return f"{' '.join(words)} {tokens[end].lower()} {second}", after
    if words[-1].endswith("ing") and end < len(tokens) and _lead(tokens[end].lower(), flip=flip):
        second, after = _phrase_at(tokens, end, flip=flip)
        if second:
            return f"{' '.join(words)} {second}", after
    return " ".join(words), end
