"""Sections on cost and latency."""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from socratic_bench.documents.usage import Percentiles
from socratic_bench.studies.report.chart_kinds import scatter
from socratic_bench.studies.report.charts import extent, intervals
from socratic_bench.studies.report.leaderboard import (
    MODEL,
    chart_point,
    interval_text,
    mean_usd,
    places_of,
    side,
)
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Figure,
    Section,
    columns,
    number,
    usd,
)
from socratic_bench.studies.report.study import Estimate, Study
from socratic_bench.studies.rows import TurnRow


class _ChartSpec(Struct, frozen=True, kw_only=True):
    """Readings of one unit, shown by one chart and one table."""

    name: str
    title: str
    unit: str
    readings: Mapping[str, Callable[[TurnRow], float | None]]
    places: int


def _seconds(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms / 1000


_CHARTS = (
    _ChartSpec(
        name="latency",
        title="First token and last byte",
        unit="Seconds",
        readings={
            "First token, s": lambda turn: _seconds(turn.ttft_ms),
            "Last byte, s": lambda turn: _seconds(turn.latency_ms),
        },
        places=2,
    ),
    _ChartSpec(
        name="speed",
        title="Tokens per second",
        unit="Tokens per second",
        readings={"Tokens per second": lambda turn: turn.output_tokens_per_s},
        places=0,
    ),
)
_QUANTILES = ("p50", "p90", "p99")
_PercentilesByTitle = Mapping[tuple[str, str], Percentiles | None]


def cost(study: Study) -> Section | None:
    """Cost of a run of each model against its score."""
    tested = study.rows.benchmark.parts.tested
    cost_and_score = {
        model: (mean_usd(runs, f"cost.{tested}"), mean_usd(runs), study.mean(study.primary, runs))
        for model, runs in study.runs.items()
    }
    model_costs = {
        model: (tested_usd, score)
        for model, (tested_usd, _, score) in cost_and_score.items()
        if tested_usd is not None and score
    }
    if not model_costs:
        return None
    metric = study.primary
    data = [
        {
            "model": model,
            "x": tested_usd,
            "x_low": None,
            "x_high": None,
            **side("y", score),
            "tip": f"{model}: {usd(tested_usd)} USD a run, {metric.title} {interval_text(score)}",
        }
        for model, (tested_usd, score) in model_costs.items()
    ]
    places = places_of(metric)
    rows = [
        [model, usd(tested_usd), usd(whole), interval_text(score, places)]
        for model, (tested_usd, whole, score) in cost_and_score.items()
    ]
    costs = ("USD a run, the model", "USD a run, judge and all")
    return Section(
        name="cost",
        title="Cost against score",
        paragraphs=["What the model itself costs in a mean run; judge and others are apart."],
        figures=[
            Figure(
                caption="Mean cost of a run, and score",
                columns=columns(MODEL, *costs, metric.title),
                rows=rows,
                chart=Chart(
                    name="cost",
                    title=f"{metric.title} against the cost of a run",
                    description="A point for each model, with the 95 % interval of its score. The "
                    "table has the figures.",
                    specs=scatter(
                        data,
                        study.ranked,
                        ("USD a run, the model alone", {"zero": True, "nice": True}),
                        (metric.title, extent(metric.low, metric.high)),
                    ),
                ),
            )
        ],
    )


def latency(study: Study) -> Section | None:
    """Percentiles of latency and speed over the turns of each model."""
    percentiles = {
        (model, title): Percentiles.of([reading(turn) for run in runs for turn in run.turns])
        for model, runs in study.runs.items()
        for spec in _CHARTS
        for title, reading in spec.readings.items()
    }
    if not any(percentiles.values()):
        return None
    figures = [
        _figure(study, percentiles, spec)
        for spec in _CHARTS
        if any(_points(study, percentiles, spec))
    ]
    return Section(
        name="latency",
        title="Latency",
        paragraphs=[
            "Percentiles over turns, of the request that answered. Lines go from p50 to p99."
        ],
        figures=figures,
    )


def _figure(study: Study, percentiles: _PercentilesByTitle, spec: _ChartSpec) -> Figure:
    titles = [f"{title}, {quantile}" for title in spec.readings for quantile in _QUANTILES]
    rows = [
        [
            model,
            *(
                text
                for title in spec.readings
                for text in _percentile_cells(percentiles[model, title], spec)
            ),
        ]
        for model in study.ranked
    ]
    return Figure(
        caption=f"{spec.title}, percentiles over turns",
        columns=columns(MODEL, *titles),
        rows=rows,
        chart=Chart(
            name=spec.name,
            title=f"{spec.title}: median, and up to the 99th percentile{study.models_note}",
            description=f"For each model, the median of {spec.title.lower()}, with a line to the "
            "99th percentile. The table has the figures.",
            specs=intervals(
                [*_points(study, percentiles, spec)], study.panel_models, spec.unit, {"zero": True}
            ),
        ),
    )


def _percentile_cells(percentiles: Percentiles | None, spec: _ChartSpec) -> list[str]:
    if percentiles is None:
        return [UNKNOWN] * 3
    return [
        number(value, spec.places) for value in (percentiles.p50, percentiles.p90, percentiles.p99)
    ]


def _points(
    study: Study, percentiles: _PercentilesByTitle, spec: _ChartSpec
) -> Iterator[dict[str, object]]:
    for title in spec.readings:
        name, _, unit = title.partition(", ")
        panel = {"panel": name} if len(spec.readings) > 1 else {}
        for model in study.panel_models:
            point_percentiles = percentiles[model, title]
            if point_percentiles:
                texts = zip(_QUANTILES, _percentile_cells(point_percentiles, spec), strict=True)
                tip = ", ".join(f"{at} {text} {unit}".rstrip() for at, text in texts)
                middle = Estimate(
                    mean=point_percentiles.p50,
                    low=point_percentiles.p50,
                    high=point_percentiles.p99,
                    n=1,
                    n_clusters=1,
                )
                yield chart_point(model, model, middle, tip, **panel)
