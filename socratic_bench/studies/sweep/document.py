"""The document of a sweep: each value of each axis with its figures, the best first."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from socratic_bench.documents.document import TIME_PLACES, USD_PLACES, ErrorEntry, to_places, utc
from socratic_bench.documents.jury import Agreement
from socratic_bench.documents.run import Timestamps
from socratic_bench.documents.sweep import (
    CellEntry,
    CellRow,
    FailedCell,
    FigureGate,
    Group,
    PairedDifference,
    PrimaryMetric,
    SweepDocument,
)
from socratic_bench.errors import ENDINGS, EXIT_GATE, Problem, RunStatus
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.statistics.survival import Time
from socratic_bench.studies.figures import (
    Design,
    RunFigures,
    cost_total,
    hazards_of,
    mean_of,
    primary_metric,
    rank,
    usage_total,
)
from socratic_bench.studies.gates import figure_gates, missed_gates
from socratic_bench.studies.primary import PairedRuns, primary_differences
from socratic_bench.studies.sweep.grid import MODEL, OPENING, Cell, Grid
from socratic_bench.studies.sweep.sweep import GO_ON, SweepResult
from socratic_bench.studies.times import common_horizon, survival_of, times_by_cluster
from socratic_bench.types import Json, plural

EXIT_DEFECT = ENDINGS["internal"].exit_code
EXIT_MISSING = ENDINGS["unavailable"].exit_code
MOST_REASONS = 3
TRY_AGAIN = Problem.of(
    "Go on with the same command and {resume}, and {retry_failed} for cells that failed."
)


class _Axis(Struct, frozen=True, kw_only=True):
    """What the groups of an axis have in common: `horizons` are those of metrics that are times."""

    metrics: Mapping[str, MetricInfo]
    design: Design
    horizons: Mapping[str, float]


class CellFigures(RunFigures, frozen=True, kw_only=True):
    """The figures of a completed cell, by its row in the index."""

    row: CellRow


def document_of(
    result: SweepResult, *, has_intervals: bool = False, call: Callable[[str], str] = str
) -> SweepDocument:
    """The document that is printed; its texts call settings by `call`. Intervals need the extra
    `stats`.
    """
    cells, ended = result.cells, _ended(result)
    primary = primary_metric(result.benchmark)
    completed = [row for row in ended if row.status == "completed"]
    failed = [row for row in ended if row.status != "completed"]
    in_folder, in_bucket = result.indices
    grid = result.request.grid
    design = design_of(grid, has_limits=has_intervals)
    groups = _groups(result, design, primary)
    gates = [
        gate
        for group in groups[MODEL]
        for gate in figure_gates(
            result.request.bounds, str(group.value), group.metrics, group.survival
        )
    ]
    return SweepDocument(
        sweep_id=result.begun.sweep_id,
        status=_status(result, n_failed=len(failed)),
        benchmark=result.benchmark.name,
        primary_metric=primary,
        axes={axis.name: [*axis.values] for axis in grid.axes},
        repeats=result.request.settings.repeats,
        seed=result.begun.seed,
        n_cells=len(cells),
        n_completed=len(completed),
        n_failed=len(failed),
        n_missing=len(cells) - len(ended),
        groups=groups,
        differences=_differences(result, [group.value for group in groups[MODEL]], design),
        agreement=Agreement.of(votes for row in completed for votes in row.votes or ()),
        figure_gates=gates,
        usage=usage_total(row.usage for row in ended),
        cost_usd=cost_total(row.cost_usd for row in ended),
        spent_usd=to_places(result.spent_usd, USD_PLACES),
        n_paid=result.n_paid,
        failed=[_failed_cell(row) for row in failed],
        cells=[_cell_entry(row, primary) for row in completed],
        output_artifacts=in_folder.place() if in_folder else None,
        s3_artifacts=in_bucket.place() if in_bucket else None,
        timestamps=Timestamps(
            started_at=utc(result.started_at),
            completed_at=utc(result.completed_at),
            duration_seconds=round(result.duration_s, TIME_PLACES),
        ),
        pace=[*result.pace],
        notices=[*result.notices],
        end_reason=result.error.end_reason if result.error else None,
        error=_error(result, missed_gates(gates), call),
    )


def exit_code(result: SweepResult, gates: Iterable[FigureGate] = ()) -> int:
    """The first that fits: a defect, what ended the sweep early, missing cells, a missed gate."""
    ended = _ended(result)
    codes = {row.exit_code for row in ended}
    if EXIT_DEFECT in codes:
        return EXIT_DEFECT
    if result.error:
        return result.error.exit_code
    if len(ended) < len(result.cells) or any(row.status != "completed" for row in ended):
        return EXIT_MISSING
    is_missed = EXIT_GATE in codes or not all(gate.passed for gate in gates)
    return EXIT_GATE if is_missed else 0


def design_of(grid: Grid, *, has_limits: bool) -> Design:
    """Which cells are alike, by the axes of the sweep."""
    treatments = [axis.name for axis in grid.axes if axis.name not in grid.sample_axes]
    treatments += [MODEL] * (MODEL not in treatments)
    return Design(
        cluster=lambda cell: tuple(cell.row.axes[axis] for axis in grid.cluster_axes),
        opening=lambda cell: tuple(cell.row.axes[axis] for axis in grid.sample_axes),
        kind=lambda cell: tuple(cell.row.axes[axis] for axis in treatments),
        has_limits=has_limits,
    )


def _groups(result: SweepResult, design: Design, primary: PrimaryMetric) -> dict[str, list[Group]]:
    """The groups of every axis, each axis in the order of the primary metric."""
    names = dict.fromkeys((MODEL, *(axis.name for axis in result.request.grid.axes)))
    return {name: _groups_of_axis(name, result, design, primary) for name in names}


def _groups_of_axis(
    axis: str, result: SweepResult, design: Design, primary: PrimaryMetric
) -> list[Group]:
    cells: dict[Json, list[Cell]] = {}
    for cell in result.cells:
        cells.setdefault(cell.values[axis], []).append(cell)
    ended = {
        value: [result.rows[cell.key] for cell in members if cell.key in result.rows]
        for value, members in cells.items()
    }
    completed = {
        value: [
            _figures(row, result.benchmark.metrics) for row in rows if row.status == "completed"
        ]
        for value, rows in ended.items()
    }
    all_metrics = result.benchmark.metrics
    metrics = {metric.name: metric for metric in all_metrics if not metric.is_of_run_alone}
    times = [name for name, metric in metrics.items() if metric.censored_by]
    horizons = {
        name: common_horizon(groups)
        for name in times
        if any(groups := [times_by_cluster(runs, name, design) for runs in completed.values()])
    }
    unordered = [
        _group(
            value,
            ended[value],
            completed[value],
            len(members),
            _Axis(metrics=metrics, design=design, horizons=horizons),
        )
        for value, members in cells.items()
    ]
    return sorted(unordered, key=lambda group: rank(_mean(group, primary), primary))


def _differences(
    result: SweepResult, models: Sequence[Json], design: Design
) -> list[PairedDifference]:
    """The primary figure of each two models, over cells that differ in the model alone."""
    cells: dict[Json, dict[object, CellFigures]] = {model: {} for model in models}
    for row in _ended(result):
        if row.status == "completed":
            place = {**row.axes, MODEL: None, "repeat": row.repeat}
            figures = _figures(row, result.benchmark.metrics)
            cells[row.axes[MODEL]][tuple(sorted(place.items()))] = figures
    paired = [
        PairedRuns(
            first=str(first),
            second=str(second),
            pairs=[
                (design.cluster(run), run, cells[second][place])
                for place, run in cells[first].items()
                if place in cells[second]
            ],
        )
        for first, second in combinations(models, 2)
    ]
    grid = result.request.grid
    return primary_differences(
        paired,
        result.benchmark,
        is_one_sample=set(grid.cluster_axes) <= {OPENING},
        has_limits=design.has_limits,
    )


def _mean(group: Group, primary: PrimaryMetric) -> float | None:
    return group.metrics[primary.name].mean if primary.name in group.metrics else None


def _group(
    value: Json,
    ended: Sequence[CellRow],
    completed: Sequence[CellFigures],
    n_cells: int,
    axis: _Axis,
) -> Group:
    metrics, design, horizons = axis.metrics, axis.design, axis.horizons
    names = dict.fromkeys((*metrics, *(name for run in completed for name in run.metrics)))
    times = {name: times_by_cluster(completed, name, design) for name in horizons}
    return Group(
        value=value,  # type: ignore[arg-type] # of an axis
        n_cells=n_cells,
        n_completed=len(completed),
        n_failed=len(ended) - len(completed),
        n_missing=n_cells - len(ended),
        metrics={
            name: mean_of(completed, metrics.get(name) or _metric_of_items(name), design)
            for name in names
        },
        survival={
            name: survival_of(clusters, horizons[name], has_limits=design.has_limits)
            for name, clusters in times.items()
            if clusters
        },
        hazards=hazards_of(completed, design),
        usage=usage_total(row.usage for row in ended),
        cost_usd=cost_total(row.cost_usd for row in ended),
    )


def _metric_of_items(name: str) -> MetricInfo:
    """A metric that is known only once the items of a run are read."""
    return MetricInfo(name=name, title=name, low=None, high=None)


def _figures(row: CellRow, metrics: Sequence[MetricInfo]) -> CellFigures:
    of_runs_alone = {metric.name for metric in metrics if metric.is_of_run_alone}
    known = {name: value for name, value in row.metrics.items() if name not in of_runs_alone}
    values = {metric.name: known.get(metric.name) for metric in metrics if metric.censored_by}
    return CellFigures(
        row=row,
        metrics=known,
        times={
            name: Time(value, is_event=name not in row.censored)
            for name, value in values.items()
            if value is not None and row.censored is not None
        },
        judge_variance=row.judge_variance,
        parts=row.parts or {},
        exposures=row.exposures or {},
    )


def _failed_cell(row: CellRow) -> FailedCell:
    return FailedCell(**{name: getattr(row, name) for name in FailedCell.__struct_fields__})


def _cell_entry(row: CellRow, primary: PrimaryMetric) -> CellEntry:
    return CellEntry(
        cell=row.cell,
        run_id=row.run_id,
        axes=row.axes,
        repeat=row.repeat,
        value=row.metrics.get(primary.name),
    )


def _ended(result: SweepResult) -> list[CellRow]:
    return [result.rows[cell.key] for cell in result.cells if cell.key in result.rows]


def _status(result: SweepResult, *, n_failed: int) -> RunStatus:
    if len(result.rows) == len(result.cells) and not n_failed:
        return "completed"
    return "partial" if len(result.rows) > n_failed else "failed"


def _error(
    result: SweepResult, missed: Sequence[str], call: Callable[[str], str]
) -> ErrorEntry | None:
    if result.error:
        return ErrorEntry.of(result.error)
    ended = _ended(result)
    failed = [row for row in ended if row.status != "completed"]
    n_missing = len(result.cells) - len(ended)
    if failed or n_missing:
        return ErrorEntry(
            code="missing_cells",
            message=" ".join(_missing_cells(failed, n_missing)),
            hint=(TRY_AGAIN if failed else GO_ON).render(call),
            retryable=True,
        )
    short = [row for row in ended if row.exit_code == EXIT_GATE]
    if not (short or missed):
        return None
    hint = "The sweep itself is complete."
    sentences = [*missed]
    if short:
        sentences.insert(0, f"{plural(len(short), 'cell')} missed a gate or the judge coverage.")
        # A run that was played with other gates says nothing of these.
        where = "what it missed" if all(row.error for row in short) else "its metrics"
        hint = f"The sweep itself is complete; each cell's run says {where}."
    return ErrorEntry(code="gate", message=" ".join(sentences), hint=hint, retryable=False)


def _missing_cells(failed: Sequence[CellRow], n_missing: int) -> list[str]:
    """How many cells are missing, and why."""
    sentences = []
    if failed:
        reasons = dict.fromkeys(row.error.message for row in failed if row.error)
        first_reasons = " ".join([*reasons][:MOST_REASONS])
        sentences.append(f"{plural(len(failed), 'cell')} failed. {first_reasons}")
    if n_missing:
        sentences.append(f"{plural(n_missing, 'cell')} still to be played.")
    return sentences
