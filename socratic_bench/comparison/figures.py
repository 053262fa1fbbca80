"""Means of contenders and differences of pairs, with intervals where the extra `stats` is there."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from math import fsum

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.comparison.contenders import ClusterOf, Group
from socratic_bench.comparison.pairing import Pairing
from socratic_bench.documents.comparison import (
    ComparedMean,
    ComparedPair,
    Contender,
    Difference,
    TurnScore,
)
from socratic_bench.ports import MetricInfo
from socratic_bench.statistics.clusters import Clusters, clustered
from socratic_bench.statistics.differences import ALPHA, holm, paired_p, smallest_seen
from socratic_bench.statistics.intervals import t_interval
from socratic_bench.sweeps.means import interval_of

PLACES = 6


class Figures(Struct, frozen=True, kw_only=True):
    """How figures are made: of which metrics, in which clusters, and whether with intervals."""

    metrics: Sequence[MetricInfo]
    cluster_of: ClusterOf
    has_intervals: bool

    def contender(self, group: Group) -> Contender:
        """Its means, and its score turn by turn."""
        return Contender(
            name=group.name,
            model=group.model,
            sources=[*dict.fromkeys(run.source for run in group.runs)],
            n_runs=len(group.runs),
            metrics={one.name: self._mean(one, group) for one in self.metrics},
            score_by_turn=_score_by_turn(group),
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
        )

    def _mean(self, metric: MetricInfo, group: Group) -> ComparedMean:
        clusters: dict[Hashable, list[float]] = defaultdict(list)
        for run in group.runs:
            value = run.metrics[metric.name]
            if value is not None:
                clusters[self.cluster_of(run)].append(value)
        if not clusters:
            return ComparedMean(mean=None, n=0, n_clusters=0, low=None, high=None)
        found = clustered([*clusters.values()])
        interval = interval_of(metric, found) if self.has_intervals else None
        return ComparedMean(
            mean=_rounded(found.mean),
            n=found.n,
            n_clusters=found.n_clusters,
            low=_rounded(interval.low if interval else None),
            high=_rounded(interval.high if interval else None),
        )

    def _difference(self, clusters: Clusters) -> Difference:
        if not clusters:
            return Difference(mean=None, n=0, n_clusters=0, **_UNKNOWN)
        found = clustered(clusters)
        told = Difference(
            mean=_rounded(found.mean), n=found.n, n_clusters=found.n_clusters, **_UNKNOWN
        )
        interval = t_interval(found) if self.has_intervals else None
        if interval is None:
            return told
        return replace(
            told,
            low=_rounded(interval.low),
            high=_rounded(interval.high),
            p=paired_p(found),
            detectable=_rounded(smallest_seen(found)),
        )


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
        TurnScore(turn=turn, mean=round(fsum(some) / len(some), PLACES), n=len(some))
        for turn, some in sorted(scores.items())
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, PLACES)
