"""The document of a sweep: each value of each axis with its figures, the best first."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from socratic_bench.documents.document import TIME_PLACES, USD_PLACES, ErrorEntry, to_places, utc
from socratic_bench.documents.run import Timestamps
from socratic_bench.documents.sweep import (
    CellEntry,
    CellRow,
    FailedCell,
    FigureGate,
    Group,
    PairedDifference,
    SweepDocument,
)
from socratic_bench.documents.turn import Agreement
from socratic_bench.documents.usage import cost_total, usage_total
from socratic_bench.errors import ENDINGS, EXIT_GATE, Naming, Problem
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.statistics.survival import Time
from socratic_bench.studies.figures import (
    Design,
    RunFigures,
    hazards_of,
    mean_of,
    notices_on_times,
    notices_on_unjudged,
    primary_metric,
    rank_of_group,
    survival_by_group,
    survival_of,
)
from socratic_bench.studies.gates import figure_gates, metrics_of_many, missed_gates
from socratic_bench.studies.groups import notices_on_pooled
from socratic_bench.studies.primary import PairedRuns, primary_differences
from socratic_bench.studies.sweep.grid import MODEL, OPENING, Cell, Grid
from socratic_bench.studies.sweep.sweep import GO_ON, SweepResult
from socratic_bench.types import Json, plural

EXIT_DEFECT = ENDINGS["internal"].exit_code
EXIT_MISSING = ENDINGS["unavailable"].exit_code
MOST_REASONS = 3
TRY_AGAIN = Problem.of(
    "Run the same command with {resume}, and {retry_failed} to repeat failed runs."
)


class CellFigures(RunFigures, frozen=True, kw_only=True):
    """The figures of a completed cell, by its row in the index."""

    row: CellRow


def document_of(
    result: SweepResult, *, has_intervals: bool = False, call: Naming = str
) -> SweepDocument:
    """The document; its texts call settings by `call`. Intervals need the extra `stats`."""
    ended = _ended(result)
    completed = [row for row in ended if row.status == "completed"]
    failed = [row for row in ended if row.status != "completed"]
    in_folder, in_bucket = result.indices
    grid = result.request.grid
    design = design_of(grid, has_limits=has_intervals)
    groups = {
        name: _groups_of_axis(name, result, design)
        for name in dict.fromkeys((MODEL, *(axis.name for axis in grid.axes)))
    }
    primary = primary_metric(result.benchmark, (group.survival for group in groups[MODEL]))
    # Gates on figures over all runs are those of the whole sweep.
    bounds = () if result.request.share else result.request.bounds
    gates = [
        gate
        for group in groups[MODEL]
        for gate in figure_gates(bounds, str(group.value), group.metrics, group.survival)
    ]
    return SweepDocument(
        sweep_id=result.begun.sweep_id,
        status="completed"
        if len(completed) == len(result.cells)
        else "partial"
        if completed or (result.error and result.error.end_reason == "batch_pending")
        else "failed",
        benchmark=result.benchmark.name,
        primary_metric=primary,
        axes={axis.name: [*axis.values] for axis in grid.axes},
        repeats=result.request.settings.repeats,
        seed=result.begun.seed,
        n_runs=len(result.cells),
        n_completed=len(completed),
        n_failed=len(failed),
        n_missing=len(result.cells) - len(ended),
        groups=groups,
        differences=_differences(result, [group.value for group in groups[MODEL]], design),
        agreement=Agreement.of(votes for row in completed for votes in row.votes or ()),
        figure_gates=gates,
        usage=usage_total(row.usage for row in ended),
        cost_usd=cost_total(row.cost_usd for row in ended),
        spent_usd=to_places(result.spent_usd, USD_PLACES),
        n_paid=result.n_paid,
        shard=result.request.share,
        failed=[
            FailedCell(**{name: getattr(row, name) for name in FailedCell.__struct_fields__})
            for row in failed
        ],
        runs=[
            CellEntry(
                key=row.key,
                run_id=row.run_id,
                axes=row.axes,
                repeat=row.repeat,
                value=row.metrics.get(primary.name),
            )
            for row in completed
        ],
        output_artifacts=in_folder.place() if in_folder else None,
        s3_artifacts=in_bucket.place() if in_bucket else None,
        timestamps=Timestamps(
            started_at=utc(result.started_at),
            completed_at=utc(result.completed_at),
            duration_seconds=round(result.duration_s, TIME_PLACES),
        ),
        pace=[*result.pace],
        notices=[
            *result.notices,
            *notices_on_pooled(_pooled_axes(grid)),
            *notices_on_times(
                group.survival[primary.name]
                for group in groups[MODEL]
                if primary.name in group.survival
            ),
            *(
                notice
                for model in dict.fromkeys(row.model for row in completed)
                for notice in notices_on_unjudged(
                    model, (row.unjudged_differ_by for row in completed if row.model == model)
                )
            ),
        ],
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


def _pooled_axes(grid: Grid) -> list[str]:
    """The axes with several values that are neither models nor samples."""
    return [
        axis.name
        for axis in grid.axes
        if len(axis.values) > 1 and axis.name not in (MODEL, *grid.sample_axes)
    ]


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


def _groups_of_axis(axis: str, result: SweepResult, design: Design) -> list[Group]:
    """The groups of an axis, in the order of the primary metric."""
    cells: dict[Json, list[Cell]] = {}
    for cell in result.cells:
        cells.setdefault(cell.values[axis], []).append(cell)
    ended = {
        value: [result.rows[cell.key] for cell in members if cell.key in result.rows]
        for value, members in cells.items()
    }
    infos = result.benchmark.metrics
    completed = {
        value: [_figures(row, infos) for row in rows if row.status == "completed"]
        for value, rows in ended.items()
    }
    metrics = metrics_of_many(result.benchmark)
    survival = {
        name: survival_by_group(completed, name, design, survival_of)
        for name, metric in metrics.items()
        if metric.censored_by
    }

    def group(value: Json) -> Group:
        runs, n_cells = completed[value], len(cells[value])
        names = dict.fromkeys((*metrics, *(name for run in runs for name in run.metrics)))
        # Metrics of items are known only once the items of a run are read.
        infos = {
            name: metrics.get(name) or MetricInfo(name=name, title=name, low=None, high=None)
            for name in names
        }
        return Group(
            value=value,  # type: ignore[arg-type] # of an axis
            n_runs=n_cells,
            n_completed=len(runs),
            n_failed=len(ended[value]) - len(runs),
            n_missing=n_cells - len(ended[value]),
            metrics={name: mean_of(runs, info, design) for name, info in infos.items()},
            survival={name: times[value] for name, times in survival.items() if value in times},
            hazards=hazards_of(runs, design),
            usage=usage_total(row.usage for row in ended[value]),
            cost_usd=cost_total(row.cost_usd for row in ended[value]),
        )

    unordered = [*map(group, cells)]
    primary = primary_metric(result.benchmark, (group.survival for group in unordered))

    def place(group: Group) -> list[tuple[bool, float]]:
        return rank_of_group(result.benchmark, primary, group.metrics)

    return sorted(unordered, key=place)


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
        unjudged_differ_by=row.unjudged_differ_by,
    )


def _ended(result: SweepResult) -> list[CellRow]:
    return [result.rows[cell.key] for cell in result.cells if cell.key in result.rows]


def _error(result: SweepResult, missed: Sequence[str], call: Naming) -> ErrorEntry | None:
    if result.error:
        return ErrorEntry.of(result.error)
    ended = _ended(result)
    failed = [row for row in ended if row.status != "completed"]
    n_missing = len(result.cells) - len(ended)
    if failed or n_missing:
        sentences = []
        if failed:
            reasons = dict.fromkeys(row.error.message for row in failed if row.error)
            first_reasons = " ".join([*reasons][:MOST_REASONS])
            sentences.append(f"{plural(len(failed), 'run')} failed. {first_reasons}")
        if n_missing:
            sentences.append(f"{plural(n_missing, 'run')} left.")
        return ErrorEntry(
            code="missing_runs",
            message=" ".join(sentences),
            hint=(TRY_AGAIN if failed else GO_ON).render(call),
            retryable=True,
        )
    short = [row for row in ended if row.exit_code == EXIT_GATE]
    hint = "The sweep itself is complete."
    sentences = [*missed]
    if short:
        sentences.insert(0, f"{plural(len(short), 'run')} missed a gate or the judge coverage.")
        # A run that was played with other gates says nothing of these.
        where = "what it missed" if all(row.error for row in short) else "its metrics"
        hint = f"The sweep itself is complete; each run says {where}."
    return ErrorEntry.of_gates(sentences, hint)
