"""Models side by side: the leaderboard, and two metrics against each other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from socratic_bench.ports import MetricInfo
from socratic_bench.reporting.charts import extent, intervals
from socratic_bench.reporting.endurance import Endurance
from socratic_bench.reporting.parts import (
    UNKNOWN,
    Chart,
    Column,
    Figure,
    Section,
    Table,
    between,
    counted,
    listed,
    number,
    usd,
)
from socratic_bench.reporting.rows import RunRow
from socratic_bench.reporting.scatter_charts import scatter
from socratic_bench.reporting.study import Estimate, Study

MODEL = Column(title="Model", is_number=False)


def shown(found: Estimate | None, places: int = 2) -> str:
    """A mean with its interval."""
    if found is None:
        return UNKNOWN
    told = number(found.mean, places)
    return told if found.low is None else f"{told} ({between(found.low, found.high, places)})"


def places_of(metric: MetricInfo) -> int:
    """Shares with two places, larger figures with one."""
    return 2 if metric.high is not None and metric.high <= 1 else 1


def board(study: Study, endurances: Mapping[str, Endurance]) -> Section:
    """Ordered by the metric that leads; the rank is one more than how many are surely better."""
    metrics = _compared(study)
    ranks = _ranks(study)
    rows = [
        [
            model,
            ranks[model],
            *([_held(endurances.get(model))] if endurances else []),
            *(shown(study.mean(one, runs), places_of(one)) for one in metrics),
            f"{len(runs):,}",
            usd(mean_usd(runs)),
        ]
        for model, runs in study.runs.items()
    ]
    timed = [f"Turns held, of {_horizon(endurances)}"]
    columns = [
        MODEL,
        Column(title="Rank"),
        *(Column(title=one) for one in (timed if endurances else [])),
        *(Column(title=one.title) for one in metrics),
        *(Column(title="Runs"), Column(title="USD a run")),
    ]
    table = Table(
        caption="Means with 95 % intervals; the best model first", columns=columns, rows=rows
    )
    return Section(
        name="leaderboard",
        title="Leaderboard",
        paragraphs=[*_ties(study)],
        figures=[Figure(table=table, chart=_chart(study, endurances))],
    )


def _compared(study: Study) -> list[MetricInfo]:
    benchmark = study.rows.benchmark
    names = dict.fromkeys((benchmark.primary_metric, *benchmark.compared_metrics))
    return [study.metrics[name] for name in names if name != study.views.endurance]


def _horizon(endurances: Mapping[str, Endurance]) -> str:
    return next((f"{one.horizon:g}" for one in endurances.values()), "")


def _held(found: Endurance | None) -> str:
    if found is None:
        return UNKNOWN
    told, limits = number(found.mean, 1), found.mean_limits
    if limits.low is None and limits.high is None:
        return told if found.n_events else f"{told} (all runs)"
    return f"{told} ({between(limits.low, limits.high, 1)})"


def _ranks(study: Study) -> dict[str, str]:
    """One more than how many models are surely better, with "=" beside others of that rank."""
    if study.tiers is None:
        return dict.fromkeys(study.ranked, UNKNOWN)
    found: dict[str, str] = {}
    rank = 1
    for tier in study.tiers:
        found |= dict.fromkeys(tier, f"{rank}{'=' if len(tier) > 1 else ''}")
        rank += len(tier)
    return found


def _ties(study: Study) -> Iterator[str]:
    if len(study.ranked) == 1:
        return
    if study.tiers is None:
        yield (
            "Nothing tells whether the models differ: that takes pairs of runs in two "
            f"{study.views.sample}s."
        )
        return
    ties = [tier for tier in study.tiers if len(tier) > 1]
    if ties:
        everyone = len(ties[0]) == len(study.ranked)
        told = "all models" if everyone else "; ".join(listed(tier) for tier in ties)
        yield f"Ties, marked =: {told}. These runs cannot tell them apart."
    yield (
        "A new rank begins where each model above differs from each below by more than chance "
        f"(p at most .05), in pairs of runs of one {study.views.sample}."
    )


def mean_usd(runs: Sequence[RunRow], path: str = "cost.total") -> float | None:
    """What a run costs in the mean; `None` if that of one run is not known."""
    costs = [run.at(f"{path}.total_usd") for run in runs]
    return None if None in costs else sum(costs) / len(costs)


def _chart(study: Study, endurances: Mapping[str, Endurance]) -> Chart | None:
    if endurances:
        title = f"Turns until the first {study.views.breaks}"
        axis = f"Turns, of the first {_horizon(endurances)}"
        data = [
            _point(model, one.mean, one.mean_limits.low, one.mean_limits.high, axis, 1)
            for model, one in endurances.items()
        ]
        high: float | None = next(iter(endurances.values())).horizon
        scale = extent(0, high)
    else:
        metric = study.ordering
        title = axis = metric.title
        scale = extent(metric.low, metric.high)
        means = {model: study.mean(metric, runs) for model, runs in study.runs.items()}
        data = [
            _point(model, one.mean, one.low, one.high, title, places_of(metric))
            for model, one in means.items()
            if one
        ]
    if not data:
        return None
    return Chart(
        name="leaderboard",
        title=title,
        description=f"{title}, by model, with 95 % intervals. The table has the figures.",
        specs=intervals(data, study.ranked, axis, scale),
    )


def _point(
    model: str, value: float, low: float | None, high: float | None, title: str, places: int
) -> dict[str, Any]:
    interval = "" if low is None else f" ({between(low, high, places)})"
    return {
        "row": model,
        "model": model,
        "value": value,
        "low": value if low is None else low,
        "high": value if high is None else high,
        "tip": f"{model}: {title} {number(value, places)}{interval}",
    }


def _good_where(up: MetricInfo) -> str:
    if up.higher_is_better:
        return "it is high on both: towards the upper right"
    return "it is high on the first and low on the second: towards the lower right"


def axes(study: Study) -> Section | None:
    """Two metrics that only together tell how good a model is."""
    if study.views.axes is None:
        return None
    across, up = (study.metrics[name] for name in study.views.axes)
    found = {
        model: (study.mean(across, runs), study.mean(up, runs))
        for model, runs in study.runs.items()
    }
    known = {model: (x, y) for model, (x, y) in found.items() if x and y}
    if not known:
        return None
    data = [
        {
            "model": model,
            **_side("x", x),
            **_side("y", y),
            "tip": f"{model}: {across.title} {shown(x)}; {up.title} {shown(y)}",
        }
        for model, (x, y) in known.items()
    ]
    title = f"{across.title.partition(':')[0]} and {up.title.partition(':')[0].lower()}"
    columns = [MODEL, Column(title=across.title), Column(title=up.title)]
    rows = [[model, shown(x), shown(y)] for model, (x, y) in found.items()]
    return Section(
        name="axes",
        title=title,
        paragraphs=[f"A model is good only where {_good_where(up)}."],
        figures=[
            Figure(
                table=Table(caption="Means with 95 % intervals", columns=columns, rows=rows),
                chart=Chart(
                    name="axes",
                    title=title,
                    description=f"A point for each of {counted(len(data), 'model')}, with 95 % "
                    "intervals in both directions. The table has the figures.",
                    specs=scatter(
                        data,
                        study.ranked,
                        (across.title, extent(across.low, across.high)),
                        (up.title, extent(up.low, up.high)),
                    ),
                ),
            )
        ],
    )


def _side(axis: str, found: Estimate) -> dict[str, float | None]:
    return {axis: found.mean, f"{axis}_low": found.low, f"{axis}_high": found.high}
