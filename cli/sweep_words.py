"""How far a sweep is, in words and as a table: what all of its displays show."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from . import terminal
from .output import plain

if TYPE_CHECKING:
    from socratic_bench.studies.sweep.engine import ModelProgress, Snapshot

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
THOUSAND, MILLION = 1_000, 1_000_000
GAP = "  "
LEAST_NAME = 14
# What many models' names have in common: an ARN's path, region and vendor.
_VENDOR = re.compile(r"^(?:.*/)?(?:[a-z-]+\.)*")
# What a table leaves out first where names would have less room than that.
INTERVAL = "95 % interval"
LEFT_OUT = ("calls", "tokens", "running", "USD", INTERVAL, "failed")


def status(now: "Snapshot", room: int | None = None) -> str:
    """One line; what matters least is left out where there is not room for all of it."""
    parts = [*_parts(now)]
    while room is not None and len(parts) > 1 and len(_joined(parts)) > room:
        parts.remove(max(parts, key=lambda part: part[0]))
    return _joined(parts)


def status_lines(now: "Snapshot", columns: int) -> list[str]:
    """All of it, on as many lines as it takes."""
    told: list[str] = []
    for _, part in _parts(now):
        if told and len(told[-1]) + len(part) + 3 <= columns:
            told[-1] += f", {part}"
        else:
            told.append(part)
    return [f"{line}," for line in told[:-1]] + told[-1:]


def _joined(parts: Iterable[tuple[int, str]]) -> str:
    return ", ".join(text for _, text in parts)


def _parts(now: "Snapshot") -> Iterator[tuple[int, str]]:
    """What there is to say, each with how soon it is left out: the highest first."""
    models = now.models
    yield 0, f"{sum(one.n_done for one in models)} of {now.n_cells} done"
    yield 3, f"{sum(one.n_running for one in models)} running"
    if n_failed := sum(one.n_failed for one in models):
        yield 1, f"{n_failed} failed"
    if now.calls_per_s is not None:
        yield 4, f"{now.calls_per_s:.1f} calls/s"
    yield 6, f"{count(sum(one.n_tokens for one in models))} tokens"
    cost_usd = total([one.cost_usd for one in models])
    yield 5, "cost unknown" if cost_usd is None else f"{usd(cost_usd)} USD"
    yield 7, f"{about(now.elapsed_s)} so far"
    if now.left_s is not None:
        yield 2, f"{about(now.left_s)} left"


def model_table(now: "Snapshot", columns: int, n_lines: int | None = None) -> list[str]:
    """A line for each model, below a head; at most so many lines."""
    room = len(now.models) if n_lines is None else max(n_lines - 1, 1)
    shown = now.models if len(now.models) <= room else now.models[: room - 1]
    heads = ("model", "done", "running", "failed", "calls", "tokens", "USD")
    lines = table(heads, [_row(one) for one in shown], columns)
    n_more = len(now.models) - len(shown)
    return [*lines, f"and {n_more} more"] if n_more else lines


def _row(one: "ModelProgress") -> tuple[str, ...]:
    return (
        one.model,
        f"{one.n_done}/{one.n_cells}",
        str(one.n_running),
        marked(one.n_failed),
        str(one.n_calls),
        count(one.n_tokens),
        usd(one.cost_usd),
    )


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int,
    left_out: Sequence[str] = LEFT_OUT,
) -> list[str]:
    """Lines that fit so many columns: names on the left, figures on the right. What is marked by an
    exclamation mark is coloured. Where there is no room, columns are left out in that order.
    """
    cells = [[plain(text) for text in row] for row in (heads, *rows)]
    by_head = dict(zip(heads, map(list, zip(*cells, strict=True)), strict=True))
    longest = _widest(by_head[heads[0]])
    for head in left_out:
        if _room(by_head, columns) < min(longest, LEAST_NAME):
            by_head.pop(head, None)
    widths = [_widest(column) for column in by_head.values()]
    widths[0] = min(longest, max(_room(by_head, columns), LEAST_NAME))
    return [_line(row, widths) for row in zip(*by_head.values(), strict=True)]


def _room(by_head: Mapping[str, Sequence[str]], columns: int) -> int:
    """What figures leave to names, their own column apart."""
    _, *figures = by_head.values()
    return columns - 1 - sum(_widest(column) + len(GAP) for column in figures)


def _widest(column: Sequence[str]) -> int:
    return max(map(terminal.width_of, column))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    name = row[0]
    if terminal.width_of(name) > widths[0]:
        name = terminal.fitted(_VENDOR.sub("", name), widths[0])
    told = [name + " " * (widths[0] - terminal.width_of(name))]
    for text, width in zip(row[1:], widths[1:], strict=True):
        told.append(" " * (width - terminal.width_of(text)) + _marked(text))
    return GAP.join(told)


def marked(number: int) -> str:
    """A number that had better be zero."""
    return f"!{number}" if number else "0"


def _marked(text: str) -> str:
    return terminal.coloured(text, terminal.RED) if text.startswith("!") else text


def total(amounts: Sequence[float | None]) -> float | None:
    """`None` if one of them is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def count(number: int) -> str:
    """Such as 950, 12.3k or 1.2M."""
    if number < THOUSAND:
        return str(number)
    # What would be rounded to a thousand thousands is told in millions.
    if number < MILLION - THOUSAND / 20:
        return f"{number / THOUSAND:.1f}k"
    return f"{number / MILLION:.1f}M"


def usd(amount: float | None) -> str:
    return "?" if amount is None else f"{amount:.4f}"


def about(seconds: float) -> str:
    """Two figures at most."""
    if seconds < MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < HOUR_S:
        return f"{seconds / MINUTE_S:.0f} min"
    if seconds < DAY_S:
        return f"{seconds // HOUR_S:.0f} h {seconds % HOUR_S // MINUTE_S:.0f} min"
    return f"{seconds // DAY_S:.0f} d {seconds % DAY_S // HOUR_S:.0f} h"
