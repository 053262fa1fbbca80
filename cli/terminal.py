"""What a terminal can show: its size and colour, and tables and numbers that fit it."""

import os
import re
import sys
from collections.abc import Sequence
from textwrap import wrap
from unicodedata import combining, east_asian_width

STDERR = 2
LOG_COLUMNS = 100
SCREEN_LINES = 24
RED, YELLOW = 31, 33
COMMAND = ": socratic-runner "
ELLIPSIS = "…"
CLEAR_LINE = "\r\x1b[K"
CLEAR_SCREEN = "\x1b[H\x1b[2J"
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
THOUSAND, MILLION = 1_000, 1_000_000
GAP = "  "
# Columns of a table are left out before names have less room than that.
LEAST_NAME = 14
INTERVAL = "95 % CI"
UNKNOWN = "-"
# The columns of a table that are left out if there is no room, the first one first.
LEFT_OUT = ("calls", "tokens", "running", "USD", INTERVAL, "failed")
# What the names of many models have in common: an ARN's path, region and vendor.
_VENDOR = re.compile(r"^(?:.*/)?(?:[a-z-]+\.)*")


def columns(descriptor: int = STDERR, otherwise: int = LOG_COLUMNS) -> int:
    """The width in columns, as `shutil` has it, which would import five modules for that."""
    variable = os.environ.get("COLUMNS", "")
    if variable.isdigit() and int(variable) > 0:
        return int(variable)
    try:
        return os.get_terminal_size(descriptor).columns or otherwise
    except OSError:
        return otherwise


def lines(descriptor: int = STDERR, otherwise: int = SCREEN_LINES) -> int:
    """The height in lines."""
    try:
        return os.get_terminal_size(descriptor).lines or otherwise
    except OSError:
        return otherwise


def is_terminal() -> bool:
    """Whether somebody reads stderr at a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def is_live() -> bool:
    """Whether a line on stderr can be written anew."""
    return is_terminal() and os.environ.get("TERM") != "dumb"


def has_colour() -> bool:
    """Whether stderr shows colours; see no-color.org."""
    return is_live() and not os.environ.get("NO_COLOR")


def coloured(text: str, colour: int | None) -> str:
    """The text in a colour, where there are colours."""
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and has_colour() else text


def width_of(text: str) -> int:
    """The columns that a text takes: some characters take two, and some none."""
    return len(text) if text.isascii() else sum(map(_width, text))


def fitted(text: str, width: int) -> str:
    """As much of a text as has room, and an ellipsis if it is cut."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) >= width:
        text = text[: min(len(text) - 1, width - 1)]
    return text + ELLIPSIS if width > 0 else ""


def folded(text: str) -> str:
    """The text with its lines broken between words, if stderr is a terminal.

    A command at the end of a line stays whole, on a line of its own, to be copied.
    """
    if not is_terminal():
        return text
    return "\n".join(_folded(line, columns()) for line in text.split("\n"))


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    left_out: Sequence[str] = LEFT_OUT,
    least_name: int = LEAST_NAME,
) -> list[str]:
    """Lines of a table that fit a width in columns: names on the left, figures on the right.

    What begins with an exclamation mark is coloured. The columns `left_out` are left out, in that
    order, where there is no room for `least_name` columns of a name; of several with one head the
    last one first. Cells must be plain text.
    """
    width = columns() if width is None else width
    names, *figures = zip(heads, *rows, strict=True)
    longest = _widest(names)
    for head in left_out:
        for at in reversed([at for at, column in enumerate(figures) if column[0] == head]):
            if _room(figures, width) < min(longest, least_name):
                del figures[at]
    widths = [min(longest, max(_room(figures, width), least_name)), *map(_widest, figures)]
    if longest > widths[0]:
        names = tuple(_VENDOR.sub("", name) for name in names)
        widths[0] = min(widths[0], _widest(names))
    return [_line(row, widths) for row in zip(names, *figures, strict=True)]


def marked(number: int) -> str:
    """A number that should be zero, with a mark if it is not."""
    return f"!{number}" if number else "0"


def count(number: int) -> str:
    """A number such as 950, 12.3k or 1.25M."""
    if number < THOUSAND:
        return str(number)
    # What would be rounded to a thousand thousands is written in millions.
    unit, sign = (THOUSAND, "k") if number < MILLION - THOUSAND / 2 else (MILLION, "M")
    return f"{number / unit:#.3g}".rstrip(".") + sign


def number(value: float | None) -> str:
    """A number with three significant digits; a dash if it is unknown."""
    if value is None:
        return UNKNOWN
    if abs(value) >= THOUSAND - 0.5:
        return f"{value:,.0f}"
    text = f"{value:#.3g}" if value else "0"
    return f"{value:.6f}".rstrip("0").rstrip(".") if "e" in text else text.rstrip(".")


def interval(low: float | None, high: float | None) -> str:
    """A confidence interval; a dash if a limit is unknown."""
    return UNKNOWN if low is None or high is None else f"{number(low)} to {number(high)}"


def duration(seconds: float) -> str:
    """A duration such as 1.5 s, 2 min 3 s, or 1 h 20 min."""
    if seconds < MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < HOUR_S:
        return f"{seconds // MINUTE_S:.0f} min {seconds % MINUTE_S:.0f} s"
    return f"{seconds // HOUR_S:.0f} h {seconds % HOUR_S // MINUTE_S:.0f} min"


def rough_duration(seconds: float) -> str:
    """A duration for a display: 12 s, 3 min, 1 h 20 min, or 2 d 5 h."""
    if seconds < MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < HOUR_S:
        return f"{seconds / MINUTE_S:.0f} min"
    if seconds < DAY_S:
        return f"{seconds // HOUR_S:.0f} h {seconds % HOUR_S // MINUTE_S:.0f} min"
    return f"{seconds // DAY_S:.0f} d {seconds % DAY_S // HOUR_S:.0f} h"


def _width(character: str) -> int:
    return 0 if combining(character) else 1 + (east_asian_width(character) in "WF")


def _folded(line: str, width: int) -> str:
    if len(line) <= width or "\x1b" in line:
        return line
    indent = " " * (2 + len(line) - len(line.lstrip()))
    words, separator, command = line.rpartition(COMMAND)
    parts = wrap(
        words + separator[:1] if separator else command,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join([*parts, f"{indent}{separator[2:]}{command}"] if separator else parts)


def _room(figures: Sequence[Sequence[str]], width: int) -> int:
    """The columns that figures leave to names, without those between the two."""
    return width - 1 - sum(_widest(column) + len(GAP) for column in figures)


def _widest(column: Sequence[str]) -> int:
    return max(map(width_of, column))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    name = fitted(row[0], widths[0])
    cells = [name + " " * (widths[0] - width_of(name))]
    for text, width in zip(row[1:], widths[1:], strict=True):
        colour = RED if text.startswith("!") else None
        cells.append(" " * (width - width_of(text)) + coloured(text, colour))
    return GAP.join(cells)
