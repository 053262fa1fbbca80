"""The metrics of a group of cells that are times to an event: survival, clustered by sample."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import asdict, replace

from socratic_bench.documents.comparison import (
    ComparedSurvival,
    FigureDifference,
    SurvivalDifference,
    SurvivalStep,
)
from socratic_bench.documents.document import FIGURE_PLACES, to_places
from socratic_bench.documents.sweep import Estimate, Survival
from socratic_bench.statistics.bootstrap import UNKNOWN, Limits, survival_difference_limits
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
from socratic_bench.studies.groups import ClusterOf, Group, Pairing

Clusters = Sequence[Sequence[Time]]


def longest(clusters: Clusters) -> float:
    return max(one.at for some in clusters for one in some)


def survival_of(clusters: Clusters, horizon: float, *, has_limits: bool) -> Survival:
    """The figures of the curve over all times; limits raise `ImportError` without numpy."""
    times = [one for some in clusters for one in some]
    steps = curve(times)
    middle = Estimate(value=median(steps))
    mean = Estimate(value=round(restricted_mean(steps, horizon), FIGURE_PLACES))
    if has_limits:
        from socratic_bench.statistics.bootstrap import in_fixed_order, survival_limits

        limits = survival_limits(in_fixed_order(clusters), horizon)
        of_mean = limits.restricted_mean
        middle = replace(middle, low=limits.median.low, high=limits.median.high)
        mean = replace(
            mean,
            low=to_places(of_mean.low, FIGURE_PLACES),
            high=to_places(of_mean.high, FIGURE_PLACES),
        )
    return Survival(
        n=len(times),
        n_events=sum(one.is_event for one in times),
        n_clusters=len(clusters),
        median=middle,
        restricted_mean=mean,
        horizon=horizon,
    )


# Times to an event side by side: the curve of each contender, and how pairs differ.


class Times(Struct, frozen=True, kw_only=True):
    """How times are compared: up to which horizon by metric, in which clusters, and whether with
    limits.
    """

    horizons: Mapping[str, float]
    cluster_of: ClusterOf
    has_limits: bool

    def of(self, group: Group) -> dict[str, ComparedSurvival]:
        """The figures of each metric that is known of any run."""
        found = {name: [*_clusters(name, group, self.cluster_of)] for name in self.horizons}
        return {name: self._survival(name, some) for name, some in found.items() if some}

    def differences(self, pairing: Pairing) -> dict[str, SurvivalDifference]:
        """The same figures of the first less those of the second, over pairs in which both are
        known.
        """
        found = {name: _paired(name, pairing) for name in self.horizons}
        return {name: self._difference(name, *both) for name, both in found.items() if both[0]}

    def _survival(self, name: str, clusters: Clusters) -> ComparedSurvival:
        times = [one for some in clusters for one in some]
        told = survival_of(clusters, self.horizons[name], has_limits=self.has_limits)
        steps = [
            self._step(step, error, len(clusters))
            for step, error in zip(curve(times), errors(clusters), strict=True)
        ]
        return ComparedSurvival(**asdict(told), curve=steps)

    def _step(self, step: Step, error: float, n_clusters: int) -> SurvivalStep:
        limits = band(step, error, n_clusters) if self.has_limits else None
        return SurvivalStep(
            at=step.at,
            share=to_places(step.share, FIGURE_PLACES),
            error=to_places(error, FIGURE_PLACES) if n_clusters >= FEWEST else None,
            low=to_places(limits.low, FIGURE_PLACES) if limits else None,
            high=to_places(limits.high, FIGURE_PLACES) if limits else None,
        )

    def _difference(self, name: str, first: Clusters, second: Clusters) -> SurvivalDifference:
        horizon = min(self.horizons[name], common_horizon([first, second]))
        curves = [curve([one for some in clusters for one in some]) for clusters in (first, second)]
        ours, theirs = map(median, curves)
        means = [restricted_mean(steps, horizon) for steps in curves]
        medians_limits, means_limits = UNKNOWN, UNKNOWN
        if self.has_limits:
            limits = survival_difference_limits(first, second, horizon)
            medians_limits, means_limits = limits.median, limits.restricted_mean
        return SurvivalDifference(
            n=sum(map(len, first)),
            n_clusters=len(first),
            median=_shift(
                None if ours is None or theirs is None else ours - theirs, medians_limits
            ),
            restricted_mean=_shift(means[0] - means[1], means_limits),
            horizon=horizon,
        )


def times_of(groups: Sequence[Group], cluster_of: ClusterOf, *, has_limits: bool) -> Times:
    """Each metric that is a time has one horizon for all contenders."""
    names = dict.fromkeys(name for one in groups for run in one.runs for name in run.times)
    horizons = {
        name: common_horizon(
            [some for one in groups if (some := [*_clusters(name, one, cluster_of)])]
        )
        for name in names
    }
    return Times(horizons=horizons, cluster_of=cluster_of, has_limits=has_limits)


def common_horizon(groups: Iterable[Clusters]) -> float:
    """The longest time up to which all curves are known: one that has come to 0 is so for ever."""
    known = [*groups]
    ends = [inf if _is_at_0(some) else longest(some) for some in known]
    return min(ends) if min(ends) < inf else max(map(longest, known))


def _is_at_0(clusters: Clusters) -> bool:
    """Whether the last of all times saw its event, so that none is left."""
    end = longest(clusters)
    return all(one.is_event for some in clusters for one in some if one.at == end)


def _clusters(name: str, group: Group, cluster_of: ClusterOf) -> Iterable[list[Time]]:
    found: dict[Hashable, list[Time]] = {}
    for run in group.runs:
        if name in run.times:
            found.setdefault(cluster_of(run), []).append(run.times[name])
    return found.values()


def _paired(name: str, pairing: Pairing) -> tuple[Clusters, Clusters]:
    """The times of both where both are known, in the same clusters."""
    found: dict[Hashable, tuple[list[Time], list[Time]]] = {}
    for cluster, first, second in pairing.pairs:
        if name in first.times and name in second.times:
            ours, theirs = found.setdefault(cluster, ([], []))
            ours.append(first.times[name])
            theirs.append(second.times[name])
    return [ours for ours, _ in found.values()], [theirs for _, theirs in found.values()]


def _shift(value: float | None, limits: Limits) -> FigureDifference:
    return FigureDifference(
        value=to_places(value, FIGURE_PLACES),
        low=to_places(limits.low, FIGURE_PLACES),
        high=to_places(limits.high, FIGURE_PLACES),
    )
