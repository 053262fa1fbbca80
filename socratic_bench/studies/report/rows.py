"""What a report is made of: complete runs in the order of their ids, and cells that failed."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from socratic_bench.concurrency import convert
from socratic_bench.documents.judge import Juror, silent_jurors
from socratic_bench.documents.judge_status import JudgeIdentity, JudgeStatus, StoredCalibration
from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import Mistakes
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.studies.reading import read_runs
from socratic_bench.studies.rows import RunRow, TurnRow
from socratic_bench.types import Json


class FailedRow(Struct, frozen=True, kw_only=True):
    """A cell of a sweep without a complete run; `code` is that of its error."""

    run_id: str
    model: str
    axes: Mapping[str, Json]
    end_reason: str
    code: str | None
    message: str | None


class Rows(Struct, frozen=True, kw_only=True):
    """All runs of a report, in the order of their ids, and the cells that failed."""

    benchmark: Benchmark
    runs: Sequence[RunRow]
    failed: Sequence[FailedRow] = ()

    @property
    def models(self) -> list[str]:
        """The models of the runs, each once."""
        return [*dict.fromkeys(run.model for run in self.runs)]

    @property
    def samples(self) -> list[str]:
        """The names of what was played, in their order."""
        return sorted({run.sample_name for run in self.runs})

    def of(self, model: str) -> list[RunRow]:
        """The runs of a model."""
        return [run for run in self.runs if run.model == model]

    def turns(self) -> Iterator[tuple[RunRow, TurnRow]]:
        """Every turn that was played, with its run."""
        for run in self.runs:
            for turn in run.turns:
                if not turn.is_replayed:
                    yield run, turn


def read_rows(
    arguments: Sequence[str],
    region: Callable[[], str],
    judging: str | None = None,
    calibrations: Sequence[StoredCalibration] = (),
) -> Rows:
    """The runs that arguments name, each once. With a `judging`, its verdicts replace the first
    ones; with `calibrations`, these replace what runs say about the calibration of their judges.

    Raises `UsageError` with every mistake, and `ArtifactError` for a store.
    """
    mistakes = Mistakes()
    stored = read_runs(arguments, region, mistakes, judging=judging, has_files=True)
    if mistakes.sentences or not stored.benchmark:
        raise mistakes.error()
    runs = sorted(stored.runs, key=lambda run: run.run_id)
    return Rows(
        benchmark=stored.benchmark,
        runs=[_with_calibration(run, calibrations) if calibrations else run for run in runs],
        failed=[_failure_row(cell.row) for cell in stored.failed],
    )


def _with_calibration(run: RunRow, calibrations: Sequence[StoredCalibration]) -> RunRow:
    judge = run.document.get("judge")
    if judge is None:
        return run
    context, jurors = run.at("inputs.judge_context"), judge.get("jurors") or []
    identity = replace(
        convert(judge, JudgeIdentity),
        silent=silent_jurors(convert(jurors, list[Juror])),
        **({} if context is None else {"context": context}),
    )
    status = to_builtins(JudgeStatus.of(identity, calibrations))
    return replace(run, document={**run.document, "judge": {**judge, "calibration": status}})


def _failure_row(row: CellRow) -> FailedRow:
    return FailedRow(
        run_id=row.run_id,
        model=row.model,
        axes=row.axes,
        end_reason=row.end_reason,
        code=row.error.code if row.error else None,
        message=row.error.message if row.error else None,
    )
