"""Asks a person at the terminal: the dialogue so far, the reply, one question after the other."""

import signal
import sys
from textwrap import wrap
from typing import TYPE_CHECKING

from . import terminal
from .output import plain, say, say_question
from .signals import SignalledError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from socratic_bench.documents.calibration import Label
    from socratic_bench.studies.calibrate.session import Labelling, Question

HELP = "? what scores mean, b back, s skip this turn, a all of the dialogue, q quit"
SHOWN_LINES = 6  # of what was said before; `a` shows all
REPLY = 36


def ask_all(labelling: "Labelling") -> int:
    """Until all is answered, the person quits (q, Ctrl-D or Ctrl-C), or the terminal goes. The exit
    code: that of a signal, if it was none of the person's.
    """
    session, n_turns = labelling.session, len(labelling.turns)
    say(f"{n_turns} turns were drawn, {session.n_done} of them are done. {HELP}.")
    code = 0
    try:
        _ask(labelling)
    except SignalledError as signalled:
        say("")
        if signalled.signal_number != signal.SIGINT:
            code = 128 + signalled.signal_number
    say(f"{session.n_done} of {n_turns} turns are labelled, in {labelling.asked.file}.")
    return code


def _ask(labelling: "Labelling") -> None:
    session, n_turns = labelling.session, len(labelling.turns)
    shown: int | None = None
    while session.place is not None:
        turn, number = session.place
        if turn != shown:
            _show(labelling.turns[turn], f"{session.n_done + 1} of {n_turns}", labelling)
            shown = turn
        word = _read(session.questions[number].text)
        if word in (None, "q"):
            break
        _do(word or "", labelling)


def _do(word: str, labelling: "Labelling") -> None:
    session = labelling.session
    assert session.place is not None  # noqa: S101 -- something was asked
    turn, number = session.place
    if word == "b":
        session.back()
    elif word == "s":
        session.skip()
    elif word == "a":
        _show(labelling.turns[turn], "the whole dialogue", labelling, whole=True)
    elif word == "?":
        _explain(session.questions[number])
    elif problem := session.answer(word):
        say(problem)


def _explain(question: "Question") -> None:
    for level, meaning in question.levels.items():
        _paragraph(f"{level}: {meaning}", "    ")
    say(HELP)


def _read(question: str) -> str | None:
    """The answer, without the white space around it; `None` if the person has left."""
    say_question(f"{question} > ")
    try:
        line = sys.stdin.readline()
    except OSError:  # the terminal is gone
        line = ""
    if not line.endswith("\n"):
        say("")
    return line.strip() if line else None


def _show(label: "Label", head: str, labelling: "Labelling", *, whole: bool = False) -> None:
    """Neither the model nor the judge nor their words but the reply are told."""
    asking, tested = labelling.rubric.speakers
    said = [*_said(label, asking, tested)]
    left_out = 0 if whole else max(0, len(said) - 1 - SHOWN_LINES)
    say("")
    say(f"--- {head} ---")
    for n, (name, text) in enumerate(said):
        if n == 1 and left_out:
            say(f"({left_out} left out; a shows them)")
        if not 1 <= n <= left_out:
            _paragraph(f"{name}: {text}", "")
    say("")
    _paragraph(f"{tested}, to be scored: {label.reply}", "", colour=REPLY)
    say("")


def _said(label: "Label", asking: str, tested: str) -> "Iterator[tuple[str, str]]":
    """Who said what before the reply."""
    names = {"user": asking, "assistant": tested}
    for one in label.history:
        yield names[one.role], one.text
    yield asking, label.prompt or ""


def _paragraph(text: str, indent: str, colour: int | None = None) -> None:
    """Its lines, broken between words; what models wrote without control characters."""
    for line in text.split("\n"):
        for part in wrap(plain(line), max(20, terminal.columns() - len(indent) - 1)) or [""]:
            say(indent + terminal.coloured(part, colour))
