"""Specifications of charts of two figures against each other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from socratic_bench.studies.report.charts import (
    TIP,
    Data,
    Size,
    Spec,
    both,
    by_model,
    step_of,
    whole,
)
from socratic_bench.studies.report.labels import NEAR, Box, placed, shortened
from socratic_bench.studies.report.palette import MUTED, colour
from socratic_bench.studies.report.parts import Specs

FEW = 12  # points, beside which there is room for long names


class _Frame(Struct, frozen=True, kw_only=True):
    """Where values stand in a drawing, in px."""

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


def scatter(data: Data, models: Sequence[str], x: tuple[str, Spec], y: tuple[str, Spec]) -> Specs:
    """A named point for each model, with the intervals that are known on both sides."""
    return both(lambda size: _scatter(data, models, x, y, size))


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
            "data": {"values": _named(data, frame, size)},
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
    """The ends of a scale, or the round values around all that is shown."""
    if "domain" in scale:
        low, high = scale["domain"]
        return low, high
    keys = (axis, f"{axis}_low", f"{axis}_high")
    known = [one[key] for one in data for key in keys if one.get(key) is not None]
    low, high = min(0.0, *known), max(0.0, *known)
    step = step_of((high - low) or 1.0, 6)
    return step * (low // step), -step * (-high // step) or step


def _line(across: Spec, up: Spec, tint: Spec, axis: str) -> Spec:
    """The interval of each point along an axis, where both ends are known."""
    x = {**across, "field": "x_low" if axis == "x" else "x"}
    y = {**up, "field": "y_low" if axis == "y" else "y"}
    return {
        "transform": [{"filter": f"isValid(datum.{axis}_low) && isValid(datum.{axis}_high)"}],
        "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.4},
        "encoding": {"x": x, "y": y, f"{axis}2": {"field": f"{axis}_high"}, "color": tint, **TIP},
    }


def _leader(across: Spec, up: Spec) -> Spec:
    """From a point to a name that had to stand away from it."""
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
    """Each name by its side that is nearest to its point, however wide it is in a reader's font."""
    return {
        "transform": [{"filter": f"datum.align == '{align}'"}],
        "mark": {"type": "text", "align": align, "baseline": "middle"},
        "encoding": {
            "x": {**across, "field": "name_x"},
            "y": {**up, "field": "name_y"},
            "text": {"field": "name"},
        },
    }


def _named(data: Data, frame: _Frame, size: Size) -> list[dict[str, Any]]:
    """With a place for each name in which it covers no point, no other name and, near its point,
    no interval.
    """
    most = size.width / (2.6 if len(data) <= FEW else 4)
    names = shortened([one["model"] for one in data], most)
    points = [frame.place(one["x"], one["y"]) for one in data]
    texts = [names[one["model"]] for one in data]
    lines = [line for one in data for line in _lines(one, frame)]
    boxes = placed(points, texts, lines, Box(0, -4, frame.width, frame.height))
    found = []
    for one, text, box, (x, y) in zip(data, texts, boxes, points, strict=True):
        is_far = box.distance(x, y) > NEAR
        is_before = box.right <= x
        name_x, name_y = frame.values(
            box.right if is_before else box.left, (box.top + box.bottom) / 2
        )
        end_x, end_y = frame.values(*box.nearest(x, y))
        align = "right" if is_before else "left"
        own = {"name": text, "name_x": name_x, "name_y": name_y, "align": align}
        found.append({**one, **own, "is_far": is_far, "end_x": end_x, "end_y": end_y})
    return found


def _lines(one: Mapping[str, Any], frame: _Frame) -> Iterator[Box]:
    """Where the intervals of a point are drawn."""
    if one["x_low"] is not None and one["x_high"] is not None:
        (left, y), (right, _) = (frame.place(one[end], one["y"]) for end in ("x_low", "x_high"))
        yield Box(left, y - 1, right, y + 1)
    if one["y_low"] is not None and one["y_high"] is not None:
        (x, bottom), (_, top) = (frame.place(one["x"], one[end]) for end in ("y_low", "y_high"))
        yield Box(x - 1, top, x + 1, bottom)
