"""Sections on patches whose speed was measured: who made what faster, how sure that is, what looks
fake, how far items came, whose failures they are, and what a true success costs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import log
from statistics import fmean, median
from typing import Any

from socratic_bench.studies.report.charts import (
    INK,
    MUTED,
    TIP,
    Size,
    Spec,
    colour,
    for_both_sizes,
    layer,
    series,
    shape,
    shorten,
    whole,
)
from socratic_bench.studies.report.leaderboard import MODEL, spaced
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Column,
    Figure,
    Listing,
    Section,
    figure,
    folded,
    listed,
    number,
    percent,
    usd,
    with_limits,
    words,
)
from socratic_bench.studies.report.study import Study
from socratic_bench.studies.rows import RunRow

Own = Mapping[str, Any]
ITEM = words("Item")
# How an item ended, in the order of the legend.
STATES = ("success", "faster, but less than the human", "not shown to be faster", "failed")
ARMS = {"base": "before", "human": "human", "agent": "agent"}
_STEPS = {
    "ran": "Ran",
    "patched": "Patched",
    "applies": "Applies",
    "correct": "Tests pass",
    "improved": "Faster than the base",
    "similar": "At least .95 of the human",
    "success": "True success",
}
_OVERVIEW = (
    "Each mark is the median speed-up of one item over the code before, with its interval; the "
    "black line is the human's. An item whose name has a flag shows signs of cheating, which are "
    "listed below and judge nothing."
)
_FUNNEL = (
    "Each step needs those before it. Rates are of all planned items that can be measured; where "
    "infrastructure has lost some, a second rate leaves them out."
)
FLAG = "\u2691"


def patches(study: Study) -> Iterator[Section]:
    """All sections; nothing for a benchmark without patches."""
    if not study.views.has_patches:
        return
    yield _overview(study)
    yield _funnel(study)
    yield _items(study)
    yield from _evidence(study)
    yield _failures(study)
    yield _costs(study)
    yield _samples(study)
    yield _details(study)


def _items_of(runs: Sequence[RunRow]) -> list[Own]:
    return [turn.own for run in runs for turn in run.turns]


def _state(item: Own) -> str:
    if item["is_success"]:
        return STATES[0]
    if item["correctness"] != "pass":
        return STATES[3]
    return STATES[1] if item["improved"] else STATES[2]


def _name(item: Own) -> str:
    """The item's name, with a flag if there are signs of cheating."""
    return f"{FLAG} {item['item_id']}" if item["evidence"] else str(item["item_id"])


def _outcome(item: Own) -> str:
    return (
        "true success" if item["is_success"] else spaced(str(item["failed_by"] or "not measured"))
    )


def _limits(ratio: Mapping[str, Any] | None) -> str:
    return with_limits(ratio["median"], ratio["low"], ratio["high"]) if ratio else UNKNOWN


def _overview(study: Study) -> Section:
    figures = []
    for n, (model, runs) in enumerate(study.runs.items()):
        items = _items_of(runs)
        data = [*map(_mark, items)]
        chart = Chart(
            name=f"patches-{n}",
            title=f"{model}: how many times as fast as before",
            description=f"Speed-up of {model} by item with intervals, and that of the human.",
            specs=for_both_sizes(lambda size, data=data: _speed_chart(data, size)),  # type: ignore[misc]
        )
        rows = [
            [_name(item), _outcome(item), _limits(item["over_base"]),
             _limits(item["human_over_base"])]
            for item in items
        ]  # fmt: skip
        titles = (ITEM, words("Result"), "Speed-up", "Human's speed-up")
        figures.append(figure(model, titles, rows, chart if data else None))
    return Section(
        name="patches",
        title="Who made what faster",
        paragraphs=[_OVERVIEW],
        figures=figures,
    )


def _mark(item: Own) -> dict[str, Any]:
    over_base, human = item["over_base"] or {}, item["human_over_base"] or {}
    has_speed = item["correctness"] == "pass" and bool(over_base)
    speed = over_base["median"] if has_speed else 1.0
    return {
        "item": _name(item),
        "speed": speed,
        "low": over_base.get("low") if has_speed else None,
        "high": over_base.get("high") if has_speed else None,
        "human": human.get("median") or item["human_speedup"],
        "state": _state(item),
        "tip": f"{item['item_id']}: {_outcome(item)}, {number(speed)} times as fast; "
        f"human {number(human.get('median') or item['human_speedup'])}",
    }


def _rows_axis(data: Sequence[Mapping[str, Any]], size: Size) -> tuple[Spec, dict[str, str]]:
    names = dict(shorten([*dict.fromkeys(str(row["item"]) for row in data)], size.width / 3))
    return {
        "field": "item",
        "type": "nominal",
        "sort": None,
        "title": None,
        "scale": {"domain": [*names.values()]},
        "axis": {"labelColor": colour(INK), "grid": True},
    }, names


def _speed_chart(data: Sequence[Mapping[str, Any]], size: Size) -> Spec:
    y, names = _rows_axis(data, size)
    ends_of = [row[name] for row in data for name in ("speed", "low", "high", "human")]
    known = [1.0, *(end for end in ends_of if end)]
    x = {
        "type": "quantitative",
        "title": "Times as fast as before",
        "scale": {"type": "log", "domain": [min(known) / 1.1, max(known) * 1.1], "nice": False},
        "axis": {"tickCount": size.n_ticks, "format": "~g"},
    }
    kinds = {
        channel: {
            "field": "state",
            "type": "nominal",
            "scale": {"domain": [*STATES], "range": [*reach]},
            "legend": {
                "title": None,
                "orient": "bottom",
                "columns": 1 if size.is_narrow else 2,
                "labelLimit": 0,
                "symbolOpacity": 1,
                "labelColor": colour(INK),
                "labelFontSize": 12,
            },
        }
        for channel, reach in (
            ("color", (series(2), series(0), colour(MUTED), series(1))),
            ("shape", [shape(n) for n in (0, 1, 3, 4)]),
        )
    }
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y}
    human = {"type": "tick", "thickness": 3, "size": 18, "color": colour(INK), "opacity": 1}
    point = {"type": "point", "filled": True, "size": 90, "opacity": 1}
    return whole(
        {
            "data": {"values": [{**row, "item": names[str(row["item"])]} for row in data]},
            "width": size.width - 20 - round(size.width / 3),
            "height": {"step": 26},
            "layer": [
                layer(
                    {"type": "rule", "strokeWidth": 2, "opacity": 0.5},
                    {**ends, "color": kinds["color"], **TIP},
                    "isValid(datum.low)",
                ),
                layer(human, {"x": {**x, "field": "human"}, "y": y, **TIP}, "isValid(datum.human)"),
                layer(point, {"x": {**x, "field": "speed"}, "y": y, **kinds, **TIP}),
            ],
        }
    )


def _funnel(study: Study) -> Section:
    """Steps down, models across; with a second rate where items were lost."""
    columns: list[tuple[str, list[str]]] = []
    for model, runs in study.runs.items():
        for run in runs:
            steps = {step["step"]: step for step in run.at("funnel") or ()}
            rates = {
                of: [_rate(steps[name][of], steps[name]["n"]) for name in _STEPS if steps]
                for of in ("of_all", "of_ended")
            }
            columns.append((f"{model}, of all", rates["of_all"]))
            if rates["of_ended"] != rates["of_all"]:
                columns.append((f"{model}, without lost", rates["of_ended"]))
    step_rows = [
        [title, *(cells[n] if cells else UNKNOWN for _, cells in columns)]
        for n, title in enumerate(_STEPS.values())
    ]
    titles = [words("Step"), *(Column(title=title) for title, _ in columns)]
    return Section(
        name="funnel",
        title="From plan to success",
        paragraphs=[_FUNNEL],
        figures=[figure("Items by step", titles, step_rows)],
    )


def _rate(rate: Mapping[str, Any], n: int) -> str:
    if rate["value"] is None:
        return UNKNOWN
    limits = "" if rate["low"] is None else f", {percent(rate['low'])} to {percent(rate['high'])}"
    return f"{n} ({percent(rate['value'])}{limits})"


def _items(study: Study) -> Section:
    rows = []
    for model, runs in study.runs.items():
        for run in runs:
            costs = run.at("item_costs") or {}
            for item in _items_of([run]):
                kinds = [*dict.fromkeys(sign["kind"] for sign in item["evidence"])]
                rows.append(
                    [
                        str(item["item_id"]),
                        model,
                        _outcome(item),
                        _limits(item["over_base"]),
                        _limits(item["human_over_base"]),
                        _limits(item["over_human"]),
                        number(item["expected_speedup"]),
                        listed([spaced(kind) for kind in kinds]) or "none",
                        spaced(str(item["stop"])),
                        str(item["n_steps"]),
                        f"{item['tokens']:,}" if item["tokens"] is not None else UNKNOWN,
                        number(item["worked_s"] / 60, 1),
                        usd(costs.get(item["item_id"])),
                    ]
                )
    titles = (
        *(ITEM, words("Model"), words("Result"), "Speed-up", "Human's", "Human time by agent time"),
        *("Promised", words("Signs of cheating"), words("Stopped"), "Steps", "Tokens"),
        *("Minutes at work", "USD"),
    )
    return Section(
        name="items",
        title="Items",
        paragraphs=["Speed-ups are over the code before, with intervals at 95 %."],
        figures=[figure("Items of all models", titles, rows)],
    )


def _evidence(study: Study) -> Iterator[Section]:
    rows = [
        [str(item["item_id"]), model, spaced(sign["kind"]), sign["place"], sign["text"]]
        for model, runs in study.runs.items()
        for item in _items_of(runs)
        for sign in item["evidence"]
    ]
    if rows:
        titles = (ITEM, *map(words, ("Model", "Sign", "Place", "What was seen")))
        yield Section(
            name="evidence",
            title="Signs of cheating",
            paragraphs=["What looks like cheating is shown; a person decides what it is."],
            figures=[figure("Signs by item", titles, rows)],
        )


def _failures(study: Study) -> Section:
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for model, runs in study.runs.items():
        for run in runs:
            for name, n in (run.at("failures_of") or {}).items():
                counts["whose", name][model] += n
            for name, n in (run.at("failed_by") or {}).items():
                counts["class", name][model] += n
    titles = {"whose": "Of", "class": "By"}
    rows = [
        [f"{titles[kind]} {spaced(name)}", *(str(by_model[model]) for model in study.runs)]
        for (kind, name), by_model in sorted(counts.items(), reverse=True)
    ]
    if not rows:
        return folded("patch-failures", "What items failed by", note="No item failed.")
    shown = figure("Failures, by whom and by class", [words("Failure"), *study.runs], rows)
    return Section(name="patch-failures", title="What items failed by", figures=[shown])


def _costs(study: Study) -> Section:
    rows = []
    for model, runs in study.runs.items():
        items = _items_of(runs)
        tokens = [item["tokens"] for item in items if item["tokens"] is not None]
        promises = [item["is_overclaimed"] for item in items if item["is_overclaimed"] is not None]
        rows.append(
            [
                model,
                *(
                    usd(_mean([run.at(f"cost_usd_per_{name}") for run in runs]))
                    for name in ("item", "success")
                ),
                number(_mean([item["n_steps"] for item in items]), 1),
                f"{fmean(tokens):,.0f}" if tokens else UNKNOWN,
                number(_mean([item["worked_s"] / 60 for item in items]), 1),
                f"{sum(promises)} of {len(promises)}",
                str(sum(len(run.at("pending") or ()) for run in runs)),
            ]
        )
    titles = (
        *("USD an item", "USD a true success", "Steps an item", "Tokens an item"),
        *("Minutes an item", "Overclaimed", "Pending items"),
    )
    return Section(
        name="patch-costs",
        title="What a success takes",
        figures=[figure("Means by model", [MODEL, *titles], rows)],
    )


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return fmean(numbers) if numbers else None


def _samples(study: Study) -> Section:
    figures = [
        drawn
        for n, (model, runs) in enumerate(study.runs.items())
        if (drawn := _samples_figure(n, model, _items_of(runs)))
    ]
    note = (
        "Each point is one fresh process, as a multiple of the median before the patch, on a "
        "logarithmic scale; the three arms of a round have the same input."
    )
    return folded("samples-of-patches", "All measurements", *figures, note=note)


def _samples_figure(n: int, model: str, items: Sequence[Own]) -> Figure | None:
    data = [point for item in items for point in _points(item)]
    if not data:
        return None
    chart = Chart(
        name=f"samples-{n}",
        title=f"{model}: measurements by item",
        description="Time of each process by the median before the patch, by item and arm.",
        specs=for_both_sizes(lambda size: _samples_chart(data, size)),
    )
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for point in data:
        groups[point["item"], point["arm"]].append(point["value"])
    rows = [
        [item, arm, str(len(values)), number(median(values), 3), number(min(values), 3),
         number(max(values), 3)]
        for (item, arm), values in groups.items()
    ]  # fmt: skip
    titles = (ITEM, words("Arm"), "Processes", "Median", "Least", "Most")
    return figure(model, titles, rows, chart)


def _points(item: Own) -> Iterator[dict[str, Any]]:
    key = "seconds" if item["metric"] == "seconds" else "operations"
    samples = [sample for sample in item["samples"] if sample.get(key)]
    for workload in dict.fromkeys(sample["workload"] for sample in samples):
        of_workload = [sample for sample in samples if sample["workload"] == workload]
        before = [sample[key] for sample in of_workload if sample["arm"] == "base"]
        for sample in of_workload if before else ():
            value = sample[key] / median(before)
            yield {
                "item": _name(item),
                "arm": ARMS[sample["arm"]],
                "value": value,
                "tip": f"{item['item_id']}, {workload}, round {sample['round']}, "
                f"{ARMS[sample['arm']]}: {number(value, 3)} ({log(value):+.2f} on the scale)",
            }


def _samples_chart(data: Sequence[Mapping[str, Any]], size: Size) -> Spec:
    y, names = _rows_axis(data, size)
    x = {
        "field": "value",
        "type": "quantitative",
        "title": "Time by the median before",
        "scale": {"type": "log", "nice": False, "zero": False},
        "axis": {"tickCount": size.n_ticks, "format": "~g"},
    }
    arms = {
        "field": "arm",
        "type": "nominal",
        "scale": {
            "domain": [*ARMS.values()],
            "range": [colour(MUTED), colour(INK), series(0)],
        },
        "legend": {"title": None, "orient": "bottom", "symbolOpacity": 1, "labelFontSize": 12},
    }
    offset = {"field": "arm", "type": "nominal", "scale": {"domain": [*ARMS.values()]}}
    return whole(
        {
            "data": {"values": [{**row, "item": names[str(row["item"])]} for row in data]},
            "width": size.width - 20 - round(size.width / 3),
            "height": {"step": 12},
            "layer": [
                layer(
                    {"type": "point", "filled": True, "size": 26, "opacity": 0.5},
                    {"x": x, "y": y, "yOffset": offset, "color": arms, **TIP},
                )
            ],
        }
    )


def _details(study: Study) -> Section:
    """The patch of each item and what its agent did."""
    texts = []
    for model, runs in study.runs.items():
        for item in _items_of(runs):
            title = f"{_name(item)}, {model}: {_outcome(item)}"
            told = f"{item['cause']}\n" if item["cause"] else ""
            message = f"{item['message']}\n" if item["message"] else ""
            steps = "\n".join(item["trajectory"])
            texts.append(
                Listing(
                    title=title,
                    text=f"{told}{message}\n{item['diff'] or 'No patch.'}\n\nSteps\n{steps}",
                )
            )
    return Section(
        name="patch-details",
        title="Patches and what agents did",
        paragraphs=["Long patches are cut; the files of the run have them whole."],
        texts=texts,
        is_folded=True,
    )
