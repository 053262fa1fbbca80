"""What a terminal can show: so many columns, and colour."""

import os
import sys

STDERR = 2
LOG_COLUMNS = 100
SCREEN_LINES = 24
RED, YELLOW = 31, 33
COMMAND = ": socratic-runner "
ELLIPSIS = "…"
CLEAR_LINE = "\r\x1b[K"


def columns(descriptor: int = STDERR, otherwise: int = LOG_COLUMNS) -> int:
    """As `shutil.get_terminal_size` has it, which imports five modules for that."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(descriptor).columns or otherwise
    except OSError:
        return otherwise


def lines(descriptor: int = STDERR, otherwise: int = SCREEN_LINES) -> int:
    """How many lines are seen at once."""
    try:
        return os.get_terminal_size(descriptor).lines or otherwise
    except OSError:
        return otherwise


def is_terminal() -> bool:
    """Whether somebody reads stderr at a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def is_live() -> bool:
    """Whether a line there can be written anew."""
    return is_terminal() and os.environ.get("TERM") != "dumb"


def has_colour() -> bool:
    """As no-color.org has it."""
    return is_live() and not os.environ.get("NO_COLOR")


def coloured(text: str, colour: int | None) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and has_colour() else text


def width_of(text: str) -> int:
    """The columns that a text takes: some characters take two, and some none."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    from unicodedata import combining, east_asian_width

    return 0 if combining(character) else 1 + (east_asian_width(character) in "WF")


def fitted(text: str, width: int) -> str:
    """As much of a text as has room, with an ellipsis for the rest."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) >= width:
        text = text[: min(len(text) - 1, width - 1)]
    return text + ELLIPSIS if width > 0 else ""


def folded(text: str) -> str:
    """Its lines broken between words for a terminal. A command stays whole, to be copied, on a line
    of its own.
    """
    if not is_terminal():
        return text
    return "\n".join(_folded(line, columns()) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    if len(line) <= width or "\x1b" in line:
        return line
    from textwrap import wrap

    indent = " " * (2 + len(line) - len(line.lstrip()))
    words, before, command = line.rpartition(COMMAND)
    lines = wrap(
        words + before[:1] if before else command,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join([*lines, f"{indent}{before[2:]}{command}"] if before else lines)
