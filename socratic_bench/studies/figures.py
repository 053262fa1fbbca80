"""The metrics of a group of cells: their means, with intervals that are clustered by sample."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from math import fsum, isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.comparison import ComparedPair, Contender, Difference, TurnScore
from socratic_bench.documents.document import FIGURE_PLACES, to_places
from socratic_bench.documents.sweep import (
    CellRow,
    Hazard,
    Hazards,
    Mean,
    RunGroup,
    TurnHazard,
    TwoGroups,
    Variance,
)
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.ports.parts import Exposure
from socratic_bench.statistics.bootstrap import Method, in_fixed_order, mean_interval
from socratic_bench.statistics.differences import ALPHA, holm, paired_p, smallest_seen
from socratic_bench.statistics.intervals import (
    Clusters,
    Interval,
    Make,
    clustered,
    mixture,
    parts,
    runs_to_halve,
    t_interval,
    wilson_interval,
)
from socratic_bench.studies.groups import ClusterOf, Group, Pairing, kind_of
from socratic_bench.studies.rows import StoredRun
from socratic_bench.studies.sweep.grid import Grid
from socratic_bench.studies.times import Times
from socratic_bench.types import plural

# Of a metric's range: groups of runs that are closer are no danger to its mean.
LEAST_APART = 0.2
# What differs in the runs of a sample beside the repeat: how they began, and all else.
Kind = tuple[Hashable, Hashable]
# By sample, then by kind: a metric's values.
Split = Mapping[Hashable, Mapping[Kind, list[float]]]


class Means(Struct, frozen=True, kw_only=True):
    """How means are made: `cluster_axes` say which cells are alike, and `sample_axes` of which
    sample each is; `metrics` is what is known of each metric, `method` how intervals are made:
    `None`, without the extra `stats`, not at all.
    """

    cluster_axes: tuple[str, ...]
    sample_axes: tuple[str, ...]
    metrics: Mapping[str, MetricInfo]
    method: Method | None

    @classmethod
    def of(
        cls, grid: Grid, metrics: Iterable[MetricInfo], *, method: Method | None = None
    ) -> "Means":
        by_name = {one.name: one for one in metrics}
        return cls(
            cluster_axes=grid.cluster_axes,
            sample_axes=grid.sample_axes,
            metrics=by_name,
            method=method,
        )

    def over(self, rows: Sequence[CellRow]) -> dict[str, Mean]:
        """Each metric over the cells in which it is known; null where there are none."""
        names = dict.fromkeys((*self.metrics, *(name for row in rows for name in row.metrics)))
        return {name: self._mean(name, rows) for name in names}

    def sample_of(self, row: CellRow) -> tuple[object, ...]:
        """What its cell is clustered by."""
        return tuple(row.axes[axis] for axis in self.cluster_axes)

    def _mean(self, name: str, rows: Sequence[CellRow]) -> Mean:
        judge = judge_part(
            row.judge_variance.get(name) for row in rows if row.metrics.get(name) is not None
        )
        # Rows of an index that does not tell parts stand for whole runs, and so do all beside them.
        has_parts = all(row.parts is not None for row in rows)
        split = self._split(name, rows, has_parts=has_parts)
        is_of_parts = has_parts and any(name in (row.parts or {}) for row in rows)
        return mean_of(self.metrics.get(name), split, self.method, judge, is_of_parts=is_of_parts)

    def _split(self, name: str, rows: Sequence[CellRow], *, has_parts: bool) -> Split:
        found: dict[Hashable, dict[Kind, list[float]]] = {}
        for row in rows:
            others = (axis for axis in row.axes if axis not in self.sample_axes)
            began = tuple(row.axes[axis] for axis in self.sample_axes)
            kind = (began, tuple(row.axes[axis] for axis in others))
            for cluster, value in self._values(name, row, has_parts=has_parts):
                found.setdefault(cluster, {}).setdefault(kind, []).append(value)
        return found

    def _values(
        self, name: str, row: CellRow, *, has_parts: bool
    ) -> Iterator[tuple[Hashable, float]]:
        """A metric where it is known, by what it is clustered by, as `compare` has it."""
        sample, value = self.sample_of(row), row.metrics.get(name)
        if has_parts and (parts := (row.parts or {}).get(name)):
            yield from (((sample, part), one) for part, one in parts.items())
        elif value is not None:
            yield sample, value


def mean_of(
    metric: MetricInfo | None,
    split: Split,
    method: Method | None,
    judge: float | None = None,
    *,
    is_of_parts: bool = False,
) -> Mean:
    """Over all values; without a `method` there are no intervals. `judge` is the judge's part of
    the variance, if it is known. Values that are of parts of runs tell nothing of further runs, nor
    of groups of them.
    """
    if not split:
        return Mean(mean=None, n=0)
    clusters = in_fixed_order([_flat(kinds.values()) for kinds in split.values()])
    found = clustered(clusters)
    interval = interval_of(metric, clusters, method) if method else None
    return Mean(
        mean=round(found.mean, FIGURE_PLACES),
        n=found.n,
        n_clusters=found.n_clusters,
        scope="samples like these" if interval else "these samples",
        low=round(interval.low, FIGURE_PLACES) if interval else None,
        high=round(interval.high, FIGURE_PLACES) if interval else None,
        variance=_variance(split, judge),
        runs_to_halve=None if is_of_parts or not interval else runs_to_halve(found, _plain(metric)),
        two_groups=None if is_of_parts else two_groups(metric, split),
    )


def interval_of(metric: MetricInfo | None, clusters: Clusters, method: Method) -> Interval | None:
    """Within the bounds of the metric; of a rate it is Wilson's, whatever the method is. `None`
    where there is no limit. Raises `ImportError` without scipy.
    """
    is_rate = metric is not None and metric.is_rate
    found = wilson_interval(clustered(clusters)) if is_rate else mean_interval(clusters, method)
    if found is None:
        return None
    low = found.low if metric is None or metric.low is None else max(metric.low, found.low)
    high = found.high if metric is None or metric.high is None else min(metric.high, found.high)
    return Interval(low, high) if isfinite(low) and isfinite(high) else None


def _plain(metric: MetricInfo | None) -> Make:
    """What makes its interval without draws."""
    return wilson_interval if metric is not None and metric.is_rate else t_interval


def two_groups(metric: MetricInfo | None, split: Split) -> TwoGroups | None:
    """Of a bounded metric, the groups in which runs that were played alike lie, if they do; of
    several such the first that has them. A rate that is 0 or 1 in each run is what Wilson's is made
    for.
    """
    if metric is None or metric.low is None or metric.high is None:
        return None
    least = LEAST_APART * (metric.high - metric.low)
    for clusters in _played_alike(split).values():
        values = _flat(clusters)
        if metric.is_rate and {*values} <= {0.0, 1.0}:
            continue
        if found := mixture(values, len(clusters), least):
            return TwoGroups(
                lower=RunGroup(n=found.n_low, mean=round(found.mean_low, FIGURE_PLACES)),
                higher=RunGroup(n=found.n_high, mean=round(found.mean_high, FIGURE_PLACES)),
            )
    return None


def danger(name: str, metric: str, found: TwoGroups | None) -> Iterator[str]:
    """What readers should know of a mean whose runs lie in two groups; nothing of others."""
    if found:
        lower, higher = found.lower, found.higher
        yield (
            f"{name}: {metric} is near {lower.mean:.1f} in {lower.n} and near {higher.mean:.1f} in "
            f"{higher.n} of {plural(lower.n + higher.n, 'run')}: its mean and interval hide that. "
            "More samples tell how often each comes."
        )


def _played_alike(split: Split) -> Mapping[Hashable, Clusters]:
    """By sample, the values that differ in nothing but how runs began and in the repeat."""
    found: dict[Hashable, list[list[float]]] = {}
    for of_sample in split.values():
        mine: dict[Hashable, list[float]] = {}
        for (_, kind), values in of_sample.items():
            mine.setdefault(kind, []).extend(values)
        for kind, values in mine.items():
            found.setdefault(kind, []).append(values)
    return found


def judge_part(variances: Iterable[float | None]) -> float | None:
    """The judge's part of the variance of single runs: the mean over runs, if all tell it."""
    known = [*variances]
    told = [one for one in known if one is not None]
    return fsum(told) / len(told) if told and len(told) == len(known) else None


def _variance(split: Split, judge: float | None) -> Variance | None:
    """Repeats differ by the judge, too: what it adds is taken from their part."""
    found = parts([[*kinds.values()] for kinds in split.values()])
    if found is None:
        return None
    return Variance(
        sample=round(found.between, FIGURE_PLACES),
        repeat=round(max(0.0, found.within - (judge or 0.0)), FIGURE_PLACES),
        judge=to_places(judge, FIGURE_PLACES),
    )


def _flat(lists: Iterable[Sequence[float]]) -> list[float]:
    return [value for values in lists for value in values]


# Means of contenders and differences of pairs, with intervals where the extra `stats` is there.


class Figures(Struct, frozen=True, kw_only=True):
    """How figures are made: of which metrics, in which clusters, and whether with intervals."""

    metrics: Sequence[MetricInfo]
    cluster_of: ClusterOf
    has_intervals: bool
    times: Times
    method: Method = "t"

    def contender(self, group: Group) -> Contender:
        """Its means, and its score turn by turn."""
        method = self.method if self.has_intervals else None
        return Contender(
            name=group.name,
            model=group.model,
            sources=[*dict.fromkeys(run.source for run in group.runs)],
            n_runs=len(group.runs),
            metrics={
                one.name: mean_over(group.runs, one, self.cluster_of, method)
                for one in self.metrics
            },
            score_by_turn=_score_by_turn(group),
            survival=self.times.of(group),
        )

    def pair(self, first: Group, second: Group, pairing: Pairing) -> ComparedPair:
        """Their differences, whose p is corrected by `corrected`."""
        return ComparedPair(
            first=first.name,
            second=second.name,
            paired_by=pairing.paired_by,
            n_pairs=len(pairing.pairs),
            n_unpaired=pairing.n_unpaired,
            differences={
                one.name: self._difference(pairing.differences(one.name)) for one in self.metrics
            },
            survival=self.times.differences(pairing),
        )

    def _difference(self, clusters: Clusters) -> Difference:
        if not clusters:
            return Difference(mean=None, n=0, n_clusters=0, **_UNKNOWN)
        found = clustered(clusters)
        told = Difference(
            mean=to_places(found.mean, FIGURE_PLACES),
            n=found.n,
            n_clusters=found.n_clusters,
            **_UNKNOWN,
        )
        if not self.has_intervals or found.error is None:
            return told
        p = paired_p(found)
        interval = interval_of(None, clusters, self.method)
        if not found.error and found.mean and p is not None and p > ALPHA:
            interval = None  # a test that cannot tell it from 0 rules no other difference out
        return replace(
            told,
            low=to_places(interval.low if interval else None, FIGURE_PLACES),
            high=to_places(interval.high if interval else None, FIGURE_PLACES),
            p=p,
            detectable=to_places(smallest_seen(found), FIGURE_PLACES),
        )


def mean_over(
    runs: Sequence[StoredRun], metric: MetricInfo, cluster_of: ClusterOf, method: Method | None
) -> Mean:
    """A metric over runs, by cluster and by how these were played; see `mean_of`."""
    name = metric.name
    split: dict[Hashable, dict[Kind, list[float]]] = defaultdict(dict)
    for run in runs:
        for key, value in run.values(name, cluster_of(run)).items():
            split[key].setdefault(kind_of(run), []).append(value)
    judge = judge_part(
        run.judge_variance.get(name) for run in runs if run.metrics[name] is not None
    )
    is_of_parts = any(run.parts.get(name) for run in runs)
    return mean_of(metric, split, method, judge, is_of_parts=is_of_parts)


_UNKNOWN = dict.fromkeys(("low", "high", "p", "p_holm", "detectable", "tied"))


def corrected(pairs: Sequence[ComparedPair]) -> list[ComparedPair]:
    """With each p corrected for the number of all of them."""
    known = [
        (n, metric, one.p)
        for n, pair in enumerate(pairs)
        for metric, one in pair.differences.items()
        if one.p is not None
    ]
    told = [dict(pair.differences) for pair in pairs]
    for (n, metric, _), p in zip(known, holm([p for *_, p in known]), strict=True):
        told[n][metric] = replace(told[n][metric], p_holm=p, tied=p > ALPHA)
    return [replace(pair, differences=one) for pair, one in zip(pairs, told, strict=True)]


def _score_by_turn(group: Group) -> list[TurnScore]:
    scores: dict[int, list[float]] = defaultdict(list)
    for run in group.runs:
        for turn in run.keys.turns:
            if turn.score is not None:
                scores[turn.turn].append(turn.score)
    return [
        TurnScore(turn=turn, mean=round(fsum(some) / len(some), FIGURE_PLACES), n=len(some))
        for turn, some in sorted(scores.items())
    ]


# How likely the benchmark's events are, turn by turn and by kind of turn, clustered by sample.


class _AtRisk(Struct, frozen=True):
    """A turn in which an event could come."""

    sample: Hashable
    turn: int
    kind: str
    is_event: bool


def hazards(means: Means, rows: Sequence[CellRow]) -> dict[str, Hazards]:
    """Of each event that could come in any of the cells; nothing if a row does not tell of them."""
    if any(row.exposures is None for row in rows):
        return {}
    found: dict[str, list[tuple[Hashable, Exposure]]] = {}
    for row in rows:
        for name, one in (row.exposures or {}).items():
            if one.turns:
                found.setdefault(name, []).append((means.sample_of(row), one))
    return {name: _hazards(exposures, means) for name, exposures in found.items()}


def _hazards(exposures: Sequence[tuple[Hashable, Exposure]], means: Means) -> Hazards:
    at_risk = [one for sample, exposure in exposures for one in _turns(sample, exposure)]
    by_turn: dict[int, list[_AtRisk]] = {}
    by_kind: dict[str, list[_AtRisk]] = {}
    for one in at_risk:
        by_turn.setdefault(one.turn, []).append(one)
        by_kind.setdefault(one.kind, []).append(one)
    return Hazards(
        n=len(exposures),
        n_events=sum(one.is_event for one in at_risk),
        n_clusters=len({sample for sample, _ in exposures}),
        by_turn=[
            TurnHazard(turn=turn, **_hazard(some, means)) for turn, some in sorted(by_turn.items())
        ],
        by_kind={kind: Hazard(**_hazard(some, means)) for kind, some in sorted(by_kind.items())},
    )


def _turns(sample: Hashable, exposure: Exposure) -> Iterator[_AtRisk]:
    for turn, kind in zip(exposure.turns, exposure.kinds, strict=True):
        is_event = exposure.is_event and turn == exposure.turns[-1]
        yield _AtRisk(sample, turn, kind, is_event)


def _hazard(at_risk: Sequence[_AtRisk], means: Means) -> Mapping[str, Any]:
    clusters: dict[Hashable, list[float]] = {}
    for one in at_risk:
        clusters.setdefault(one.sample, []).append(float(one.is_event))
    found = clustered([*clusters.values()])
    interval = wilson_interval(found) if means.method else None
    return {
        "n_at_risk": found.n,
        "n_events": sum(one.is_event for one in at_risk),
        "hazard": round(found.mean, FIGURE_PLACES),
        "low": round(interval.low, FIGURE_PLACES) if interval else None,
        "high": round(interval.high, FIGURE_PLACES) if interval else None,
    }
