"""Vega-Lite specifications of each kind of chart: heat maps, lines over turns,
scatter plots.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from socratic_bench.studies.report.charts import (
    INK,
    MUTED,
    NEAR,
    PAPER,
    STEPS,
    TIP,
    Box,
    Data,
    Size,
    Spec,
    by_model,
    colour,
    for_both_sizes,
    place_names,
    rename_entries,
    series,
    shape,
    shorten,
    step_of,
    whole,
    widest,
)
from socratic_bench.studies.report.parts import Specs

# From so many models on, the lines of all others would hide that of a panel's own.
MOST_BEHIND = 5
GAP = 20
_NAME: Spec = {"description": {"field": "model"}}
FEW = 12  # points, beside which there is room for long names


class _Frame(Struct, frozen=True, kw_only=True):
    """Converts values to places in a drawing, in px."""

    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def place(self, x: float, y: float) -> tuple[float, float]:
        (left, right), (low, high) = self.x, self.y
        return (
            (x - left) / (right - left) * self.width,
            self.height - (y - low) / (high - low) * self.height,
        )

    def values(self, across: float, down: float) -> tuple[float, float]:
        """What stands at a place."""
        (left, right), (low, high) = self.x, self.y
        return (
            left + across / self.width * (right - left),
            low + (self.height - down) / self.height * (high - low),
        )


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
    step = max(1, round(step_of(last, 6)))
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
    """A named point for each model, with the known intervals in both directions."""
    return for_both_sizes(lambda size: _scatter(data, models, x, y, size))


def _scatter(
    data: Data, models: Sequence[str], x: tuple[str, Spec], y: tuple[str, Spec], size: Size
) -> Spec:
    frame = _Frame(
        width=size.width - 60,
        height=280 if size.is_narrow else 360,
        x=_domain(data, "x", x[1]),
        y=_domain(data, "y", y[1]),
    )
    across, up = (
        {
            "type": "quantitative",
            "title": title,
            "scale": {"domain": [*domain], "nice": False},
            "axis": {"tickCount": size.n_ticks, "titleLimit": size.width - 40},
        }
        for title, domain in ((x[0], frame.x), (y[0], frame.y))
    )
    style = by_model(models)
    return whole(
        {
            "data": {"values": _name_labels(data, frame, size)},
            "width": frame.width,
            "height": frame.height,
            "layer": [
                _line(across, up, style["color"], "x"),
                _line(across, up, style["color"], "y"),
                _leader(across, up),
                {
                    "mark": {"type": "point", "filled": True, "size": 100, "opacity": 1},
                    "encoding": {
                        "x": {**across, "field": "x"},
                        "y": {**up, "field": "y"},
                        **style,
                        **TIP,
                    },
                },
                *(_name(across, up, align) for align in ("left", "right")),
            ],
        }
    )


def _domain(data: Data, axis: str, scale: Spec) -> tuple[float, float]:
    """The ends of a scale: the fixed ones, or round values around the data."""
    if "domain" in scale:
        low, high = scale["domain"]
        return low, high
    keys = (axis, f"{axis}_low", f"{axis}_high")
    values = [point[key] for point in data for key in keys if point.get(key) is not None]
    low, high = min(0.0, *values), max(0.0, *values)
    step = step_of((high - low) or 1.0, 6)
    return step * (low // step), -step * (-high // step) or step


def _name_labels(data: Data, frame: _Frame, size: Size) -> list[dict[str, Any]]:
    """Places of the names: over no point, no other name, and no interval near its point."""
    most = size.width / (2.6 if len(data) <= FEW else 4)
    names = shorten([point["model"] for point in data], most)
    points = [frame.place(point["x"], point["y"]) for point in data]
    texts = [names[point["model"]] for point in data]
    lines = [line for point in data for line in _lines(point, frame)]
    boxes = place_names(points, texts, lines, Box(0, -4, frame.width, frame.height))
    labels = []
    for point, text, box, (x, y) in zip(data, texts, boxes, points, strict=True):
        is_far = box.distance(x, y) > NEAR
        is_before = box.right <= x
        name_x, name_y = frame.values(
            box.right if is_before else box.left, (box.top + box.bottom) / 2
        )
        end_x, end_y = frame.values(*box.nearest(x, y))
        align = "right" if is_before else "left"
        label = {"name": text, "name_x": name_x, "name_y": name_y, "align": align}
        labels.append({**point, **label, "is_far": is_far, "end_x": end_x, "end_y": end_y})
    return labels


def _lines(point: Mapping[str, Any], frame: _Frame) -> Iterator[Box]:
    """Boxes of the intervals of a point."""
    if point["x_low"] is not None and point["x_high"] is not None:
        (left, y), (right, _) = (frame.place(point[end], point["y"]) for end in ("x_low", "x_high"))
        yield Box(left, y - 1, right, y + 1)
    if point["y_low"] is not None and point["y_high"] is not None:
        (x, bottom), (_, top) = (frame.place(point["x"], point[end]) for end in ("y_low", "y_high"))
        yield Box(x - 1, top, x + 1, bottom)


def _line(across: Spec, up: Spec, tint: Spec, axis: str) -> Spec:
    """The interval of each point along one axis, where both ends are known."""
    x = {**across, "field": "x_low" if axis == "x" else "x"}
    y = {**up, "field": "y_low" if axis == "y" else "y"}
    return {
        "transform": [{"filter": f"isValid(datum.{axis}_low) && isValid(datum.{axis}_high)"}],
        "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.4},
        "encoding": {"x": x, "y": y, f"{axis}2": {"field": f"{axis}_high"}, "color": tint, **TIP},
    }


def _leader(across: Spec, up: Spec) -> Spec:
    """A line from a point to a name that stands away from it."""
    return {
        "transform": [{"filter": "datum.is_far"}],
        "mark": {"type": "rule", "strokeWidth": 1, "color": colour(MUTED)},
        "encoding": {
            "x": {**across, "field": "x"},
            "y": {**up, "field": "y"},
            "x2": {"field": "end_x"},
            "y2": {"field": "end_y"},
            **TIP,
        },
    }


def _name(across: Spec, up: Spec, align: str) -> Spec:
    """Each name, aligned on the side nearest to its point, so that the reader's font does not
    matter.
    """
    return {
        "transform": [{"filter": f"datum.align == '{align}'"}],
        "mark": {"type": "text", "align": align, "baseline": "middle"},
        "encoding": {
            "x": {**across, "field": "name_x"},
            "y": {**up, "field": "name_y"},
            "text": {"field": "name"},
        },
    }
