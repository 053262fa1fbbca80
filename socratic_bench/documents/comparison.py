"""What `socratic-runner compare` prints: models side by side, and how they differ pair by pair."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.error import ErrorEntry
from socratic_bench.documents.estimates import Mean, MinimumGate, Survival
from socratic_bench.documents.scalars import Amount, BenchmarkName, Count, Model, Share
from socratic_bench.documents.schemas import Document
from socratic_bench.documents.sweep import PrimaryMetric, Value
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
