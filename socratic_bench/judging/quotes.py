"""Tells whether words that a judge quotes stand in the reply that it quotes."""

import re
import unicodedata
from functools import lru_cache

# Signs that copies spell otherwise, and the marks of emphasis that they leave out.
_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "*": "",
    }
)
_LEFT_OUT = re.compile(r"\s*(?:[\[(]\s*)?(?:\.{2,}|(?:\. ){2,}\.?)(?:\s*[\])])?\s*")
_AROUND = " '\".,;:!?-()[]"


def is_quoted(words: str, reply: str) -> bool:
    """Whether words stand in a reply: whole words, in their order, with parts left out at `...`.

    Case, white space, typographic quotation marks and dashes, marks of emphasis and what stands
    around the words make no difference. Nothing, or ellipses alone, are no words.
    """
    text, at = _folded(reply), 0
    parts = [part.strip(_AROUND) for part in _LEFT_OUT.split(_folded(words))]
    parts = [part for part in parts if part]
    for part in parts:
        at = _end_of(part, text, at)
        if at < 0:
            return False
    return bool(parts)


def _end_of(part: str, text: str, start: int) -> int:
    """Where the words end that stand in the text from `start` on; -1 if they do not."""
    at = text.find(part, start)
    while at >= 0:
        end = at + len(part)
        if _parts_words(text, at) and _parts_words(text, end):
            return end
        at = text.find(part, at + 1)
    return -1


def _parts_words(text: str, at: int) -> bool:
    """Whether no word goes on at a place; in scripts without capitals, words may stand unparted."""
    return not (0 < at < len(text) and _is_of_word(text[at - 1]) and _is_of_word(text[at]))


def _is_of_word(sign: str) -> bool:
    return sign.isdigit() or sign.upper() != sign


@lru_cache(maxsize=16)  # a verdict quotes one reply many times
def _folded(text: str) -> str:
    # In the compatible forms the sign for an ellipsis is three full stops.
    shown = unicodedata.normalize("NFKC", text).translate(_SAME).casefold()
    if not shown.isascii():
        shown = "".join(sign for sign in shown if unicodedata.category(sign) != "Cf")
    return " ".join(shown.split())
