"""Common parts of charts as Vega-Lite specifications: colours, sizes, scales, intervals in rows,
and places of names. Each mark has its tooltip in the field `tip`.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, product
from math import ceil, dist, log10
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
NEAR = 14.0  # px from a point, up to which its name is seen to be its own
# Widths of characters in Arial at 12 px, in px, a little generously.
_WIDTHS = {**dict.fromkeys("ijl.,:;|!'()[]ftrI ", 4.0), **dict.fromkeys("mwMW@%…", 11.0)}
_USUAL, _UPPER, _WIDE = 6.8, 8.8, 12.5


class Box(Struct, frozen=True):
    """A rectangle in px, from the upper left."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point in the box that is nearest to another point."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)

    def distance(self, x: float, y: float) -> float:
        return dist(self.nearest(x, y), (x, y))

    def lies_in(self, other: "Box") -> bool:
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


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


def step_of(span: float, most: int) -> float:
    """The round step with which a span has at most so many ticks."""
    least = span / most
    power = 10.0 ** ceil(log10(least) - 1)
    return next(power * n for n in (1, 2, 5, 10) if power * n >= least * 0.999)


def rename_entries(data: Data, field: str, names: Mapping[str, str]) -> list[Mapping[str, Any]]:
    return [{**entry, field: names[entry[field]]} for entry in data]


def intervals(data: Data, models: Sequence[str], title: str, scale: Spec) -> Specs:
    """A point with its interval for each `row`; one panel for each `panel`, if any."""
    return for_both_sizes(lambda size: _intervals(data, models, title, scale, size))


def _intervals(data: Data, models: Sequence[str], title: str, scale: Spec, size: Size) -> Spec:
    names = _names(data, "row", size.longest_name)
    # Where there is no room beside the rows, their names stand above them.
    is_above = size.is_narrow and any(short != name for name, short in names.items())
    if is_above:
        names = _names(data, "row", size.width - 20)
    room = 0 if is_above else min(size.longest_name, widest(names.values()))
    entries = rename_entries(data, "row", names)
    width = size.width - 20 - room
    inner = {
        "width": width,
        "height": {"step": 36 if is_above else 20 if "panel" in data[0] else 26},
        "layer": _points(
            by_model(models),
            _rows([*names.values()], is_above=is_above),
            {
                "type": "quantitative",
                "scale": scale,
                "title": title,
                "axis": {"tickCount": size.n_ticks, "titleLimit": size.width},
            },
        ),
    }
    if "panel" not in data[0]:
        return whole({"data": {"values": entries}, **inner})
    panels = _names(data, "panel", width)
    return whole(
        {
            "data": {"values": rename_entries(entries, "panel", panels)},
            "facet": {
                "row": {
                    "field": "panel",
                    "sort": [*panels.values()],
                    "header": {
                        "labelAngle": 0,
                        "labelAnchor": "start",
                        "labelOrient": "top",
                        "labelPadding": 2,
                        "labelFontWeight": "bold" if is_above else "normal",
                    },
                }
            },
            "spacing": 12,
            "spec": inner,
        }
    )


def _names(data: Iterable[Mapping[str, Any]], field: str, most: float) -> Mapping[str, str]:
    return shorten([entry[field] for entry in data], most)


def _points(style: Spec, y: Spec, x: Spec) -> list[Spec]:
    return [
        {
            "transform": [{"filter": "datum.low < datum.high"}],
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {
                "y": y,
                "x": {**x, "field": "low"},
                "x2": {"field": "high"},
                "color": style["color"],
                **TIP,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 64, "opacity": 1},
            "encoding": {"y": y, "x": {**x, "field": "value"}, **style, **TIP},
        },
    ]


def _rows(names: Sequence[str], *, is_above: bool) -> Spec:
    above = {"labelAlign": "left", "labelPadding": 0, "labelOffset": -11, "zindex": 1}
    return {
        "field": "row",
        "type": "nominal",
        "sort": [*names],
        "title": None,
        "axis": {"labelColor": colour(INK), "grid": False, **(above if is_above else {})},
    }


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


def place_names(
    points: Sequence[tuple[float, float]], texts: Sequence[str], lines: Sequence[Box], frame: Box
) -> list[Box]:
    """Places of the points' names in px: near the point and over nothing else where there is room,
    otherwise over few lines, or farther above or below.
    """
    marks = [Box(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    placed_boxes: list[Box] = []
    for n, ((x, y), text) in enumerate(zip(points, texts, strict=True)):
        obstacles = [*marks[:n], *marks[n + 1 :], *placed_boxes]
        tried = [*_boxes_around(x, y, width_of(text), frame)]
        free = [box for box in tried if not any(box.meets(other) for other in obstacles)]
        near = [box for box in free if box.distance(x, y) <= NEAR] or free[:1] or tried[:1]
        placed_boxes.append(min(near, key=lambda box: sum(map(box.meets, lines))))
    return placed_boxes


def _boxes_around(x: float, y: float, width: float, frame: Box) -> Iterable[Box]:
    """Boxes of a text inside a frame, the nearest to the point first."""
    gap, line, finely = 9.0, 15.0, 5.0
    boxes: list[Box] = []
    for step, way in product(range(int((frame.bottom - frame.top) / finely)), (-1, 1)):
        top = y - line / 2 + way * step * finely
        lefts = [x + gap, x - gap - width]
        if step * finely > line:  # above and below the point, and one name farther
            lefts += [x - width / 2, x - 2 * (gap + width), x + 2 * gap + width]
        boxes += [Box(left, top, left + width, top + line) for left in lefts]
    inside = [box for box in boxes if box.lies_in(frame)] or boxes[:1]
    return sorted(inside, key=lambda box: box.distance(x, y))
