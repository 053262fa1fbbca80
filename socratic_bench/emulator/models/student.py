"""The simulated students: short replies in the first person, and the ways to be a bad one."""

import re
from random import Random

from socratic_bench.emulator.dialogue import END_OF_DIALOGUE, Dialogue
from socratic_bench.emulator.models.grammar import book, expand, sayable
from socratic_bench.emulator.models.subjects import subject_of

_BAD = re.compile(
    r"emulator\.student-(swap|repeat|long|question|french|tutoring|empty|yields)-v1:0"
)
_CLOSING = re.compile(r"emulator\.student-closing-(\d+)-v1:0")
_ASKED_TO_CLOSE = re.compile(
    r"\b(?:close|end|finish) (?:the|this) (?:dialogue|conversation) (?:now|in this reply)\b",
    re.IGNORECASE,
)
_LONG = 12
_TRIES = 12
_WANDERS = 0.2

# What the tutor's last words ask for, by the words that give it away; the first that fits counts.
_ASKED = (
    ("advised", r"you (?:should|could|might|need|have to)|recommend|suggest|start with|^try|plan"),
    ("evidence", r"evidence|proof|know|test|check|observ|experience|convince|source|sure are"),
    ("assumption", r"assum|granted|rest on|depend|underneath|underl|presuppos|fixed|true for"),
    ("alternative", r"disagree|opposite|critic|other explanation|exception|else could|different"),
    ("implication", r"follow|consequence|imply|lead|cost|would change|affected|happens"),
    ("definition", r"mean|define|describe|count|line between|word|sense|example|picture"),
)
_ASKED_FOR = tuple((kind, re.compile(words)) for kind, words in _ASKED)


def student_reply(dialogue: Dialogue) -> str:
    random = Random(dialogue.seed())
    if bad := _BAD.fullmatch(dialogue.base_id):
        return _bad(bad[1], dialogue, random)
    closing = _CLOSING.fullmatch(dialogue.base_id)
    last = closing is not None and len(dialogue.own_texts) + 1 >= int(closing[1])
    if last or _ASKED_TO_CLOSE.search(dialogue.system):
        return f"{_line('closings', dialogue, random)} {END_OF_DIALOGUE}"
    return _fresh(dialogue, random)


def _bad(kind: str, dialogue: Dialogue, random: Random) -> str:
    if kind == "empty":
        return ""
    if kind == "long":
        return " ".join(_line("other", dialogue, random) for _ in range(_LONG))
    return _line(kind, dialogue, random)


def _fresh(dialogue: Dialogue, random: Random) -> str:
    """A reply whose sentences the student has not said before, as far as there are any left."""
    answer = _asked_for(dialogue) if random.random() > _WANDERS else "other"
    shapes = (("reactions", answer), (answer, "pushes"), ("reactions", answer, "pushes"))
    said = " ".join(dialogue.own_texts)
    parts = [_unsaid(kind, said, dialogue, random) for kind in random.choice(shapes)]
    while " ".join(parts) in said and len(parts) < _LONG:
        parts.append(_unsaid("other", said, dialogue, random))
    return sayable(" ".join(parts), _quotation(dialogue))


def _quotation(dialogue: Dialogue) -> str:
    own = dialogue.own_texts
    return subject_of(own[0], own=True).phrases[0] if own else ""


def _unsaid(kind: str, said: str, dialogue: Dialogue, random: Random) -> str:
    line = ""
    for _ in range(_TRIES):
        line = _line(kind, dialogue, random)
        if line not in said:
            break
    return line


def _asked_for(dialogue: Dialogue) -> str:
    tutor = _heard(dialogue).lower()
    return next((kind for kind, words in _ASKED_FOR if words.search(tutor)), "other")


def _line(kind: str, dialogue: Dialogue, random: Random) -> str:
    """A pattern of a kind, about the student's own opening."""
    own = dialogue.own_texts
    phrases = subject_of(own[0], own=True).phrases if own else ("this question",)
    # The first phrase is the likeliest subject.
    slots = {"np": phrases[int(random.random() ** 2 * len(phrases))]}
    text = expand(random.choice(book("student")[kind]), random, slots)
    return text[0].upper() + text[1:]


def _heard(dialogue: Dialogue) -> str:
    users = dialogue.user_texts
    return users[-1] if users else ""
