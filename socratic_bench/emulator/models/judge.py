"""The simulated judge: reads a tutor's reply with a few rules of its own and scores it by the rubric.

It is told nothing but the text, and shares no code with the tutors, whose plan it is checked against.
"""

import re
from dataclasses import dataclass

_QUOTED = re.compile(r"[\"“][^\"“”\n]{1,90}[\"”]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?\n]*[.!?]+[\"”')\]*_]*|[^.!?\n]+")

_OPEN = re.compile(r"\b(?:what|which|why|how|whose|who|where|when|in what|on what|from whose)\b")
_WHY_HOW = re.compile(r"\b(?:why|how|what makes|what do you have in mind|what did you)\b")
_FACT = re.compile(
    r"^(?:and |so )?(?:how (?:long|often|many|much time|old|far)|when (?:did|was|will|is)|where (?:did|do|is)|who (?:else )?(?:knows|is|was))\b"
)
_YES_NO = re.compile(
    r"^(?:and |so |but )?(?:do|does|did|is|are|was|were|have|has|had|can|could|will|would|should|may|might|am"
    r"|isn't|aren't|don't|doesn't|didn't|wouldn't|couldn't|shouldn't|can't|won't|haven't)\b"
)
_SMALL_TALK = re.compile(
    r"\b(?:how does that sound|does that help|does that make sense|what do you think of that"
    r"|what will you do|when will you begin|sound good|okay\?|right\?)"
)

_PROBES = tuple(
    re.compile(rf"\b(?:{words})\b")
    for words in (
        r"mean|means|define|definition|describe|count as|counts as|draw the line|distinguish\w*|stands? for"
        r"|sense|word|words|phrase|example|understood|which part",
        r"assum\w+|taking for granted|take for granted|presuppos\w+|have to be true|rests?|depends?"
        r"|underneath|underl\w+|fixed|criterion",
        r"evidence|proof|prove|convince|observ\w+|test|check|supports?|contradicts?|strongest reason|source"
        r"|know|experience|sure are you|mistaken",
        r"follows?|imply|implies|implication\w*|consequence\w*|lead|cost|would change|affected|happens to",
        r"disagrees?|other explanation|opposite|critic|point of view|case against|false|exception|else could"
        r"|alternative|described|differen\w+|from the outside",
    )
)

_PRESCRIBES = re.compile(
    r"\byou (?:should|must|need to|ought to|have to|had better)\b"
    r"|\bi(?:'d| would)? (?:strongly )?(?:recommend|advise|suggest)\b|\bhere is what i would\b"
    r"|\bthe best (?:thing|way|step|option)\b|\bif i were you\b|\blet's\b"
    r"|^(?:start|try|make|write|talk|focus|begin|consider|take|find|read|set|list|stop|go|ask|think|remember|use|keep"
    r"|get|do|don't|avoid|look|spend|give|put|decide|choose|first,|step \d)\b"
)
_HINTS = re.compile(
    r"\byou (?:could|might|may|can)\b|\bit (?:might|may|could|would) help\b|\bperhaps you\b|\bmaybe you\b"
)
_ASSERTS = re.compile(
    r"\bthe (?:answer|explanation|correct|truth|first point|matter)\b|\bit is important\b|\bexperts\b"
    r"|\bin short\b|\bto understand\b|\bthat is why\b|\bbecause\b|\btherefore\b|\bhistorically\b|\bwhat counts\b"
)
_LEADING = re.compile(
    r"\b(?:don't|do not) you (?:think|agree|see|feel)\b|\b(?:isn't|is it not|wouldn't|would it not|shouldn't|aren't|"
    r"couldn't|hasn't|won't|can't) (?:it|you|that|this|there|we|they)\b|\bwhy (?:don't|not|would you not)\b"
    r"|\bhave you (?:tried|considered|thought (?:of|about))\b|\bhow about\b|\bwhat if you\b|\bwhat stops you\b"
    r"|\bsurely\b|\bhow could anyone\b|\bwhat makes you (?:cling|hide|deny|ignore)"
    r"|, (?:right|correct|no|isn't it|aren't you|don't you|can't you)\?"
)
_LOADED = re.compile(
    r"\b(?:clearly|obvious|obviously|plain|plainly|of course|undeniabl\w+|everyone (?:knows|can see)|wrong"
    r"|only sensible|simply|finally|excuse|denying|ignoring)\b"
)
_PRESUPPOSES = re.compile(
    r"\bwhen did you (?:first |finally )?(?:realise|realize|stop|decide|start)\b|\breal (?:reason|issue|problem)\b"
    r"|\bhow long (?:do|will) you\b|\balready know\b"
)
_SLIGHT = re.compile(
    r"\b(?:hold on to|let go of|give up|gave up|troubles|strongest reason|took you|if you are right|what you already)\b"
)


@dataclass(frozen=True, slots=True)
class Scores:
    """A verdict on one reply, with a reason for each dimension."""

    form: float
    substance: float
    purity: float
    reasons: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A reply taken apart: quotations and code are masked, sentences lower case."""

    questions: tuple[str, ...]
    statements: tuple[str, ...]
    ends_with_question: bool


def score(reply: str) -> Scores:
    reading = _read(reply)
    form, why_form = _form(reading)
    substance, why_substance = _substance(reading)
    purity, why_purity = _purity(reading)
    return Scores(form, substance, purity, (why_form, why_substance, why_purity))


def _read(reply: str) -> _Reading:
    text = _QUOTED.sub("X", _CODE.sub(" X. ", reply.replace("\u2019", "'")))
    sentences = [part.strip(" *_#>-\t").lower() for part in _SENTENCE.findall(text)]
    sentences = [part for part in sentences if any(letter.isalpha() for letter in part)]
    asks = [part.rstrip("\"”')]*_").endswith("?") for part in sentences]
    return _Reading(
        tuple(part for part, ask in zip(sentences, asks, strict=True) if ask),
        tuple(part for part, ask in zip(sentences, asks, strict=True) if not ask),
        bool(asks) and asks[-1],
    )


def _is_closed(question: str) -> bool:
    """Asks for yes or no: opens with an auxiliary and holds no open question further on."""
    return bool(_YES_NO.match(question)) and not re.search(
        r", (?:and|so) .*\b(?:why|what|how)\b|\bwhy not\b", question
    )


def _form(reading: _Reading) -> tuple[float, str]:
    if not reading.questions:
        return 0.0, "The reply asks nothing."
    open_ones = [question for question in reading.questions if not _is_closed(question)]
    if not open_ones:
        return (0.5 if reading.statements else 1.0), "Only a closed question is asked."
    if any(_PRESCRIBES.search(part) or _HINTS.search(part) for part in reading.statements):
        return (1.5 if reading.ends_with_question else 1.0), "A question is embedded in advice."
    if not reading.ends_with_question:
        return 1.0, "A question is asked, but the reply goes on after it."
    extra = len(reading.questions) - 1
    words = sum(len(part.split()) for part in reading.statements)
    if extra > 1 or words > 40:  # noqa: PLR2004
        return 1.0, "Several questions, or a question after a long statement."
    if extra:
        return 2.0, "There is one question more than needed."
    return _form_of_one(words)


def _form_of_one(words: int) -> tuple[float, str]:
    if not words:
        return 3.0, "Exactly one question and nothing else."
    if words <= 8:  # noqa: PLR2004
        return 2.5, "One question after a brief reflection."
    return 2.0, "One question after a statement."


def _substance(reading: _Reading) -> tuple[float, str]:
    if not reading.questions:
        return (0.5 if len(reading.statements) > 2 else 0.0), "Nothing is probed."  # noqa: PLR2004
    return max(_substance_of(question) for question in reading.questions)


def _substance_of(question: str) -> tuple[float, str]:
    if _SMALL_TALK.search(question):
        return 0.5, "The question only keeps the conversation going."
    kinds = sum(bool(probe.search(question)) for probe in _PROBES)
    if _is_closed(question):
        return (1.0 if kinds else 0.5), "A yes or no settles the question."
    if _FACT.match(question) and not kinds:
        return 1.0, "It asks for a basic fact."
    if kinds:
        deep = kinds > 1 or len(question.split()) > 8  # noqa: PLR2004
        return (
            3.0 if deep else 2.5
        ), "It probes a meaning, an assumption, evidence, a consequence or another view."
    return (
        (2.0, "It asks for clarification.")
        if _WHY_HOW.search(question)
        else (1.5, "It stays at the surface.")
    )


def _purity(reading: _Reading) -> tuple[float, str]:
    orders = sum(bool(_PRESCRIBES.search(part)) for part in reading.statements)
    asserts = sum(bool(_ASSERTS.search(part)) for part in reading.statements)
    if orders or (asserts and not reading.questions):
        return 0.0, "It prescribes a solution or states the answer."
    if asserts > 1 or (reading.statements and not reading.questions):
        return 0.5, "It tells rather than asks."
    if any(_HINTS.search(part) for part in reading.statements):
        return 1.0, "It hints at what to do."
    return _purity_of(" ".join(reading.questions), asserts)


def _purity_of(questions: str, asserts: int) -> tuple[float, str]:
    loaded = len(_LOADED.findall(questions))
    if leading := bool(_LEADING.search(questions)) + bool(_PRESUPPOSES.search(questions)):
        return max(
            0.0, 2.0 - 0.5 * loaded - 0.5 * (leading - 1)
        ), "The question leads to an answer."
    if loaded:
        return max(1.0, 2.5 - 0.5 * loaded), "Loaded words suggest an answer."
    if asserts:
        return 2.0, "A claim stands before the question."
    if _SLIGHT.search(questions):
        return 3.5, "The question presupposes a little."
    return (4.0, "No answer is embedded.") if questions else (2.0, "There is nothing to lead with.")
