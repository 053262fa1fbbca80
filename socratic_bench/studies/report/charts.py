"""Specifications of charts in Vega-Lite: what all have in common, and intervals in rows. Each mark
has its words in the field `tip`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, log10
from typing import Any

from msgspec import Struct

from socratic_bench.studies.report.labels import shortened, widest
from socratic_bench.studies.report.palette import GRID, INK, MUTED, colour, series, shape
from socratic_bench.studies.report.parts import Specs

Spec = Mapping[str, Any]
Data = Sequence[Mapping[str, Any]]

TIP: Spec = {"description": {"field": "tip"}}
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


class Size(Struct, frozen=True, kw_only=True):
    """How wide a drawing may be, and the names in it, in px."""

    width: int
    longest_name: int
    n_ticks: int
    is_narrow: bool = False


WIDE = Size(width=720, longest_name=300, n_ticks=6)
# Fits into the 358 px that a page has on a phone.
NARROW = Size(width=330, longest_name=120, n_ticks=4, is_narrow=True)


def both(draw: Callable[[Size], Spec]) -> Specs:
    """A specification for each size."""
    return Specs(wide=draw(WIDE), narrow=draw(NARROW))


def whole(spec: Spec) -> Spec:
    """A specification with what all have in common."""
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
    """A scale with known ends; where they are open, it begins at zero."""
    if low is not None and high is not None:
        return {"domain": [low, high], "nice": False}
    return {"zero": True, "nice": True}


def step_of(span: float, most: int) -> float:
    """The round step by which at most so many ticks span more than nothing."""
    least = span / most
    power = 10.0 ** ceil(log10(least) - 1)
    return next(power * n for n in (1, 2, 5, 10) if power * n >= least * 0.999)


def renamed(data: Data, field: str, names: Mapping[str, str]) -> list[Mapping[str, Any]]:
    return [{**one, field: names[one[field]]} for one in data]


def intervals(data: Data, models: Sequence[str], title: str, scale: Spec) -> Specs:
    """A point with its interval in a row for each `row`; one panel for each `panel`, if any."""
    return both(lambda size: _intervals(data, models, title, scale, size))


def _intervals(data: Data, models: Sequence[str], title: str, scale: Spec, size: Size) -> Spec:
    names = _names(data, "row", size.longest_name)
    # Where there is no room beside the rows, their names stand above them.
    is_above = size.is_narrow and any(short != name for name, short in names.items())
    if is_above:
        names = _names(data, "row", size.width - 20)
    room = 0 if is_above else min(size.longest_name, widest(names.values()))
    shown = renamed(data, "row", names)
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
        return whole({"data": {"values": shown}, **inner})
    panels = _names(data, "panel", width)
    return whole(
        {
            "data": {"values": renamed(shown, "panel", panels)},
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
    return shortened([one[field] for one in data], most)


def _rows(names: Sequence[str], *, is_above: bool) -> Spec:
    above = {"labelAlign": "left", "labelPadding": 0, "labelOffset": -11, "zindex": 1}
    return {
        "field": "row",
        "type": "nominal",
        "sort": [*names],
        "title": None,
        "axis": {"labelColor": colour(INK), "grid": False, **(above if is_above else {})},
    }


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
