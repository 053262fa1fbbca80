"""Figures of stored runs for pages, by the report's own functions.

They are made in a process of their own, which ends afterwards: reading many runs takes memory and
the whole attention of the interpreter, and the pages must stay quick.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import fmean
from typing import ParamSpec, TypeVar

from msgspec import Struct

from socratic_bench.documents.turn import Agreement
from socratic_bench.errors import UsageError
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.statistics.intervals import is_available
from socratic_bench.studies.calibrate.corrections import CorrectionRequest, correct_runs
from socratic_bench.studies.calibrate.labels import read_labels
from socratic_bench.studies.groups import Group, design_of, pair_runs
from socratic_bench.studies.primary import PairedRuns, primary_differences
from socratic_bench.studies.report.html import draw_charts
from socratic_bench.studies.report.judges import labels_section
from socratic_bench.studies.report.parts import Section
from socratic_bench.studies.report.report import report_of
from socratic_bench.studies.report.study import Rows, Study, read_rows
from socratic_bench.studies.rows import RunRow

P = ParamSpec("P")
R = TypeVar("R")
MOST_CHART_BYTES = 4_000_000
JUDGE = "judge"


class RunPoint(Struct, frozen=True, kw_only=True):
    """A run as a point of a chart, and a row of a table."""

    run_id: str
    sweep_id: str
    model: str
    sample: str
    axes: Mapping[str, str]
    score: float | None
    cost_usd: float | None


class Figures(Struct, frozen=True, kw_only=True):
    """What the results show. `filters` are the values of each axis before any was left out."""

    sentences: Sequence[str]
    notices: Sequence[str]
    sections: Sequence[Section]
    drawings: Mapping[str, str]
    runs: Sequence[RunPoint]
    filters: Mapping[str, Sequence[str]]
    metric: str
    low: float
    high: float


class RunPair(Struct, frozen=True, kw_only=True):
    """Two runs of the same scenario and repeat."""

    first: RunPoint
    second: RunPoint
    difference: float | None


class SideBySide(Struct, frozen=True, kw_only=True):
    """Two models, or a model in two sweeps."""

    first: str
    second: str
    metric: str
    summary: str
    rows: Sequence[Sequence[str | float | None]]
    pairs: Sequence[RunPair]
    n_unpaired: int


class Side(Struct, frozen=True, kw_only=True):
    """One side of a comparison: a sweep's place and id, and a model of it."""

    place: str
    sweep_id: str
    model: str


class Lacking(Struct, frozen=True, kw_only=True):
    """Something without a result; `turn` is `None` for a whole run."""

    run_id: str
    played: str
    reason: str
    to_do: str
    turn: int | None = None


class LabelFigures(Struct, frozen=True, kw_only=True):
    """What labels say: agreement by dimension of each two, and figures that labels correct."""

    agreement: Mapping[str, Mapping[str, Agreement]]
    corrected: Section | None
    problem: str = ""


async def in_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a process of its own."""
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        future = pool.submit(function, *args, **kwargs)
        return await loop.run_in_executor(None, future.result)


def figures_of(
    place: str, sweep_id: str, region: str, chosen: Mapping[str, Sequence[str]]
) -> Figures:
    """The figures of the runs of a sweep that have one of the chosen values of each axis. Raises
    `UsageError` if there are none.
    """
    rows = read_rows([f"{place}/sweeps/{sweep_id}"], lambda: region)
    points = {run.run_id: _point(run, rows.benchmark, sweep_id) for run in rows.runs}
    filters: dict[str, dict[str, None]] = defaultdict(dict)
    for point in points.values():
        for name, value in point.axes.items():
            filters[name][value] = None
    runs = [
        run
        for run in rows.runs
        if all(points[run.run_id].axes.get(name) in values for name, values in chosen.items())
    ]
    failed = [
        row
        for row in rows.failed
        if all(_axes_text(row.axes).get(name) in values for name, values in chosen.items())
    ]
    if not runs:
        raise UsageError(["No complete run has all that was chosen."])
    study = Study(Rows(benchmark=rows.benchmark, runs=runs, failed=failed))
    report = report_of(study)
    charts = [figure.chart for section in report.sections for figure in section.figures]
    return Figures(
        sentences=report.opening.sentences,
        notices=report.opening.notices,
        sections=report.sections,
        drawings=draw_charts([chart for chart in charts if chart], MOST_CHART_BYTES),
        runs=[points[run.run_id] for run in runs],
        filters={name: [*values] for name, values in filters.items()},
        metric=study.primary.title,
        low=study.primary.low or 0.0,
        high=study.primary.high or 1.0,
    )


def side_by_side(first: Side, second: Side, region: str) -> SideBySide:
    """Two sides, pair by pair. Raises `UsageError` if a side has no run."""
    places = dict.fromkeys((first.place, second.place))
    read = {place: read_rows([place], lambda: region) for place in places}
    benchmark = read[first.place].benchmark
    if benchmark.name != read[second.place].benchmark.name:
        raise UsageError(["The sweeps are of different benchmarks."])
    ours, theirs = (_group(side, read[side.place]) for side in (first, second))
    everything = [*ours.runs, *theirs.runs]
    design = design_of(everything, has_limits=is_available())
    pairing = pair_runs(ours, theirs, design, lambda _: None)
    paired = PairedRuns(first=ours.name, second=theirs.name, pairs=pairing.pairs)
    is_one_sample = len({run.sample_name for run in everything}) == 1
    differences = primary_differences(
        [paired], benchmark, is_one_sample=is_one_sample, has_limits=is_available()
    )
    metrics = {metric.name: metric for metric in benchmark.metrics}
    compared = dict.fromkeys((benchmark.primary_metric, *benchmark.compared_metrics))
    runs = [(run, partner) for _, run, partner in pairing.pairs]
    return SideBySide(
        first=ours.name,
        second=theirs.name,
        metric=metrics[benchmark.primary_metric].title,
        summary=" ".join(difference.summary for difference in differences),
        rows=[(metrics[name].title, *_means(runs, name)) for name in compared],
        pairs=[
            _pair(
                _point(run, benchmark, first.sweep_id), _point(partner, benchmark, second.sweep_id)
            )
            for run, partner in runs
        ],
        n_unpaired=pairing.n_unpaired,
    )


def label_figures(place: str, labels: str, region: str) -> LabelFigures:
    """Agreement among raters and with the judge, and the corrected leaderboard."""
    rows = read_rows([place], lambda: region)
    by_turn: dict[tuple[str | None, int | None], dict[str, Mapping[str, float]]] = {}
    for label in read_labels([labels]):
        by_turn.setdefault((label.run_id, label.turn), {})[label.labeller] = label.scores
    verdicts: dict[tuple[str | None, int | None], Mapping[str, float]] = {
        (run.run_id, turn.turn): present_scores(turn.scores) for run, turn in rows.turns()
    }
    raters = [*dict.fromkeys(name for turn in by_turn.values() for name in turn)]
    judged = [{**turn, JUDGE: verdicts.get(key) or {}} for key, turn in by_turn.items()]
    everyone = [*raters, JUDGE]
    pairs = [(a, b) for n, a in enumerate(everyone) for b in everyone[n + 1 :]]
    agreement = {
        f"{a} and {b}": Agreement.of(
            [{name: turn[name] for name in (a, b)} for turn in judged if a in turn and b in turn]
        )
        for a, b in pairs
    }
    try:
        corrected = correct_runs(CorrectionRequest(labels=(labels,)), rows.runs, rows.benchmark)
    except UsageError as error:
        return LabelFigures(agreement=agreement, corrected=None, problem=error.message)
    return LabelFigures(agreement=agreement, corrected=labels_section(corrected))


def present_scores(scores: Mapping[str, float | None]) -> dict[str, float]:
    """The scores that a verdict has."""
    return {name: score for name, score in scores.items() if score is not None}


def unjudged_turns(place: str, region: str) -> list[Lacking]:
    """The turns of complete runs that have no verdict, with the reason; none if no run is."""
    try:
        rows = read_rows([place], lambda: region)
    except UsageError:  # there is no complete run yet
        return []
    return [
        Lacking(
            run_id=run.run_id,
            played=f"{run.model}, {run.sample_name}",
            turn=turn.turn,
            reason=f"No verdict: {turn.unjudged_reason}",
            to_do="Score the run again: socratic-runner judge.",
        )
        for run, turn in rows.turns()
        if turn.unjudged_reason
    ]


def _group(side: Side, rows: Rows) -> Group:
    runs = tuple(run for run in rows.runs if run.model == side.model)
    if not runs:
        raise UsageError([f"{side.model} has no complete run in {side.sweep_id}."])
    return Group(name=f"{side.model} ({side.sweep_id[-4:]})", model=side.model, runs=runs)


def _means(runs: Sequence[tuple[RunRow, RunRow]], metric: str) -> Sequence[float | None]:
    """Of pairs of runs in which both have a value: the mean of each side, and the difference."""
    values = [(ours.metrics.get(metric), theirs.metrics.get(metric)) for ours, theirs in runs]
    known = [(ours, theirs) for ours, theirs in values if ours is not None and theirs is not None]
    if not known:
        return None, None, None
    first, second = (fmean(side) for side in zip(*known, strict=True))
    return first, second, first - second


def _point(run: RunRow, benchmark: Benchmark, sweep_id: str) -> RunPoint:
    axes = run.cell.axes if run.cell else {"model": run.model}
    return RunPoint(
        run_id=run.run_id,
        sweep_id=sweep_id,
        model=run.model,
        sample=run.sample_name,
        axes=_axes_text(axes),
        score=run.metrics.get(benchmark.primary_metric),
        cost_usd=run.at("cost.total.total_usd"),
    )


def _axes_text(axes: Mapping[str, object]) -> dict[str, str]:
    return {name: "default" if value is None else str(value) for name, value in axes.items()}


def _pair(first: RunPoint, second: RunPoint) -> RunPair:
    is_known = first.score is not None and second.score is not None
    difference = (first.score or 0.0) - (second.score or 0.0) if is_known else None
    return RunPair(first=first, second=second, difference=difference)
