"""The runs by model, and by argument where several arguments have the model."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from socratic_bench.comparison.stored_run import StoredRun
from socratic_bench.errors import UsageError

Runs = Sequence[StoredRun]
ClusterOf = Callable[[StoredRun], Hashable]


class Group(Struct, frozen=True, kw_only=True):
    """The runs that one name stands for."""

    name: str
    model: str
    runs: tuple[StoredRun, ...]
    is_baseline: bool = False


def groups_of(runs: Runs, baseline: str | None) -> list[Group]:
    """Raises `UsageError` if a run was found twice, or if there is nothing to compare."""
    sources: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        sources[run.keys.model].add(run.source)
    by_name: dict[str, list[StoredRun]] = defaultdict(list)
    for run in runs:
        by_name[_name(run, sources)].append(run)
    groups = [
        Group(
            name=name,
            model=some[0].keys.model,
            runs=tuple(some),
            is_baseline=some[0].source == baseline,
        )
        for name, some in by_name.items()
    ]
    if problems := [*_twice(runs), *_too_few(groups)]:
        raise UsageError(problems, hint=HINT)
    return groups


HINT = "Give runs of two models, or two places that have runs of one."


def _name(run: StoredRun, sources: Mapping[str, set[str]]) -> str:
    model = run.keys.model
    return model if len(sources[model]) == 1 else f"{model} ({run.source})"


def _twice(runs: Runs) -> Iterator[str]:
    seen: dict[str, str] = {}
    for run in runs:
        run_id, before = run.keys.run_id, seen.setdefault(run.keys.run_id, run.source)
        if before != run.source:
            yield f"{run_id} is in {before} and in {run.source}: a run is compared once."


def _too_few(groups: Sequence[Group]) -> Iterator[str]:
    if len(groups) == 1:
        yield f"There is nothing to compare {groups[0].name} with."


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


def clusters_by(runs: Runs) -> ClusterOf:
    """Runs are clustered by what was played, or by their openings if all played the same."""
    if len({run.sample for run in runs}) > 1:
        return lambda run: run.sample
    return lambda run: run.keys.prompt
