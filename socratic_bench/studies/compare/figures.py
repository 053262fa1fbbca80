"""Means of contenders and differences of pairs, with intervals where the extra `stats` is there."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from math import fsum

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.comparison import ComparedPair, Contender, Difference, TurnScore
from socratic_bench.documents.document import FIGURE_PLACES, to_places
from socratic_bench.documents.sweep import Mean
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.statistics.bootstrap import Method
from socratic_bench.statistics.differences import ALPHA, holm, paired_p, smallest_seen
from socratic_bench.statistics.intervals import Clusters, clustered
from socratic_bench.studies.compare.contenders import ClusterOf, Group
from socratic_bench.studies.compare.pairing import Pairing, kind_of
from socratic_bench.studies.compare.stored_run import StoredRun
from socratic_bench.studies.compare.times import Times
from socratic_bench.studies.sweep.means import Kind, interval_of, judge_part, mean_of


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
