"""Times until an event over runs: curves, medians, restricted means, and how pairs differ."""

from collections.abc import Hashable, Iterable, Sequence
from math import inf

from msgspec.structs import asdict

from socratic_bench.documents.comparison import (
    ComparedSurvival,
    FigureDifference,
    SurvivalDifference,
    SurvivalStep,
)
from socratic_bench.documents.document import FIGURE_PLACES, to_places
from socratic_bench.documents.sweep import Estimate, LimitsReason, Survival
from socratic_bench.statistics.bootstrap import (
    UNKNOWN,
    Limits,
    TimeClusters,
    in_fixed_order,
    limits_reason,
    survival_difference_limits,
    survival_limits,
)
from socratic_bench.statistics.intervals import FEWEST
from socratic_bench.statistics.survival import (
    Step,
    Time,
    band,
    curve,
    errors,
    median,
    restricted_mean,
)
from socratic_bench.studies.figures import Design, RunFigures, flatten


def times_by_cluster(runs: Iterable[RunFigures], metric: str, design: Design) -> TimeClusters:
    """The known times until an event, by cluster; empty if no run has one."""
    clusters: dict[Hashable, list[Time]] = {}
    for run in runs:
        if time := run.times.get(metric):
            clusters.setdefault(design.cluster(run), []).append(time)
    return [*clusters.values()]


def common_horizon(groups: Iterable[TimeClusters]) -> float:
    """The horizon of every group that is compared: the longest time up to which all curves are
    known. A curve that is at 0 stays there, and is known for ever.
    """
    curves = [clusters for clusters in groups if clusters]
    ends = [inf if _is_at_0(clusters) else longest(clusters) for clusters in curves]
    return min(ends) if min(ends) < inf else max(map(longest, curves))


def _is_at_0(clusters: TimeClusters) -> bool:
    """Whether every run with the longest time had the event, so that none is left."""
    end = longest(clusters)
    return all(time.is_event for times in clusters for time in times if time.at == end)


def longest(clusters: TimeClusters) -> float:
    """The longest time of all."""
    return max(time.at for times in clusters for time in times)


def survival_of(clusters: TimeClusters, horizon: float, *, has_limits: bool) -> Survival:
    """The median and the restricted mean of the curve over all times; limits raise `ImportError`
    without numpy.
    """
    times: list[Time] = flatten(clusters)
    steps = curve(times)
    reason = _limits_reason(clusters, has_limits=has_limits)
    limits = None if reason else survival_limits(in_fixed_order(clusters), horizon)
    of_median, of_mean = (limits.median, limits.restricted_mean) if limits else (UNKNOWN, UNKNOWN)
    return Survival(
        n=len(times),
        n_events=sum(time.is_event for time in times),
        n_clusters=len(clusters),
        median=Estimate(value=median(steps), low=of_median.low, high=of_median.high),
        restricted_mean=Estimate(
            value=round(restricted_mean(steps, horizon), FIGURE_PLACES),
            low=to_places(of_mean.low, FIGURE_PLACES),
            high=to_places(of_mean.high, FIGURE_PLACES),
        ),
        horizon=horizon,
        no_interval_because=reason,
    )


def _limits_reason(*groups: TimeClusters, has_limits: bool) -> LimitsReason:
    if not has_limits:
        return "needs_stats"
    return next((reason for clusters in groups if (reason := limits_reason(clusters))), None)


def survival_with_curve(
    clusters: TimeClusters, horizon: float, *, has_limits: bool
) -> ComparedSurvival:
    """The same figures with each step of the curve, its standard error and its 95 % band."""
    survival = survival_of(clusters, horizon, has_limits=has_limits)
    steps = zip(curve(flatten(clusters)), errors(clusters), strict=True)
    return ComparedSurvival(
        **asdict(survival),
        curve=[_step(step, error, len(clusters), has_limits=has_limits) for step, error in steps],
    )


def _step(step: Step, error: float, n_clusters: int, *, has_limits: bool) -> SurvivalStep:
    limits = band(step, error, n_clusters) if has_limits else None
    return SurvivalStep(
        at=step.at,
        share=to_places(step.share, FIGURE_PLACES),
        error=to_places(error, FIGURE_PLACES) if n_clusters >= FEWEST else None,
        low=to_places(limits.low, FIGURE_PLACES) if limits else None,
        high=to_places(limits.high, FIGURE_PLACES) if limits else None,
    )


def survival_difference(
    pairs: Iterable[tuple[Hashable, RunFigures, RunFigures]],
    metric: str,
    horizon: float,
    *,
    has_limits: bool,
) -> SurvivalDifference | None:
    """The figures of the first minus those of the second, over pairs in which both are known, up to
    the horizon of all, or of these pairs if it is shorter. `None` without such a pair.
    """
    clusters: dict[Hashable, tuple[list[Time], list[Time]]] = {}
    for cluster, first, second in pairs:
        if metric in first.times and metric in second.times:
            ours, theirs = clusters.setdefault(cluster, ([], []))
            ours.append(first.times[metric])
            theirs.append(second.times[metric])
    if not clusters:
        return None
    sides: tuple[Sequence[list[Time]], Sequence[list[Time]]] = (
        [ours for ours, _ in clusters.values()],
        [theirs for _, theirs in clusters.values()],
    )
    horizon = min(horizon, common_horizon(sides))
    first_curve, second_curve = (curve(flatten(side)) for side in sides)
    first_median, second_median = median(first_curve), median(second_curve)
    has_medians = first_median is not None and second_median is not None
    reason = _limits_reason(*sides, has_limits=has_limits)
    limits = None if reason else survival_difference_limits(*sides, horizon)
    return SurvivalDifference(
        n=sum(map(len, sides[0])),
        n_clusters=len(clusters),
        median=_figure_difference(
            (first_median or 0.0) - (second_median or 0.0) if has_medians else None,
            limits.median if limits else UNKNOWN,
        ),
        restricted_mean=_figure_difference(
            restricted_mean(first_curve, horizon) - restricted_mean(second_curve, horizon),
            limits.restricted_mean if limits else UNKNOWN,
        ),
        horizon=horizon,
        no_interval_because=reason,
    )


def _figure_difference(value: float | None, limits: Limits) -> FigureDifference:
    return FigureDifference(
        value=to_places(value, FIGURE_PLACES),
        low=to_places(limits.low, FIGURE_PLACES),
        high=to_places(limits.high, FIGURE_PLACES),
    )
