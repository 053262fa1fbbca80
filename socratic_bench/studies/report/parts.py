"""Parts of a report: sections of paragraphs, charts and tables; figures as text; safe text and
places of quotes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

MOST_PLACES = 6
UNKNOWN = "\u2013"
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
    """Vega-Lite specifications of one chart, for the width of a page and for a phone, with the
    named colours of `charts`.
    """

    wide: Mapping[str, Any]
    narrow: Mapping[str, Any]


class Chart(Struct, frozen=True, kw_only=True):
    """`name` is that of its file, `description` its alternative text."""

    name: str
    title: str
    description: str
    specs: Specs


class Figure(Struct, frozen=True, kw_only=True):
    """A table of cells as text, the first of each row naming the row, and a chart of the same
    figures, if there is one.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    chart: Chart | None = None


Titles = Iterable[str | Column]


def figure(
    caption: str,
    titles: Titles,
    rows: Sequence[Sequence[str]],
    chart: Chart | None = None,
) -> Figure:
    """A table; a title alone makes a column of numbers."""
    columns = [Column(title=title) if isinstance(title, str) else title for title in titles]
    return Figure(caption=caption, columns=columns, rows=rows, chart=chart)


class Quote(Struct, frozen=True, kw_only=True):
    """One turn in the words of its speakers; `kind` says of which kind it is, if it is of one."""

    model: str
    run_id: str
    turn: int
    title: str
    kind: str | None
    prompt: str
    reply: str


class Listing(Struct, frozen=True, kw_only=True):
    """A text whose lines and spaces count, such as a patch; a page shows it folded."""

    title: str
    text: str


class Section(Struct, frozen=True, kw_only=True):
    """A heading with paragraphs, quotes, figures and texts; folded in a page if `is_folded`."""

    name: str
    title: str
    paragraphs: Sequence[str] = ()
    quotes: Sequence[Quote] = ()
    figures: Sequence[Figure] = ()
    texts: Sequence[Listing] = ()
    is_folded: bool = False


def folded(name: str, title: str, *figures: Figure, note: str = "") -> Section:
    """A folded section of figures, with a paragraph before them."""
    paragraphs = [note] if note else []
    return Section(name=name, title=title, paragraphs=paragraphs, figures=figures, is_folded=True)


def words(title: str) -> Column:
    """A column of text."""
    return Column(title=title, is_number=False)


def number(value: float | None, places: int = 2) -> str:
    """A number with so many decimal places, without a sign where it rounds to zero."""
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


def with_limits(value: float | None, low: float | None, high: float | None, places: int = 2) -> str:
    """A figure with its interval, if it has one, in as many places as it takes to have a width."""
    while low != high and number(low, places) == number(high, places) and places < MOST_PLACES:
        places += 1
    text = number(value, places)
    return text if low is None and high is None else f"{text} ({between(low, high, places)})"


def usd(value: float | None) -> str:
    """An amount with three significant digits, or in cents."""
    if value is None:
        return UNKNOWN
    return f"{value:.2f}" if value >= 1 or not value else f"{value:#.3g}"


def count_text(n: int, what: str) -> str:
    """A count with its noun, such as "1 run" or "2 runs"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def listed(words: Sequence[str]) -> str:
    """Join names, such as "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def clean_text(text: str) -> str:
    """Text in which invisible characters, and those that change its direction, are replaced by
    their names.
    """
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text.replace("\r\n", "\n"))


def spans_of(reply: str, quotes: Mapping[str, str | None]) -> Iterator[Span]:
    """Places of quotes in a reply, in UTF-16 units as scripts count; quotes that are not found are
    left out. Case, white space and typographic signs do not matter, except in very long replies.
    """
    folded: tuple[str, list[int]] | None = None
    for name, quote in quotes.items():
        sought = clean_text(quote or "").strip()
        start = reply.find(sought) if sought else -1
        end = start + len(sought)
        if sought and start < 0 and len(reply) < LONG:
            folded = folded or _plain(reply)
            (plain, places), (sought_plain, _) = folded, _plain(sought)
            if (at := plain.find(sought_plain)) >= 0:
                start, end = places[at], places[at + len(sought_plain) - 1] + 1
        if start >= 0:
            yield name, _units(reply[:start]), _units(reply[:end])


def _plain(text: str) -> tuple[str, list[int]]:
    """Folded text, and the place of each of its characters in the text."""
    signs: list[str] = []
    places: list[int] = []
    for n, sign in enumerate(text):
        is_space = sign.isspace()
        if is_space and signs and signs[-1] == " ":
            continue
        for letter in " " if is_space else _ALIKE.get(sign, sign).casefold():
            signs.append(letter)
            places.append(n)
    return "".join(signs), places


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
