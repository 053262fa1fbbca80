"""What a tutor asks, as far as the form of its words tells: openly, for a yes or no, or nothing."""

import re
from typing import Literal

from msgspec import Struct

Kind = Literal["open", "polar", "none"]

# A point within a number or a name ends nothing; the full stops of unspaced scripts always do.
_SEGMENT = re.compile(
    r"[^\n]+?(?:[.!?\u2026\u061f]+[\"'\u201d\u2019)*\]]*(?=\s|$)|[\u3002\uff1f\uff01]+|(?=\n)|$)"
)
# Also full-width, Arabic, Greek, Armenian, and the ending of a Japanese question.
_MARK = re.compile("[?\uff1f\u061f\u037e\u055e]|\u304b\u3002")
# Asks without a question mark.
_INVITES = re.compile(
    r"\W*(?:(?:so|okay|ok|and|but|please|now|well|then|good)\W+)*"
    r"(?:tell me|describe|explain|say more|say a bit more|go on|give me|walk me|take me through"
    r"|help me (?:understand|see)|show me|compare|I wonder (?:what|which|who|where|when|why|how)"
    r"|I'm (?:curious|wondering) (?:about )?(?:what|which|who|where|when|why|how)"
    r"|I(?:'d| would) (?:like|love) to (?:hear|know|understand))\b",
    re.IGNORECASE,
)
_WH = re.compile(
    r"\b(?:what|which|who|whom|whose|where|when|why|how)(?=\b|'|\u2019)", re.IGNORECASE
)
_AUXILIARY = re.compile(
    r"\W*(?:(?:so|and|but|or|then|now|well|okay|ok|if so|in that case)\W+)*"
    r"(?:is|are|was|were|am|do|does|did|have|has|had|can|could|will|would|shall|should|may|might"
    r"|must|isn't|aren't|wasn't|don't|doesn't|didn't|haven't|can't|couldn't|won't|wouldn't"
    r"|shouldn't)\b",
    re.IGNORECASE,
)
# "Can you tell me why" asks why, "is it, and how" asks how, and "is it that on which you rely" may
# do so, too; "is it hot when it rains" asks for a yes or no.
_TELLS = re.compile(
    r"(?:\b(?:and|but|or|so|then|not|yes|no|about|for|in|of|to|with|from|at|on|by|under)"
    r"|[,;:\u2013\u2014-])\W*$"
    r"|\b(?:tell|say|said|know|explain|describe|show|think of|think about|name|see|share|remember"
    r"|imagine|guess|wonder|understand|find|check|test|decide|clear|sure|matter)"
    r"\W+(?:\w+\W+){0,3}$",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    r"\b(?:can|could|would|will) you\W+(?:\w+\W+)?(?:tell|say|describe|explain|give|show|think of"
    r"|name|share|walk|put|imagine|help|compare|elaborate|expand|recall|find)\b"
    r"|\b(?:any|an) (?:examples?|other|instances?)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(r"\bor\b(?! (?:not|so|less|no)\b)|\boder\b|\bo\b|\u8fd8\u662f", re.IGNORECASE)
_BACK = re.compile(r"\b(?:that|this|it|those|so)\b", re.IGNORECASE)
_BRIEF = 4  # words: "Why do you think?"
# Where it is known how questions are asked; elsewhere every question counts as open, to be safe.
_WORDS = {
    "en": _WH,
    "es": re.compile(
        r"\b(?:qu\u00e9|cu\u00e1l(?:es)?|qui\u00e9n(?:es)?|c\u00f3mo|a?d\u00f3nde|cu\u00e1ndo"
        r"|cu\u00e1nt[oa]s?)\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:was|wer|wen|wem|wessen|wie|wo|wann|warum|weshalb|wieso|weswegen|welche[rsmn]?"
        r"|wo(?:her|hin|mit|durch|f\u00fcr|rin|ran|rauf|raus|r\u00fcber|rum|von|vor|zu|bei|nach"
        r"|gegen))\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        "[\u4ec0\u751a]\u4e48|\u4ec0\u9ebc|[\u600e\u54ea\u8c01\u8ab0\u51e0]|\u591a\u5c11"
        "|[\u5982\u4e3a]\u4f55"
    ),
    "ja": re.compile(
        "[\u4f55\u8ab0]|\u306a[\u306b\u3093\u305c]|\u3069[\u3046\u3053\u308c\u306e\u3093]"
        "|\u3060\u308c|\u3044[\u3064\u304f]"
    ),
}


class Asked(Struct, frozen=True):
    """What is asked, and what is said besides."""

    kind: Kind
    questions: str
    rest: str


def asked_by(tutor: str, language: str = "en") -> Asked:
    """The tutor's words, read for questions. One open question among others makes them open."""
    parts = _SEGMENT.findall(tutor)
    asks = [bool(_MARK.search(part) or _INVITES.match(part)) for part in parts]
    questions = [part for part, is_one in zip(parts, asks, strict=True) if is_one]
    rest = " ".join(part.strip() for part, is_one in zip(parts, asks, strict=True) if not is_one)
    if not questions:
        return Asked("none", "", rest)
    is_open = any(_is_open(part, language) for part in questions)
    return Asked("open" if is_open else "polar", " ".join(questions), rest)


def _is_open(question: str, language: str) -> bool:
    """In doubt it is: an honest answer fits both, "sort of" only a question for yes or no."""
    words = _WORDS.get(language.partition("-")[0].casefold())
    if words is None or not _MARK.search(question):
        return True
    if _CHOICE.search(question) or _REQUESTS.search(question) or _INVITES.match(question):
        return True
    if words is not _WH and words.search(question):
        return True
    found = [*_WH.finditer(question)]
    if not _AUXILIARY.match(question):
        return bool(found)
    return any(_TELLS.search(question, 0, one.start()) for one in found)


def refers_to(last: str, tutor: str, asked: Asked) -> bool:
    """Whether a question is about what was just said: it quotes it, says "that", or is very short.

    Such a question may be about anything else, and is understood by what went before.
    """
    if len(asked.questions.split()) <= _BRIEF or _BACK.search(asked.questions):
        return True
    words, heard = last.casefold().split(), tutor.casefold()
    runs = zip(words, words[1:], words[2:], strict=False)
    return any(" ".join(run).strip(".,;:!") in heard for run in runs)
