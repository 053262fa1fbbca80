"""Words made comparable: the same sentence, however it is written."""

import re

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
# Han, kana, Thai, Lao, Khmer, Burmese.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
QUESTION_MARK = re.compile("[?\uff1f\u061f\u037e\u055e]")  # full-width, Arabic, Greek, Armenian
_WORD = re.compile(r"[\w']+")


def is_unspaced(text: str) -> bool:
    """Whether it is in a script without blanks between words."""
    return bool(_UNSPACED.search(text))


def n_words(text: str) -> int:
    """Words of a text; two characters count as one where there are no blanks between words."""
    unspaced = len(_UNSPACED.findall(text))
    return len(_UNSPACED.sub(" ", text).split()) + (unspaced + 1) // 2


def plain(text: str) -> str:
    """Comparable words: contracted forms written out, no marks, no capitals."""
    words = " ".join(_WORD.findall(normal(text).replace("\u2019", "'")))
    for contracted, full in _CONTRACTED.items():
        words = words.replace(contracted, full)
    return words
