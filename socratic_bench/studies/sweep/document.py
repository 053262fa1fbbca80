"""The document of a sweep, and the exit code of its command."""

from collections.abc import Callable, Iterable, Sequence

from socratic_bench.documents.document import TIME_PLACES, USD_PLACES, ErrorEntry, to_places, utc
from socratic_bench.documents.jury import Agreement
from socratic_bench.documents.run import Timestamps
from socratic_bench.documents.sweep import CellRow, MinimumGate, SweepDocument
from socratic_bench.errors import ENDINGS, EXIT_GATE, Problem, RunStatus
from socratic_bench.studies import gates as bounds
from socratic_bench.studies.figures import Means
from socratic_bench.studies.sweep import summary
from socratic_bench.studies.sweep.grid import MODEL
from socratic_bench.studies.sweep.sweep import GO_ON, SweepResult
from socratic_bench.types import plural

EXIT_DEFECT = ENDINGS["internal"].exit_code
EXIT_MISSING = ENDINGS["unavailable"].exit_code
REASONS_SHOWN = 3
TRY_AGAIN = Problem.of(
    "Go on with the same command and {resume}, and {retry_failed} for cells that failed."
)


def document_of(
    result: SweepResult, *, has_intervals: bool = False, call: Callable[[str], str] = str
) -> SweepDocument:
    """What is printed of a sweep; intervals of its means need the extra `stats`. What is told of
    settings calls them as `call` does.
    """
    cells, ended = result.cells, _ended(result)
    by = summary.primary_metric(result.benchmark)
    completed = [row for row in ended if row.status == "completed"]
    failed = summary.failed(ended)
    in_folder, in_bucket = result.indices
    grid, metrics = result.asked.grid, result.benchmark.metrics
    method = result.asked.settings.interval if has_intervals else None
    means = Means.of(grid, metrics, method=method)
    groups = summary.groups(grid, cells, result.rows, by, means)
    gates = [
        gate
        for one in groups[MODEL]
        for gate in bounds.minimum_gates(
            result.asked.bounds, str(one.value), one.metrics, one.survival
        )
    ]
    return SweepDocument(
        sweep_id=result.begun.sweep_id,
        status=_status(result, n_failed=len(failed)),
        benchmark=result.benchmark.name,
        primary_metric=by,
        axes={axis.name: [*axis.values] for axis in grid.axes},
        repeats=result.asked.settings.repeats,
        seed=result.begun.seed,
        interval=method,
        n_cells=len(cells),
        n_completed=len(completed),
        n_failed=len(failed),
        n_missing=len(cells) - len(ended),
        groups=groups,
        agreement=Agreement.of(votes for row in completed for votes in row.votes or ()),
        minimum_gates=gates,
        usage=summary.usage_of(ended),
        cost_usd=summary.cost_of(ended),
        spent_usd=to_places(result.spent_usd, USD_PLACES),
        failed=failed,
        cells=summary.entries(completed, by),
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
        error=_error(result, bounds.missed_minima(gates), call),
    )


def exit_code(result: SweepResult, gates: Iterable[MinimumGate] = ()) -> int:
    """The first that fits: a defect, a signal, credentials, budget or deadline, missing cells, a
    gate, of a run or of all runs of a model, or the judge coverage.
    """
    ended = _ended(result)
    codes = {row.exit_code for row in ended}
    if EXIT_DEFECT in codes:
        return EXIT_DEFECT
    if result.error:
        return result.error.exit_code
    if len(ended) < len(result.cells) or any(row.status != "completed" for row in ended):
        return EXIT_MISSING
    is_missed = EXIT_GATE in codes or not all(one.passed for one in gates)
    return EXIT_GATE if is_missed else 0


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
            message=" ".join(_missing(failed, n_missing)),
            hint=(TRY_AGAIN if failed else GO_ON).render(call),
            retryable=True,
        )
    short = [row for row in ended if row.exit_code == EXIT_GATE]
    n_short = len(short)
    if not (short or missed):
        return None
    of_cells = [f"{plural(n_short, 'cell')} missed a gate or the judge coverage."] * bool(n_short)
    hint = "The sweep itself is complete."
    if short:  # a run that was played with other bounds says nothing of these
        what = "what it missed" if all(row.error for row in short) else "its metrics"
        hint = f"The sweep itself is complete; each cell's run says {what}."
    return ErrorEntry(
        code="gate", message=" ".join([*of_cells, *missed]), hint=hint, retryable=False
    )


def _missing(failed: Sequence[CellRow], n_missing: int) -> list[str]:
    """How many cells there are not, and why."""
    told = []
    if failed:
        reasons = dict.fromkeys(row.error.message for row in failed if row.error)
        shown = " ".join([*reasons][:REASONS_SHOWN])
        told.append(f"{plural(len(failed), 'cell')} failed. {shown}")
    if n_missing:
        told.append(f"{plural(n_missing, 'cell')} still to be played.")
    return told
