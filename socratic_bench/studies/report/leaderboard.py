"""Sections with figures by model: the leaderboard, two metrics against each other, further metrics,
cost and latency.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from socratic_bench.documents.sweep import Survival
from socratic_bench.documents.usage import Percentiles
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.ports.parts import MetricGroup
from socratic_bench.studies.report.charts import extent, scatter
from socratic_bench.studies.report.parts import (
    UNKNOWN,
    Chart,
    Column,
    Figure,
    Section,
    count_text,
    figure,
    folded,
    number,
    percent,
    usd,
    with_limits,
    words,
)
from socratic_bench.studies.report.study import Estimate, Study
from socratic_bench.studies.rows import RunRow, TurnRow

MODEL = words("Model")
MOST_COLUMNS = 7
QUANTILES = ("p50", "p90", "p99")
# How a model is called, by title: keys of a run's inputs.
WAYS = {"Region": "region", "Tier": "service_tier", "Temperature": "temperature"}


def interval_text(estimate: Estimate | None, places: int = 2) -> str:
    """A mean with its interval."""
    return with_limits(estimate.mean, estimate.low, estimate.high, places) if estimate else UNKNOWN


def share_text(share: Estimate | None) -> str:
    """A share with its interval."""
    if share is None:
        return UNKNOWN
    text = percent(share.mean)
    return text if share.low is None else f"{text} ({percent(share.low)} to {percent(share.high)})"


def spaced(name: str) -> str:
    return name.replace("_", " ")


def kinds_of(turn: TurnRow, study: Study) -> list[str]:
    """Of which kinds a turn is, each after what they are kinds of."""
    kinds = ((kind.key, turn.own.get(kind.key)) for kind in study.views.kinds)
    return [f"{key}: {spaced(str(value))}" for key, value in kinds if value]


def survival_text(survival: Survival | None) -> str:
    """The mean of the turns held, with its interval."""
    mean = survival.restricted_mean if survival else None
    return with_limits(mean.value, mean.low, mean.high, 1) if mean else UNKNOWN


def turns_held(study: Study, model: str) -> str:
    """The mean of a model's runs, as in the differences between models; under six scenarios, as
    there, without limits.
    """
    mean = study.mean(study.ordering, study.runs[model])
    if mean is None:
        return UNKNOWN
    survival = study.survival.get(model)
    is_limited = survival is None or survival.no_interval_because != "too_few_scenarios"
    limits = (mean.low, mean.high) if is_limited else (None, None)
    return with_limits(mean.mean, *limits, 1)


def most_turns(study: Study) -> int:
    """The length of the longest run."""
    return max(len(run.turns) for run in study.rows.runs)


def places_of(metric: MetricInfo) -> int:
    """Decimal places of a metric: two for shares, one for larger figures."""
    return 2 if metric.high is not None and metric.high <= 1 else 1


def board(study: Study) -> Section:
    """Models in the order of the primary figure, with the metrics that are compared."""
    benchmark = study.rows.benchmark
    names = dict.fromkeys((benchmark.primary_metric, *benchmark.compared_metrics))
    metrics = [study.metrics[name] for name in names if name != study.views.endurance]
    timed = [f"Turns held (max {most_turns(study)})"] if study.survival else []
    rows = [
        [
            model,
            *([turns_held(study, model)] if study.survival else []),
            *(interval_text(study.mean(metric, runs), places_of(metric)) for metric in metrics),
            f"{len(runs):,}",
        ]
        for model, runs in study.runs.items()
    ]
    return Section(
        name="leaderboard",
        title="Leaderboard",
        figures=[
            figure(
                "Means (95 % CI), best model first",
                (MODEL, *timed, *(metric.title for metric in metrics), "Runs"),
                rows,
            )
        ],
    )


def axes(study: Study) -> Section | None:
    """Two metrics of which a good model is good in both."""
    if study.views.axes is None:
        return None
    across, up = (study.metrics[name] for name in study.views.axes)
    points = {
        model: (study.mean(across, runs), study.mean(up, runs))
        for model, runs in study.runs.items()
    }
    data = [
        {
            "model": model,
            **_side("x", x),
            **_side("y", y),
            "tip": f"{model}: {across.title} {interval_text(x)}; {up.title} {interval_text(y)}",
        }
        for model in study.panel_models
        for x, y in (points[model],)
        if x and y
    ]
    if not data:
        return None
    title = f"{across.title.partition(':')[0]} and {up.title.partition(':')[0].lower()}"
    where = (
        "it is high on both (upper right)"
        if up.higher_is_better
        else "it is high on the first and low on the second (lower right)"
    )
    chart = Chart(
        name="axes",
        title=title + study.models_note,
        description=f"A point for each of {count_text(len(data), 'model')}, with 95 % CIs in "
        "both directions. The table has the figures.",
        specs=scatter(
            data,
            study.panel_models,
            (across.title, extent(across.low, across.high)),
            (up.title, extent(up.low, up.high)),
        ),
    )
    rows = [[model, interval_text(x), interval_text(y)] for model, (x, y) in points.items()]
    means = figure("Means (95 % CI)", (MODEL, across.title, up.title), rows, chart)
    return folded("axes", title, means, note=f"A model is good only where {where}.")


def _side(axis: str, estimate: Estimate) -> dict[str, float | None]:
    """The place of a mean along one of two axes."""
    return {axis: estimate.mean, f"{axis}_low": estimate.low, f"{axis}_high": estimate.high}


def groups(study: Study) -> Section | None:
    """A table for each group of further metrics."""
    tables = (_group(study, group) for group in study.views.groups or _others(study))
    figures = [figure for figure in tables if figure]
    if not figures:
        return None
    note = "Means over runs that have a value, with 95 % CIs."
    return folded("groups", "Further metrics", *figures, note=note)


def _group(study: Study, group: MetricGroup) -> Figure | None:
    """Its metrics without those that are unknown everywhere, or 0 everywhere."""
    columns_of = {
        metric: [study.mean(metric, runs) for runs in study.runs.values()]
        for metric in (study.metrics[name] for name in group.metrics)
    }
    shown = {
        metric: means
        for metric, means in columns_of.items()
        if any(mean and mean.mean for mean in means)
    }
    if not shown:
        return None
    maxima = [(metric.title, metric.high or 0) for metric in shown]
    titles = [f"{title}, of {number(high, 0)}" if high > 1 else title for title, high in maxima]
    rows = [
        [model, *(interval_text(means[n], places_of(metric)) for metric, means in shown.items())]
        for n, model in enumerate(study.ranked)
    ]
    return figure(group.title, (MODEL, *titles), rows)


def _others(study: Study) -> Iterator[MetricGroup]:
    """All metrics that are not on the leaderboard, for a benchmark without groups of its own."""
    benchmark = study.rows.benchmark
    on_board = {study.ordering.name, benchmark.primary_metric, *benchmark.compared_metrics}
    names = [metric.name for metric in benchmark.metrics if metric.name not in on_board]
    for n in range(0, len(names), MOST_COLUMNS):
        yield MetricGroup(title="Other metrics", metrics=names[n : n + MOST_COLUMNS])


def cost(study: Study) -> Section | None:
    """What a run of each model costs: the model alone, and with judge and student."""
    tested = study.rows.benchmark.parts.tested
    rows = [
        [model, usd(_mean_usd(runs, f"cost.{tested}")), usd(_mean_usd(runs, "cost.total"))]
        for model, runs in study.runs.items()
    ]
    if all(cell == UNKNOWN for _, *cells in rows for cell in cells):
        return None
    is_simulated = all(run.at("cost.stand_in") for run in study.rows.runs)
    titles = (MODEL, "USD per run, model under test", "USD per run, total")
    note = "Simulated: nothing was billed; at list prices:" if is_simulated else ""
    return folded("cost", "Cost", figure("Mean cost of a run", titles, rows), note=note)


def _mean_usd(runs: Sequence[RunRow], path: str) -> float | None:
    """Mean cost of a run; `None` if the cost of any run is unknown."""
    costs = [run.at(f"{path}.total_usd") for run in runs]
    return None if None in costs else sum(costs) / len(costs)


def latency(study: Study) -> Section | None:
    """Percentiles of the model's latency. Calls of simulated models, and those whose time passed
    in this program more than at the service, say nothing of a model.
    """
    readings: Mapping[str, Any] = {
        "First token, s": lambda turn: turn.ttft_ms and turn.ttft_ms / 1000,
        "Last byte, s": lambda turn: turn.latency_ms and turn.latency_ms / 1000,
        "Tokens per second": lambda turn: turn.output_tokens_per_s,
    }
    rows = []
    for names, turns in _timed_turns(study).items():
        percentiles = [Percentiles.of([read(turn) for turn in turns]) for read in readings.values()]
        if any(percentiles):
            cells = [number(getattr(p, name, None)) for p in percentiles for name in QUANTILES]
            rows.append([*names, *cells, f"{len(turns):,}"])
    if not rows:
        return None
    titles = [f"{title}, {quantile}" for title in readings for quantile in QUANTILES]
    note = (
        "Successful requests. Those that spent more time in this program than at the "
        "service are left out."
    )
    columns: list[str | Column] = [MODEL, *map(words, WAYS), *titles, "Turns"]
    shown = [n for n in range(len(columns)) if any(row[n] != UNKNOWN for row in rows)]
    over_turns = figure(
        "Percentiles over turns",
        [columns[n] for n in shown],
        [[row[n] for n in shown] for row in rows],
    )
    return folded("latency", "Latency", over_turns, note=note)


def _timed_turns(study: Study) -> Mapping[tuple[str, ...], Sequence[TurnRow]]:
    """The turns whose times say something of a model, by the model and how it was called."""
    timed: dict[tuple[str, ...], list[TurnRow]] = defaultdict(list)
    for model, runs in study.runs.items():
        for run in (run for run in runs if not run.at("cost.stand_in")):
            for turn in run.turns:
                if turn.latency_ms and (turn.overhead_ms or 0) <= turn.latency_ms / 2:
                    # An item may have a temperature of its own.
                    values = {**(run.at("inputs") or {}), **turn.own}
                    way = (values.get(name) for name in WAYS.values())
                    names = (UNKNOWN if value is None else str(value) for value in way)
                    timed[model, *names].append(turn)
    return timed
