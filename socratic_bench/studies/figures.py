"""Figures over runs: means with intervals, differences of pairs, hazards, usage and cost."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.documents.comparison import (
    ComparedSurvival,
    Difference,
    FigureDifference,
    SurvivalDifference,
    SurvivalStep,
)
from socratic_bench.documents.document import FIGURE_PLACES, to_places
from socratic_bench.documents.sweep import (
    Estimate,
    Hazard,
    Hazards,
    LimitsReason,
    Mean,
    NoInterval,
    PrimaryMetric,
    RunGroup,
    Survival,
    TurnHazard,
    TwoGroups,
    Variance,
)
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.ports.parts import Exposure
from socratic_bench.statistics.intervals import (
    FEWEST,
    Clustered,
    Clusters,
    Interval,
    clustered,
    flatten,
    mixture,
    parts,
    runs_to_halve,
    t_interval,
    wilson_interval,
)
from socratic_bench.statistics.survival import (
    ENOUGH_FOR_A_MEAN,
    NO_LIMITS,
    Limits,
    SurvivalLimits,
    Time,
    TimeClusters,
    band,
    curve,
    errors,
    hazard_interval,
    in_fixed_order,
    limits_reason,
    median,
    restricted_mean,
    survival_difference_limits,
    survival_limits,
)
from socratic_bench.types import plural

Key = TypeVar("Key")
SomeSurvival = TypeVar("SomeSurvival", bound=Survival)
# Two groups of runs that are less than this share of a metric's range apart are not reported.
LEAST_APART = 0.2
# By cluster, then by opening and kind of run: the values of a metric.
Split = Mapping[Hashable, Mapping[tuple[Hashable, Hashable], list[float]]]


class RunFigures(Struct, frozen=True, kw_only=True):
    """The figures of one completed run, from its document or from its row in a sweep's index.

    Attributes:
        metrics: the benchmark's metrics by path; `None`: unknown.
        times: the metrics that are times until an event, where they are known.
        judge_variance: by metric, the variance that the judges' own scatter adds.
        parts: for a run of many items, metrics by item: these count in place of the run's own.
        exposures: by event, the turns in which it could happen.
        unjudged_differ_by: in what its unjudged turns are unlike the judged ones.
    """

    metrics: Mapping[str, float | None]
    times: Mapping[str, Time]
    judge_variance: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]]
    exposures: Mapping[str, Exposure]
    unjudged_differ_by: Sequence[str] = ()


# Pairs of runs, each with its cluster.
Pairs = Iterable[tuple[Hashable, RunFigures, RunFigures]]


class Design(Struct, frozen=True, kw_only=True):
    """Which runs are alike, and how intervals are made.

    Attributes:
        cluster: runs with the same cluster count as one sample in intervals.
        opening: how a run began. It separates repeats, but it is not a treatment.
        kind: in a cluster, runs of the same opening and kind are repeats of each other.
        has_limits: whether there are intervals: the extra `stats` is installed.
    """

    cluster: Callable[[Any], Hashable]
    opening: Callable[[Any], Hashable]
    kind: Callable[[Any], Hashable]
    has_limits: bool = True


def values_of(run: RunFigures, metric: str, cluster: Hashable) -> Mapping[Hashable, float]:
    """The known values of a metric by cluster: one for each item, or the run's own."""
    if by_item := run.parts.get(metric):
        return {(cluster, item): value for item, value in by_item.items()}
    value = run.metrics.get(metric)
    return {} if value is None else {cluster: value}


def mean_of(runs: Sequence[RunFigures], metric: MetricInfo, design: Design) -> Mean:
    """A metric over the runs in which it is known, with its interval and its variance. Values of
    items say nothing about further runs, nor about groups of runs.
    """
    split: dict[Hashable, dict[tuple[Hashable, Hashable], list[float]]] = {}
    for run in runs:
        kind = (design.opening(run), design.kind(run))
        for cluster, value in values_of(run, metric.name, design.cluster(run)).items():
            split.setdefault(cluster, {}).setdefault(kind, []).append(value)
    if not split:
        return Mean(mean=None, n=0)
    clusters = [flatten(by_kind.values()) for by_kind in split.values()]
    mean = clustered(clusters)
    interval = interval_of(metric, clusters, has_limits=design.has_limits)
    is_of_items = any(run.parts.get(metric.name) for run in runs)
    plain_interval = wilson_interval if metric.is_rate else t_interval
    return Mean(
        mean=round(mean.mean, FIGURE_PLACES),
        n=mean.n,
        n_clusters=mean.n_clusters,
        scope="scenarios like these" if interval else "these scenarios",
        **limits_of(interval),
        no_interval_because=_no_interval_reason(mean, interval, design),
        variance=_variance(runs, metric.name, split),
        runs_to_halve=runs_to_halve(mean, plain_interval) if interval and not is_of_items else None,
        two_groups=None if is_of_items else two_groups(metric, split),
    )


def interval_of(
    metric: MetricInfo | None, clusters: Clusters, *, has_limits: bool
) -> Interval | None:
    """The 95 % interval of a mean, within the metric's bounds: Wilson's of a rate, else Student's.
    `None` for a single cluster and without spread. Raises `ImportError` without scipy.
    """
    if not has_limits:
        return None
    is_rate = metric is not None and metric.is_rate
    interval = (wilson_interval if is_rate else t_interval)(clustered(clusters))
    if interval is None:
        return None
    lowest, highest = (metric.low, metric.high) if metric else (None, None)
    low = interval.low if lowest is None else max(lowest, interval.low)
    high = interval.high if highest is None else min(highest, interval.high)
    return Interval(low, high)


def _variance(runs: Sequence[RunFigures], metric: str, split: Split) -> Variance | None:
    """Its components. Repeats differ by the judge, whose part is subtracted if all runs have it."""
    components = parts([[*by_kind.values()] for by_kind in split.values()])
    if components is None:
        return None
    judged = [run.judge_variance.get(metric) for run in runs if run.metrics.get(metric) is not None]
    variances = [variance for variance in judged if variance is not None]
    judge = (
        fsum(variances) / len(variances) if variances and len(variances) == len(judged) else None
    )
    return Variance(
        scenario=round(components.between, FIGURE_PLACES),
        repeat=round(max(0.0, components.within - (judge or 0.0)), FIGURE_PLACES),
        judge=to_places(judge, FIGURE_PLACES),
    )


def two_groups(metric: MetricInfo, split: Split) -> TwoGroups | None:
    """The two groups in which the values of runs of one kind lie, for a metric with bounds; of
    several kinds, the first that has them. Rates of 0 and 1 are what Wilson's interval is for.
    """
    if metric.low is None or metric.high is None:
        return None
    by_kind: dict[Hashable, dict[Hashable, list[float]]] = {}
    for cluster, kinds in split.items():
        for (_, kind), values in kinds.items():
            by_kind.setdefault(kind, {}).setdefault(cluster, []).extend(values)
    for by_cluster in by_kind.values():
        values = flatten(by_cluster.values())
        if metric.is_rate and {*values} <= {0.0, 1.0}:
            continue
        if groups := mixture(values, len(by_cluster), LEAST_APART * (metric.high - metric.low)):
            return TwoGroups(
                lower=RunGroup(n=groups.n_low, mean=round(groups.mean_low, FIGURE_PLACES)),
                higher=RunGroup(n=groups.n_high, mean=round(groups.mean_high, FIGURE_PLACES)),
            )
    return None


def danger(name: str, metric: str, groups: TwoGroups | None) -> Iterator[str]:
    """A warning about a mean whose runs lie in two groups; nothing without groups."""
    if groups:
        lower, higher = groups.lower, groups.higher
        yield (
            f"{name}: {metric} is near {lower.mean:.1f} in {lower.n} and near {higher.mean:.1f} in "
            f"{higher.n} of {plural(lower.n + higher.n, 'run')}: its mean and interval hide that. "
            "More samples tell how often each comes."
        )


def notices_on_times(survivals: Iterable[Survival]) -> Iterator[str]:
    """A warning if intervals of mean times come from few samples."""
    counts = [times.n_clusters for times in survivals if times.restricted_mean.low is not None]
    n = min(counts, default=ENOUGH_FOR_A_MEAN)
    if n < ENOUGH_FOR_A_MEAN:
        yield (
            f"Kaplan-Meier means come from {n} scenarios: their 95 % CIs may cover only 83 %. "
            f"Run at least {ENOUGH_FOR_A_MEAN} scenarios."
        )


def notices_on_unjudged(name: str, runs: Iterable[Sequence[str]]) -> Iterator[str]:
    """A warning if a model has runs whose unjudged turns are unlike the judged ones; `runs` says by
    run in what.
    """
    if unlike := [*filter(None, runs)]:
        kinds = ", ".join(sorted({kind for kinds in unlike for kind in kinds}))
        yield (
            f"{name}: in {plural(len(unlike), 'run')} the unjudged turns are unlike the judged "
            f"ones ({kinds}): its figures may be off by that. unjudged_worst and unjudged_best say "
            "by how much at most."
        )


def differences_by_cluster(pairs: Pairs, metric: str) -> Clusters:
    """The first minus the second where both are known, by cluster."""
    differences: dict[Hashable, list[float]] = {}
    for cluster, first, second in pairs:
        ours, theirs = values_of(first, metric, cluster), values_of(second, metric, cluster)
        for key in (key for key in ours if key in theirs):
            differences.setdefault(key, []).append(ours[key] - theirs[key])
    return [*differences.values()]


def difference_of(pairs: Pairs, metric: str, design: Design) -> Difference:
    """The mean of the differences of pairs, with its interval."""
    clusters = differences_by_cluster(pairs, metric)
    if not clusters:
        return Difference(mean=None, n=0, n_clusters=0, low=None, high=None)
    mean, interval = clustered(clusters), interval_of(None, clusters, has_limits=design.has_limits)
    return Difference(
        mean=round(mean.mean, FIGURE_PLACES),
        n=mean.n,
        n_clusters=mean.n_clusters,
        **limits_of(interval),
        no_interval_because=_no_interval_reason(mean, interval, design),
    )


def limits_of(interval: Interval | Limits | None) -> dict[str, Any]:
    """The limits as keys of a document, null without an interval."""
    low, high = (interval.low, interval.high) if interval else (None, None)
    return {"low": rounded(low), "high": rounded(high)}


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, FIGURE_PLACES) + 0.0  # never -0.0


def _no_interval_reason(
    mean: Clustered, interval: Interval | None, design: Design
) -> NoInterval | None:
    """Why a mean has no interval; `None` if it has one."""
    if interval:
        return None
    if mean.error is None:
        return "too_few_scenarios"
    return "no_spread" if design.has_limits else "needs_stats"


def hazards_of(runs: Sequence[RunFigures], design: Design) -> dict[str, Hazards]:
    """How likely each event is, turn by turn and by kind of turn, while it has not happened."""
    events = dict.fromkeys(
        event for run in runs for event, exposure in run.exposures.items() if exposure.turns
    )
    return {event: _hazards(runs, event, design) for event in events}


def _hazards(runs: Sequence[RunFigures], event: str, design: Design) -> Hazards:
    exposed = [
        (design.cluster(run), exposure)
        for run in runs
        if (exposure := run.exposures.get(event)) and exposure.turns
    ]
    by_turn: dict[int, dict[Hashable, list[float]]] = {}
    by_kind: dict[str, dict[Hashable, list[float]]] = {}
    runs_by_kind = Counter(kind for _, exposure in exposed for kind in {*exposure.kinds})
    for cluster, exposure in exposed:
        for turn, kind in zip(exposure.turns, exposure.kinds, strict=True):
            is_event = float(exposure.is_event and turn == exposure.turns[-1])
            by_turn.setdefault(turn, {}).setdefault(cluster, []).append(is_event)
            by_kind.setdefault(kind, {}).setdefault(cluster, []).append(is_event)
    return Hazards(
        n=len(exposed),
        n_events=sum(exposure.is_event for _, exposure in exposed),
        n_clusters=len({cluster for cluster, _ in exposed}),
        by_turn=[
            TurnHazard(turn=turn, **_hazard(clusters.values(), design))
            for turn, clusters in sorted(by_turn.items())
        ],
        by_kind={
            kind: Hazard(**_hazard(clusters.values(), design, runs_by_kind[kind]))
            for kind, clusters in sorted(by_kind.items())
        },
    )


def _hazard(
    clusters: Iterable[Sequence[float]], design: Design, n_runs: int | None = None
) -> Mapping[str, Any]:
    """`n_runs` are those whose turns these are; each turn is of a run of its own without it."""
    values = [*clusters]
    mean = clustered(values)
    interval = hazard_interval(values, n_runs or mean.n) if design.has_limits else None
    return {
        "n_at_risk": mean.n,
        "n_events": int(sum(flatten(values))),
        "hazard": round(mean.mean, FIGURE_PLACES),
        **limits_of(interval),
    }


def primary_metric(
    benchmark: Benchmark, survivals: Iterable[Mapping[str, Survival]]
) -> PrimaryMetric:
    """The metric by which groups are ordered: how long models keep to the task, else, where no
    group's times tell it or runs are too short to, the benchmark's own.
    """
    name = benchmark.views.endurance
    if name is None or not any(times[name].horizon for times in survivals if name in times):
        name = benchmark.primary_metric
    return PrimaryMetric(name=name, higher_is_better=_metric(benchmark, name).higher_is_better)


def _metric(benchmark: Benchmark, name: str) -> MetricInfo:
    return next(metric for metric in benchmark.metrics if metric.name == name)


def figure_of(name: str, metrics: Mapping[str, Mean]) -> Estimate | None:
    """The mean of a metric over a group's runs, with its interval. A time until an event counts as
    far as it was seen: a Kaplan-Meier mean would leave out runs that end in low turns.
    """
    mean = metrics.get(name)
    return Estimate(value=mean.mean, low=mean.low, high=mean.high) if mean else None


def rank(value: float | None, metric: MetricInfo) -> tuple[bool, float]:
    """A sort key: the best value first, an unknown one last."""
    return value is None, (value or 0.0) * (-1 if metric.higher_is_better else 1)


def rank_of_group(
    benchmark: Benchmark,
    primary: PrimaryMetric,
    metrics: Mapping[str, Mean],
) -> list[tuple[bool, float]]:
    """A sort key of a group: by the primary figure, equal ones by the benchmark's own metric."""
    names = (primary.name, benchmark.primary_metric)
    figures = [(name, figure_of(name, metrics)) for name in names]
    return [rank(of.value if of else None, _metric(benchmark, name)) for name, of in figures]


def survival_by_group(
    groups: Mapping[Key, Sequence[RunFigures]],
    metric: str,
    design: Design,
    make: Callable[[TimeClusters, float, Design], SomeSurvival],
) -> dict[Key, SomeSurvival]:
    """What `make` makes of the times of each group that has some, all up to one horizon."""
    by_cluster: dict[Key, dict[Hashable, list[Time]]] = {}
    for key, runs in groups.items():
        for run in runs:
            if time := run.times.get(metric):
                clusters = by_cluster.setdefault(key, {})
                clusters.setdefault(design.cluster(run), []).append(time)
    times = {key: [*clusters.values()] for key, clusters in by_cluster.items()}
    horizon = _common_horizon([*times.values()])
    return {key: make(clusters, horizon, design) for key, clusters in times.items()}


def _common_horizon(groups: Sequence[TimeClusters]) -> float:
    """The longest time up to which all curves are known. A curve that is at 0, since every run with
    the longest time had the event, stays there, and is known for ever.
    """
    ends = [max(time.at for time in flatten(clusters)) for clusters in groups]
    open_ends = [
        end
        for end, clusters in zip(ends, groups, strict=True)
        if not all(time.is_event for time in flatten(clusters) if time.at == end)
    ]
    return min(open_ends, default=max(ends, default=0.0))


def survival_of(clusters: TimeClusters, horizon: float, design: Design) -> Survival:
    """The curve's median and restricted mean; their limits raise `ImportError` without numpy."""
    times: list[Time] = flatten(clusters)
    steps = curve(times)
    limits, reason = _limits_of_times(
        design, lambda: survival_limits(in_fixed_order(clusters), horizon), clusters
    )
    return Survival(
        n=len(times),
        n_events=sum(time.is_event for time in times),
        n_clusters=len(clusters),
        median=Estimate(value=median(steps), low=limits.median.low, high=limits.median.high),
        restricted_mean=Estimate(
            value=rounded(restricted_mean(steps, horizon)), **limits_of(limits.restricted_mean)
        ),
        horizon=horizon,
        no_interval_because=reason,
    )


def _limits_of_times(
    design: Design, make: Callable[[], SurvivalLimits], *groups: TimeClusters
) -> tuple[SurvivalLimits, LimitsReason]:
    """The limits of the times of these groups, or why there are none."""
    if not design.has_limits:
        return NO_LIMITS, "needs_stats"
    for clusters in groups:
        if reason := limits_reason(clusters):
            return NO_LIMITS, reason
    limits = make()
    # With scenarios and events enough, only their agreement leaves no limits.
    return limits, "no_spread" if limits == NO_LIMITS else None


def survival_with_curve(clusters: TimeClusters, horizon: float, design: Design) -> ComparedSurvival:
    """The same figures with each step of the curve, its standard error and its 95 % band."""
    n = len(clusters)
    return ComparedSurvival(
        **asdict(survival_of(clusters, horizon, design)),
        curve=[
            SurvivalStep(
                at=step.at,
                share=round(step.share, FIGURE_PLACES),
                error=round(error, FIGURE_PLACES) if n >= FEWEST else None,
                **limits_of(band(step, error, n) if design.has_limits else None),
            )
            for step, error in zip(curve(flatten(clusters)), errors(clusters), strict=True)
        ],
    )


def survival_difference(
    pairs: Pairs, metric: str, horizon: float, design: Design
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
    sides = ([ours for ours, _ in clusters.values()], [theirs for _, theirs in clusters.values()])
    horizon = min(horizon, _common_horizon(sides))
    curves = [curve(flatten(side)) for side in sides]
    first_median, second_median = map(median, curves)
    first_mean, second_mean = (restricted_mean(steps, horizon) for steps in curves)
    has_medians = first_median is not None and second_median is not None
    limits, reason = _limits_of_times(
        design, lambda: survival_difference_limits(*sides, horizon), *sides
    )
    return SurvivalDifference(
        n=sum(map(len, sides[0])),
        n_clusters=len(clusters),
        median=FigureDifference(
            value=rounded((first_median or 0) - (second_median or 0)) if has_medians else None,
            **limits_of(limits.median),
        ),
        restricted_mean=FigureDifference(
            value=rounded(first_mean - second_mean), **limits_of(limits.restricted_mean)
        ),
        horizon=horizon,
        no_interval_because=reason,
    )
