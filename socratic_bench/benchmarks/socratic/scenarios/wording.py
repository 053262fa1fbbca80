"""Words made comparable: the same sentence, however it is written."""

import re
from functools import cache

from socratic_bench.benchmarks.socratic.scenarios.scenario import normal

# "'s" may be "has" or a genitive, too: written out alike on both sides, that does no harm.
_CONTRACTED = {
    "n't": " not",
    "'s": " is",
    "'re": " are",
    "'m": " am",
    "'ve": " have",
    "'ll": " will",
    "'d": " would",
}
QUESTION_MARKS = frozenset("?\uff1f\u061f\u037e\u055e")  # full-width, Arabic, Greek, Armenian
_WORD = re.compile(r"[\w']+")


@cache
def _unspaced() -> re.Pattern[str]:
    """Han, kana, Thai, Lao, Khmer, Burmese; compiled when needed, since that takes a while."""
    return re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def is_unspaced(text: str) -> bool:
    """Whether it is in a script without blanks between words."""
    return not text.isascii() and bool(_unspaced().search(text))


def n_words(text: str) -> int:
    """Words of a text; two characters count as one where there are no blanks between words."""
    unspaced = len(_unspaced().findall(text))
    return len(_unspaced().sub(" ", text).split()) + (unspaced + 1) // 2


def plain(text: str) -> str:
    """Comparable words: contracted forms written out, no marks, no capitals."""
    words = " ".join(_WORD.findall(normal(text).replace("\u2019", "'")))
    for contracted, full in _CONTRACTED.items():
        words = words.replace(contracted, full)
    return words
