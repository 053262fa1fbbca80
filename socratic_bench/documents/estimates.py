"""What several runs come to, as documents have it: means and times, with their intervals."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.documents.scalars import Amount, Count, Share
from socratic_bench.types import doc


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
