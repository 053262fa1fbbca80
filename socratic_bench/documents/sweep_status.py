"""How far a sweep is, and what its processes have spent."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.documents.document import Amount, BenchmarkName, Count, Document, RunId
from socratic_bench.documents.sweep import (
    AxisValues,
    CellKey,
    FailedCell,
    Repeat,
    SweepId,
)
from socratic_bench.types import doc


class ModelStatus(Struct, frozen=True, kw_only=True):
    """The runs of one model."""

    model: Annotated[str, doc("name of the model")]
    n_runs: Annotated[Count, doc("number of runs")]
    n_completed: Annotated[Count, doc("completed runs")]
    n_running: Annotated[Count, doc("runs that a process plays now")]
    n_failed: Annotated[Count, doc("failed runs")]
    n_missing: Annotated[Count, doc("runs that have not begun, or were interrupted")]


class UnfinishedRun(Struct, frozen=True, kw_only=True):
    """A run that has begun and has not ended."""

    run_id: RunId
    key: Annotated[CellKey | None, doc("null: unknown, in a sweep of an earlier program")]
    axes: AxisValues
    repeat: Annotated[Repeat | None, doc("null: unknown")]
    n_turns: Annotated[Count, doc("turns that the model has answered")]
    is_running: Annotated[
        bool, doc("a process that is alive plays it: it holds its lease, or its lock in a folder")
    ]
    is_pending: Annotated[
        bool, doc("a batch job that was submitted has its calls; resume the sweep to collect them")
    ]
    age_seconds: Annotated[
        Amount | None,
        doc("seconds since its last record, by the clock of this machine; null: unknown"),
    ]


class MissingRun(Struct, frozen=True, kw_only=True):
    """A run that has not begun, or was interrupted."""

    key: CellKey
    run_id: RunId
    axes: AxisValues
    repeat: Repeat


class SweepStatus(Document, frozen=True, kw_only=True):
    """Progress of a stored sweep."""

    kind: Literal["sweep_status"] = "sweep_status"
    sweep_id: SweepId
    benchmark: BenchmarkName
    place: Annotated[str, doc("the folder or prefix that was read")]
    started_at: Annotated[str, doc("when it began, ISO 8601 with its offset")]
    is_done: Annotated[bool, doc("every run is completed")]
    n_runs: Annotated[Count, doc("number of runs, those of all shards")]
    n_completed: Annotated[Count, doc("completed runs")]
    n_running: Annotated[Count, doc("runs that a process plays now")]
    n_failed: Annotated[Count, doc("failed runs; --retry-failed repeats them")]
    n_missing: Annotated[Count, doc("runs that have not begun, or were interrupted")]
    spent_usd: Annotated[
        Amount | None,
        doc(
            "upper bound of all USD that the sweep's processes have spent; without a budget, what "
            "the runs that ended have cost; null: a price is unknown"
        ),
    ]
    models: Annotated[list[ModelStatus], doc("by model, in the order of the plan")]
    unfinished: Annotated[list[UnfinishedRun], doc("runs that have begun and have not ended")]
    failed: Annotated[list[FailedCell], doc("failed runs, and why they failed")]
    missing: Annotated[
        list[MissingRun],
        doc("runs that have not begun, or were interrupted; empty if their keys are unknown"),
    ]


class SpendingFile(Struct, frozen=True, kw_only=True, tag_field="kind", tag="sweep_spending"):
    """What the processes of a sweep have spent (sweeps/{sweep_id}/spending.json)."""

    sweep_id: SweepId
    spent_usd: Annotated[
        dict[str, Annotated[Amount | None, doc("USD; null: the process had no budget")]],
        doc(
            "by process, at most: written before money is spent, and once more at the end; "
            "journals: the sum over journals of processes that noted no amount"
        ),
    ]
    reported_usd: Annotated[
        Amount,
        doc("the highest sum that a document has reported, amounts that others had noted included"),
    ] = 0.0
