"""Models side by side: the leaderboard, and two metrics against each other."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from socratic_bench.documents.sweep import Mean
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.ports.parts import MetricGroup
from socratic_bench.studies.report.chart_kinds import scatter
from socratic_bench.studies.report.charts import extent, intervals
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
from socratic_bench.studies.report.study import Endurance, Estimate, Study
from socratic_bench.studies.rows import RunRow

MODEL = words("Model")
# Metrics that belong together, such as those of one dimension each.

MOST_COLUMNS = 7
VARIANCE_PLACES = 3


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


def groups(study: Study) -> Section | None:
    """Metrics that belong together, a table each."""
    figures = [
        _certainty(study),
        *(_group(study, one) for one in study.views.groups or _others(study)),
    ]
    known = [figure for figure in figures if figure]
    if not known:
        return None
    return Section(
        name="groups", title="Further figures", paragraphs=[_scope(study)], figures=known
    )


def _scope(study: Study) -> str:
    like = "items" if study.is_of_parts else study.clusters
    return (
        "Means over runs in which a figure is known, with 95 % intervals, which hold for "
        f"{like} like these. A figure without one is of these alone."
    )


def _certainty(study: Study) -> Figure | None:
    """How sure the primary metric is: what its scatter is made of, and what would narrow it. `None`
    where it has no interval, and where its values are of items, of which more runs narrow nothing.
    """
    found = {model: study.whole(model) for model in study.ranked}
    if study.is_of_parts or all(one.low is None for one in found.values()):
        return None
    titles = (
        "Runs",
        study.clusters.capitalize(),
        f"Variance between {study.clusters}",
        "Variance between repeats",
        "Variance of the judge",
        "Further runs that would halve the interval",
    )
    return Figure(
        caption=f"What the interval of the {study.primary.title.lower()} rests on",
        columns=columns(MODEL, *titles),
        rows=[[model, *_row(one)] for model, one in found.items()],
    )


def _row(found: Mean) -> Sequence[str]:
    parts = found.variance
    variances = (parts.sample, parts.repeat, parts.judge) if parts else (None, None, None)
    further = found.runs_to_halve
    return [
        str(found.n),
        str(found.n_clusters),
        *(number(one, VARIANCE_PLACES) for one in variances),
        UNKNOWN if further is None else str(further),
    ]


def _others(study: Study) -> Iterator[MetricGroup]:
    """All metrics beside those of the leaderboard, where a benchmark has no groups of its own."""
    benchmark = study.rows.benchmark
    on_board = {study.ordering.name, benchmark.primary_metric, *benchmark.compared_metrics}
    names = [one.name for one in benchmark.metrics if one.name not in on_board]
    for n in range(0, len(names), MOST_COLUMNS):
        yield MetricGroup(title="Other metrics", metrics=names[n : n + MOST_COLUMNS])


def _group(study: Study, group: MetricGroup) -> Figure | None:
    metrics = [study.metrics[name] for name in group.metrics]
    found = [[study.mean(metric, runs) for metric in metrics] for runs in study.runs.values()]
    if not any(one for some in found for one in some):
        return None
    rows = [
        [model, *(shown(one, places_of(metric)) for one, metric in zip(some, metrics, strict=True))]
        for model, some in zip(study.ranked, found, strict=True)
    ]
    return Figure(
        caption=group.title,
        columns=columns(MODEL, *map(_titled, metrics)),
        rows=rows,
        chart=_group_chart(study, group, metrics),
    )


def _group_chart(study: Study, group: MetricGroup, metrics: Sequence[MetricInfo]) -> Chart | None:
    """Only where all have ends, so that they can be drawn on one scale."""
    if any(one.low is None or one.high is None or one.high <= 0 for one in metrics):
        return None
    data = [
        mark(
            *(model, model, _share_of(found, metric), shown(found, places_of(metric))),
            panel=_titled(metric),
        )
        for metric in metrics
        for model in study.drawn
        if (found := study.mean(metric, study.runs[model]))
    ]
    is_share = all((one.low, one.high) == (0, 1) for one in metrics)
    lowest = min((one["low"] for one in data), default=0.0)
    return Chart(
        name=f"groups-{'-'.join(re.findall('[a-z]+', group.title.lower()))}",
        title=f"{group.title}{study.drawn_words}",
        description="For each figure and model, the mean with its 95 % interval, as a share of "
        "the most that it can be. The table has the figures.",
        specs=intervals(
            data,
            study.ranked,
            "Share" if is_share else "Share of the most that it can be",
            extent(min(0.0, lowest), 1),
        ),
    )


def _share_of(found: Estimate, metric: MetricInfo) -> Estimate:
    """A mean and its interval as shares of the most that a metric can be."""
    most = metric.high or 1.0

    def share(value: float | None) -> float | None:
        return None if value is None else value / most

    return replace(found, mean=found.mean / most, low=share(found.low), high=share(found.high))


def _titled(metric: MetricInfo) -> str:
    title, high = metric.title, metric.high
    return f"{title}, of {number(high, 0)}" if high is not None and high > 1 else title
