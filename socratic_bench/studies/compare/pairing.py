"""Which run is compared with which: those of one sample, with one opening, in one repeat."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from typing import Literal

from msgspec import Struct

from socratic_bench.statistics.intervals import Clusters
from socratic_bench.studies.compare.contenders import ClusterOf, Group
from socratic_bench.studies.compare.stored_run import N_TURNS, StoredRun


class Pairing(Struct, frozen=True, kw_only=True):
    """The pairs of two groups, each with the cluster that it counts to."""

    paired_by: Literal["repeat", "seed"]
    pairs: tuple[tuple[Hashable, StoredRun, StoredRun], ...]
    n_unpaired: int

    def differences(self, metric: str) -> Clusters:
        """The first less the second where both are known, by cluster."""
        found: dict[Hashable, list[float]] = {}
        for cluster, first, second in self.pairs:
            ours, theirs = first.values(metric, cluster), second.values(metric, cluster)
            for key in (one for one in ours if one in theirs):
                found.setdefault(key, []).append(ours[key] - theirs[key])
        return [*found.values()]


def paired(first: Group, second: Group, unlike: Collection[str], cluster_of: ClusterOf) -> Pairing:
    """Conditions that are `unlike` tell no runs apart; others do, since a group may have several
    values of one. Several runs of one kind are paired in the order in which they began.
    """
    runs = (*first.runs, *second.runs)
    by: Literal["repeat", "seed"] = "seed" if any(run.repeat is None for run in runs) else "repeat"
    ours, theirs = (_by_kind(one.runs, by, unlike) for one in (first, second))
    both = [(cluster_of(ours[kind]), ours[kind], theirs[kind]) for kind in ours if kind in theirs]
    n_unpaired = len(ours) + len(theirs) - 2 * len(both)
    return Pairing(paired_by=by, pairs=tuple(both), n_unpaired=n_unpaired)


def _by_kind(
    runs: Iterable[StoredRun], by: str, unlike: Collection[str]
) -> dict[Hashable, StoredRun]:
    found: dict[Hashable, StoredRun] = {}
    seen: Counter[Hashable] = Counter()
    for run in sorted(runs, key=lambda one: one.keys.run_id):
        repeat = run.repeat if by == "repeat" else run.keys.seed
        kind = (run.sample, kind_of(run, unlike), repeat)
        seen[kind] += 1
        found[kind, seen[kind]] = run
    return found


def kind_of(run: StoredRun, unlike: Collection[str] = ()) -> tuple[Hashable, Hashable]:
    """Runs of one sample and kind, which is how they began and all else, are repeats. What a run's
    length was may depend on what it said, so that is no part of it, and nor is what is `unlike`.
    """
    alike = {path: run.conditions[path] for path in run.conditions if path not in unlike}
    alike.pop(N_TURNS, None)
    return run.keys.prompt, tuple(sorted(alike.items()))
