"""Whether a text is plainly not English; in doubt it is, for short turns are the rule here."""

import re
from collections.abc import Sequence
from functools import lru_cache

from . import foreign as f
from . import words as w

_WORD = re.compile(r"[^\W\d_]+")
# Only so much is read: a long text shows its language early.
_SAMPLE = 2000
ENGLISH = w.listed(
    "the a an and or but of to in on at for with is are was were be do does did has have it you i"
    " we they he she that this what why how not if so my your can could would will should there"
    " as by from about me"
)
_EVIDENCE = w.listed(
    "when where who whose which than then their them our some any more because between both into"
    " been being think just only now yes please right wrong very much many each every other another"
    " first two three out had these those know"
)
_ENDINGS = ("ing", "ed", "ly", "ght")
# Foreign words, and the English ones which no other language has.
_ENGLISH_ONLY = (
    ENGLISH | _EVIDENCE | w.VERB | w.LEAD | w.PRONOUN | w.PREPOSITION | w.PLAIN_AUXILIARY
) - (f.EVERYDAY | f.NEUTRAL | {"i"})
_SUFFIXED = 6
_ENOUGH = 6
_VOWELS = ("a", "i", "o", "u")
# Scripts that English is never written in; letters beyond these count as Latin. Compiled at its
# first use: most runs never meet a letter beyond ASCII.
_OTHER_SCRIPT = (
    r"[\u0370-\u03ff\u0400-\u052f\u0530-\u058f\u0590-\u05ff\u0600-\u06ff\u0700-\u1cff"
    r"\u1f00-\u1fff\u2c80-\u2dff\u3040-\u30ff\u3100-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\ufb1d-\ufdff\ufe70-\ufeff\uff66-\uff9f\U00020000-\U0002fa1f]"
)


def is_foreign(text: str, prose: Sequence[str]) -> bool:
    """Another script for most of its letters, another language's words, or no English.

    `prose` is the text without code and quotations: what is quoted may be in any language.
    """
    sample = " ".join(prose)[:_SAMPLE]
    words = _WORD.findall(sample)
    if not sample.isascii() and _other_script(words):
        return True
    english = sum(word == "I" or _tells_english(word.lower()) for word in words)
    foreign = len(f.ELISION.findall(sample)) + _n_foreign(words)
    marked = "\u00bf" in text[:_SAMPLE] or "\u00a1" in text[:_SAMPLE]
    return foreign + 2 * marked > 2 * english or _without_english(words, english)


@lru_cache(maxsize=256)
def is_briefly_foreign(text: str) -> bool:
    """As `is_foreign`, of plain words."""
    return is_foreign(text, [text])


def _n_foreign(words: Sequence[str]) -> int:
    n_foreign = 0
    after_last = words[-1] if len(words) > 1 else "a"
    for word, following in zip(words, [*words[1:], after_last], strict=False):
        # A capital begins a name, too, unless a word in lower case follows it, or none.
        if word.islower():
            n_foreign += _tells_foreign(word)
        elif word.istitle() and following.islower():
            n_foreign += word.lower() in f.AT_THE_START
    return n_foreign


def _tells_foreign(word: str) -> bool:
    if word in f.EVERYDAY or (len(word) > _SUFFIXED and word.endswith(f.ENDINGS)):
        return True
    return not word.isascii() and bool(f.ACCENT.search(word)) and word not in f.BORROWED


def _tells_english(word: str) -> bool:
    if word in f.NEUTRAL or word in f.EVERYDAY:
        return False
    return word in _ENGLISH_ONLY or word.removesuffix("s") in w.VERB or word.endswith(_ENDINGS)


def _without_english(words: Sequence[str], english: int) -> bool:
    """Lists of English nouns have no small words either: but not such letters or endings."""
    plain = [word for word in words if len(word) > 1 and word.islower() and word != w.HOLE]
    if len(set(plain)) < _ENOUGH or english * 10 >= len(plain):
        return False
    known = sum(word in f.EVERYDAY or not word.isascii() for word in plain)
    voiced = sum(word.endswith(_VOWELS) for word in plain)
    return known * 8 >= len(plain) or voiced * 3 >= len(plain)


def _other_script(words: Sequence[str]) -> bool:
    """Single letters of an alphabet are symbols, as in a formula; single ideographs are words."""
    letters = sum(len(word) for word in words)
    other = sum(
        len(re.findall(_OTHER_SCRIPT, word)) for word in words if len(word) > 1 or word >= "\u0900"
    )
    return other > letters / 2
