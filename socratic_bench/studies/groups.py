"""The runs by model, and by argument where several arguments have the model."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from msgspec import Struct

from socratic_bench.errors import UsageError
from socratic_bench.statistics.intervals import Clusters
from socratic_bench.studies.rows import N_TURNS, StoredRun

Runs = Sequence[StoredRun]
ClusterOf = Callable[[StoredRun], Hashable]
# By path, the values of each group.
Unlike = Mapping[str, Mapping[str, Sequence[Any]]]


class Group(Struct, frozen=True, kw_only=True):
    """The runs that one name stands for."""

    name: str
    model: str
    runs: tuple[StoredRun, ...]
    is_baseline: bool = False


def groups_of(runs: Runs, baseline: str | None) -> list[Group]:
    """In the order in which they were found."""
    return [
        Group(
            name=name,
            model=some[0].keys.model,
            runs=tuple(some),
            is_baseline=some[0].source == baseline,
        )
        for name, some in _by_name(runs).items()
    ]


def _by_name(runs: Runs) -> Mapping[str, Runs]:
    sources: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        sources[run.keys.model].add(run.source)
    found: dict[str, list[StoredRun]] = defaultdict(list)
    for run in runs:
        found[_name(run, sources)].append(run)
    return found


def _name(run: StoredRun, sources: Mapping[str, set[str]]) -> str:
    model = run.keys.model
    return model if len(sources[model]) == 1 else f"{model} ({run.source})"


def twice(runs: Runs) -> Iterator[UsageError]:
    """A mistake for each two arguments that have runs in common."""
    seen: dict[str, str] = {}
    common: dict[tuple[str, str], list[str]] = defaultdict(list)
    for run in runs:
        before = seen.setdefault(run.keys.run_id, run.source)
        if before != run.source:
            common[before, run.source].append(run.keys.run_id)
    for (one, other), run_ids in common.items():
        what = run_ids[0] if len(run_ids) == 1 else f"{run_ids[0]} and {len(run_ids) - 1} more"
        verb = "is" if len(run_ids) == 1 else "are"
        yield UsageError([f"{what} {verb} in {one} and in {other}: a run is compared once."])


def pairs_of(groups: Sequence[Group], failed: Collection[str]) -> list[tuple[Group, Group | None]]:
    """Each with each; or, where there is a baseline, each with its runs of the same model, or with
    the only model that it has. `failed` are models of which cells failed there.
    """
    bases = [one for one in groups if one.is_baseline]
    if not bases:
        return [*combinations(groups, 2)]
    only = bases[0] if len({*failed, *(one.model for one in bases)}) == 1 else None
    return [
        (one, next((base for base in bases if base.model == one.model), only))
        for one in groups
        if not one.is_baseline
    ]


def too_few(
    groups: Sequence[Group], pairs: Sequence[tuple[Group, Group | None]]
) -> Iterator[UsageError]:
    """What has nothing to be compared with."""
    if not pairs:
        names = ", ".join(one.name for one in groups)
        yield UsageError([f"There is nothing to compare {names} with."], hint=HINT)
    for one, base in pairs:
        if base is None:
            yield UsageError([f"The baseline has no runs of {one.model}, but of others."])


HINT = "Give runs of two models, or two places that have runs of one."


def differing(groups: Sequence[Group]) -> dict[str, dict[str, list[Any]]]:
    """Conditions in which groups were not played alike: by path, the values of each group."""
    found: dict[str, dict[str, list[Any]]] = {}
    for path in dict.fromkeys(
        path for one in groups for run in one.runs for path in run.conditions
    ):
        values = {one.name: _values(one, path) for one in groups}
        if len({repr(some) for some in values.values() if some}) > 1:
            found[path] = values
    return found


def _values(group: Group, path: str) -> list[Any]:
    """What is known of it, in order."""
    known = {run.conditions[path] for run in group.runs if path in run.conditions}
    return sorted(known, key=repr)


def told(values: Mapping[str, Sequence[Any]]) -> str:
    """The values of a condition in words, group by group."""
    return "; ".join(
        f"{', '.join(map(_shown, some)) or 'none'} of {name}" for name, some in values.items()
    )


def _shown(value: object) -> str:
    return "null" if value is None else str(value)


def clusters_by(runs: Runs) -> ClusterOf:
    """Runs are clustered by what was played, or by their openings if all played the same."""
    if len({run.sample for run in runs}) > 1:
        return lambda run: run.sample
    return lambda run: run.keys.prompt


# Which run is compared with which: those of one sample, with one opening, in one repeat.


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
