"""What `socratic-runner compare` prints: models side by side, and how they differ pair by pair."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

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
from socratic_bench.documents.jury import Agreement
from socratic_bench.documents.sweep import Mean, MinimumGate, PrimaryMetric, Survival, Value
from socratic_bench.documents.usage import CallUsage
from socratic_bench.turns import JuryRule
from socratic_bench.types import doc

Name = Annotated[str, doc("the model; with the argument where several arguments have the model")]
Limit = Annotated[
    float | None,
    doc(
        "of the 95 % interval, clustered by sample; null with one cluster, without the extra "
        "stats, where bootstrap-t finds none, or where differences are alike in under six clusters"
    ),
]
Clusters = Annotated[
    Count,
    doc(
        "samples among them, in which runs are clustered; of many items, what these "
        "are of, such as problems"
    ),
]


class TurnScore(Struct, frozen=True, kw_only=True):
    """The score of one turn over the runs of one contender."""

    turn: Annotated[Count, doc("index of the turn, from 0")]
    mean: Annotated[float, doc("points, over runs in which the turn was judged")]
    n: Annotated[int, Meta(ge=1, description="runs in which the turn was judged")]


class SurvivalStep(Struct, frozen=True, kw_only=True):
    """The curve from one time at which events came."""

    at: Annotated[Amount, doc("the time, in the metric's unit")]
    share: Annotated[Share, doc("to which the event has not come once it is over")]
    error: Annotated[
        Amount | None,
        doc(
            "standard error, clustered by sample: Greenwood's where each run is of a "
            "sample of its own; null with one cluster"
        ),
    ]
    low: Annotated[
        Share | None,
        doc(
            "of the 95 % interval (log-log); null where there is none: with one "
            "cluster, without scatter, once the curve is at 0, or without the extra stats"
        ),
    ]
    high: Annotated[Share | None, doc("of the same; null as low is")]


class ComparedSurvival(Survival, frozen=True, kw_only=True):
    """A metric that is a time until an event, over the runs of one contender (Kaplan-Meier); its
    horizon is that of all contenders: the longest time up to which each curve is known.
    """

    curve: Annotated[list[SurvivalStep], doc("in order; before the first, it is 1")]


class Contender(Struct, frozen=True, kw_only=True):
    """The runs of one model."""

    name: Name
    model: Model
    sources: Annotated[list[str], doc("the arguments that its runs came from")]
    n_runs: Annotated[int, Meta(ge=1, description="complete runs")]
    n_failed: Annotated[Count, doc("cells of its sweeps that failed; they count in no figure")] = 0
    metrics: Annotated[dict[str, Mean], doc("by path below a run's metrics")]
    score_by_turn: Annotated[list[TurnScore], doc("turns that were judged in any of its runs")]
    survival: Annotated[
        dict[str, ComparedSurvival],
        doc("by path, the benchmark's metrics that are times until an event"),
    ]


class FailedContender(Struct, frozen=True, kw_only=True):
    """A model of which an argument has no complete run."""

    model: Model
    source: Annotated[str, doc("the argument")]
    n_failed: Annotated[int, Meta(ge=1, description="cells of its sweeps that failed")]


class Difference(Struct, frozen=True, kw_only=True):
    """A metric of the first less that of the second, over pairs of runs."""

    mean: Annotated[float | None, doc("over pairs in which both have it; null: no pair has")]
    n: Annotated[Count, doc("pairs in which both have it; of many items, what they are of in each")]
    n_clusters: Clusters
    low: Limit
    high: Limit
    p: Annotated[
        Share | None,
        doc("of the paired t test, two-sided; null with one cluster or without the extra stats"),
    ]
    p_holm: Annotated[
        Share | None, doc("the same, corrected for all metrics and pairs by Holm's method")
    ]
    detectable: Annotated[
        Amount | None,
        doc(
            "true difference that would have been found in 80 % of such samples; null "
            "where p is, or where differences do not scatter"
        ),
    ]
    tied: Annotated[
        bool | None, doc("whether p_holm is over .05, so that they cannot be told apart; or null")
    ]


class FigureDifference(Struct, frozen=True, kw_only=True):
    """A figure of the first less that of the second, with a 95 % interval from draws of samples."""

    value: Annotated[float | None, doc("in the metric's unit; null: not reached in one of them")]
    low: Annotated[
        float | None, doc("null: no limit, one cluster, no event in one of them, or no extra stats")
    ]
    high: Annotated[float | None, doc("null: as of low")]


class SurvivalDifference(Struct, frozen=True, kw_only=True):
    """How the times until an event differ, over pairs of runs."""

    n: Annotated[Count, doc("pairs in which both have it; of many items, what they are of in each")]
    n_clusters: Clusters
    median: Annotated[FigureDifference, doc("by when it came to half")]
    restricted_mean: Annotated[FigureDifference, doc("mean time without it, up to the horizon")]
    horizon: Annotated[Amount, doc("the longest time up to which both are known")]


class ComparedPair(Struct, frozen=True, kw_only=True):
    """Two contenders, over runs of one sample, with one opening, in one repeat."""

    first: Name
    second: Name
    paired_by: Annotated[Literal["repeat", "seed"], doc("repeat where all runs are of sweeps")]
    n_pairs: Annotated[Count, doc("runs of the first with a run of the second")]
    n_unpaired: Annotated[Count, doc("runs of both that have none")]
    differences: Annotated[dict[str, Difference], doc("by path of the metric")]
    survival: Annotated[
        dict[str, SurvivalDifference],
        doc("by path of the metric, those that are times until an event"),
    ]


class Condition(Struct, frozen=True, kw_only=True):
    """Something in which contenders were not played alike."""

    name: Annotated[str, doc("path in a run's document")]
    values: Annotated[dict[str, list[Value]], doc("its values by contender")]


class DropGate(Struct, frozen=True, kw_only=True):
    """How far a contender may fall behind the baseline."""

    name: Annotated[str, doc("the contender")]
    metric: Annotated[str, doc("path of the metric")]
    of: Annotated[Literal["mean", "low"], doc("low: the worse limit of the interval")]
    max_drop: Annotated[float, Meta(ge=0, description="the largest drop that passes")]
    drop: Annotated[float | None, doc("how much worse it is; below 0: better; null: not known")]
    reason: Annotated[str | None, doc("why it is not known; null: it is")] = None
    passed: Annotated[bool, doc("whether the drop is known, and no larger")]


class ComparisonDocument(Document, frozen=True, kw_only=True):
    """Models by their stored runs."""

    kind: Literal["comparison"] = "comparison"
    benchmark: BenchmarkName
    primary_metric: Annotated[PrimaryMetric, doc("by which contenders are ordered and called tied")]
    baseline: Annotated[str | None, doc("what all are compared with; null: none")]
    interval: Annotated[
        Literal["t", "bootstrap-t"] | None,
        doc("how intervals are made; null: without the extra stats, not"),
    ]
    n_runs: Annotated[Count, doc("runs in all")]
    contenders: Annotated[
        list[Contender], doc("best first by the mean, unknown last; a baseline last")
    ]
    failed: Annotated[
        list[FailedContender], doc("what could not be compared; with --max-drop it passes no gate")
    ]
    pairs: Annotated[list[ComparedPair], doc("each with each, or with the baseline")]
    tied: Annotated[
        list[Annotated[list[Name], Meta(min_length=2, max_length=2)]] | None,
        doc("pairs that cannot be told apart by the primary metric; null if that is known of none"),
    ]
    conditions: Annotated[list[Condition], doc("in which contenders were not alike (--allow)")]
    gates: Annotated[list[DropGate], doc("each --max-drop for each contender")]
    minimum_gates: Annotated[list[MinimumGate], doc("each --fail-under for each contender")]
    notices: Annotated[list[str], doc("what a reader should know")]
    error: Annotated[ErrorEntry | None, doc("which gate was missed; null: none")]


# The document of runs that were judged again: how the verdicts differ from the first ones.

JudgingName = Annotated[str, doc("of the judging: judge, rubric, 8 hex digits of its settings")]
VerdictMean = Annotated[float | None, doc("mean; null where nothing is known")]


class JudgingSettings(Struct, frozen=True, kw_only=True):
    """Who judges again, and how."""

    jurors: Annotated[list[Model], Meta(min_length=1, description="the judge models")]
    samples: Annotated[int, Meta(ge=1, description="verdicts of each on a turn")]
    quorum: Annotated[int, Meta(ge=1, description="jurors that must give a verdict")]
    rule: Annotated[JuryRule | None, doc("how jurors' scores become one; null with one judge")]
    context: Annotated[Count, doc("exchanges before a reply that are shown")]
    rubric: Annotated[str, doc("edition of the rubric")]
    rubric_sha256: Annotated[str, doc("fingerprint of its file")]


class Changed(Struct, frozen=True, kw_only=True):
    """One dimension, or the score, on the turns that both have judged."""

    n_turns: Annotated[Count, doc("turns with a verdict in both")]
    first: VerdictMean
    second: VerdictMean
    mean_difference: Annotated[
        float | None, doc("mean of the second less the first; null without turns")
    ]
    absolute_error: Annotated[Amount | None, doc("mean distance of both; null without turns")]
    alpha: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None,
        doc(
            "Krippendorff's alpha of both, ordinal; null without the extra stats, or "
            "where all scores are the same"
        ),
    ]


class Figure(Struct, frozen=True, kw_only=True):
    """A metric over the runs in which it is known by both verdicts."""

    n_runs: Annotated[Count, doc("runs in which both know it")]
    first: VerdictMean
    second: VerdictMean


class JurorSpent(Struct, frozen=True, kw_only=True):
    """What one judge model has cost."""

    model: Model
    usage: Annotated[CallUsage, doc("its tokens and calls")]
    cost_usd: Annotated[Amount | None, doc("USD; null if a price is not known")]


class RejudgedRun(Struct, frozen=True, kw_only=True):
    """One run and what became of its new verdicts."""

    run_id: RunId
    source: Annotated[str, doc("the document of the run")]
    judging: Annotated[str | None, doc("folder of the verdicts; null: not begun")]
    status: Annotated[
        Literal["completed", "partial", "failed", "left"],
        doc("left: what ended an earlier one kept it from being begun"),
    ]
    end_reason: Annotated[str | None, doc("how the judging ended; null: not begun")]
    n_turns: Annotated[Count, doc("turns to be judged")] = 0
    n_judged: Annotated[Count, doc("turns with a new verdict")] = 0
    first: Annotated[dict[str, float | None], doc("metrics by the first verdicts")] = field(
        default_factory=dict
    )
    second: Annotated[dict[str, float | None], doc("the same by the new verdicts")] = field(
        default_factory=dict
    )


class JudgingsDocument(Document, frozen=True, kw_only=True):
    """Stored runs that were judged again."""

    kind: Literal["judgings"] = "judgings"
    benchmark: BenchmarkName
    name: JudgingName
    settings: Annotated[JudgingSettings, doc("who judges again, and how")]
    n_runs: Annotated[Count, doc("runs that were named")]
    n_judged_runs: Annotated[Count, doc("runs whose judging is complete")]
    dimensions: Annotated[
        dict[str, Changed],
        doc("by dimension, and overall_score: how new and first verdicts differ"),
    ]
    agreement: Annotated[
        dict[str, Agreement],
        doc("by dimension, and overall_score: how far the new jurors agree; empty with one judge"),
    ]
    figures: Annotated[dict[str, Figure], doc("by metric: means over runs, old and new")]
    runs: Annotated[list[RejudgedRun], doc("run by run")]
    jurors: Annotated[list[JurorSpent], doc("what each judge model has cost")]
    cost_usd: Annotated[
        Amount | None, doc("USD in all, of earlier processes, too; null: not known")
    ]
    notices: Annotated[list[str], doc("what people should know of it")]
    error: Annotated[ErrorEntry | None, doc("what ended it early; null: nothing")]


class JudgingsDryRun(Document, frozen=True, kw_only=True):
    """What it would take to judge stored runs again."""

    kind: Literal["judgings_dry_run"] = "judgings_dry_run"
    benchmark: BenchmarkName
    name: JudgingName
    settings: Annotated[JudgingSettings, doc("who would judge, and how")]
    n_runs: Annotated[Count, doc("runs that were named")]
    n_turns: Annotated[Count, doc("turns that would be judged")]
    jurors: Annotated[list[ExpectedJuror], doc("what each judge model would take")]
    cost_usd: Annotated[Amount | None, doc("USD as expected; null if a price is not known")]
    low_usd: Annotated[Amount | None, doc("USD if reasons are short; null as above")]
    high_usd: Annotated[Amount | None, doc("USD if reasons are long; null as above")]
    duration_seconds: Annotated[Amount, doc("seconds that are expected")]
    covers_high: Annotated[bool | None, doc("whether --max-cost-usd covers it; null without one")]
