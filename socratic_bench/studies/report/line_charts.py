"""Specifications of charts over turns."""

from collections.abc import Mapping, Sequence

from socratic_bench.studies.report.charts import TIP, Data, Size, Spec, both, step_of, whole
from socratic_bench.studies.report.labels import shortened, widest
from socratic_bench.studies.report.palette import INK, MUTED, colour, series, shape
from socratic_bench.studies.report.parts import Specs

# From so many models on, the lines of all others would hide that of a panel's own.
MOST_BEHIND = 5
GAP = 20
_NAME: Spec = {"description": {"field": "model"}}


def over_turns(data: Data, models: Sequence[str], title: str, scale: Spec, *, steps: bool) -> Specs:
    """A line with its band over turns: a panel for each model, the others' lines behind it where
    these are few.
    """
    return both(lambda size: _over_turns(data, models, (title, scale), size, is_stepped=steps))


def behind_words(models: Sequence[str]) -> str:
    """What a description says of the lines behind."""
    return ", and the other models' lines in grey" if 1 < len(models) <= MOST_BEHIND else ""


def _over_turns(
    data: Data, models: Sequence[str], axis: tuple[str, Spec], size: Size, *, is_stepped: bool
) -> Spec:
    columns, width = _grid(models, size)
    last = max(1.0, *(one["turn"] for one in data))
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
    kind = {"interpolate": "step-after"} if is_stepped else {}
    names = shortened(models, width)
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
            "layer": [*_behind(models, model, x, own, kind), *_front(n, model, x, own, kind)],
        }
        for n, model in enumerate(models)
        # What the first of a line says of its axis, the others need not.
        for own in ({**y, "title": None} if n % columns else y,)
    ]
    return whole(
        {"data": {"values": [*data]}, "concat": panels, "columns": columns, "spacing": GAP}
    )


def _grid(models: Sequence[str], size: Size) -> tuple[int, int]:
    """How many panels stand side by side, and how wide each is: as many as have room for names."""
    frame = 66  # px, of an axis
    most = 1 if size.is_narrow else min(3, len(models))
    widths = {n: (size.width + 200 * (n > 1)) // n - frame - GAP // n for n in range(1, most + 1)}
    named = widest(models)
    columns = next((n for n in range(most, 1, -1) if widths[n] >= named), min(2, most))
    return columns, widths[columns]


def _behind(
    models: Sequence[str], model: str, x: Spec, y: Spec, kind: Mapping[str, str]
) -> list[Spec]:
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
                **kind,
            },
            "encoding": {
                "x": x,
                "y": {**y, "field": "value"},
                "detail": {"field": "model"},
                **_NAME,
            },
        }
    ]


def _front(n: int, model: str, x: Spec, y: Spec, kind: Mapping[str, str]) -> list[Spec]:
    own = {"transform": [{"filter": {"field": "model", "equal": model}}]}
    tint, point = series(n), {"type": "point", "filled": True, "size": 36, "opacity": 1}
    middle = {"y": {**y, "field": "value"}}
    ends = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    return [
        {
            **own,
            "mark": {"type": "area", "opacity": 0.18, "color": tint, **kind},
            "encoding": {"x": x, **ends, **_NAME},
        },
        {
            **own,
            "mark": {"type": "line", "strokeWidth": 2, "color": tint, **kind},
            "encoding": {"x": x, **middle, **_NAME},
        },
        {
            **own,
            "mark": {**point, "color": tint, "shape": shape(n)},
            "encoding": {"x": x, **middle, **TIP},
        },
    ]
