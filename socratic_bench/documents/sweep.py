"""The document of a sweep, its stored files, and the estimates of figures over many runs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.document import (
    Amount,
    BenchmarkName,
    Count,
    Document,
    ErrorEntry,
    RunId,
    Seed,
    Share,
    Timestamp,
)
from socratic_bench.documents.run import StoredGate, Timestamps
from socratic_bench.documents.turn import Agreement
from socratic_bench.documents.usage import ActorUsage, ModelThroughput, ShardShare
from socratic_bench.errors import RunStatus
from socratic_bench.ports.parts import Exposure
from socratic_bench.types import EndReason, doc

SweepId = Annotated[
    str, Meta(pattern="^sweep-[0-9A-HJKMNP-TV-Z]{26}$", description="sweep- and a ULID")
]
CellKey = Annotated[
    str,
    Meta(
        pattern="^[0-9a-f]{16}$",
        description="the same for all runs with the same settings and repeat",
    ),
]
Value = bool | float | str | None
AxisValues = Annotated[
    dict[str, Value], doc("the settings that vary between runs, by name; null: the default")
]
Repeat = Annotated[int, Meta(ge=1, description="number of the repeat, from 1")]
CostUsd = Annotated[Amount | None, doc("USD in total; null if a price is unknown")]


class Variance(Struct, frozen=True, kw_only=True):
    """The components of a metric's variance over runs, in its unit squared."""

    scenario: Annotated[Amount, doc("between scenarios; 0: repeats explain all of it")]
    repeat: Annotated[Amount, doc("between repeats of a scenario, without the judge's part")]
    judge: Annotated[
        Amount | None,
        doc(
            "of the judge, from several verdicts on a turn (--judge-samples); null: unknown, and "
            "included in repeat"
        ),
    ] = None


class RunGroup(Struct, frozen=True, kw_only=True):
    """Runs with similar values of a metric."""

    n: Annotated[int, Meta(ge=1, description="runs in the group")]
    mean: Annotated[float, doc("mean of these runs, in the metric's unit")]


class TwoGroups(Struct, frozen=True, kw_only=True):
    """Runs in two separate groups, for example if a few dialogues collapse. A sweep that
    happens to have none of these has a narrow interval around a wrong mean.
    """

    lower: Annotated[RunGroup, doc("the runs with lower values")]
    higher: Annotated[RunGroup, doc("the runs with higher values")]


NoInterval = Literal["no_spread", "too_few_scenarios", "needs_stats"]


class PairedDifference(Struct, frozen=True, kw_only=True):
    """The primary figure of two models: the first minus the second, over scenarios that both
    played. The test flips the signs of scenarios, and is corrected by Holm's method for all pairs
    of models; the interval holds the differences that this test does not reject.
    """

    first: Annotated[str, doc("name of a model")]
    second: Annotated[str, doc("name of the other")]
    metric: Annotated[str, doc("path of the metric")]
    difference: Annotated[
        float | None, doc("mean over scenarios; null: there is none that both played")
    ]
    low: Annotated[float | None, doc("lower limit of the 95 % interval; null: no interval")]
    high: Annotated[float | None, doc("upper limit; null if low is")]
    no_interval_because: Annotated[
        NoInterval | None,
        doc(
            "why there is no interval: all scenarios differ alike, too few for any p under .05 "
            "after correction, or the extra stats is missing; null: there is one"
        ),
    ]
    p: Annotated[Share | None, doc("exact two-sided sign-flip test; null without a difference")]
    is_p_drawn: Annotated[
        bool, doc("p is of 9,999 drawn ways to flip signs, since there are too many sums to count")
    ] = False
    p_adjusted: Annotated[Share | None, doc("p corrected by Holm's method for all pairs")]
    n_scenarios: Annotated[
        Count,
        doc(
            "scenarios that both played; openings where there is one scenario, problems for runs "
            "of many items"
        ),
    ]
    detectable: Annotated[
        Amount | None,
        doc("difference that p_adjusted would find with 80 % power; null without an interval"),
    ]
    scenarios_needed: Annotated[
        Count | None,
        doc(
            "scenarios that would decide in 80 % of cases, if they differ as these do; null: "
            "decided, or they do not differ"
        ),
    ]
    winner: Annotated[str | None, doc("the better model; null: undecided")] = None
    undecided_because: Annotated[str | None, doc("why there is no winner; null: there is")] = None
    summary: Annotated[str, doc("the result in one sentence")] = ""


class Mean(Struct, frozen=True, kw_only=True):
    """A metric over the runs of a group."""

    mean: Annotated[float | None, doc("over runs with a known value; null: none")]
    n: Annotated[
        Count,
        doc("completed runs with a known value; for runs of many items, problems, run by run"),
    ]
    n_clusters: Annotated[
        Count, doc("number of scenarios; for runs of many items, of problems")
    ] = 0
    scope: Annotated[
        Literal["these scenarios", "scenarios like these"],
        doc(
            "with an interval, the mean applies to scenarios like these; without one, only to "
            "these scenarios"
        ),
    ] = "these scenarios"
    low: Annotated[
        float | None,
        doc(
            "lower limit of the mean's 95 % confidence interval, clustered by scenario; null with "
            "one scenario, or without the extra stats"
        ),
    ] = None
    high: Annotated[float | None, doc("upper limit; null if low is")] = None
    no_interval_because: Annotated[
        NoInterval | None, doc("why there is no interval; null: there is one, or no mean")
    ] = None
    variance: Annotated[
        Variance | None, doc("of single runs; null without two scenarios or without repeats")
    ] = None
    runs_to_halve: Annotated[
        Count | None,
        doc(
            "further runs, of new scenarios, that would halve the interval if they vary as these "
            "do (Wilson for rates, else t); null without an interval, if it has no width, or for "
            "runs of many items"
        ),
    ] = None
    two_groups: Annotated[
        TwoGroups | None,
        doc(
            "two separate groups of runs, so that the interval may be wrong; null: there are "
            "none, or too few scenarios to see them"
        ),
    ] = None


class Estimate(Struct, frozen=True, kw_only=True):
    """A figure with its 95 % bootstrap interval over scenarios."""

    value: Annotated[Amount | None, doc("null: too few events to reach it")]
    low: Annotated[Amount | None, doc("null: see no_interval_because")] = None
    high: Annotated[Amount | None, doc("null: as low, or beyond the longest run")] = None


LimitsReason = Annotated[
    Literal["too_few_scenarios", "no_event", "no_spread", "needs_stats"] | None,
    doc(
        "why all limits are null: fewer than six scenarios, no event, all alike, or no extra "
        "stats; null: there are limits"
    ),
]


class Survival(Struct, frozen=True, kw_only=True):
    """Time until an event, with runs in which it did not happen (Kaplan-Meier)."""

    n: Annotated[Count, doc("completed runs with a known value")]
    n_events: Annotated[Count, doc("runs in which the event happened")]
    n_clusters: Annotated[Count, doc("number of scenarios")]
    median: Annotated[Estimate, doc("time by which half have had it, in the metric's unit")]
    restricted_mean: Annotated[
        Estimate, doc("mean time until it, capped at the horizon, in the metric's unit")
    ]
    horizon: Annotated[
        Amount,
        doc(
            "the longest time up to which the curves of all groups of the axis are known, in that "
            "unit"
        ),
    ]
    no_interval_because: LimitsReason = None


class Hazard(Struct, frozen=True, kw_only=True):
    """Probability of an event in one turn, if it has not happened before. The interval is Wilson's,
    clustered by scenario.
    """

    n_at_risk: Annotated[int, Meta(ge=1, description="turns in which it could happen")]
    n_events: Annotated[Count, doc("turns in which it happened")]
    hazard: Annotated[Share, doc("n_events / n_at_risk")]
    low: Annotated[
        Share | None,
        doc("lower limit of the 95 % interval; null with one scenario or without the extra stats"),
    ] = None
    high: Annotated[Share | None, doc("upper limit; null if low is")] = None


class TurnHazard(Hazard, frozen=True, kw_only=True):
    """The probability in one turn, over all runs."""

    turn: Annotated[Count, doc("index of the turn, from 0")]


class Hazards(Struct, frozen=True, kw_only=True):
    """Discrete-time hazards of an event, over the turns in which it could happen for the first
    time.
    """

    n: Annotated[Count, doc("completed runs in which it could happen")]
    n_events: Annotated[Count, doc("turns in which it happened")]
    n_clusters: Annotated[Count, doc("number of scenarios")]
    by_turn: Annotated[list[TurnHazard], doc("by turn, in order")]
    by_kind: Annotated[dict[str, Hazard], doc("by the benchmark's kinds of turns")]


class FigureGate(Struct, frozen=True, kw_only=True):
    """A bound that a figure of a model's runs has to keep."""

    name: Annotated[str, doc("the model")]
    gate: Annotated[
        str,
        doc(
            "path of a metric, with .median or .restricted_mean for a time until an event, and "
            "with .low or .high for a limit of its interval"
        ),
    ]
    side: Annotated[
        Literal["under", "over"],
        doc("under: it fails under the bound (--fail-under); over: over it"),
    ]
    bound: Annotated[float, doc("the last value that passes")]
    value: Annotated[float | None, doc("the figure; null: unknown")]
    reason: Annotated[str | None, doc("why it is unknown; null: it is known")] = None
    passed: Annotated[
        bool,
        doc("whether the figure is known to keep the bound; a median that lies beyond it, too"),
    ]


class CellRow(Struct, frozen=True, kw_only=True):
    """A run that has ended: one line of the sweep's index (sweeps/{sweep_id}/cells*.jsonl)."""

    key: CellKey
    run_id: RunId
    axes: AxisValues
    repeat: Repeat
    seed: Annotated[Seed, doc("seed of its run")]
    status: Annotated[RunStatus, doc("whether its run was completed")]
    end_reason: Annotated[EndReason, doc("how its run ended")]
    exit_code: Annotated[
        int, Meta(ge=0, le=255, description="exit code that the command run would have had")
    ]
    metrics: Annotated[
        dict[str, float | None], doc("the benchmark's metrics by path; null: unknown")
    ]
    censored: Annotated[
        list[str] | None,
        doc("metrics whose event had not happened by the end of the run; null: unknown"),
    ] = None
    judge_variance: Annotated[
        dict[str, Amount],
        doc(
            "by metric, the judge's part of its variance, in its unit squared; absent if single "
            "verdicts do not show it"
        ),
    ] = {}
    unjudged_differ_by: Annotated[
        list[str], doc("in what its unjudged turns are unlike the judged ones; empty: not known")
    ] = []
    exposures: Annotated[
        dict[str, Exposure] | None,
        doc("turns in which an event could happen, by event; null: unknown"),
    ] = None
    parts: Annotated[
        dict[str, dict[str, float]] | None,
        doc("for a run of many items, metrics by problem; null: unknown"),
    ] = None
    votes: Annotated[
        list[dict[str, dict[str, Amount] | None]] | None,
        doc("each juror's scores, by turn and juror; null without a jury"),
    ] = None
    files: Annotated[
        dict[str, Count] | None,
        doc("bytes of the run's stored files, by key; null: unknown, or it is not complete"),
    ] = None
    curated_sha256: Annotated[
        str | None, doc("digest of its curated file; null: unknown, or it is not complete")
    ] = None
    n_turns: Annotated[Count, doc("turns that the model under test played")]
    usage: Annotated[ActorUsage, doc("of all roles")]
    cost_usd: CostUsd
    started_at: Annotated[Timestamp, doc("when the run began, UTC")]
    completed_at: Annotated[Timestamp, doc("when it ended, UTC")]
    duration_seconds: Annotated[Amount, doc("duration in seconds")]
    error: Annotated[ErrorEntry | None, doc("what ended it early, or which gate it failed")] = None

    @property
    def model(self) -> str:
        return str(self.axes["model"])


class SweepFile(Document, frozen=True, kw_only=True):
    """The beginning of a sweep (sweeps/{sweep_id}/sweep.json)."""

    kind: Literal["sweep_begun"] = "sweep_begun"
    sweep_id: SweepId
    benchmark: BenchmarkName
    identity: Annotated[
        str,
        Meta(
            pattern="^[0-9a-f]{32}$",
            description="digest of the settings that all runs share, and of a given seed",
        ),
    ]
    seed: Annotated[Seed, doc("seed from which the seeds of runs follow")]
    started_at: Annotated[str, doc("when it began, ISO 8601 with its offset")]
    runner_version: Annotated[str, doc("version of the program that began it")]
    axes: Annotated[
        dict[str, list[Value]] | None,
        doc(
            "the plan: all values of each axis, in order; --resume adds new ones. null in a sweep "
            "of an earlier program: then the rows of runs have the values"
        ),
    ] = None
    repeats: Annotated[
        Repeat | None, doc("the plan: runs of each combination; null: as for axes")
    ] = None
    keys: Annotated[
        list[CellKey] | None,
        doc("the plan: keys of all runs, in their order; null: as for axes"),
    ] = None
    gates: Annotated[
        list[StoredGate], doc("gates on figures of models, which sweep collect applies")
    ] = []
    is_simulated: Annotated[bool, doc("played on the built-in mock of Bedrock (--offline)")] = False


class Group(Struct, frozen=True, kw_only=True):
    """The runs that have one value of an axis."""

    value: Annotated[Value, doc("value of the axis; null: the default")]
    n_runs: Annotated[Count, doc("number of runs")]
    n_completed: Annotated[Count, doc("completed runs")]
    n_failed: Annotated[Count, doc("failed runs; no mean includes them")]
    n_missing: Annotated[Count, doc("runs that have not ended")]
    metrics: Annotated[dict[str, Mean], doc("the benchmark's metrics by path, over completed runs")]
    usage: Annotated[ActorUsage, doc("of all roles of all runs that ended")]
    cost_usd: CostUsd
    survival: Annotated[
        dict[str, Survival],
        doc("metrics that are times until an event, by path, over completed runs"),
    ] = {}
    hazards: Annotated[
        dict[str, Hazards], doc("probability of each of the benchmark's events, by turn")
    ] = {}


class CellEntry(Struct, frozen=True, kw_only=True):
    """A completed run."""

    key: CellKey
    run_id: RunId
    axes: AxisValues
    repeat: Repeat
    value: Annotated[float | None, doc("value of the primary metric; null: unknown")]


class FailedCell(Struct, frozen=True, kw_only=True):
    """A failed run; --retry-failed resumes it."""

    key: CellKey
    run_id: RunId
    axes: AxisValues
    repeat: Repeat
    end_reason: Annotated[EndReason, doc("how its run ended")]
    error: Annotated[ErrorEntry | None, doc("what ended it")]


class PrimaryMetric(Struct, frozen=True, kw_only=True):
    """The metric by which runs are ordered."""

    name: Annotated[str, doc("path below a run's metrics")]
    higher_is_better: Annotated[bool, doc("whether a higher value is better")]


class SweepPlace(Struct, frozen=True, kw_only=True):
    """Where a store holds a sweep."""

    index: Annotated[str, doc("place of the rows of runs that ended")]
    runs: Annotated[str, doc("folder or prefix of the runs, one for each run id")]


class SweepDocument(Document, frozen=True, kw_only=True):
    """The document of a sweep."""

    kind: Literal["sweep"] = "sweep"
    sweep_id: Annotated[SweepId | None, doc("null if the sweep never started")] = None
    status: Annotated[RunStatus, doc("completed: no run is missing and none has failed")]
    benchmark: BenchmarkName
    primary_metric: Annotated[PrimaryMetric | None, doc("groups are ordered by it, best first")] = (
        None
    )
    axes: Annotated[
        dict[str, list[Value]], doc("the settings that vary, with all their values")
    ] = {}
    repeats: Annotated[Annotated[int, Meta(ge=1)] | None, doc("runs of each combination")] = None
    seed: Annotated[Seed | None, doc("seed from which the seeds of runs follow")] = None
    n_runs: Annotated[Count, doc("number of runs")] = 0
    n_completed: Annotated[Count, doc("completed runs")] = 0
    n_failed: Annotated[Count, doc("failed runs")] = 0
    n_missing: Annotated[Count, doc("runs that have not ended")] = 0
    groups: Annotated[
        dict[str, list[Group]], doc("by axis: the runs of each value, best first, unknown last")
    ] = {}
    differences: Annotated[
        list[PairedDifference],
        doc("the primary figure of each two models: how much longer one holds, and how sure it is"),
    ] = []
    agreement: Annotated[
        dict[str, Agreement],
        doc(
            "agreement of jurors on the turns of all completed runs, by dimension and for "
            "overall_score; empty without a jury"
        ),
    ] = {}
    figure_gates: Annotated[
        list[FigureGate], doc("result of each --fail-under and --fail-over, by model")
    ] = []
    usage: Annotated[ActorUsage, doc("of all roles of all runs that ended")] = ActorUsage()
    cost_usd: CostUsd = None
    spent_usd: Annotated[
        Amount | None,
        doc(
            "upper bound of all USD that the sweep's processes have spent, looks at models and "
            "unfinished runs included; null without a budget"
        ),
    ] = None
    shard: Annotated[
        ShardShare | None,
        doc(
            "for a shard, what it has of the limits; all else is of its runs alone; null: no shard"
        ),
    ] = None
    n_paid: Annotated[
        Count | None,
        doc(
            "runs that the budget pays for: completed ones, and those that the rest of it is "
            "expected to cover; null without a budget"
        ),
    ] = None
    failed: Annotated[list[FailedCell], doc("failed runs, and why they failed")] = []
    runs: Annotated[list[CellEntry], doc("completed runs, in grid order")] = []
    output_artifacts: Annotated[
        SweepPlace | None, doc("where the output folder holds it; null without one")
    ] = None
    s3_artifacts: Annotated[
        SweepPlace | None, doc("where the bucket holds it; null without one")
    ] = None
    timestamps: Annotated[Timestamps, doc("begin and end of this process")] = Timestamps()
    pace: Annotated[list[ModelThroughput], doc("request rate of each model in this process")] = []
    notices: Annotated[list[str], doc("warnings")] = []
    end_reason: Annotated[
        EndReason | None, doc("what ended the sweep early; null if nothing did")
    ] = None
    error: Annotated[
        ErrorEntry | None, doc("what ended it early, or which runs failed, also by a gate")
    ] = None
