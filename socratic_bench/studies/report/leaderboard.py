"""Sections that compare models: the leaderboard, two metrics against each other, and further
metrics.
"""

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
    count_text,
    listed,
    number,
    usd,
    words,
)
from socratic_bench.studies.report.study import Endurance, Estimate, Study
from socratic_bench.studies.rows import RunRow

MODEL = words("Model")
MOST_COLUMNS = 7
VARIANCE_PLACES = 3


def interval_text(estimate: Estimate | None, places: int = 2) -> str:
    """A mean with its interval."""
    if estimate is None:
        return UNKNOWN
    text = number(estimate.mean, places)
    return (
        text if estimate.low is None else f"{text} ({between(estimate.low, estimate.high, places)})"
    )


def chart_point(
    row: str, model: str, estimate: Estimate, text: str, **more: object
) -> dict[str, Any]:
    """A point of a chart with its interval."""
    return {"row": row, "model": model, **estimate.chart_values, "tip": f"{row}: {text}", **more}


def places_of(metric: MetricInfo) -> int:
    """Decimal places of a metric: two for shares, one for larger figures."""
    return 2 if metric.high is not None and metric.high <= 1 else 1


def board(study: Study, endurances: Mapping[str, Endurance]) -> Section:
    """Models ordered by the leading metric. A rank is one more than the number of models that are
    significantly better.
    """
    metrics = _compared(study)
    ranks = _ranks(study)
    rows = [
        [
            model,
            ranks[model],
            *([_endurance_cell(endurances.get(model))] if endurances else []),
            *(interval_text(study.mean(metric, runs), places_of(metric)) for metric in metrics),
            f"{len(runs):,}",
            usd(mean_usd(runs)),
        ]
        for model, runs in study.runs.items()
    ]
    timed = [f"Turns held, of {_horizon(endurances)}"] if endurances else []
    titles = (metric.title for metric in metrics)
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


def _ranks(study: Study) -> dict[str, str]:
    """Ranks by model, with "=" beside those that several models share."""
    if study.tiers is None:
        return dict.fromkeys(study.ranked, UNKNOWN)
    rank_by_model: dict[str, str] = {}
    rank = 1
    for tier in study.tiers:
        rank_by_model |= dict.fromkeys(tier, f"{rank}{'=' if len(tier) > 1 else ''}")
        rank += len(tier)
    return rank_by_model


def _endurance_cell(endurance: Endurance | None) -> str:
    if endurance is None:
        return UNKNOWN
    text, estimate = number(endurance.turns_held.mean, 1), endurance.turns_held
    if estimate.low is None and estimate.high is None:
        return text if endurance.n_events else f"{text} (all runs)"
    return f"{text} ({between(estimate.low, estimate.high, 1)})"


def _horizon(endurances: Mapping[str, Endurance]) -> str:
    return f"{next(iter(endurances.values())).horizon:g}"


def _chart(study: Study, endurances: Mapping[str, Endurance]) -> Chart | None:
    means: Mapping[str, Estimate | None]
    if endurances:
        title = f"Turns until the first {study.views.breaks}"
        axis = f"Turns, of the first {_horizon(endurances)}"
        means = {model: endurance.turns_held for model, endurance in endurances.items()}
        places, scale = 1, extent(0, next(iter(endurances.values())).horizon)
    else:
        metric = study.ordering
        title = axis = metric.title
        means = {model: study.mean(metric, runs) for model, runs in study.runs.items()}
        places, scale = places_of(metric), extent(metric.low, metric.high)
    data = [
        chart_point(model, model, mean, f"{axis} {interval_text(mean, places)}")
        for model, mean in means.items()
        if mean
    ]
    if not data:
        return None
    return Chart(
        name="leaderboard",
        title=title,
        description=f"{title}, by model, with 95 % intervals. The table has the figures.",
        specs=intervals(data, study.ranked, axis, scale),
    )


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
        ties_text = "all models" if everyone else "; ".join(listed(tier) for tier in ties)
        yield f"Ties, marked =: {ties_text}. These runs cannot tell them apart."
    yield (
        "A new rank begins where each model above differs from each below by more than chance "
        f"(p at most .05), in pairs of runs of one {study.views.sample}."
    )


def mean_usd(runs: Sequence[RunRow], path: str = "cost.total") -> float | None:
    """Mean cost of a run; `None` if the cost of any run is unknown."""
    costs = [run.at(f"{path}.total_usd") for run in runs]
    return None if None in costs else sum(costs) / len(costs)


def axes(study: Study) -> Section | None:
    """Two metrics of which a good model is good in both."""
    if study.views.axes is None:
        return None
    across, up = (study.metrics[name] for name in study.views.axes)
    points = {
        model: (study.mean(across, runs), study.mean(up, runs))
        for model, runs in study.runs.items()
    }
    complete_points = {model: (x, y) for model, (x, y) in points.items() if x and y}
    if not complete_points:
        return None
    data = [
        {
            "model": model,
            **side("x", x),
            **side("y", y),
            "tip": f"{model}: {across.title} {interval_text(x)}; {up.title} {interval_text(y)}",
        }
        for model, (x, y) in complete_points.items()
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
                rows=[
                    [model, interval_text(x), interval_text(y)] for model, (x, y) in points.items()
                ],
                chart=Chart(
                    name="axes",
                    title=title,
                    description=f"A point for each of {count_text(len(data), 'model')}, with 95 % "
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


def _good_where(up: MetricInfo) -> str:
    if up.higher_is_better:
        return "it is high on both: towards the upper right"
    return "it is high on the first and low on the second: towards the lower right"


def side(axis: str, estimate: Estimate) -> dict[str, float | None]:
    """The place of a mean along one of two axes."""
    return {axis: estimate.mean, f"{axis}_low": estimate.low, f"{axis}_high": estimate.high}


def groups(study: Study) -> Section | None:
    """A table for each group of further metrics."""
    figures = [
        _certainty(study),
        *(_group(study, group) for group in study.views.groups or _others(study)),
    ]
    shown_figures = [figure for figure in figures if figure]
    if not shown_figures:
        return None
    return Section(
        name="groups", title="Further figures", paragraphs=[_scope(study)], figures=shown_figures
    )


def _certainty(study: Study) -> Figure | None:
    """How precise the primary metric is: its components of variance, and the runs that would halve
    its interval. `None` without an interval, and for values of items, which more runs do not make
    more precise.
    """
    means = {model: study.whole(model) for model in study.ranked}
    if study.is_of_parts or all(mean.low is None for mean in means.values()):
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
        rows=[[model, *_row(mean)] for model, mean in means.items()],
    )


def _row(mean: Mean) -> Sequence[str]:
    parts = mean.variance
    variances = (parts.sample, parts.repeat, parts.judge) if parts else (None, None, None)
    further = mean.runs_to_halve
    return [
        str(mean.n),
        str(mean.n_clusters),
        *(number(variance, VARIANCE_PLACES) for variance in variances),
        UNKNOWN if further is None else str(further),
    ]


def _group(study: Study, group: MetricGroup) -> Figure | None:
    metrics = [study.metrics[name] for name in group.metrics]
    means = [[study.mean(metric, runs) for metric in metrics] for runs in study.runs.values()]
    if not any(mean for model_means in means for mean in model_means):
        return None
    rows = [
        [
            model,
            *(
                interval_text(mean, places_of(metric))
                for mean, metric in zip(model_means, metrics, strict=True)
            ),
        ]
        for model, model_means in zip(study.ranked, means, strict=True)
    ]
    return Figure(
        caption=group.title,
        columns=columns(MODEL, *map(_title_with_maximum, metrics)),
        rows=rows,
        chart=_group_chart(study, group, metrics),
    )


def _title_with_maximum(metric: MetricInfo) -> str:
    title, high = metric.title, metric.high
    return f"{title}, of {number(high, 0)}" if high is not None and high > 1 else title


def _group_chart(study: Study, group: MetricGroup, metrics: Sequence[MetricInfo]) -> Chart | None:
    """A chart of a group, if all metrics have bounds, so that they share one scale."""
    if any(metric.low is None or metric.high is None or metric.high <= 0 for metric in metrics):
        return None
    data = [
        chart_point(
            *(model, model, _share_of(mean, metric), interval_text(mean, places_of(metric))),
            panel=_title_with_maximum(metric),
        )
        for metric in metrics
        for model in study.panel_models
        if (mean := study.mean(metric, study.runs[model]))
    ]
    is_share = all((metric.low, metric.high) == (0, 1) for metric in metrics)
    lowest = min((point["low"] for point in data), default=0.0)
    return Chart(
        name=f"groups-{'-'.join(re.findall('[a-z]+', group.title.lower()))}",
        title=f"{group.title}{study.models_note}",
        description="For each figure and model, the mean with its 95 % interval, as a share of "
        "the most that it can be. The table has the figures.",
        specs=intervals(
            data,
            study.ranked,
            "Share" if is_share else "Share of the most that it can be",
            extent(min(0.0, lowest), 1),
        ),
    )


def _share_of(estimate: Estimate, metric: MetricInfo) -> Estimate:
    """A mean and its interval as shares of the metric's maximum."""
    most = metric.high or 1.0

    def share(value: float | None) -> float | None:
        return None if value is None else value / most

    return replace(
        estimate, mean=estimate.mean / most, low=share(estimate.low), high=share(estimate.high)
    )


def _others(study: Study) -> Iterator[MetricGroup]:
    """All metrics that are not on the leaderboard, for a benchmark without groups of its own."""
    benchmark = study.rows.benchmark
    on_board = {study.ordering.name, benchmark.primary_metric, *benchmark.compared_metrics}
    names = [metric.name for metric in benchmark.metrics if metric.name not in on_board]
    for n in range(0, len(names), MOST_COLUMNS):
        yield MetricGroup(title="Other metrics", metrics=names[n : n + MOST_COLUMNS])


def _scope(study: Study) -> str:
    like = "items" if study.is_of_parts else study.clusters
    return (
        "Means over runs in which a figure is known, with 95 % intervals, which hold for "
        f"{like} like these. A figure without one is of these alone."
    )
