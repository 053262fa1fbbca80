"""What models took: money and time."""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from socratic_bench.documents.usage import Percentiles
from socratic_bench.studies.report.chart_kinds import scatter
from socratic_bench.studies.report.charts import extent, intervals
from socratic_bench.studies.report.leaderboard import MODEL, mark, mean_usd, places_of, shown, side
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


def cost(study: Study) -> Section | None:
    """What a run of each model costs, against how good it is."""
    tested = study.rows.benchmark.parts.tested
    found = {
        model: (mean_usd(runs, f"cost.{tested}"), mean_usd(runs), study.mean(study.primary, runs))
        for model, runs in study.runs.items()
    }
    known = {
        model: (own, score) for model, (own, _, score) in found.items() if own is not None and score
    }
    if not known:
        return None
    metric = study.primary
    data = [
        {
            "model": model,
            "x": own,
            "x_low": None,
            "x_high": None,
            **side("y", score),
            "tip": f"{model}: {usd(own)} USD a run, {metric.title} {shown(score)}",
        }
        for model, (own, score) in known.items()
    ]
    places = places_of(metric)
    rows = [
        [model, usd(own), usd(whole), shown(score, places)]
        for model, (own, whole, score) in found.items()
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


def _seconds(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms / 1000


def latency(study: Study) -> Section | None:
    """Percentiles over the turns of each model."""
    found = {
        (model, title): Percentiles.of([reading(turn) for run in runs for turn in run.turns])
        for model, runs in study.runs.items()
        for drawn in _DRAWN
        for title, reading in drawn.readings.items()
    }
    if not any(found.values()):
        return None
    figures = [_figure(study, found, one) for one in _DRAWN if any(_points(study, found, one))]
    return Section(
        name="latency",
        title="Latency",
        paragraphs=[
            "Percentiles over turns, of the request that answered. Lines go from p50 to p99."
        ],
        figures=figures,
    )


class _ChartSpec(Struct, frozen=True, kw_only=True):
    """Readings of one unit, which one chart and one table show."""

    name: str
    title: str
    unit: str
    readings: Mapping[str, Callable[[TurnRow], float | None]]
    places: int


_DRAWN = (
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
_Found = Mapping[tuple[str, str], Percentiles | None]


def _figure(study: Study, found: _Found, drawn: _ChartSpec) -> Figure:
    titles = [f"{title}, {one}" for title in drawn.readings for one in _QUANTILES]
    rows = [
        [model, *(text for title in drawn.readings for text in _told(found[model, title], drawn))]
        for model in study.ranked
    ]
    return Figure(
        caption=f"{drawn.title}, percentiles over turns",
        columns=columns(MODEL, *titles),
        rows=rows,
        chart=Chart(
            name=drawn.name,
            title=f"{drawn.title}: median, and up to the 99th percentile{study.drawn_words}",
            description=f"For each model, the median of {drawn.title.lower()}, with a line to the "
            "99th percentile. The table has the figures.",
            specs=intervals(
                [*_points(study, found, drawn)], study.drawn, drawn.unit, {"zero": True}
            ),
        ),
    )


def _points(study: Study, found: _Found, drawn: _ChartSpec) -> Iterator[dict[str, object]]:
    for title in drawn.readings:
        name, _, unit = title.partition(", ")
        panel = {"panel": name} if len(drawn.readings) > 1 else {}
        for model in study.drawn:
            one = found[model, title]
            if one:
                texts = zip(_QUANTILES, _told(one, drawn), strict=True)
                told = ", ".join(f"{at} {text} {unit}".rstrip() for at, text in texts)
                middle = Estimate(mean=one.p50, low=one.p50, high=one.p99, n=1, n_clusters=1)
                yield mark(model, model, middle, told, **panel)


def _told(one: Percentiles | None, drawn: _ChartSpec) -> list[str]:
    if one is None:
        return [UNKNOWN] * 3
    return [number(value, drawn.places) for value in (one.p50, one.p90, one.p99)]
