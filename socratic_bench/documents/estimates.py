"""What several runs come to, as documents have it: means and times, with their intervals."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import Amount, Count, Share


class Variance(Struct, frozen=True, kw_only=True):
    """What the variance of a metric over runs is made of, in its unit squared."""

    sample: Annotated[Amount, Meta(description="between samples; 0: no more than repeats explain")]
    repeat: Annotated[
        Amount, Meta(description="between repeats of a sample, without what is the judge's")
    ]
    judge: Annotated[
        Amount | None,
        Meta(
            description="of the judge alone, by its several verdicts on a turn (--judge-samples); "
            "null: not known, and part of repeat"
        ),
    ] = None


class RunGroup(Struct, frozen=True, kw_only=True):
    """Runs that are near each other in a metric, and apart from others."""

    n: Annotated[int, Meta(ge=1, description="runs in the group")]
    mean: Annotated[float, Meta(description="mean of these alone, in the metric's unit")]


class TwoGroups(Struct, frozen=True, kw_only=True):
    """Runs in two groups that lie apart, as where a few dialogues collapse: in samples that have
    none of the few, an interval of the mean is narrow around a wrong value.
    """

    lower: Annotated[RunGroup, Meta(description="those with the lower values")]
    higher: Annotated[RunGroup, Meta(description="those with the higher values")]


class Mean(Struct, frozen=True, kw_only=True):
    """A metric over the cells of a group."""

    mean: Annotated[float | None, Meta(description="over cells in which it is known; null: none")]
    n: Annotated[
        Count,
        Meta(
            description="complete cells in which it is known; of runs of many items, what these "
            "are of, such as problems, counted cell by cell"
        ),
    ]
    n_clusters: Annotated[
        Count, Meta(description="samples that these are of; of runs of many items, problems")
    ] = 0
    scope: Annotated[
        Literal["these samples", "samples like these"],
        Meta(
            description="for what the figures hold: an interval for samples like these, a mean "
            "without one for these alone"
        ),
    ] = "these samples"
    low: Annotated[
        float | None,
        Meta(
            description="of the mean's 95 % interval, clustered by sample; null: one sample, or "
            "the extra stats is not installed"
        ),
    ] = None
    high: Annotated[float | None, Meta(description="of the same; null as low is")] = None
    variance: Annotated[
        Variance | None,
        Meta(description="of single runs; null without two samples, or without repeats"),
    ] = None
    runs_to_halve: Annotated[
        Count | None,
        Meta(
            description="further runs, of new samples, that would halve the interval if they vary "
            "as these do: a rate's by Wilson, any other by t, also where bootstrap-t "
            "made it; null: no interval, none to halve, or a metric of runs of many items"
        ),
    ] = None
    two_groups: Annotated[
        TwoGroups | None,
        Meta(
            description="that its runs lie in two groups, so that the interval may not hold; null: "
            "they do not, or too few samples show it"
        ),
    ] = None


class Estimate(Struct, frozen=True, kw_only=True):
    """A figure with the limits of its 95 % interval, from draws of samples."""

    value: Annotated[Amount | None, Meta(description="null: so few events that it is not reached")]
    low: Annotated[
        Amount | None,
        Meta(description="null: no limit, one sample, or the extra stats is not installed"),
    ] = None
    high: Annotated[
        Amount | None, Meta(description="null: as of low, or beyond what was played")
    ] = None


class Survival(Struct, frozen=True, kw_only=True):
    """How long it takes until an event which some runs did not see (Kaplan-Meier)."""

    n: Annotated[Count, Meta(description="complete cells in which the metric is known")]
    n_events: Annotated[Count, Meta(description="of these, in how many the event came")]
    n_clusters: Annotated[Count, Meta(description="samples of which these cells are")]
    median: Annotated[Estimate, Meta(description="by when it came to half, in the metric's unit")]
    restricted_mean: Annotated[
        Estimate, Meta(description="mean time without it, up to the horizon, in the metric's unit")
    ]
    horizon: Annotated[Amount, Meta(description="the longest time that was seen, in that unit")]


class Hazard(Struct, frozen=True, kw_only=True):
    """How likely an event is in one turn that it has not come before: Wilson's interval, clustered
    by sample.
    """

    n_at_risk: Annotated[int, Meta(ge=1, description="turns in which it could come")]
    n_events: Annotated[Count, Meta(description="of these, in how many it came")]
    hazard: Annotated[Share, Meta(description="n_events / n_at_risk: probability per turn")]
    low: Annotated[
        Share | None,
        Meta(
            description="of the 95 % interval; null: turns of one sample alone, or the extra stats "
            "is not installed"
        ),
    ] = None
    high: Annotated[Share | None, Meta(description="of the same; null as low is")] = None


class TurnHazard(Hazard, frozen=True, kw_only=True):
    """The same of one turn of all cells, which is `n_at_risk` cells."""

    turn: Annotated[Count, Meta(description="number of the turn, from 0 for the first played")]


class Hazards(Struct, frozen=True, kw_only=True):
    """When an event comes and after what, in discrete time: over turns in which it could come for
    the first time.
    """

    n: Annotated[Count, Meta(description="complete cells in which it could come")]
    n_events: Annotated[Count, Meta(description="of these, in how many it came")]
    n_clusters: Annotated[Count, Meta(description="samples of which these cells are")]
    by_turn: Annotated[list[TurnHazard], Meta(description="turns in which it could come, in order")]
    by_kind: Annotated[
        dict[str, Hazard], Meta(description="turns of each of the benchmark's kinds of turns")
    ]


class MinimumGate(Struct, frozen=True, kw_only=True):
    """What a figure of a model's runs has to reach."""

    name: Annotated[str, Meta(description="the model")]
    gate: Annotated[
        str,
        Meta(
            description="what it is on: path of a metric, with .median or .restricted_mean of a "
            "time until an event, and with .low the lower limit of the interval"
        ),
    ]
    minimum: Annotated[float, Meta(description="the least value that passes, in that unit")]
    value: Annotated[float | None, Meta(description="the figure; null: not known")]
    reason: Annotated[str | None, Meta(description="why it is not known; null: it is")] = None
    passed: Annotated[bool, Meta(description="whether the figure is known, and no lower")]
