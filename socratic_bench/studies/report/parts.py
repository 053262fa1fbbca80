"""What a report is put together from: sections of paragraphs, charts and tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

UNKNOWN = "\u2013"


class Column(Struct, frozen=True, kw_only=True):
    title: str
    is_number: bool = True


class Specs(Struct, frozen=True, kw_only=True):
    """Vega-Lite specifications of one chart, whose colours are those of `palette`: as wide as a
    page, and as a phone.
    """

    wide: Mapping[str, Any]
    narrow: Mapping[str, Any]


class Chart(Struct, frozen=True, kw_only=True):
    """`name` is that of its file, `description` says what it shows to those who do not see it."""

    name: str
    title: str
    description: str
    specs: Specs


class Figure(Struct, frozen=True, kw_only=True):
    """A table of cells as they are shown, the first of each row naming the row, and the chart above
    it that shows the same, if there is one.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    chart: Chart | None = None


class Section(Struct, frozen=True, kw_only=True):
    """One heading and what stands below it."""

    name: str
    title: str
    paragraphs: Sequence[str] = ()
    figures: Sequence[Figure] = ()


def columns(*titles: str | Column) -> list[Column]:
    """What is given by its title alone is of numbers."""
    return [Column(title=one) if isinstance(one, str) else one for one in titles]


def words(title: str) -> Column:
    """A column that is not of numbers."""
    return Column(title=title, is_number=False)


def number(value: float | None, places: int = 2) -> str:
    """To so many places, without a sign where it rounds to zero."""
    if value is None:
        return UNKNOWN
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if not float(text) else text


def percent(value: float | None) -> str:
    return UNKNOWN if value is None else f"{number(100 * value, 0)} %"


def between(low: float | None, high: float | None, places: int = 2) -> str:
    if low is None and high is None:
        return UNKNOWN
    return f"{number(low, places)} to {number(high, places)}"


def usd(value: float | None) -> str:
    """With three significant digits, or in cents."""
    if value is None:
        return UNKNOWN
    return f"{value:.2f}" if value >= 1 or not value else f"{value:#.3g}"


def counted(n: int, what: str) -> str:
    """Such as "1 run" or "2 runs"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def listed(words: Sequence[str]) -> str:
    """Such as "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
