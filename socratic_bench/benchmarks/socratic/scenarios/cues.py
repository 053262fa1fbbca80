"""The words of a question that draw something out of a student."""

import re
from functools import lru_cache

from socratic_bench.benchmarks.socratic.scenarios.wording import is_unspaced

# Questions that fit any talk. A cue of these draws out less surely than one of the matter.
# fmt: off
GENERAL = frozenset((
    "why", "how", "what if", "what would", "what makes", "what happens", "what else", "what about",
    "how do you know", "how can you tell", "how sure", "example*", "for instance", "a case",
    "mean", "mean by", "other side", "someone else", "somebody else", "disagree*", "exception*",
    "always", "evidence", "reason*", "tell me", "suppose", "imagine", "if", "think", "thought",
    "believe", "change your mind", "convince*", "feel", "explain*", "compare*", "differ*",
    "matter*", "important", "follow*", "true", "sure", "know",
))
# fmt: on
_PART = re.compile(r"[^\W_]+(?:['-][^\W_]+)*\*?")
_GAP = r"\W+"


def can_match(cue: str) -> bool:
    """Whether it is made of words with blanks between them, each with a `*` behind it or not."""
    return is_unspaced(cue) or _words(cue) == straight(cue).casefold().split()


def is_general(cue: str) -> bool:
    return straight(cue).casefold() in GENERAL


def matches(cue: str, question: str) -> bool:
    """Whether the words of the cue stand in the question one after the other."""
    return bool(_pattern(cue).search(straight(question)))


def straight(text: str) -> str:
    return text.replace("\u2019", "'")


def _words(cue: str) -> list[str]:
    return _PART.findall(straight(cue).casefold())


@lru_cache(maxsize=8192)
def _pattern(cue: str) -> re.Pattern[str]:
    if is_unspaced(cue):
        return re.compile(re.escape(cue.strip("* ")), re.IGNORECASE)
    words = [re.escape(word.rstrip("*")) + r"\w*" * word.endswith("*") for word in _words(cue)]
    return re.compile(rf"(?<!\w){_GAP.join(words)}(?!\w)", re.IGNORECASE)
