"""The words by which a student teaches: explanations announced, advice to the other."""

import re

from socratic_bench.benchmarks.socratic.heuristics import analyse
from socratic_bench.benchmarks.socratic.heuristics.advice import commands
from socratic_bench.benchmarks.socratic.heuristics.grammar import sentences
from socratic_bench.benchmarks.socratic.heuristics.language import is_briefly_foreign
from socratic_bench.benchmarks.socratic.heuristics.prose import blocks
from socratic_bench.benchmarks.socratic.student.role import SENTENCE, tells_of_self

_ANNOUNCES = re.compile(
    r"\blet(?:'s| us| me) (?:explain|break (?:it|this|that) down|walk you through|summari[sz]e"
    r"|look at (?:it|this) step by step)\b"
    r"|\bthe (?:correct|right) (?:answer|way|approach|solution) is\b"
    r"|\bhere(?:'s| is) (?:how|what|why|the)\b|\bin summary\b|\bto (?:sum up|summari[sz]e)\b"
    r"|\bstep (?:1|one)\b|\bfirst(?:ly)?, (?:you|list|define|consider|let)\b"
    r"|^\s*(?:remember|consider|try|note)\b[^.?!]*\b(?:that|whether|to|an?)\b",
    re.IGNORECASE | re.MULTILINE,
)
_OFFERS_A_WAY = re.compile(
    r"\bhere(?:'s| is) how (?:I(?:'d| would)|you|to)\b"
    r"|\ba good way to (?:understand|think|start|begin|learn)\b",
    re.IGNORECASE,
)
# The speaker stands in these, and speaks of the other.
_ADVISER = re.compile(
    r"\bI(?:'d| would)? (?:\w+ )?(?:recommend|suggest|advise)(?= (?:that )?you\b| \w+ing\b)"
    r"|\bmy (?:advice|suggestion|recommendation) (?:is|would be)\b|\bif I were you\b",
    re.IGNORECASE,
)
_SUGGESTS = re.compile(
    r"\bhave you (?:ever )?(?:tried|considered|thought (?:about|of)) \w+ing\b", re.IGNORECASE
)
# Further in, "you" is mostly anybody.
_DUTY = re.compile(
    r"\W*(?:\w+,? ){0,1}you (?:should|need to|ought to|could|might want to)\b", re.IGNORECASE
)
# What a student says to gain time, or with everybody in mind, and whole orders are longer.
_NO_ORDER = re.compile(
    r"\W*(?:\w+\W+)?(?:let|wait|stop|look|come|say|please|hurry|see|sorry)\b"
    r"|\W*\w+(?:\W+\w+)?\W*$|[^ ]+,",
    re.IGNORECASE,
)
# A rule for anybody, and what happens if anybody does so: things to say in a talk about them.
_NORM = re.compile(
    r"\W*(?:\w+,? )?you (?:should|must)(?:n't| not| never| always| be)\b|\W*(?:always|never|be)\b"
    r"|[^;]*[^,; ],? and (?:then )?(?:it|they|he|she|you|that|the \w+|nothing|nobody)(?:'ll)? \w+",
    re.IGNORECASE,
)
_GIVES_A_MEANING = re.compile(
    r"\bthat(?:'s| is| would be) (?:what|how|all|being|an example)\b|\bfor (?:example|instance)\b"
    r"|\bmeans?\b",
    re.IGNORECASE,
)
_ANYBODY = re.compile(
    r"\byou(?: have|'ve got|'d have) to\b|\bif you \w+,|\b(?:at|in|on|for) any\b", re.IGNORECASE
)
_ASKS_THE_TUTOR = re.compile(
    r"\byou \w+(?: to)? (?:\w+ ){0,2}?(?:tell|say|give|explain|help|answer|stop|know|see|understand"
    r"|show|come|be able)\b"
    r"|\b(?:tell|give|show|help|let|ask|trust|believe|teach|leave|excuse|at|to|with|for|on) me\b",
    re.IGNORECASE,
)
_COMMANDS = 2
_INTERJECTION_WORDS = 2
_ITEMS = 3
_LECTURE_WORDS, _POINTED_WORDS, _BRIEF_WORDS = 36, 20, 14
_RULES_WORDS = 24
_LONG, _LEARNED = 6, 0.5  # letters of a word, and beyond them for each word
_TO_THE_OTHER = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)


def announces(text: str) -> bool:
    """Begins to explain, and not to explain itself."""
    return any(
        bool(_OFFERS_A_WAY.search(one)) or (_ANNOUNCES.search(one) and not tells_of_self([one]))
        for one in SENTENCE.findall(text)
    )


_ITEM = re.compile(r"^\s*(?:\d+[.)]|[-*\u2022]|\*\*)\s*\S", re.MULTILINE)
_EXPOUNDS = re.compile(
    r"\bit is important to (?:understand|note|remember|see)\b|\bthis is (?:called|known as)\b"
    r"|\bthere are (?:two|three|four|several) (?:\w+ )?(?:factors|aspects|points|reasons|parts"
    r"|kinds|types|steps|lines|ways)\b|\beconomists call\b|\b(?:secondly|thirdly|as a result)\b"
    r"|\bis (?:defined as|based on the|the inverse)\b|\b(?:therefore|hence|thus|in conclusion)\b",
    re.IGNORECASE,
)
_WE = r"\bwe (?!use|call|say|speak|distinguish|know|have|need|can|must|find|get|see|write)"
_SELF = re.compile(rf"\b(?:I|me|my|mine|myself|us|our)\b|{_WE}", re.IGNORECASE)
# What was, or who was there: a story, and no rule.
_STORY = re.compile(
    r"\b(?:he|she|him|her|his|hers|mum|mom|dad|grandma|grandmother|mrs|mr|was|were|had|did|said"
    r"|came|went|saw|got|there)\b",
    re.IGNORECASE,
)
_POINT = re.compile(r"(?<=\d)\.(?=\d)")


def lectures(text: str) -> bool:
    """Expounds the matter at length, or in points, and speaks of itself next to nowhere."""
    sentences = SENTENCE.findall(_POINT.sub("", text))
    told = [one for one in sentences if len(one.split()) > _INTERJECTION_WORDS]
    of_self = sum(bool(_SELF.search(one)) for one in told)
    items = len(_ITEM.findall(text))
    n_words = len(text.split())
    if items >= _ITEMS and of_self <= items // 3:
        return True
    if of_self > len(told) // 4:
        return False
    if n_words >= _LECTURE_WORDS:
        return True
    # Sentence after sentence of what is always so, or in the words of a book.
    rules = [one for one in told if not _STORY.search(one) and len(one.split()) >= _ITEMS]
    few = _BRIEF_WORDS if len(rules) > _ITEMS else _RULES_WORDS
    if len(rules) >= _ITEMS and n_words >= few:
        return True
    letters = sum(max(0, len(word) - _LONG) for word in text.split())
    is_learned = letters >= _LEARNED * n_words or bool(_EXPOUNDS.search(text))
    return n_words >= _POINTED_WORDS and len(told) >= _ITEMS and is_learned


def advises(text: str) -> bool:
    """Tells the other what to do, in more sentences than tell of the speaker.

    One command that is not about the other may be a rule that the speaker recites.
    """
    if is_briefly_foreign(text) or _GIVES_A_MEANING.search(text):
        return False
    every = [_ADVISER.sub("you should", one) for one in SENTENCE.findall(text)]
    advice = [one for one in every if not tells_of_self([one]) and _is_advice(one)]
    if len(advice) < _COMMANDS and not any(map(_TO_THE_OTHER.search, advice)):
        return False
    return len(advice) > tells_of_self(every)


def _is_advice(sentence: str) -> bool:
    if _ASKS_THE_TUTOR.search(sentence) or _NORM.match(sentence):
        return False
    if _DUTY.match(sentence) or _SUGGESTS.search(sentence):
        return True
    if _TO_THE_OTHER.search(sentence) and not _ANYBODY.search(sentence):
        return bool(analyse(sentence).has_advice)
    parsed = (one for block in blocks(sentence) for one in sentences(block))
    return not _NO_ORDER.match(sentence) and any(map(commands, parsed))
