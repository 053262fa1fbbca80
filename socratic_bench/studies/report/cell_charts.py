"""Specifications of charts of filled cells: shades, and shares of a whole."""

from collections.abc import Sequence

from socratic_bench.studies.report.charts import TIP, Data, Size, Spec, both, renamed, whole
from socratic_bench.studies.report.labels import shortened, widest, width_of
from socratic_bench.studies.report.palette import INK, PAPER, STEPS, colour
from socratic_bench.studies.report.parts import Specs

MARGIN = 16  # px around a word in its part: a reader's font may be wider than ours


def heat_map(data: Data, rows: Sequence[str], columns: Sequence[str]) -> Specs:
    """A cell for each known `value`, with its `text`; `step` is the shade, `is_dark` the darker
    ones. What is not in `data` is blank.
    """
    return both(lambda size: _heat_map(data, rows, columns, size))


def _heat_map(data: Data, rows: Sequence[str], columns: Sequence[str], size: Size) -> Spec:
    if size.is_narrow and len(columns) > len(rows):
        turned = [{**one, "row": one["column"], "column": one["row"]} for one in data]
        return _cells(turned, columns, rows, size)
    return _cells(data, rows, columns, size)


def _cells(data: Data, rows: Sequence[str], columns: Sequence[str], size: Size) -> Spec:
    longest = 110 if size.is_narrow else 220
    along, above = shortened(rows, longest), shortened(columns, longest)
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
            "data": {"values": renamed(renamed(data, "row", along), "column", above)},
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
                                "range": [colour(one) for one in STEPS],
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


def shares(data: Data, rows: Sequence[str], parts: Sequence[str]) -> Specs:
    """Stacked shares of one whole in a row for each model, named in a legend and inside."""
    return both(lambda size: _shares(data, rows, parts, size))


def _shares(data: Data, rows: Sequence[str], parts: Sequence[str], size: Size) -> Spec:
    is_above = size.is_narrow and widest(rows) > size.longest_name
    names = shortened(rows, size.width - 20 if is_above else size.longest_name)
    above = {"labelAlign": "left", "labelPadding": 0, "labelOffset": -22}
    x = {
        "field": "begin",
        "type": "quantitative",
        "title": "Share",
        "axis": {"format": "%", "tickCount": size.n_ticks},
        "scale": {"domain": [0, 1]},
    }
    y = {
        "field": "row",
        "type": "nominal",
        "sort": [*names.values()],
        "title": None,
        "axis": {"labelColor": colour(INK), "grid": False, **(above if is_above else {})},
    }
    shades = {part: STEPS[-1 - 2 * n] for n, part in enumerate(parts)}
    width = size.width - 20 - (0 if is_above else widest(names.values()))
    shown = [
        {**one, "is_wide": width_of(one["part"]) + MARGIN <= width * (one["end"] - one["begin"])}
        for one in renamed(data, "row", names)
    ]
    return whole(
        {
            "data": {"values": shown},
            "width": width,
            "height": {"step": 54 if is_above else 34},
            "layer": [
                {
                    "mark": {"type": "bar", "height": 24, "stroke": colour(PAPER)},
                    "encoding": {
                        "x": x,
                        "x2": {"field": "end"},
                        "y": y,
                        "color": {
                            "field": "part",
                            "scale": {
                                "domain": [*parts],
                                "range": [colour(shades[part]) for part in parts],
                            },
                            "legend": {
                                "orient": "top",
                                "title": None,
                                "symbolType": "square",
                                "labelColor": colour(INK),
                                "labelFontSize": 12,
                            },
                        },
                        **TIP,
                    },
                },
                *(
                    {
                        "transform": [
                            {"filter": f"datum.is_wide && datum.is_dark == {str(dark).lower()}"}
                        ],
                        "mark": {"type": "text", "color": colour(PAPER if dark else INK)},
                        "encoding": {
                            "x": {**x, "field": "middle"},
                            "y": y,
                            "text": {"field": "part"},
                        },
                    }
                    for dark in (True, False)
                ),
            ],
        }
    )
