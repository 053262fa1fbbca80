"""From a text to its heuristics: language, prose, sentences, and four sets of rules."""

from .advice import advises
from .grammar import sentences
from .language import is_foreign
from .leading import leads
from .openness import is_open
from .prose import blocks
from .questions import asks
from .types import UNKNOWN, Heuristics


def analyse(text: str) -> Heuristics:
    """Judges the words alone, without the dialogue around them; the same text, the same answer."""
    prose = list(blocks(text))
    if is_foreign(text, prose):
        return UNKNOWN
    every = [sentence for block in prose for sentence in sentences(block)]
    questions = [sentence for sentence in every if asks(sentence)]
    return Heuristics(
        has_question=bool(questions),
        question_count=len(questions),
        open_ended=any(is_open(sentence) for sentence in questions),
        has_advice=any(advises(sentence) for sentence in every),
        is_leading=any(leads(sentence) for sentence in questions),
    )
