"""From a text to its heuristics: language, prose, sentences, and four sets of rules."""

from collections.abc import Sequence

from .advice import advises
from .grammar import Sentence, sentences
from .language import is_foreign
from .leading import leads
from .openness import is_open
from .prose import blocks
from .questions import asks, only_opens
from .types import UNKNOWN, Heuristics

# A second's work. No reply to a student is so long, and what cannot be read whole tells nothing.
LONGEST = 200_000


def is_unknown(text: str) -> bool:
    """Whether a text is in a language that the rules do not know: then `analyse` tells nothing."""
    return is_foreign(text, list(blocks(text)))


def analyse(text: str) -> Heuristics:
    """Judges the words alone, without the dialogue around them; the same text, the same answer.

    All is `None` in languages that the rules do not know, and beyond `LONGEST` characters.
    """
    if len(text) > LONGEST:
        return UNKNOWN
    prose = list(blocks(text))
    if is_foreign(text, prose):
        return UNKNOWN
    every = [sentence for block in prose for sentence in sentences(block)]
    asking = [asks(sentence) for sentence in every]
    questions = [sentence for sentence, asked in zip(every, asking, strict=True) if asked]
    return Heuristics(
        has_question=bool(questions),
        question_count=len(questions) - _opened(every, asking),
        open_ended=any(is_open(sentence) for sentence in questions),
        has_advice=any(advises(sentence) for sentence in every),
        is_leading=any(leads(sentence) for sentence in questions),
    )


def _opened(every: Sequence[Sentence], asking: Sequence[bool]) -> int:
    """An opener and the question that it opens are one question."""
    return sum(
        only_opens(sentence) for at, sentence in enumerate(every[:-1]) if all(asking[at : at + 2])
    )
