"""The document of a sweep, and what is stored of one."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.agreement import Agreement
from socratic_bench.documents.error import ErrorEntry
from socratic_bench.documents.estimates import Hazards, Mean, MinimumGate, Survival
from socratic_bench.documents.run import Timestamps
from socratic_bench.documents.scalars import (
    SCHEMA_VERSION,
    Amount,
    BenchmarkName,
    Count,
    RunId,
    Seed,
    Timestamp,
    Version,
)
from socratic_bench.documents.throughput import ModelThroughput
from socratic_bench.documents.usage import ActorUsage
from socratic_bench.errors import Status
from socratic_bench.ports.parts import Exposure
from socratic_bench.types import EndReason, doc

SweepId = Annotated[
    str, Meta(pattern="^sweep-[0-9A-HJKMNP-TV-Z]{26}$", description="sweep- and a ULID")
]
CellKey = Annotated[
    str,
    Meta(pattern="^[0-9a-f]{16}$", description="names the cell in every sweep with its settings"),
]
Value = bool | float | str | None
AxisValues = Annotated[
    dict[str, Value], doc("the settings in which cells differ, by name; null: the default")
]
Repeat = Annotated[int, Meta(ge=1, description="which of the repeats, from 1")]
CostUsd = Annotated[Amount | None, doc("USD in all; null if a price is not known")]


class CellRow(Struct, frozen=True, kw_only=True):
    """How a cell of a sweep ended: one line of its index (sweeps/{sweep_id}/cells*.jsonl)."""

    cell: CellKey
    run_id: RunId
    axes: AxisValues
    repeat: Repeat
    seed: Annotated[Seed, doc("of its run")]
    status: Annotated[Status, doc("whether its run was played to its end")]
    end_reason: Annotated[EndReason, doc("how its run ended")]
    exit_code: Annotated[int, Meta(ge=0, le=255, description="what run would have left with")]
    metrics: Annotated[
        dict[str, float | None], doc("the benchmark's metrics by path; null: not known")
    ]
    censored: Annotated[
        list[str] | None, doc("metrics whose event had not come by the run's end; null: not known")
    ] = None
    judge_variance: Annotated[
        dict[str, Amount],
        doc(
            "by metric, what the judge's own scatter adds to its variance, in its unit "
            "squared; nothing where single verdicts do not tell"
        ),
    ] = {}
    exposures: Annotated[
        dict[str, Exposure] | None,
        doc("turns in which events could come, by event; null: not known"),
    ] = None
    parts: Annotated[
        dict[str, dict[str, float]] | None,
        doc(
            "of a run of many items, metrics by what these are of, such as a problem; "
            "null: not known"
        ),
    ] = None
    votes: Annotated[
        list[dict[str, dict[str, Amount] | None]] | None,
        doc("by turn and juror, each juror's scores; null without a jury"),
    ] = None
    n_turns: Annotated[Count, doc("turns that the model under test played")]
    usage: Annotated[ActorUsage, doc("of all roles")]
    cost_usd: CostUsd
    started_at: Annotated[Timestamp, doc("when the run began, UTC")]
    completed_at: Annotated[Timestamp, doc("when it ended, UTC")]
    duration_seconds: Annotated[Amount, doc("seconds that it took")]
    error: Annotated[ErrorEntry | None, doc("what ended it early, or which gate it missed")] = None

    @property
    def model(self) -> str:
        return str(self.axes["model"])


class SweepFile(Struct, frozen=True, kw_only=True):
    """What a sweep began with (sweeps/{sweep_id}/sweep.json)."""

    kind: Literal["sweep_begun"] = "sweep_begun"
    schema_version: Version = SCHEMA_VERSION
    sweep_id: SweepId
    benchmark: BenchmarkName
    identity: Annotated[
        str,
        Meta(
            pattern="^[0-9a-f]{32}$",
            description="digest of what all cells have in common, and of a seed that was given",
        ),
    ]
    seed: Annotated[Seed, doc("from which the seeds of all cells follow")]
    started_at: Annotated[str, doc("when it began, ISO 8601 with its offset")]
    runner_version: Annotated[str, doc("of the program that began it")]


class Group(Struct, frozen=True, kw_only=True):
    """The cells that have one value of an axis."""

    value: Annotated[Value, doc("of the axis; null: the setting's default")]
    n_cells: Annotated[Count, doc("cells that there are")]
    n_completed: Annotated[Count, doc("cells that were played to their end")]
    n_failed: Annotated[Count, doc("cells that could not be; they count in no mean")]
    n_missing: Annotated[Count, doc("cells that are still to be played")]
    metrics: Annotated[dict[str, Mean], doc("the benchmark's metrics by path, over complete cells")]
    usage: Annotated[ActorUsage, doc("of all roles of all cells that ended")]
    cost_usd: CostUsd
    survival: Annotated[
        dict[str, Survival],
        doc("by path, the metrics that are times until an event, over complete cells"),
    ] = {}
    hazards: Annotated[
        dict[str, Hazards], doc("by the benchmark's events: how likely each is in a turn")
    ] = {}


class CellEntry(Struct, frozen=True, kw_only=True):
    """A cell that was played to its end."""

    cell: CellKey
    run_id: RunId
    axes: AxisValues
    repeat: Repeat
    value: Annotated[float | None, doc("of the primary metric; null: not known")]


class FailedCell(Struct, frozen=True, kw_only=True):
    """A cell that could not be played to its end; --retry-failed goes on with it."""

    cell: CellKey
    run_id: RunId
    axes: AxisValues
    repeat: Repeat
    end_reason: Annotated[EndReason, doc("how its run ended")]
    error: Annotated[ErrorEntry | None, doc("what ended it")]


class PrimaryMetric(Struct, frozen=True, kw_only=True):
    """A metric by which runs are ordered."""

    name: Annotated[str, doc("path below a run's metrics")]
    higher_is_better: Annotated[bool, doc("whether more of it is better")]


class SweepPlace(Struct, frozen=True, kw_only=True):
    """Where a store holds a sweep."""

    index: Annotated[str, doc("where the rows of ended cells lie")]
    runs: Annotated[str, doc("below which each cell's run lies, under its run id")]


class SweepDocument(Struct, frozen=True, kw_only=True):
    """The document of a sweep."""

    kind: Literal["sweep"] = "sweep"
    schema_version: Version = SCHEMA_VERSION
    sweep_id: Annotated[SweepId | None, doc("null if no sweep came to be")] = None
    status: Annotated[Status, doc("completed: no cell is missing, none has failed")]
    benchmark: BenchmarkName
    primary_metric: Annotated[
        PrimaryMetric | None, doc("by which groups are ordered, the best first")
    ] = None
    axes: Annotated[
        dict[str, list[Value]], doc("the settings that differ, with all their values")
    ] = {}
    repeats: Annotated[Annotated[int, Meta(ge=1)] | None, doc("times that each cell is played")] = (
        None
    )
    seed: Annotated[Seed | None, doc("from which the seeds of all cells follow")] = None
    interval: Annotated[
        Literal["t", "bootstrap-t"] | None,
        doc("how intervals of means are made; null: without the extra stats, not"),
    ] = None
    n_cells: Annotated[Count, doc("cells that there are")] = 0
    n_completed: Annotated[Count, doc("cells that were played to their end")] = 0
    n_failed: Annotated[Count, doc("cells that could not be")] = 0
    n_missing: Annotated[Count, doc("cells that are still to be played")] = 0
    groups: Annotated[
        dict[str, list[Group]],
        doc("by axis: the cells of each of its values, best first, unknown last"),
    ] = {}
    agreement: Annotated[
        dict[str, Agreement],
        doc(
            "by dimension, and overall_score: how far jurors agree on the turns of all "
            "complete cells; empty without a jury"
        ),
    ] = {}
    minimum_gates: Annotated[
        list[MinimumGate],
        doc("each --fail-under on a limit of an interval, or on a time, by model"),
    ] = []
    usage: Annotated[ActorUsage, doc("of all roles of all cells that ended")] = ActorUsage()
    cost_usd: CostUsd = None
    spent_usd: Annotated[
        Amount | None,
        doc("USD that all of it has cost at most, cells under way included; null without a budget"),
    ] = None
    failed: Annotated[
        list[FailedCell], doc("cells that could not be played to their end, and why")
    ] = []
    cells: Annotated[
        list[CellEntry], doc("cells that were played to their end, in grid order")
    ] = []
    output_artifacts: Annotated[
        SweepPlace | None, doc("where the output folder holds it; null without one")
    ] = None
    s3_artifacts: Annotated[
        SweepPlace | None, doc("where the bucket holds it; null without one")
    ] = None
    timestamps: Annotated[Timestamps, doc("begin and end of this process")] = Timestamps()
    pace: Annotated[
        list[ModelThroughput], doc("how fast each model was asked in this process's time")
    ] = []
    notices: Annotated[list[str], doc("what people should know of how it was played")] = []
    end_reason: Annotated[
        EndReason | None, doc("what ended the sweep early; null if nothing did")
    ] = None
    error: Annotated[
        ErrorEntry | None, doc("what ended it early, or which cells failed or missed a gate")
    ] = None
