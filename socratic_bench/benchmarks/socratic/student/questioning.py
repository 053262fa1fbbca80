"""Whether a student asks instead of answering: questions that are neither answers nor for help."""

import re

from socratic_bench.benchmarks.socratic.student.matter import content
from socratic_bench.benchmarks.socratic.student.role import QUESTION_MARK, SENTENCE, tells_of_self

_MOST_ASKED = 2
_OF_THE_TUTOR = re.compile(r"\byou", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_FEW_WORDS = 4
_I = re.compile(r"\b(?:I|my)\b")
# Speaks of the other, or of what it said.
_OF_WHAT_WAS_SAID = re.compile(
    r"\byou\b|^\W*(?:\w+\W+)?(?:that(?:'s| is)|what an?|how)\b", re.IGNORECASE
)
_ASKS_THE_TUTOR = re.compile(
    r"\W*(?:(?:and|but|so|well|okay|then)\W+)*(?:what|why|how|who|where|when|which)"
    r" (?:do|does|did|would|could|should|have|are|were|can|will) (?:\w+ )?you\b",
    re.IGNORECASE,
)
# Asks what a word means, which case is meant, or for an example: a student may.
_CLARIFIES = re.compile(
    r"\bwhat (?:do|did|would) you mean\b|\b(?:do|did) you mean\b|\byou mean\b"
    r"|\bwhat (?:does|do|did) (?:that|this|it|[\"'\u201c]?\w+[\"'\u201d]?(?: \w+)?) mean\b"
    r"|\bdoes (?:that|it) mean\b|\bwhat(?:'s| is) the difference\b|\bwhat(?:'s| is| are) (?:an? "
    r"|the )?[\"'\u201c]?\w+[\"'\u201d]?(?: \w+)?\?"
    r"|\bmeans? [\w, ]{0,30}\b(?:yes|right|no)\?|\b(?:such as|like) what\b|\b\w+ of what\?"
    r"|\bwhich(?: \w+)?\?|\bwhich (?:one|of (?:them|these|those)|case|time|part|kind|day|word)\b"
    r"|\bwhat (?:kind|sort) of\b"
    r"|\b(?:can|could|would) you (?:please )?(?:give|show|tell|say|name) (?:me )?(?:one|another)\b"
    r"|\b(?:can|could|would) you (?:please )?(?:give|show|tell|say|name) (?:me )?(?:an?|one"
    r"|another|some) (?:\w+ )?(?:example|instance|case)s?\b|\bfor example what\b"
    r"|^(?!\W*(?:what|why|how|who|where|when)\b)[^?]{1,80} or [^?]{1,60}\?"
    r"|\bI (?:don't|do not) know (?:that|this|the) word\b"
    r"|\b(?:was|wie) (?:meinst|meinen|hei(?:\u00df|ss)t|bedeutet|ist)\b|\bwelche[mnrs]?\b"
    r"|\bqu\u00e9 (?:quiere|quieres|significa|es|llama|llamas|se refiere|te refieres)\b"
    r"|\bcu\u00e1l(?:es)?\b"
    r"|\u3069\u3046\u3044\u3046\u610f\u5473|\u3063\u3066\u4f55|\u3068\u306f|\u3069\u306e"
    r"|\u3069\u3061\u3089",
    re.IGNORECASE,
)
_IS_ASKED = re.compile(
    r"^\W*(?:(?:and|but|so|well|or|okay|oh|hm+|then|now|yes|no|maybe|good|right)\W+)*"
    r"(?:what|which|who|whom|whose|where|when|why|how|is|are|was|were|do|does|did|have|has|can"
    r"|could|would|will|should|shall|may|might|must|\w+n't)\b|\byou|[^\x00-\x7f]|,[^,]*\b(?:who"
    r"|what|why|how|where|when)\b",
    re.IGNORECASE,
)
_GUESSES = re.compile(
    r"\W*(?:\w+\W+)?(?:is|are|was|were) (?:it|that|this|he|she|they|there)\b(?!.*\byou\b)",
    re.IGNORECASE,
)
# To lead, or to grade the other, is not to ask what is meant.
_LEADS = re.compile(
    r"\bwe (?:could|might|can|should)\b|\b(?:could|can|might|shall|should) we\b|\blet(?:'s| us)\b"
    r"|\b(?:for|to) you\b|\bmakes? you\b|^\W*(?:(?:oh|ah|okay|very|yes)\W+)*(?:good|great"
    r"|excellent|well done|nice|exactly)\b"
    r"|\byou(?:'re| are) (?:\w+ )?(?:near|close|getting|almost|nearly|on the)\b|\bwe(?:'re"
    r"| are) getting\b|(?<!you )\btell me\b|\bthink about\b|\b(?:imagine|consider|picture|suppose"
    r"|reflect)\b|\btake a (?:moment|minute|second|look)\b|\btry again\b"
    r"|^\W*so you (?:say|mean|think|feel|believe|are)\b",
    re.IGNORECASE,
)


def asks_back(text: str, heard: str) -> bool:
    """Asks, and says next to nothing besides, or nothing of itself.

    To take up a word that was `heard`, to ask what is meant, or for an example is none.
    """
    parts = SENTENCE.findall(text)
    asked = [one for one in parts if QUESTION_MARK.search(one) or _ASKS_THE_TUTOR.match(one)]
    asked_for = [one for one in asked if not _is_a_guess(one, heard)]
    if not any(map(_IS_ASKED.search, asked_for)):  # an answer in doubt: "the list is empty?"
        return False
    told = " ".join(one for one in parts if one not in asked)
    leads = bool(_LEADS.search(text))
    if not leads and (
        (len(asked) <= _MOST_ASKED and _CLARIFIES.search(text)) or _echoes(text, heard)
    ):
        return False
    asks_you = any(map(_OF_THE_TUTOR.search, asked))
    if len(_WORD.findall(told)) < _FEW_WORDS and (asks_you or not content(told)):
        return True
    of_self = tells_of_self([*SENTENCE.findall(told)]) or any(map(_I.search, asked))
    to_the_other = asks_you and _OF_WHAT_WAS_SAID.search(told)
    return not of_self and bool(leads or to_the_other or not content(told))


def _is_a_guess(question: str, heard: str) -> bool:
    """Says something new in doubt: "is it because they had theirs?"."""
    n_new = len(content(question) - content(heard))
    return bool(_GUESSES.match(question)) and (n_new > 1 or " because " in question)


def _echoes(text: str, heard: str) -> bool:
    """Takes up the tutor's word, as who does not know what is meant by it."""
    if _OF_THE_TUTOR.search(text):
        return False
    first = content(" ".join(text.split()[:2]))
    return bool(first & content(heard))
