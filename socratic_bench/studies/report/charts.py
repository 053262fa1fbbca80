"""Charts as Vega-Lite specifications: heat maps, lines over turns, scatter plots. All have the same
colours, sizes and scales, and each mark has its tooltip in the field `tip`.
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
    """The width of a drawing in px, and its number of ticks."""

    width: int
    n_ticks: int
    is_narrow: bool = False


WIDE = Size(width=720, n_ticks=6)
# Fits into the 358 px that a page has on a phone.
NARROW = Size(width=330, n_ticks=4, is_narrow=True)
SERIES = tuple(f"c{n}" for n in range(8))
SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "cross"),
    *("triangle-down", "triangle-right", "triangle-left"),
)
STEPS = tuple(f"h{n}" for n in range(7))
_SERIES_COLOURS = "#0072b2 #b34700 #007a5a #9b4f7e #8a6d00 #2f7fb0 #57606a #000000"
_STEP_COLOURS = "#eef4f9 #d6e4f0 #b8d1e6 #94bad9 #6ea3cb #2f75ab #174f7d"
# On paper, as in a page in light colours.
LIGHT: Mapping[str, str] = {
    INK: "#1b1f24",
    MUTED: "#57606a",
    GRID: "#d8dee4",
    PAPER: "#ffffff",
    **dict(zip(SERIES, _SERIES_COLOURS.split(), strict=True)),
    **dict(zip(STEPS, _STEP_COLOURS.split(), strict=True)),
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


def extent(low: float | None, high: float | None) -> Spec:
    """A scale with known ends; without them it begins at zero."""
    if low is not None and high is not None:
        return {"domain": [low, high], "nice": False}
    return {"zero": True, "nice": True}


def layer(mark: Spec, encoding: Spec, only: object = None) -> Spec:
    """Marks of one kind; `only` is a condition on their data."""
    transform = {"transform": [{"filter": only}]} if only else {}
    return {**transform, "mark": mark, "encoding": encoding}


def quantitative(title: str | None, scale: Spec, axis: Spec) -> Spec:
    return {"type": "quantitative", "title": title, "scale": scale, "axis": axis}


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
    room = (most - width_of(ELLIPSIS)) / 2

    def begin(words: str) -> str:
        return words[: sum(end <= room for end in accumulate(map(_width, words)))]

    # The end tells models of a family apart: their version.
    return f"{begin(text)}{ELLIPSIS}{begin(text[::-1])[::-1]}"


# From so many models on, the lines of all others would hide that of a panel's own.
MOST_BEHIND = 5
MOST_TICKS = 8
GAP = 20
_NAME: Spec = {"description": {"field": "model"}}


def heat_map(data: Data, rows: Sequence[str], columns: Sequence[str]) -> Specs:
    """A cell for each known `value`, with its `text`; `step` is the shade, `is_dark` marks dark
    shades. Cells that are not in `data` stay blank.
    """
    return for_both_sizes(lambda size: _heat_map(data, rows, columns, size))


def _heat_map(data: Data, rows: Sequence[str], columns: Sequence[str], size: Size) -> Spec:
    if size.is_narrow and len(columns) > len(rows):
        turned = [{**cell, "row": cell["column"], "column": cell["row"]} for cell in data]
        return _cells(turned, columns, rows, size)
    return _cells(data, rows, columns, size)


def _cells(data: Data, rows: Sequence[str], columns: Sequence[str], size: Size) -> Spec:
    longest = 110 if size.is_narrow else 220
    along, above = shorten(rows, longest), shorten(columns, longest)
    room = size.width - min(longest, widest(along.values()))
    step = max(32 if size.is_narrow else 54, int(room // max(1, len(columns))))
    fits = widest(above.values()) < step
    if not fits and size.is_narrow:
        # The last name leans out of the picture.
        step = max(26, int((room - longest * 0.7) // len(columns)))
    angle = 0 if fits else -45 if size.is_narrow else -25
    top = {"orient": "top", "labelAngle": angle, "grid": False}
    side = {"labelColor": colour(INK), "grid": False}
    x, y = (
        {
            "field": field,
            "type": "nominal",
            "sort": names,
            "title": None,
            "scale": {"domain": names},
            "axis": axis,
        }
        for field, names, axis in (
            ("column", [*above.values()], top),
            ("row", [*along.values()], side),
        )
    )
    shades = {"domain": [*range(len(STEPS))], "range": [colour(step) for step in STEPS]}
    shade = {"field": "step", "type": "ordinal", "scale": shades, "legend": None}
    return whole(
        {
            "data": {"values": rename_entries(rename_entries(data, "row", along), "column", above)},
            "width": {"step": step},
            "height": {"step": 30},
            "encoding": {"x": x, "y": y},
            "layer": [
                layer(
                    {"type": "rect", "stroke": colour(PAPER), "strokeWidth": 2},
                    {"color": shade, **TIP},
                ),
                *(
                    layer(
                        {"type": "text", "color": colour(PAPER if is_dark else INK)},
                        {"text": {"field": "text"}},
                        f"datum.is_dark == {str(is_dark).lower()}",
                    )
                    for is_dark in (True, False)
                ),
            ],
        }
    )


def over_turns(data: Data, models: Sequence[str], title: str, scale: Spec) -> Specs:
    """A line with its band in a panel for each model; lines of the other models stand behind it if
    they are few.
    """
    return for_both_sizes(lambda size: _over_turns(data, models, (title, scale), size))


def _over_turns(data: Data, models: Sequence[str], axis: tuple[str, Spec], size: Size) -> Spec:
    columns, width = _grid(models, size)
    last = max(1.0, *(point["turn"] for point in data))
    step = next((step for step in (1, 2, 5, 10, 20) if last <= MOST_TICKS * step), 50)
    ticks = {"values": [*range(0, int(last) + 1, step)], "grid": False, "format": "d"}
    x = {"field": "turn", **quantitative("Turn", {"domain": [0, last], "nice": False}, ticks)}
    y = quantitative(axis[0], axis[1], {"tickCount": 5, "labelPadding": 8})
    anchor = {"anchor": "start", "color": colour(INK), "fontSize": 12, "fontWeight": "normal"}
    names = shorten(models, width)
    panels = [
        {
            "title": {"text": names[model], **anchor},
            "width": width,
            "height": 120 if size.is_narrow else 150,
            "layer": [*_behind(models, model, x, panel_y), *_front(n, model, x, panel_y)],
        }
        for n, model in enumerate(models)
        # What the first of a line says of its axis, the others need not.
        for panel_y in ({**y, "title": None} if n % columns else y,)
    ]
    return whole(
        {"data": {"values": [*data]}, "concat": panels, "columns": columns, "spacing": GAP}
    )


def _grid(models: Sequence[str], size: Size) -> tuple[int, int]:
    """Number of panels side by side, and the width of each: as many as fit with names."""
    frame = 66  # px, of an axis
    # Four stand in two lines of two.
    most = 1 if size.is_narrow else 2 if len(models) == 4 else min(3, len(models))  # noqa: PLR2004
    widths = {n: (size.width + 200 * (n > 1)) // n - frame - GAP // n for n in range(1, most + 1)}
    named = widest(models)
    columns = next((n for n in range(most, 1, -1) if widths[n] >= named), min(2, most))
    return columns, widths[columns]


def _behind(models: Sequence[str], model: str, x: Spec, y: Spec) -> list[Spec]:
    if not behind_words(models):
        return []
    others = {"field": "model", "oneOf": [other for other in models if other != model]}
    thin = {"type": "line", "strokeWidth": 1, "color": colour(MUTED), "opacity": 0.45}
    middle = {"x": x, "y": {**y, "field": "value"}}
    return [layer(thin, {**middle, "detail": {"field": "model"}, **_NAME}, others)]


def _front(n: int, model: str, x: Spec, y: Spec) -> list[Spec]:
    own, tint = {"field": "model", "equal": model}, series(n)
    middle = {"x": x, "y": {**y, "field": "value"}}
    ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    point = {"type": "point", "filled": True, "size": 36, "opacity": 1}
    return [
        layer({"type": "area", "opacity": 0.18, "color": tint}, {**ends, **_NAME}, own),
        layer({"type": "line", "strokeWidth": 2, "color": tint}, {**middle, **_NAME}, own),
        layer({**point, "color": tint, "shape": shape(n)}, {**middle, **TIP}, own),
    ]


def behind_words(models: Sequence[str]) -> str:
    """The part of a description about the lines behind."""
    return ", and the other models' lines in grey" if 1 < len(models) <= MOST_BEHIND else ""


def scatter(data: Data, models: Sequence[str], x: tuple[str, Spec], y: tuple[str, Spec]) -> Specs:
    """A point for each model, with the known intervals in both directions, and a legend."""
    return for_both_sizes(lambda size: _scatter(data, models, x, y, size))


def _scatter(
    data: Data, models: Sequence[str], x: tuple[str, Spec], y: tuple[str, Spec], size: Size
) -> Spec:
    names = shorten(models, size.width - 40)
    ticks = {"tickCount": size.n_ticks, "titleLimit": size.width - 40}
    across, up = (quantitative(title, scale, ticks) for title, scale in (x, y))
    legend = {
        "title": None,
        "orient": "bottom",
        "columns": 1,
        "labelLimit": 0,
        "symbolOpacity": 1,
        "labelColor": colour(INK),
        "labelFontSize": 12,
    }
    style = {  # the same colour and shape of a model in all charts
        channel: {
            "field": "model",
            "type": "nominal",
            "scale": {"domain": [*names.values()], "range": [of(n) for n, _ in enumerate(names)]},
            "legend": legend,
        }
        for channel, of in (("color", series), ("shape", shape))
    }
    point: dict[str, Any] = {"x": {**across, "field": "x"}, "y": {**up, "field": "y"}}
    lines = [
        layer(
            {"type": "rule", "strokeWidth": 1.5, "opacity": 0.4},
            {
                **point,
                axis: {**point[axis], "field": f"{axis}_low"},
                f"{axis}2": {"field": f"{axis}_high"},
                "color": style["color"],
                **TIP,
            },
            f"isValid(datum.{axis}_low) && isValid(datum.{axis}_high)",
        )
        for axis in ("x", "y")
    ]
    mark = {"type": "point", "filled": True, "size": 100, "opacity": 1}
    return whole(
        {
            "data": {"values": rename_entries(data, "model", names)},
            "width": size.width - 60,
            "height": 240 if size.is_narrow else 300,
            "layer": [*lines, layer(mark, {**point, **style, **TIP})],
        }
    )
