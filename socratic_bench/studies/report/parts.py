"""What a report is put together from: sections of paragraphs, charts and tables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

UNKNOWN = "\u2013"
# Text as it can be shown, and where a judge's evidence stands in it.

# What changes the direction of writing, shows nothing, or is no character.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
_ALIKE = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}
LONG = 100_000
Span = tuple[str, int, int]


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


def columns(*titles: str | Column) -> list[Column]:
    """What is given by its title alone is of numbers."""
    return [Column(title=one) if isinstance(one, str) else one for one in titles]


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


def shown_text(text: str) -> str:
    """With the names of characters that would not be seen, or would turn the text around them."""
    return _UNSEEN.sub(_name, text.replace("\r\n", "\n"))


def _name(found: re.Match[str]) -> str:
    return f"⟨U+{ord(found[0]):04X}⟩"


def spans_of(reply: str, quotes: Mapping[str, str | None]) -> Iterator[Span]:
    """Where each quote stands in a reply, in UTF-16 units, as scripts count; those that do not
    stand there are left out. Case, white space and typographic signs make no difference, except in
    replies that nobody reads to the end.
    """
    folded: tuple[str, list[int]] | None = None
    for name, quote in quotes.items():
        sought = shown_text(quote or "").strip()
        start = reply.find(sought) if sought else -1
        end = start + len(sought)
        if sought and start < 0 and len(reply) < LONG:
            folded = folded or _plain(reply)
            start, end = _found_in(folded, _plain(sought)[0])
        if start >= 0:
            yield name, _units(reply[:start]), _units(reply[:end])


def _found_in(folded: tuple[str, list[int]], sought: str) -> tuple[int, int]:
    plain, places = folded
    at = plain.find(sought)
    return (-1, -1) if at < 0 else (places[at], places[at + len(sought) - 1] + 1)


def _plain(text: str) -> tuple[str, list[int]]:
    """Folded text, and where each of its characters stands in the text."""
    found: list[str] = []
    places: list[int] = []
    for n, sign in enumerate(text):
        is_space = sign.isspace()
        if is_space and found and found[-1] == " ":
            continue
        for one in " " if is_space else _ALIKE.get(sign, sign).casefold():
            found.append(one)
            places.append(n)
    return "".join(found), places


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
