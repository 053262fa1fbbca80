"""The interface of a student: it answers, given all exchanges so far."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from socratic_bench.types import Completion

# Runs are only compared if their students are of one edition. It changes with what students say.
EDITION = "socratic-student-3"

Policy = Literal[
    "opening",
    "replayed",
    "scripted",
    "answered_open",
    "answered_closed",
    "took_advice",
    "heard_lecture",
    "prompted",
    "pushed",
    "model",
]


class Exchange(Struct, frozen=True, kw_only=True):
    """What the student said and what the tutor made of it."""

    student: str
    tutor: str


class StudentReply(Struct, frozen=True, kw_only=True):
    """What the student says next. `closed`: and with that it ends the dialogue.

    `policy` names what it reacted to, or where the words are from. `completion` is the call that
    made the text, `None` if no model was asked; `discarded` are calls before it whose words were
    not used. `pressure` names how the student pushes. `is_filler`: the words carry nothing, since a
    scripted student had nothing left to say, or nothing was drawn out of it.
    """

    text: str
    closed: bool = False
    policy: Policy
    completion: Completion | None = None
    discarded: tuple[Completion, ...] = ()
    pressure: str | None = None
    is_filler: bool = False


class Student(Protocol):
    """Answers a tutor, without a memory of its own: a run can resume from the exchanges alone."""

    def reply(self, exchanges: Sequence[Exchange]) -> StudentReply:
        """Answer the last of the exchanges, which are all so far; there is at least one."""
