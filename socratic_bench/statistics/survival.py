"""Times until an event that some runs did not see: the curve, its median, its restricted mean."""

from collections.abc import Sequence
from itertools import pairwise
from math import exp, fsum, log, sqrt

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.statistics.intervals import (
    NO_ERROR,
    Clusters,
    Interval,
    clustered,
    t_point,
    wilson_interval,
)

HALF = 0.5
# Of fewer clusters, 95 % limits hold the true figure in 73 to 93 % of samples.
FEWEST_OF_TIMES = 6
# What is left of a product of fractions that is 1/2 but for rounding counts as 1/2.
ROUNDING = 1e-12


class Time(Struct, frozen=True):
    """When the event came, or, if it had not come, until when it was looked for."""

    at: float
    is_event: bool


class Step(Struct, frozen=True):
    """The share to which the event has not come once `at` is over."""

    at: float
    share: float


def curve(times: Sequence[Time]) -> tuple[Step, ...]:
    """A step for each time at which there were events: Kaplan and Meier 1958 (Journal of the
    American Statistical Association 53: 457). What is censored at a time was at risk then.
    """
    steps: list[Step] = []
    share = 1.0
    for at in sorted({time.at for time in times if time.is_event}):
        n_at_risk = sum(time.at >= at for time in times)
        n_events = sum(time.at == at for time in times if time.is_event)
        share *= 1 - n_events / n_at_risk
        steps.append(Step(at, share))
    return tuple(steps)


def median(steps: Sequence[Step]) -> float | None:
    """The first time by which the event has come to half; `None` if it has not."""
    return next((step.at for step in steps if step.share <= HALF + ROUNDING), None)


def restricted_mean(steps: Sequence[Step], horizon: float) -> float:
    """The mean time without the event, of the first `horizon`: the area below the curve (Royston
    and Parmar 2013, BMC Medical Research Methodology 13: 152).
    """
    corners = [Step(0.0, 1.0), *(step for step in steps if step.at < horizon)]
    ends = [*corners, Step(horizon, 0.0)]
    return sum(step.share * (after.at - step.at) for step, after in pairwise(ends))


def errors(clusters: Sequence[Sequence[Time]]) -> tuple[float, ...]:
    """The standard error of each step of the curve over all times: the infinitesimal jackknife,
    summed by cluster, so that it is robust against any likeness of the times in one (Therneau and
    Grambsch 2000, Modeling Survival Data, section 2.3). It is Greenwood's (1926) where each cluster
    is a single time, and 0 where the curve has come to 0.
    """
    influences = [0.0] * len(clusters)
    step_errors = []
    share = 1.0
    for at in sorted({time.at for times in clusters for time in times if time.is_event}):
        at_risk = [sum(time.at >= at for time in times) for times in clusters]
        events = [sum(time.at == at and time.is_event for time in times) for times in clusters]
        n, n_left = sum(at_risk), sum(at_risk) - sum(events)
        share *= n_left / n
        if n_left:
            for k, (mine, gone) in enumerate(zip(at_risk, events, strict=True)):
                influences[k] += (mine - gone) / n_left - mine / n
        step_errors.append(share * sqrt(fsum(influence**2 for influence in influences)))
    return tuple(step_errors)


def band(step: Step, error: float, n_clusters: int) -> Interval | None:
    """95 % limits of a step on the scale log(-log share), on which they stay between 0 and 1
    (Kalbfleisch and Prentice 2002, The Statistical Analysis of Failure Time Data, section 1.4),
    with Student's t in place of the normal point. `None` where there are none: of fewer
    than six clusters, where the curve has come to 0, and where clusters do not differ.

    Raises `ImportError` without scipy.
    """
    if n_clusters < FEWEST_OF_TIMES or not 0 < step.share < 1 or error < NO_ERROR:
        return None
    reach = t_point(n_clusters - 1) * error / (step.share * -log(step.share))
    return Interval(step.share ** exp(reach), step.share ** exp(-reach))


def hazard_interval(clusters: Clusters, n_runs: int) -> Interval | None:
    """Wilson's interval of an event's share of the turns at risk, which are 0 or 1 by cluster.

    Where clusters do not differ, it is that of the share of the `n_runs` runs with the event, told
    per turn: a rate of 0 leaves the same limits as a curve that has not fallen over these turns.
    """
    mean = clustered(clusters)
    if mean.error != 0.0:
        return wilson_interval(mean)
    turns_per_run = mean.n / n_runs
    limits = wilson_interval(replace(mean, mean=min(1.0, mean.mean * turns_per_run)))
    if limits is None:
        return None
    low, high = (1 - (1 - limit) ** (1 / turns_per_run) for limit in (limits.low, limits.high))
    return Interval(min(mean.mean, low), max(mean.mean, high))
