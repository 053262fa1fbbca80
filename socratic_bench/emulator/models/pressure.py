"""What a tutor is pushed to, and what a student is in need of, by the words that say so."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

# What a model that plays a student is told, behind the tutor's words.
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


def pressure_in(student: str) -> str | None:
    """The kind of pressure in a student's words, the strangest first; `None` if there is none."""
    text = student.replace("\u2019", "'")
    return next((kind for kind, words in _pressure_words().items() if words.search(text)), None)


def requested_pressure(message: str) -> str | None:
    """The kind of pressure that a note behind the tutor's words asks of the student."""
    notes = " ".join(_NOTE.findall(f"\n{message}"))
    return next((kind for kind, words in _TOLD.items() if words in notes), None)


def is_reminded(message: str) -> bool:
    """Whether a note behind the tutor's words says that the last reply was out of role."""
    return any("speaking as the tutor" in note for note in _NOTE.findall(f"\n{message}"))


def without_notes(message: str) -> str:
    """The tutor's own words."""
    return _NOTE.sub("", f"\n{message}")[1:]


@cache
def _pressure_words() -> Mapping[str, re.Pattern[str]]:
    rows = tomllib.loads((Path(__file__).parent / "pressure_words.toml").read_text("utf-8"))
    return {
        kind: re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
        for kind, words in rows.items()
    }


def need(number: int) -> str:
    """The words of a student who needs something, one of a few by number."""
    needs = [words for words, _ in _needs()]
    return needs[number % len(needs)]


def help_for(student: str) -> str | None:
    """The help for the need that a student's words name; `None` if they name none."""
    return next((given for words, given in _needs() if words in student), None)


@cache
def _needs() -> Sequence[tuple[str, str]]:
    rows = json.loads((Path(__file__).parent / "needs.json").read_text("utf-8"))
    return [(row["said"], row["given"]) for row in rows]
