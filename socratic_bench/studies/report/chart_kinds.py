"""Vega-Lite specifications of each kind of chart: heat maps, lines over turns, points."""

from collections.abc import Sequence
from typing import Any

from socratic_bench.studies.report.charts import (
    INK,
    MUTED,
    PAPER,
    STEPS,
    TIP,
    Data,
    Size,
    Spec,
    by_model,
    colour,
    for_both_sizes,
    rename_entries,
    series,
    shape,
    shorten,
    whole,
    widest,
)
from socratic_bench.studies.report.parts import Specs

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
    x = {
        "field": "column",
        "type": "nominal",
        "sort": [*above.values()],
        "title": None,
        "scale": {"domain": [*above.values()]},
        "axis": {
            "orient": "top",
            "labelAngle": 0 if fits else -45 if size.is_narrow else -25,
            "grid": False,
        },
    }
    y = {
        "field": "row",
        "type": "nominal",
        "sort": [*along.values()],
        "title": None,
        "scale": {"domain": [*along.values()]},
        "axis": {"labelColor": colour(INK), "grid": False},
    }
    return whole(
        {
            "data": {"values": rename_entries(rename_entries(data, "row", along), "column", above)},
            "width": {"step": step},
            "height": {"step": 30},
            "encoding": {"x": x, "y": y},
            "layer": [
                {
                    "mark": {"type": "rect", "stroke": colour(PAPER), "strokeWidth": 2},
                    "encoding": {
                        "color": {
                            "field": "step",
                            "type": "ordinal",
                            "scale": {
                                "domain": [*range(len(STEPS))],
                                "range": [colour(step) for step in STEPS],
                            },
                            "legend": None,
                        },
                        **TIP,
                    },
                },
                *(
                    {
                        "transform": [{"filter": f"datum.is_dark == {str(is_dark).lower()}"}],
                        "mark": {"type": "text", "color": colour(PAPER if is_dark else INK)},
                        "encoding": {"text": {"field": "text"}},
                    }
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
    x = {
        "field": "turn",
        "type": "quantitative",
        "title": "Turn",
        "scale": {"domain": [0, last], "nice": False},
        "axis": {"values": [*range(0, int(last) + 1, step)], "grid": False, "format": "d"},
    }
    y = {
        "type": "quantitative",
        "scale": axis[1],
        "title": axis[0],
        "axis": {"tickCount": 5, "labelPadding": 8},
    }
    names = shorten(models, width)
    panels = [
        {
            "title": {
                "text": names[model],
                "anchor": "start",
                "color": colour(INK),
                "fontSize": 12,
                "fontWeight": "normal",
            },
            "width": width,
            "height": 120 if size.is_narrow else 150,
            "layer": [
                *_behind(models, model, x, panel_y),
                *_front(n, model, x, panel_y),
            ],
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
    most = 1 if size.is_narrow else min(3, len(models))
    widths = {n: (size.width + 200 * (n > 1)) // n - frame - GAP // n for n in range(1, most + 1)}
    named = widest(models)
    columns = next((n for n in range(most, 1, -1) if widths[n] >= named), min(2, most))
    return columns, widths[columns]


def _behind(models: Sequence[str], model: str, x: Spec, y: Spec) -> list[Spec]:
    if not behind_words(models):
        return []
    return [
        {
            "transform": [
                {"filter": {"field": "model", "oneOf": [m for m in models if m != model]}}
            ],
            "mark": {
                "type": "line",
                "strokeWidth": 1,
                "color": colour(MUTED),
                "opacity": 0.45,
            },
            "encoding": {
                "x": x,
                "y": {**y, "field": "value"},
                "detail": {"field": "model"},
                **_NAME,
            },
        }
    ]


def _front(n: int, model: str, x: Spec, y: Spec) -> list[Spec]:
    panel = {"transform": [{"filter": {"field": "model", "equal": model}}]}
    tint, point = series(n), {"type": "point", "filled": True, "size": 36, "opacity": 1}
    middle = {"y": {**y, "field": "value"}}
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    return [
        {
            **panel,
            "mark": {"type": "area", "opacity": 0.18, "color": tint},
            "encoding": {"x": x, **ends, **_NAME},
        },
        {
            **panel,
            "mark": {"type": "line", "strokeWidth": 2, "color": tint},
            "encoding": {"x": x, **middle, **_NAME},
        },
        {
            **panel,
            "mark": {**point, "color": tint, "shape": shape(n)},
            "encoding": {"x": x, **middle, **TIP},
        },
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
    across, up = (
        {
            "type": "quantitative",
            "title": title,
            "scale": scale,
            "axis": {"tickCount": size.n_ticks, "titleLimit": size.width - 40},
        }
        for title, scale in (x, y)
    )
    legend = {"title": None, "orient": "bottom", "columns": 1, "labelLimit": 0, "symbolOpacity": 1}
    style = {key: {**value, "legend": legend} for key, value in by_model([*names.values()]).items()}
    point: dict[str, Any] = {"x": {**across, "field": "x"}, "y": {**up, "field": "y"}}
    lines: list[Spec] = [
        {
            "transform": [{"filter": f"isValid(datum.{axis}_low) && isValid(datum.{axis}_high)"}],
            "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.4},
            "encoding": {
                **point,
                axis: {**point[axis], "field": f"{axis}_low"},
                f"{axis}2": {"field": f"{axis}_high"},
                "color": style["color"],
                **TIP,
            },
        }
        for axis in ("x", "y")
    ]
    mark = {"type": "point", "filled": True, "size": 100, "opacity": 1}
    return whole(
        {
            "data": {"values": rename_entries(data, "model", names)},
            "width": size.width - 60,
            "height": 240 if size.is_narrow else 300,
            "layer": [*lines, {"mark": mark, "encoding": {**point, **style, **TIP}}],
        }
    )
