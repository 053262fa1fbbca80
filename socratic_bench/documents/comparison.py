"""Stored runs compared: models with each other, and new verdicts with the first ones."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.calibration import CorrectedFigures
from socratic_bench.documents.document import (
    Amount,
    BenchmarkName,
    Count,
    Document,
    ErrorEntry,
    Model,
    RunId,
    Share,
)
from socratic_bench.documents.dry_run import ExpectedJuror
from socratic_bench.documents.sweep import (
    FigureGate,
    LimitsReason,
    Mean,
    NoInterval,
    PairedDifference,
    PrimaryMetric,
    Survival,
    Value,
)
from socratic_bench.documents.turn import Agreement
from socratic_bench.documents.usage import CallUsage
from socratic_bench.turns import JuryRule
from socratic_bench.types import doc

Name = Annotated[str, doc("the model; with the argument if several arguments have the model")]
Limit = Annotated[
    float | None,
    doc(
        "limit of the 95 % confidence interval, clustered by scenario; null with one cluster, "
        "without any spread, or without the extra stats"
    ),
]
Clusters = Annotated[
    Count,
    doc("number of scenarios, by which runs are clustered; for runs of many items, of problems"),
]


JudgingName = Annotated[
    str, doc("name of the new verdicts: judge, rubric, 8 hex digits of the settings")
]
VerdictMean = Annotated[float | None, doc("mean; null: unknown")]


class TurnScore(Struct, frozen=True, kw_only=True):
    """Mean score of one turn over the runs of a contender."""

    turn: Annotated[Count, doc("index of the turn, from 0")]
    mean: Annotated[float, doc("points, over runs in which the turn was judged")]
    n: Annotated[int, Meta(ge=1, description="runs in which the turn was judged")]
    low: Annotated[
        float | None,
        doc("limit of the 95 % confidence interval, clustered by scenario; null without one"),
    ] = None
    high: Annotated[float | None, doc("null if low is")] = None


class SurvivalStep(Struct, frozen=True, kw_only=True):
    """The survival curve from one time of events on."""

    at: Annotated[Amount, doc("time in the metric's unit")]
    share: Annotated[Share, doc("share without the event after that time")]
    error: Annotated[
        Amount | None,
        doc(
            "standard error, clustered by scenario (Greenwood's with one run each); null with "
            "one cluster"
        ),
    ]
    low: Annotated[
        Share | None,
        doc(
            "lower limit of the 95 % interval (log-log); null with one cluster, without scatter, "
            "once the curve is at 0, or without the extra stats"
        ),
    ]
    high: Annotated[Share | None, doc("upper limit; null if low is")]


class ComparedSurvival(Survival, frozen=True, kw_only=True):
    """Time until an event, over the runs of one contender (Kaplan-Meier). All contenders have the
    same horizon: the longest time up to which each curve is known.
    """

    curve: Annotated[list[SurvivalStep], doc("in order of time; before the first, the share is 1")]


class Contender(Struct, frozen=True, kw_only=True):
    """The runs of one model."""

    name: Name
    model: Model
    sources: Annotated[list[str], doc("the arguments that have its runs")]
    n_runs: Annotated[int, Meta(ge=1, description="completed runs")]
    n_failed: Annotated[Count, doc("failed runs of its sweeps; no figure includes them")] = 0
    metrics: Annotated[dict[str, Mean], doc("by path of the metric")]
    score_by_turn: Annotated[list[TurnScore], doc("turns that were judged in at least one run")]
    survival: Annotated[
        dict[str, ComparedSurvival], doc("metrics that are times until an event, by path")
    ]


class FailedContender(Struct, frozen=True, kw_only=True):
    """A model without a completed run in an argument."""

    model: Model
    source: Annotated[str, doc("the argument")]
    n_failed: Annotated[int, Meta(ge=1, description="failed runs of its sweeps")]


class Difference(Struct, frozen=True, kw_only=True):
    """A metric of the first minus that of the second, over pairs of runs."""

    mean: Annotated[float | None, doc("over pairs in which both have it; null: no such pair")]
    n: Annotated[Count, doc("pairs in which both have it; for runs of many items, problems")]
    n_clusters: Clusters
    low: Limit
    high: Limit
    no_interval_because: Annotated[
        NoInterval | None, doc("why there is no interval; null: there is one, or no mean")
    ] = None


class FigureDifference(Struct, frozen=True, kw_only=True):
    """A figure of the first minus that of the second, with a 95 % bootstrap interval."""

    value: Annotated[float | None, doc("in the metric's unit; null: one of them does not reach it")]
    low: Annotated[float | None, doc("null: see no_interval_because, or there is no limit")]
    high: Annotated[float | None, doc("null: as low")]


class SurvivalDifference(Struct, frozen=True, kw_only=True):
    """Difference of the times until an event, over pairs of runs."""

    n: Annotated[Count, doc("pairs in which both have it; for runs of many items, problems")]
    n_clusters: Clusters
    median: Annotated[FigureDifference, doc("time by which half have had it")]
    restricted_mean: Annotated[FigureDifference, doc("mean time until it, capped at the horizon")]
    horizon: Annotated[Amount, doc("the longest time up to which both are known")]
    no_interval_because: LimitsReason = None


class ComparedPair(Struct, frozen=True, kw_only=True):
    """Two contenders, over pairs of runs with the same scenario, opening and repeat."""

    first: Name
    second: Name
    paired_by: Annotated[Literal["repeat", "seed"], doc("repeat if all runs are of sweeps")]
    n_pairs: Annotated[Count, doc("runs of the first with a run of the second")]
    n_unpaired: Annotated[Count, doc("runs of both without a partner")]
    differences: Annotated[dict[str, Difference], doc("by path of the metric")]
    survival: Annotated[
        dict[str, SurvivalDifference], doc("metrics that are times until an event, by path")
    ]


class Condition(Struct, frozen=True, kw_only=True):
    """A setting that differs between contenders."""

    name: Annotated[str, doc("path in a run's document")]
    values: Annotated[dict[str, list[Value]], doc("its values by contender")]


class DropGate(Struct, frozen=True, kw_only=True):
    """The largest drop of a contender against the baseline that passes."""

    name: Annotated[str, doc("the contender")]
    metric: Annotated[str, doc("path of the metric")]
    of: Annotated[
        Literal["mean", "low", "high"],
        doc("low: the worse limit of the interval; high: the better one"),
    ]
    max_drop: Annotated[float, Meta(ge=0, description="the largest drop that passes")]
    drop: Annotated[float | None, doc("how much worse it is; below 0: better; null: unknown")]
    reason: Annotated[str | None, doc("why it is unknown; null: it is known")] = None
    passed: Annotated[bool, doc("whether the drop is known and small enough")]


class ComparisonDocument(Document, frozen=True, kw_only=True):
    """Comparison of models by their stored runs."""

    kind: Literal["comparison"] = "comparison"
    benchmark: BenchmarkName
    primary_metric: Annotated[PrimaryMetric, doc("metric by which contenders are ordered")]
    baseline: Annotated[str | None, doc("the contender that all are compared with; null: none")]
    n_runs: Annotated[Count, doc("number of runs")]
    contenders: Annotated[
        list[Contender], doc("best mean first, unknown ones last; a baseline is last")
    ]
    failed: Annotated[
        list[FailedContender],
        doc("models without a completed run; with --max-drop they pass no gate"),
    ]
    differences: Annotated[
        list[PairedDifference],
        doc("the primary figure of each pair: how much longer one holds, and how sure that is"),
    ]
    pairs: Annotated[list[ComparedPair], doc("each with each other, or with the baseline")]
    conditions: Annotated[list[Condition], doc("settings that differ between contenders (--allow)")]
    gates: Annotated[list[DropGate], doc("result of each --max-drop for each contender")]
    figure_gates: Annotated[
        list[FigureGate], doc("result of each --fail-under and --fail-over for each contender")
    ]
    corrected: Annotated[
        CorrectedFigures | None, doc("figures corrected by labels; null without --labels")
    ] = None
    notices: Annotated[list[str], doc("warnings")]
    error: Annotated[ErrorEntry | None, doc("which gate failed; null: none")]


class JudgingSettings(Struct, frozen=True, kw_only=True):
    """Who judges again, and how."""

    jurors: Annotated[list[Model], Meta(min_length=1, description="the judge models")]
    samples: Annotated[int, Meta(ge=1, description="verdicts of each juror on a turn")]
    quorum: Annotated[int, Meta(ge=1, description="minimum number of jurors with a verdict")]
    rule: Annotated[
        JuryRule | None, doc("how the jurors' scores are combined; null with one judge")
    ]
    context: Annotated[Count, doc("exchanges before a reply that the judge sees")]
    rubric: Annotated[str, doc("name of the rubric")]
    rubric_sha256: Annotated[str, doc("sha256 of the rubric file")]


class Changed(Struct, frozen=True, kw_only=True):
    """One dimension, or the overall score, on turns with both verdicts."""

    n_turns: Annotated[Count, doc("turns with both verdicts")]
    first: VerdictMean
    second: VerdictMean
    mean_difference: Annotated[float | None, doc("mean of second minus first; null without turns")]
    absolute_error: Annotated[Amount | None, doc("mean distance of both; null without turns")]
    alpha: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None,
        doc(
            "Krippendorff's alpha of both, ordinal; null without the extra stats, or if all "
            "scores are the same"
        ),
    ]


class Figure(Struct, frozen=True, kw_only=True):
    """A metric over runs in which both verdicts give it."""

    n_runs: Annotated[Count, doc("number of such runs")]
    first: VerdictMean
    second: VerdictMean


class JurorSpent(Struct, frozen=True, kw_only=True):
    """Cost of one judge model."""

    model: Model
    usage: Annotated[CallUsage, doc("its tokens and calls")]
    cost_usd: Annotated[Amount | None, doc("USD; null if a price is unknown")]


class RejudgedRun(Struct, frozen=True, kw_only=True):
    """One run and its new verdicts."""

    run_id: RunId
    source: Annotated[str, doc("the document of the run")]
    is_import: Annotated[
        bool, doc("whether it is a dialogue from a file, now stored as a run with these verdicts")
    ] = False
    judging: Annotated[str | None, doc("folder of the verdicts; null: not started")]
    status: Annotated[
        Literal["completed", "partial", "failed", "left"],
        doc("left: not started, since an earlier run's judging ended the command"),
    ]
    end_reason: Annotated[str | None, doc("how its judging ended; null: not started")]
    n_turns: Annotated[Count, doc("turns to judge")] = 0
    n_judged: Annotated[Count, doc("turns with a new verdict")] = 0
    first: Annotated[dict[str, float | None], doc("metrics by the first verdicts")] = {}
    second: Annotated[dict[str, float | None], doc("metrics by the new verdicts")] = {}


class JudgingsDocument(Document, frozen=True, kw_only=True):
    """Stored runs that were scored again (socratic-runner judge)."""

    kind: Literal["judgings"] = "judgings"
    benchmark: BenchmarkName
    name: JudgingName
    settings: Annotated[JudgingSettings, doc("who judges again, and how")]
    n_runs: Annotated[Count, doc("number of runs")]
    n_judged_runs: Annotated[Count, doc("runs with all new verdicts")]
    dimensions: Annotated[
        dict[str, Changed],
        doc("difference of new and first verdicts, by dimension and for overall_score"),
    ]
    agreement: Annotated[
        dict[str, Agreement],
        doc(
            "agreement of the new jurors, by dimension and for overall_score; empty with one judge"
        ),
    ]
    figures: Annotated[dict[str, Figure], doc("means over runs by metric, first and new")]
    runs: Annotated[list[RejudgedRun], doc("each run")]
    jurors: Annotated[list[JurorSpent], doc("cost of each judge model")]
    cost_usd: Annotated[
        Amount | None, doc("USD in total, earlier processes included; null: unknown")
    ]
    notices: Annotated[list[str], doc("warnings")]
    error: Annotated[ErrorEntry | None, doc("what ended it early; null: nothing did")]


class JudgingsDryRun(Document, frozen=True, kw_only=True):
    """Estimate of scoring stored runs again."""

    kind: Literal["judgings_dry_run"] = "judgings_dry_run"
    benchmark: BenchmarkName
    name: JudgingName
    settings: Annotated[JudgingSettings, doc("who would judge, and how")]
    n_runs: Annotated[Count, doc("number of runs")]
    n_turns: Annotated[Count, doc("turns to judge")]
    jurors: Annotated[list[ExpectedJuror], doc("estimate of each judge model")]
    cost_usd: Annotated[Amount | None, doc("expected USD; null if a price is unknown")]
    low_usd: Annotated[Amount | None, doc("USD if reasons are short; null as above")]
    high_usd: Annotated[Amount | None, doc("USD if reasons are long; null as above")]
    duration_seconds: Annotated[Amount, doc("expected seconds")]
    covers_high: Annotated[bool | None, doc("whether --max-cost-usd covers it; null without one")]
