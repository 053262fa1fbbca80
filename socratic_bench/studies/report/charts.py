"""Common parts of charts as Vega-Lite specifications: colours, sizes, scales, names. Each mark has
its tooltip in the field `tip`.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct

from socratic_bench.studies.report.parts import Specs, clean_text

Spec = Mapping[str, Any]
Data = Sequence[Mapping[str, Any]]
TIP: Spec = {"description": {"field": "tip"}}
# Named colours: a CSS class in a page, a fixed colour elsewhere. In a specification each has a
# unique placeholder, so that the name can be found again in a drawing. Series are after Okabe and
# Ito (2008), which colour-blind people can tell apart, darkened for contrast.
INK, MUTED, GRID, PAPER = "ink", "muted", "grid", "paper"


class Size(Struct, frozen=True, kw_only=True):
    """Width of a drawing and longest width of names in it, in px."""

    width: int
    longest_name: int
    n_ticks: int
    is_narrow: bool = False


WIDE = Size(width=720, longest_name=300, n_ticks=6)
# Fits into the 358 px that a page has on a phone.
NARROW = Size(width=330, longest_name=120, n_ticks=4, is_narrow=True)
SERIES = tuple(f"c{n}" for n in range(8))
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
STEPS = tuple(f"h{n}" for n in range(7))
# On paper, as in a page in light colours.
LIGHT: Mapping[str, str] = {
    INK: "#1b1f24",
    MUTED: "#57606a",
    GRID: "#d8dee4",
    PAPER: "#ffffff",
    **dict(
        zip(
            SERIES,
            (
                *("#0072b2", "#b34700", "#007a5a", "#9b4f7e", "#8a6d00", "#2f7fb0"),
                *("#57606a", "#000000"),
            ),
            strict=True,
        )
    ),
    **dict(
        zip(
            STEPS,
            (*("#eef4f9", "#d6e4f0", "#b8d1e6", "#94bad9", "#6ea3cb", "#2f75ab"), "#174f7d"),
            strict=True,
        )
    ),
}
# The colour that stands for each in a specification.
NAMED: Mapping[str, str] = {name: f"#0000{n + 16:02x}" for n, name in enumerate(LIGHT)}


def colour(name: str) -> str:
    """The colour that stands for a named one in a specification."""
    return NAMED[name]


CONFIG: Spec = {
    "background": None,
    "view": {"stroke": None},
    "font": "Arial",
    "axis": {
        "labelColor": colour(MUTED),
        "titleColor": colour(MUTED),
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "domainColor": colour(GRID),
        "tickColor": colour(GRID),
        "gridColor": colour(GRID),
        "labelLimit": 0,
        "labelFlush": False,
        "titlePadding": 8,
    },
    "axisX": {"ticks": False, "labelPadding": 6},
    "axisY": {"ticks": False, "domain": False},
    "header": {"labelColor": colour(INK), "labelFontSize": 12, "title": None},
    # The mark below a text has the words.
    "text": {"color": colour(INK), "fontSize": 12, "aria": False},
}
ELLIPSIS = "…"
# Widths of characters in Arial at 12 px, in px, a little generously.
_WIDTHS = {**dict.fromkeys("ijl.,:;|!'()[]ftrI ", 4.0), **dict.fromkeys("mwMW@%…", 11.0)}
_USUAL, _UPPER, _WIDE = 6.8, 8.8, 12.5


def for_both_sizes(draw: Callable[[Size], Spec]) -> Specs:
    """A specification for each size."""
    return Specs(wide=draw(WIDE), narrow=draw(NARROW))


def whole(spec: Spec) -> Spec:
    """Complete a specification with what all charts have in common."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "config": CONFIG,
        "padding": {"left": 2, "right": 12, "top": 6, "bottom": 2},
        **spec,
    }


def by_model(models: Sequence[str], field: str = "model") -> Spec:
    """Colour and shape of each model, the same in all charts."""
    names = [*models]
    ranges = {"color": series, "shape": shape}
    return {
        channel: {
            "field": field,
            "type": "nominal",
            "scale": {"domain": names, "range": [of(n) for n, _ in enumerate(names)]},
            "legend": None,
        }
        for channel, of in ranges.items()
    }


def extent(low: float | None, high: float | None) -> Spec:
    """A scale with known ends; without them it begins at zero."""
    if low is not None and high is not None:
        return {"domain": [low, high], "nice": False}
    return {"zero": True, "nice": True}


def rename_entries(data: Data, field: str, names: Mapping[str, str]) -> list[Mapping[str, Any]]:
    return [{**entry, field: names[entry[field]]} for entry in data]


def series(n: int) -> str:
    return colour(SERIES[n % len(SERIES)])


def shape(n: int) -> str:
    return SHAPES[n % len(SHAPES)]


def width_of(text: str) -> float:
    """Upper estimate of the width of a text at 12 px, in px."""
    return sum(map(_width, text))


def _width(sign: str) -> float:
    if sign in _WIDTHS:
        return _WIDTHS[sign]
    if unicodedata.east_asian_width(sign) in "WF" or ord(sign) > 0xFFFF:  # noqa: PLR2004 -- emoji
        return _WIDE
    return _UPPER if sign.isupper() else _USUAL


def widest(texts: Iterable[str]) -> float:
    return max(map(width_of, texts), default=0.0)


def shorten(names: Sequence[str], most: float) -> Mapping[str, str]:
    """Each name on one line of at most so many px, shortened in the middle if necessary; names that
    become equal are numbered. vl-convert's own cut would split characters.
    """
    short_names: dict[str, str] = {}
    for name in dict.fromkeys(names):
        short = _cut(" ".join(clean_text(name).split()), most)
        alike, n = short, 1
        while alike in short_names.values():
            n += 1
            alike = f"{short} ({n})"
        short_names[name] = alike
    return short_names


def _cut(text: str, most: float) -> str:
    if width_of(text) <= most:
        return text
    room = most - width_of(ELLIPSIS)
    # The end tells models of a family apart: their version.
    return f"{_begin(text, room / 2)}{ELLIPSIS}{_begin(text[::-1], room / 2)[::-1]}"


def _begin(text: str, room: float) -> str:
    return text[: sum(end <= room for end in accumulate(map(_width, text)))]
