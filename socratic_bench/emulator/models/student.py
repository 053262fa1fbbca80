"""The simulated students: short replies in the first person, good and bad ones.

Beside them is how their words are read: for pressure, for a need, for a note on how to push.
"""

import re
from collections.abc import Mapping
from functools import cache
from random import Random

from socratic_bench.emulator.dialogue import Dialogue
from socratic_bench.emulator.models import END_OF_DIALOGUE
from socratic_bench.emulator.models.grammar import book, data_file, expand, quoted_once
from socratic_bench.emulator.models.subjects import subject_of

_BAD = re.compile(
    r"emulator\.student-(swap-once|swap|repeat|long|question|french|tutoring|empty|yields|praising"
    r"|acting|learned|needs)-v1:0"
)
_CLOSING = re.compile(r"emulator\.student-closing-(\d+)-v1:0")
_ASKED_TO_CLOSE = re.compile(
    r"\b(?:close|end|finish) (?:the|this) (?:dialogue|conversation) (?:now|in this reply)\b",
    re.IGNORECASE,
)
_LONG = 12
_ENOUGH_WORDS = 36
_TRIES = 24
_WANDERS = 0.2

# Kinds of questions by their words; the first kind that matches the tutor's last message counts.
_ASKED = (
    (
        "advised",
        r"you (?:should|could|might|need|have to)|recommend|suggest|start with|^try|\bplan",
    ),
    ("evidence", r"evidence|proof|know|test|check|observ|experience|convince|source|sure are"),
    ("assumption", r"assum|granted|rest on|depend|underneath|underl|presuppos|fixed|true for"),
    ("alternative", r"disagree|opposite|critic|other explanation|exception|else could|different"),
    ("implication", r"follow|consequence|imply|lead|cost|would change|affected|happens"),
    ("definition", r"mean|define|describe|count|line between|word|sense|example|picture"),
)
_ASKED_FOR = tuple((kind, re.compile(words)) for kind, words in _ASKED)


# Instructions to the student after the tutor's words.
_NOTE = re.compile(r"\n\((?:For your next message only|Unheard by the tutor)\b[^\n]*\)")
_TOLD = {
    "demand": r": Demand ",
    "impatience": r": Be impatient",
    "flattery": r": Flatter ",
    "authority": r": Appeal to an authority",
    "distress": r": Be in distress",
    "drop_questions": r" drop the questions",
    "false_agreement": r": Agree with everything",
}


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
    if kind == "needs":
        half, number = len(dialogue.own_texts) % 2, len(dialogue.own_texts) // 2
        return need(number) if half else _fresh(dialogue, random)
    # A note behind the tutor's words may say that the last reply was out of role.
    notes = _NOTE.findall(f"\n{dialogue.latest}")
    if kind == "swap-once" and any("speaking as the tutor" in note for note in notes):
        return _fresh(dialogue, random)
    if kind == "long":
        return " ".join(_line("other", dialogue, random) for _ in range(_LONG))
    return _line(kind.removesuffix("-once"), dialogue, random)


def _fresh(dialogue: Dialogue, random: Random) -> str:
    """A reply of new sentences while there are any, with the push that was asked for."""
    push = requested_pressure(dialogue.latest)
    history = _StudentHistory(dialogue)
    tutor = _NOTE.sub("", f"\n{dialogue.latest}").lower()
    kind = next((kind for kind, words in _ASKED_FOR if words.search(tutor)), "other")
    answer = kind if random.random() > _WANDERS else "other"
    shapes = (("reactions", answer), (answer, "pushes"), ("reactions", answer, "pushes"))
    parts: list[str] = []
    for kind in random.choice(shapes):
        parts.append(_unsaid(kind, history, random, parts))
    while history.holds_most(parts) and len(" ".join(parts).split()) < _ENOUGH_WORDS:
        parts.append(_unsaid("other", history, random, parts))
    if push:
        before = [] if push == "false_agreement" else parts
        earlier = sum(requested_pressure(message) == push for message in dialogue.user_texts[:-1])
        parts = [*before, _line(f"push_{push}", dialogue, random, earlier)]
    return quoted_once(" ".join(parts), history.quotation)


class _StudentHistory:
    """What the student has said. A quotation is given once in a reply, and then called "that"."""

    def __init__(self, dialogue: Dialogue) -> None:
        texts = dialogue.own_texts
        self.dialogue = dialogue
        self.quotation = subject_of(texts[0], is_own=True).phrases[0] if texts else ""
        self._text = self._plain(" ".join(texts))

    def holds(self, line: str) -> bool:
        return self._plain(line) in self._text

    def holds_most(self, lines: list[str]) -> bool:
        """Whether half of the words or more were said before."""
        return 2 * sum(len(line) for line in lines if self.holds(line)) >= sum(map(len, lines))

    def _plain(self, text: str) -> str:
        return text.replace(self.quotation or "that", "that")


def _unsaid(kind: str, history: _StudentHistory, random: Random, parts: list[str]) -> str:
    """A new line of the kind; one of any kind where that has none left."""
    line = ""
    for attempt in range(_TRIES):
        line = _line(kind if attempt < _TRIES // 2 else "other", history.dialogue, random)
        if not history.holds(line) and line not in parts:
            break
    return line


def _line(kind: str, dialogue: Dialogue, random: Random, number: int | None = None) -> str:
    """A pattern of a kind, any or the one of that number, about the student's own opening."""
    texts = dialogue.own_texts
    phrases = subject_of(texts[0], is_own=True).phrases if texts else ("this question",)
    # The first phrase is the likeliest subject.
    slots = {"np": phrases[int(random.random() ** 2 * len(phrases))]}
    patterns = book("student")[kind]
    pattern = random.choice(patterns) if number is None else patterns[number % len(patterns)]
    text = expand(pattern, random, slots)
    return text[0].upper() + text[1:]


def pressure_in(student: str) -> str | None:
    """The kind of pressure in a student's words, the rarest first; `None` if there is none."""
    text = student.replace("\u2019", "'")
    return next((kind for kind, words in _pressure_words().items() if words.search(text)), None)


def requested_pressure(message: str) -> str | None:
    """The kind of pressure that a note behind the tutor's words asks of the student."""
    notes = " ".join(_NOTE.findall(f"\n{message}"))
    return next((kind for kind, words in _TOLD.items() if words in notes), None)


@cache
def _pressure_words() -> Mapping[str, re.Pattern[str]]:
    return {
        kind: re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
        for kind, words in data_file("pressure_words.toml").items()
    }


def need(number: int) -> str:
    """The words of a student who needs something, one of a few by number."""
    needs = data_file("needs.json")
    return str(needs[number % len(needs)]["said"])


def help_for(student: str) -> str | None:
    """The help for the need that a student's words name; `None` if they name none."""
    return next((row["given"] for row in data_file("needs.json") if row["said"] in student), None)
