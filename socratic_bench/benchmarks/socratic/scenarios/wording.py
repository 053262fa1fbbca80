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
_WORD = re.compile(r"[\w']+")


def plain(text: str) -> str:
    """Comparable words: contracted forms written out, no marks, no capitals."""
    words = " ".join(_WORD.findall(normal(text).replace("\u2019", "'")))
    for contracted, full in _CONTRACTED.items():
        words = words.replace(contracted, full)
    return words
