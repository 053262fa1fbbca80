"""Where a student stands by its own words: what it began with, or the last step away from that."""

import re
from collections.abc import Sequence

_SENTENCE = re.compile(r"[^.!?\u2026\uff1f\u3002\n]+[.!?\u2026\uff1f\u3002]*")
# To doubt, to take back, to see something new: said of oneself, and not denied.
_MOVES = re.compile(
    r"\b(?:I was (?:\w+ )?(?:wrong|mistaken)|I (?:had|got) (?:it|that) wrong"
    r"|I(?:'m| am) (?:not (?:so|as|that) (?:sure|certain)|less (?:sure|certain)|no longer)"
    r"|I(?:'ve| have)? changed my mind|I (?:do not|don't) think (?:that|so|it) any ?more"
    r"|(?:now|so) I (?:think|see|notice|realise|realize|wonder)"
    r"|I (?:can )?(?:see|notice|realise|realize) (?:now )?that|that (?:does not|doesn't) fit"
    r"|maybe (?:it|that|I)(?:'s|'m| is| was| am)? (?:not|n't|only|wrong)"
    r"|I never (?:saw|looked at|thought of|put) (?:it|that|those)"
    r"|then (?:it|that) (?:can't|cannot|isn't|wasn't|must))\b",
    re.IGNORECASE,
)
_LONGEST = 240


def last_step(said: Sequence[str]) -> str | None:
    """The last sentence by which the student moved, shortened; `None` if it has not, or if that
    cannot be told in its language.
    """
    for words in reversed(said):
        for sentence in reversed(_SENTENCE.findall(words.replace("\u2019", "'"))):
            if _MOVES.search(sentence):
                return " ".join(sentence.split())[:_LONGEST]
    return None
