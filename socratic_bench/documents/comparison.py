"""What `socratic-runner compare` prints: models side by side, and how they differ pair by pair."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.error import ErrorEntry
from socratic_bench.documents.scalars import (
    SCHEMA_VERSION,
    BenchmarkName,
    Count,
    Model,
    Share,
    Version,
)
from socratic_bench.documents.sweep import PrimaryMetric

Name = Annotated[
    str, Meta(description="the model; with the argument where several arguments have the model")
]
Limit = Annotated[
    float | None,
    Meta(
        description="of the 95 % interval, clustered by sample; null with one cluster or without "
        "the extra stats"
    ),
]
Clusters = Annotated[Count, Meta(description="samples among them, in which runs are clustered")]
Value = bool | float | str | None


class ComparedMean(Struct, frozen=True, kw_only=True):
    """A metric over the runs of one contender."""

    mean: Annotated[float | None, Meta(description="over runs in which it is known; null: none")]
    n: Annotated[Count, Meta(description="runs in which it is known")]
    n_clusters: Clusters
    low: Limit
    high: Limit


class TurnScore(Struct, frozen=True, kw_only=True):
    """The score of one turn over the runs of one contender."""

    turn: Annotated[Count, Meta(description="index of the turn, from 0")]
    mean: Annotated[float, Meta(description="points, over runs in which the turn was judged")]
    n: Annotated[int, Meta(ge=1, description="runs in which the turn was judged")]


class Contender(Struct, frozen=True, kw_only=True):
    """The runs of one model."""

    name: Name
    model: Model
    sources: Annotated[list[str], Meta(description="the arguments that its runs came from")]
    n_runs: Annotated[int, Meta(ge=1, description="complete runs")]
    metrics: Annotated[dict[str, ComparedMean], Meta(description="by path below a run's metrics")]
    score_by_turn: Annotated[
        list[TurnScore], Meta(description="turns that were judged in any of its runs")
    ]


class Difference(Struct, frozen=True, kw_only=True):
    """A metric of the first less that of the second, over pairs of runs."""

    mean: Annotated[
        float | None, Meta(description="over pairs in which both have it; null: no pair has")
    ]
    n: Annotated[Count, Meta(description="pairs in which both have it")]
    n_clusters: Clusters
    low: Limit
    high: Limit
    p: Annotated[Share | None, Meta(description="of the paired test, two-sided; null where low is")]
    p_holm: Annotated[
        Share | None,
        Meta(description="the same, corrected for all metrics and pairs by Holm's method"),
    ]
    detectable: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="true difference that would have been found in 80 % of such samples; null "
            "where low is, or where differences do not scatter"
        ),
    ]
    tied: Annotated[
        bool | None,
        Meta(description="whether p_holm is over .05, so that they cannot be told apart; or null"),
    ]


class ComparedPair(Struct, frozen=True, kw_only=True):
    """Two contenders, over runs of one sample, with one opening, in one repeat."""

    first: Name
    second: Name
    paired_by: Annotated[
        Literal["repeat", "seed"], Meta(description="repeat where all runs are of sweeps")
    ]
    n_pairs: Annotated[Count, Meta(description="runs of the first with a run of the second")]
    n_unpaired: Annotated[Count, Meta(description="runs of both that have none")]
    differences: Annotated[dict[str, Difference], Meta(description="by path of the metric")]


class Condition(Struct, frozen=True, kw_only=True):
    """Something in which contenders were not played alike."""

    name: Annotated[str, Meta(description="path in a run's document")]
    values: Annotated[dict[str, list[Value]], Meta(description="its values by contender")]


class DropGate(Struct, frozen=True, kw_only=True):
    """How far a contender may fall behind the baseline."""

    name: Annotated[str, Meta(description="the contender")]
    metric: Annotated[str, Meta(description="path of the metric")]
    of: Annotated[Literal["mean", "low"], Meta(description="low: the worse limit of the interval")]
    max_drop: Annotated[float, Meta(ge=0, description="the largest drop that passes")]
    drop: Annotated[
        float | None, Meta(description="how much worse it is; below 0: better; null: not known")
    ]
    passed: Annotated[bool, Meta(description="whether the drop is known, and no larger")]


class ComparisonDocument(Struct, frozen=True, kw_only=True):
    """Models by their stored runs."""

    kind: Literal["comparison"] = "comparison"
    schema_version: Version = SCHEMA_VERSION
    benchmark: BenchmarkName
    primary_metric: Annotated[
        PrimaryMetric, Meta(description="by which contenders are ordered and called tied")
    ]
    baseline: Annotated[str | None, Meta(description="what all are compared with; null: none")]
    n_runs: Annotated[Count, Meta(description="runs in all")]
    contenders: Annotated[
        list[Contender], Meta(description="best first by the mean, unknown last; a baseline last")
    ]
    pairs: Annotated[list[ComparedPair], Meta(description="each with each, or with the baseline")]
    tied: Annotated[
        list[Annotated[list[Name], Meta(min_length=2, max_length=2)]] | None,
        Meta(
            description="pairs that cannot be told apart by the primary metric; null if that is "
            "known of none"
        ),
    ]
    conditions: Annotated[
        list[Condition], Meta(description="in which contenders were not alike (--allow)")
    ]
    gates: Annotated[list[DropGate], Meta(description="each --max-drop for each contender")]
    notices: Annotated[list[str], Meta(description="what a reader should know")]
    error: Annotated[ErrorEntry | None, Meta(description="which gate was missed; null: none")]
