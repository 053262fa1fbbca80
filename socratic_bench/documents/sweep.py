"""The document of a sweep, and what is stored of one."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.document import (
    SCHEMA_VERSION,
    Amount,
    BenchmarkName,
    Count,
    ErrorEntry,
    RunId,
    Seed,
    Share,
    Timestamp,
    Version,
)
from socratic_bench.documents.jury import Agreement
from socratic_bench.documents.run import Timestamps
from socratic_bench.documents.usage import ActorUsage, ModelThroughput
from socratic_bench.errors import RunStatus
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
    status: Annotated[RunStatus, doc("whether its run was played to its end")]
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
    status: Annotated[RunStatus, doc("completed: no cell is missing, none has failed")]
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


# What several runs come to, as documents have it: means and times, with their intervals.


class Variance(Struct, frozen=True, kw_only=True):
    """What the variance of a metric over runs is made of, in its unit squared."""

    sample: Annotated[Amount, doc("between samples; 0: no more than repeats explain")]
    repeat: Annotated[Amount, doc("between repeats of a sample, without what is the judge's")]
    judge: Annotated[
        Amount | None,
        doc(
            "of the judge alone, by its several verdicts on a turn (--judge-samples); "
            "null: not known, and part of repeat"
        ),
    ] = None


class RunGroup(Struct, frozen=True, kw_only=True):
    """Runs that are near each other in a metric, and apart from others."""

    n: Annotated[int, Meta(ge=1, description="runs in the group")]
    mean: Annotated[float, doc("mean of these alone, in the metric's unit")]


class TwoGroups(Struct, frozen=True, kw_only=True):
    """Runs in two groups that lie apart, as where a few dialogues collapse: in samples that have
    none of the few, an interval of the mean is narrow around a wrong value.
    """

    lower: Annotated[RunGroup, doc("those with the lower values")]
    higher: Annotated[RunGroup, doc("those with the higher values")]


class Mean(Struct, frozen=True, kw_only=True):
    """A metric over the cells of a group."""

    mean: Annotated[float | None, doc("over cells in which it is known; null: none")]
    n: Annotated[
        Count,
        doc(
            "complete cells in which it is known; of runs of many items, what these "
            "are of, such as problems, counted cell by cell"
        ),
    ]
    n_clusters: Annotated[
        Count, doc("samples that these are of; of runs of many items, problems")
    ] = 0
    scope: Annotated[
        Literal["these samples", "samples like these"],
        doc(
            "for what the figures hold: an interval for samples like these, a mean "
            "without one for these alone"
        ),
    ] = "these samples"
    low: Annotated[
        float | None,
        doc(
            "of the mean's 95 % interval, clustered by sample; null: one sample, or "
            "the extra stats is not installed"
        ),
    ] = None
    high: Annotated[float | None, doc("of the same; null as low is")] = None
    variance: Annotated[
        Variance | None, doc("of single runs; null without two samples, or without repeats")
    ] = None
    runs_to_halve: Annotated[
        Count | None,
        doc(
            "further runs, of new samples, that would halve the interval if they vary "
            "as these do: a rate's by Wilson, any other by t, also where bootstrap-t "
            "made it; null: no interval, none to halve, or a metric of runs of many items"
        ),
    ] = None
    two_groups: Annotated[
        TwoGroups | None,
        doc(
            "that its runs lie in two groups, so that the interval may not hold; null: "
            "they do not, or too few samples show it"
        ),
    ] = None


class Estimate(Struct, frozen=True, kw_only=True):
    """A figure with the limits of its 95 % interval, from draws of samples."""

    value: Annotated[Amount | None, doc("null: so few events that it is not reached")]
    low: Annotated[
        Amount | None, doc("null: no limit, one sample, or the extra stats is not installed")
    ] = None
    high: Annotated[Amount | None, doc("null: as of low, or beyond what was played")] = None


class Survival(Struct, frozen=True, kw_only=True):
    """How long it takes until an event which some runs did not see (Kaplan-Meier)."""

    n: Annotated[Count, doc("complete cells in which the metric is known")]
    n_events: Annotated[Count, doc("of these, in how many the event came")]
    n_clusters: Annotated[Count, doc("samples of which these cells are")]
    median: Annotated[Estimate, doc("by when it came to half, in the metric's unit")]
    restricted_mean: Annotated[
        Estimate, doc("mean time without it, up to the horizon, in the metric's unit")
    ]
    horizon: Annotated[Amount, doc("the longest time that was seen, in that unit")]


class Hazard(Struct, frozen=True, kw_only=True):
    """How likely an event is in one turn that it has not come before: Wilson's interval, clustered
    by sample.
    """

    n_at_risk: Annotated[int, Meta(ge=1, description="turns in which it could come")]
    n_events: Annotated[Count, doc("of these, in how many it came")]
    hazard: Annotated[Share, doc("n_events / n_at_risk: probability per turn")]
    low: Annotated[
        Share | None,
        doc(
            "of the 95 % interval; null: turns of one sample alone, or the extra stats "
            "is not installed"
        ),
    ] = None
    high: Annotated[Share | None, doc("of the same; null as low is")] = None


class TurnHazard(Hazard, frozen=True, kw_only=True):
    """The same of one turn of all cells, which is `n_at_risk` cells."""

    turn: Annotated[Count, doc("number of the turn, from 0 for the first played")]


class Hazards(Struct, frozen=True, kw_only=True):
    """When an event comes and after what, in discrete time: over turns in which it could come for
    the first time.
    """

    n: Annotated[Count, doc("complete cells in which it could come")]
    n_events: Annotated[Count, doc("of these, in how many it came")]
    n_clusters: Annotated[Count, doc("samples of which these cells are")]
    by_turn: Annotated[list[TurnHazard], doc("turns in which it could come, in order")]
    by_kind: Annotated[dict[str, Hazard], doc("turns of each of the benchmark's kinds of turns")]


class MinimumGate(Struct, frozen=True, kw_only=True):
    """What a figure of a model's runs has to reach."""

    name: Annotated[str, doc("the model")]
    gate: Annotated[
        str,
        doc(
            "what it is on: path of a metric, with .median or .restricted_mean of a "
            "time until an event, and with .low the lower limit of the interval"
        ),
    ]
    minimum: Annotated[float, doc("the least value that passes, in that unit")]
    value: Annotated[float | None, doc("the figure; null: not known")]
    reason: Annotated[str | None, doc("why it is not known; null: it is")] = None
    passed: Annotated[bool, doc("whether the figure is known, and no lower")]
