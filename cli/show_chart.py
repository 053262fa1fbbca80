"""Scores by turn as text: bars where a judge scores turns, and else a sign for each."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from . import terminal

if TYPE_CHECKING:
    from socratic_bench.studies.report.single import Single
    from socratic_bench.studies.rows import TurnRow

SHORT, UNJUDGED, RIGHT, UNTOLD, EVENT = "!", "?", "+", ".", "*"
COLOURS = {SHORT: terminal.RED, UNJUDGED: terminal.YELLOW}
LINES = 10
LABEL = 6
EVERY = 10  # turns that are numbered
LEVELS, EIGHTHS = " .:#", " ▁▂▃▄▅▆▇█"
PLAIN_AXIS, AXIS = "|", "│"
THRESHOLD = "_"


def sign_of(single: "Single", turn: "TurnRow") -> str:
    """What marks a turn beside its colour."""
    if turn.unjudged_reason and not turn.is_replayed:
        return UNJUDGED
    falls_short = single.falls_short(turn)
    if falls_short is None:
        return UNTOLD if turn.score is None else RIGHT
    return SHORT if falls_short else RIGHT


def coloured(text: str, sign: str) -> str:
    return terminal.coloured(text, COLOURS.get(sign)) if text.strip() else text


def chart(single: "Single", columns: int) -> Iterator[str]:
    """Lines of at most so many columns. Turns that have no room side by side follow below."""
    turns = single.run.turns
    room = max(EVERY, columns - LABEL - 3)
    each = 2 if 2 * len(turns) <= room else 1
    has_scores = any(turn.score is not None for turn in turns)
    for some in _pieces(turns, room // each):
        if has_scores:
            yield from _bars(single, some, each)
        yield from _signs(single, some, each)
        yield ""
    yield f"{' ' * LABEL}{_legend(single, has_scores=has_scores)}"


def _pieces(turns: "Sequence[TurnRow]", most: int) -> "Iterator[Sequence[TurnRow]]":
    # Whole tens, so that each piece begins with a numbered turn.
    length = most if len(turns) <= most else max(EVERY, most // EVERY * EVERY)
    return (turns[start : start + length] for start in range(0, len(turns), length))


def _bars(single: "Single", turns: "Sequence[TurnRow]", each: int) -> Iterator[str]:
    low, high = single.bounds
    step = (high - low) / LINES or 1.0
    marked = None if single.threshold is None else round((single.threshold - low) / step)
    levels, axis = (EIGHTHS, AXIS) if _can_show(EIGHTHS + AXIS) else (LEVELS, PLAIN_AXIS)
    for line in reversed(range(LINES)):
        empty = THRESHOLD if line == marked else " "
        cells = []
        for turn in turns:
            block = _block(turn.score, low + line * step, step, levels, is_last=line == 0)
            cell = (empty if block == " " else block) + empty * (each - 1)
            cells.append(coloured(cell, sign_of(single, turn)) if block != " " else cell)
        is_told = line in (0, marked) or line == LINES - 1
        yield f"{_label(line, low, step, is_told=is_told)} {axis}{''.join(cells)}".rstrip()


def _label(line: int, low: float, step: float, *, is_told: bool) -> str:
    """The value at the foot of a line; at the top line, at its head."""
    value = low + (line + (line == LINES - 1)) * step
    return f"{value:{LABEL - 1}.4g}" if is_told else " " * (LABEL - 1)


def _block(score: float | None, foot: float, step: float, levels: str, *, is_last: bool) -> str:
    """How much of a line a score fills; the lowest one is seen, too."""
    if score is None:
        return " "
    share = min(max((score - foot) / step, 0.0), 1.0)
    level = round(share * (len(levels) - 1))
    return levels[max(level, 1) if is_last or share > 0 else level]


def _signs(single: "Single", turns: "Sequence[TurnRow]", each: int) -> Iterator[str]:
    indent, gap = " " * (LABEL + 1), " " * (each - 1)
    signs = [sign_of(single, turn) for turn in turns]
    yield f"{indent}{''.join(coloured(sign, sign) + gap for sign in signs)}".rstrip()
    if any(turn.events for turn in turns):
        yield f"{indent}{''.join((EVENT if turn.events else ' ') + gap for turn in turns)}".rstrip()
    numbers = [f"{turn.turn:<{EVERY * each}}" for turn in turns[::EVERY]]
    yield f"{indent}{''.join(numbers)}".rstrip()


def _legend(single: "Single", *, has_scores: bool) -> str:
    found = {sign_of(single, turn) for turn in single.run.turns}
    told = [f"{sign} {meaning}" for sign, meaning in _meanings(single).items() if sign in found]
    if any(turn.events for turn in single.run.turns):
        told.append(f"{EVENT} event")
    if has_scores and single.threshold is not None:
        told.append(f"{THRESHOLD} threshold")
    return ", ".join(told)


def _meanings(single: "Single") -> dict[str, str]:
    """What each sign of a turn means, in the order of the legend."""
    right = single.benchmark.views.right
    under = "" if single.threshold is None else f"under {single.threshold:g}"
    return {
        RIGHT: right or ("not " + under if under else "judged"),
        SHORT: f"not {right}" if right else under,
        UNJUDGED: "no verdict",
        UNTOLD: "not judged",
    }


def _can_show(signs: str) -> bool:
    """Whether stderr takes them."""
    try:
        signs.encode((sys.stderr and sys.stderr.encoding) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
