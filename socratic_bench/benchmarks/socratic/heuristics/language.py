"""Whether a text is plainly not English; in doubt it is, for short turns are the rule here."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from . import foreign as f
from . import words as w

_WORD = re.compile(r"[^\W\d_]+")
# Only so much is read: a long text shows its language early.
_SAMPLE = 2000
_MIN_WORDS = 6
_MIN_HITS = 3
_PLAIN_HITS = 2
# Function words of other languages which are not English words.
_FOREIGN = {
    "es": "el los las una de que por para con del es está como pero más qué cómo tú usted y lo se"
    " cuando porque puedes cuál esto eso",
    "fr": "le les des une est que qui dans pour avec ce cette vous nous je tu il elle pas mais et"
    " comment pourquoi quoi du au ne",
    "de": "der das den dem ein eine ist und nicht du ich sie wir wie warum wenn aber auch mit"
    " auf zu von für dass kannst",
    "it": "il lo gli una di che per con del della è come ma perché cosa quando sono hai non questo"
    " puoi anche",
    "pt": "o os as uma de que por para com do da é como mas você não porque quando isso este em"
    " seu pode",
    "nl": "de het een en van is niet dat je ik wat waarom maar ook met voor zijn hoe als kun",
    "pl": "nie się jest że na czy jak ale dlaczego co to w z",
    "tr": "bir ve bu için ne neden ama değil mi de da çok",
    "vi": "là của và không có một những được cho tôi bạn",
    "id": "yang dan di itu dengan untuk tidak ini dari apa mengapa bagaimana kamu",
    "sv": "och att det är som en på inte jag du varför hur vad för",
}
ENGLISH = w.listed(
    "the a an and or but of to in on at for with is are was were be do does did have has it you i"
    " we they he she that this what why how not if so my your can could would should will there"
    " as by from about me"
)
# Words of the lists above that are English words, too, or letters.
_ALSO_ENGLISH = ENGLISH | w.listed(
    "van den con per com dan met som pour mas ale co di ten con tu il sono hai do da de du man hat"
    " die war no me it y o e w z em des dem auf la el los las le un e os pan al ma mi i ve bu bir"
)
# English words that hardly stand in another language: "a", "to", "was" and "on" are no evidence.
_EVIDENCE = w.listed(
    "the and of with are were does did had you they she that this these those what why how your"
    " could would should there from about when where who whose which than then their them our some"
    " any more because between both into been being think know just only now yes please right"
    " wrong very much many each every other another first two three out"
)
_WEAK = ENGLISH | w.PREPOSITION | w.PRONOUN | w.PLAIN_AUXILIARY
# Verbs and markers that are words elsewhere too.
_SHARED = w.listed(
    "let dig come bind die hang sing fly form start plan test label note post transfer line map mix"
    " no or so but also like fine plus alternatively still even ever ah hi"
)
_ENGLISH_ENDINGS = ("ing", "ed", "ly", "ght")
_LONG, _LONG_PLAIN = 8, 6
_SUFFIXED = 6
_LATIN = w.listed("et est non quid cum sed ut quod qui quae te tibi mihi hac ex ab enim tuo ante")
_VOWELS = ("a", "i", "o", "u")
# Scripts that English is never written in; letters beyond these count as Latin.
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
    opened = text[:_SAMPLE]
    if _other_words(words, spanish="\u00bf" in opened or "\u00a1" in opened):
        return True
    return _outweighs(sample, words) or _without_english(words)


def _outweighs(sample: str, words: Sequence[str]) -> bool:
    """Everyday words, elisions, accents and endings of another language against English words.

    A word in lower case counts, and one with a capital before one in lower case or alone.
    """
    foreign = len(f.ELISION.findall(sample))
    english = 0
    for at, word in enumerate(words):
        if word.islower():
            foreign += _tells_foreign(word)
            english += _tells_english(word)
        elif word.istitle():
            alone = len(words) == 1
            opens = alone or any(map(str.islower, words[at + 1 : at + 2]))
            foreign += opens and word.lower() in f.AT_THE_START
            english += _tells_english(word.lower())
        elif word == "I":
            english += 1
    return foreign > 2 * english


def _tells_foreign(word: str) -> bool:
    if word in f.EVERYDAY or (len(word) > _SUFFIXED and word.endswith(f.ENDINGS)):
        return True
    return not word.isascii() and bool(f.ACCENT.search(word)) and word not in f.BORROWED


def _tells_english(word: str) -> bool:
    if word in f.NEUTRAL or word in f.EVERYDAY:
        return False
    stem = word.removesuffix("s")
    return word in _EVERY_ENGLISH or stem in w.VERB or word.endswith(_ENGLISH_ENDINGS)


def _without_english(words: Sequence[str]) -> bool:
    """Names are no evidence of a language, so that only words in lower case count against it."""
    plain = [word for word in words if len(word) > 1 and word.islower() and word != w.HOLE]
    if len(words) < _LONG or len(plain) < _LONG_PLAIN:
        return False
    english = sum(map(_is_english, words))
    shared = sum(word in _WEAK for word in plain)
    return english * 10 < len(plain) and shared * 4 < len(plain) and _looks_foreign(plain)


def _is_english(word: str) -> bool:
    return word == "I" or word.lower() in _ENGLISH_WORD or word.endswith(_ENGLISH_ENDINGS)


def _looks_foreign(plain: Sequence[str]) -> bool:
    """Lists of English nouns have no function words either: but not such letters or endings."""
    known = sum(word in _ANY_FOREIGN or not word.isascii() for word in plain)
    voiced = sum(word.endswith(_VOWELS) for word in plain)
    return known * 8 >= len(plain) or voiced * 3 >= len(plain)


@cache
def _other_script_pattern() -> re.Pattern[str]:
    """Compiled at the first letter beyond ASCII: most runs never meet one."""
    return re.compile(_OTHER_SCRIPT)


@lru_cache(maxsize=256)
def is_briefly_foreign(text: str) -> bool:
    """For a text too short for `is_foreign`: small words of one other language outweigh English.

    The first letter of a sentence is no sign of a name; a word that begins so counts with another.
    """
    words = _WORD.findall(text[:_SAMPLE])
    plain = [word.casefold() for word in words[:1]] + words[1:]
    if _TELLING.isdisjoint(words) and _TELLING.isdisjoint(plain):
        return False
    folded = [word.casefold() for word in words]
    for own, only_english in _APART:
        hits = sum(word in own for word in plain)
        inside = sum(word in own for word in words)
        english = sum(word in only_english for word in folded)
        if (inside and not english) or hits >= _PLAIN_HITS > english:
            return True
    return False


def _other_script(words: Sequence[str]) -> bool:
    """Single letters of an alphabet are symbols, as in a formula; single ideographs are words."""
    letters = sum(len(word) for word in words)
    other = sum(
        len(_other_script_pattern().findall(word))
        for word in words
        if len(word) > 1 or word >= "\u0900"
    )
    return other > letters / 2


def _other_words(words: Sequence[str], *, spanish: bool) -> bool:
    """Different function words count, in lower case only: "Los Angeles" is an English name."""
    english = sum(word.lower() in ENGLISH for word in words)
    if spanish and not english:
        return True
    if len(words) < _MIN_WORDS:
        return False
    kinds = set(words)
    known = max(_FUNCTION_WORDS, key=lambda language: len(language & kinds))
    hits = sum(word in known for word in words)
    return len(known & kinds) >= _MIN_HITS and hits > 2 * english and hits * 6 >= len(words)


_ENGLISH_WORD = (_EVIDENCE | w.VERB | w.LEAD) - _SHARED
_FUNCTION_WORDS = tuple(w.listed(text) for text in _FOREIGN.values())
# Of each language: the words that are not English, too, and the English ones that are not its own.
_APART = tuple((known - _ALSO_ENGLISH, ENGLISH - known) for known in _FUNCTION_WORDS)
_TELLING = frozenset().union(*(own for own, _ in _APART))
_EVERY_ENGLISH = (
    ENGLISH | _EVIDENCE | w.VERB | w.LEAD | w.PRONOUN | w.PREPOSITION | w.PLAIN_AUXILIARY
)
_ANY_FOREIGN = f.EVERYDAY.union(_LATIN, *_FUNCTION_WORDS) - _ENGLISH_WORD - _WEAK - {"ve"}
