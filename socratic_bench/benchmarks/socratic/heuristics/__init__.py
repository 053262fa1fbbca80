"""Reads a turn without a model: does it ask, is it open, does it advise or lead?

The language of a text is checked, then rules are applied to each sentence.
"""

from itertools import pairwise

from msgspec import Struct

from .advice import ADVISING, NOT_ADVISING
from .grammar import any_holds, sentences
from .prose import blocks, is_foreign
from .questions import ASKING, LEADING, NOT_ASKING, OPENING, only_opens

# Takes about a second. No reply to a student is so long; a longer text is not read in part.
LONGEST = 200_000


class Heuristics(Struct, frozen=True):
    """The answers of the rules; None: the text is in a language that they do not know."""

    has_question: bool | None
    question_count: int | None
    open_ended: bool | None
    has_advice: bool | None
    is_leading: bool | None


UNKNOWN = Heuristics(None, None, None, None, None)


def analyse(text: str) -> Heuristics:
    """The heuristics of a text's words; all `None` in other languages and beyond `LONGEST`."""
    if len(text) > LONGEST:
        return UNKNOWN
    prose = list(blocks(text))
    if is_foreign(text, prose):
        return UNKNOWN
    every = [sentence for block in prose for sentence in sentences(block)]
    asking = [
        any_holds(ASKING, sentence) and not any_holds(NOT_ASKING, sentence) for sentence in every
    ]
    questions = [sentence for sentence, asks in zip(every, asking, strict=True) if asks]
    # An opener ("Say more.") and the question that it opens are one question.
    pairs = zip(every, pairwise(asking), strict=False)
    opened = sum(all(both_ask) and only_opens(sentence) for sentence, both_ask in pairs)
    return Heuristics(
        has_question=bool(questions),
        question_count=len(questions) - opened,
        open_ended=any(any_holds(OPENING, sentence) for sentence in questions),
        has_advice=any(
            any_holds(ADVISING, sentence) and not any_holds(NOT_ADVISING, sentence)
            for sentence in every
        ),
        is_leading=any(any_holds(LEADING, sentence) for sentence in questions),
    )
