"""Models side by side: the leaderboard, and two metrics against each other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.studies.report.charts import extent, intervals
from socratic_bench.studies.report.endurance import Endurance
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Figure,
    Section,
    between,
    columns,
    counted,
    listed,
    number,
    usd,
    words,
)
from socratic_bench.studies.report.rows import RunRow
from socratic_bench.studies.report.scatter_charts import scatter
from socratic_bench.studies.report.study import Estimate, Study

MODEL = words("Model")


def shown(found: Estimate | None, places: int = 2) -> str:
    """A mean with its interval."""
    if found is None:
        return UNKNOWN
    told = number(found.mean, places)
    return told if found.low is None else f"{told} ({between(found.low, found.high, places)})"


def mark(row: str, model: str, found: Estimate, told: str, **more: object) -> dict[str, Any]:
    """A point with its interval."""
    return {"row": row, "model": model, **found.drawn, "tip": f"{row}: {told}", **more}


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
    timed = [f"Turns held, of {_horizon(endurances)}"] if endurances else []
    titles = (one.title for one in metrics)
    figure = Figure(
        caption="Means with 95 % intervals; the best model first",
        columns=columns(MODEL, "Rank", *timed, *titles, "Runs", "USD a run"),
        rows=rows,
        chart=_chart(study, endurances),
    )
    return Section(
        name="leaderboard", title="Leaderboard", paragraphs=[*_ties(study)], figures=[figure]
    )


def _compared(study: Study) -> list[MetricInfo]:
    benchmark = study.rows.benchmark
    names = dict.fromkeys((benchmark.primary_metric, *benchmark.compared_metrics))
    return [study.metrics[name] for name in names if name != study.views.endurance]


def _horizon(endurances: Mapping[str, Endurance]) -> str:
    return f"{next(iter(endurances.values())).horizon:g}"


def _held(found: Endurance | None) -> str:
    if found is None:
        return UNKNOWN
    told, held = number(found.held.mean, 1), found.held
    if held.low is None and held.high is None:
        return told if found.n_events else f"{told} (all runs)"
    return f"{told} ({between(held.low, held.high, 1)})"


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
    means: Mapping[str, Estimate | None]
    if endurances:
        title = f"Turns until the first {study.views.breaks}"
        axis = f"Turns, of the first {_horizon(endurances)}"
        means = {model: one.held for model, one in endurances.items()}
        places, scale = 1, extent(0, next(iter(endurances.values())).horizon)
    else:
        metric = study.ordering
        title = axis = metric.title
        means = {model: study.mean(metric, runs) for model, runs in study.runs.items()}
        places, scale = places_of(metric), extent(metric.low, metric.high)
    data = [
        mark(model, model, one, f"{axis} {shown(one, places)}")
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
            **side("x", x),
            **side("y", y),
            "tip": f"{model}: {across.title} {shown(x)}; {up.title} {shown(y)}",
        }
        for model, (x, y) in known.items()
    ]
    title = f"{across.title.partition(':')[0]} and {up.title.partition(':')[0].lower()}"
    return Section(
        name="axes",
        title=title,
        paragraphs=[f"A model is good only where {_good_where(up)}."],
        figures=[
            Figure(
                caption="Means with 95 % intervals",
                columns=columns(MODEL, across.title, up.title),
                rows=[[model, shown(x), shown(y)] for model, (x, y) in found.items()],
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


def side(axis: str, found: Estimate) -> dict[str, float | None]:
    """Its place along one of two axes."""
    return {axis: found.mean, f"{axis}_low": found.low, f"{axis}_high": found.high}
