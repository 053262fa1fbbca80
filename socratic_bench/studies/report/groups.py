"""Metrics that belong together, such as those of one dimension each."""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from socratic_bench.documents.sweep import Mean
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.ports.parts import MetricGroup
from socratic_bench.studies.report.charts import extent, intervals
from socratic_bench.studies.report.leaderboard import MODEL, mark, places_of, shown
from socratic_bench.studies.report.parts import UNKNOWN, Chart, Figure, Section, columns, number
from socratic_bench.studies.report.study import Estimate, Study

MOST_COLUMNS = 7
VARIANCE_PLACES = 3


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
