"""Which runs belong together: clusters and repeats, contenders, and pairs of runs."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from msgspec import Struct

from socratic_bench.benchmarks import RunConfig
from socratic_bench.settings import table
from socratic_bench.studies.figures import Design
from socratic_bench.studies.rows import N_TURNS, RunRow
from socratic_bench.types import Json

MODEL = "model"
PROMPT = "prompt"
PairedBy = Literal["repeat", "seed"]
KindOf = Callable[[RunRow], Hashable]
# Conditions in which groups differ: by path and group, the values.
Unlike = Mapping[str, Mapping[str, Sequence[Any]]]


class Group(Struct, frozen=True, kw_only=True):
    """The runs of a contender: a model, or a model in one argument if several have its runs."""

    name: str
    model: str
    runs: tuple[RunRow, ...]
    is_baseline: bool = False


class Pairing(Struct, frozen=True, kw_only=True):
    """The pairs of two groups, each with its cluster."""

    paired_by: PairedBy
    pairs: tuple[tuple[Hashable, RunRow, RunRow], ...]
    n_unpaired: int


def design_of(runs: Sequence[RunRow], *, has_limits: bool) -> Design:
    """Runs are clustered by sample if there are several samples, or by their opening if not. The
    plans of sweeps say whether there are several, so that failed cells change no cluster.
    """
    plan: dict[str, dict[Json, None]] = defaultdict(dict)
    for axes in _plans(runs):
        for name, values in axes.items():
            plan[name].update(dict.fromkeys(values))
    # Openings of one scenario are no several samples.
    planned = (len(plan[name]) > 1 for name in plan if is_sample(name) and name != PROMPT)
    has_several = len({run.sample for run in runs}) > 1 or any(planned)
    return Design(
        cluster=(lambda run: run.sample) if has_several else lambda run: run.prompt,
        opening=lambda run: run.prompt,
        kind=kind_of(runs),
        has_limits=has_limits,
    )


def _plans(runs: Iterable[RunRow]) -> Iterable[Mapping[str, Sequence[Json]]]:
    """The values of each axis, sweep by sweep."""
    return {id(run.cell.plan): run.cell.plan for run in runs if run.cell}.values()


def is_sample(axis: str) -> bool:
    """Whether an axis selects what is played, whatever the model."""
    setting = table(RunConfig).get(axis)
    return setting is not None and setting.setting.is_sample


def kind_of(runs: Sequence[RunRow], unlike: Collection[str] = ()) -> KindOf:
    """The function that gives the kind of each of the runs: runs of one sample, opening and kind
    are repeats of each other, and can be paired.

    The kind is the run's value on each axis that a sweep varies, and its conditions. The length may
    depend on what was said, so it is no part of the kind; nor are conditions that are `unlike`.
    """
    treatments = _treatments(runs)
    ignored = {*unlike, N_TURNS}

    def kind(run: RunRow) -> Hashable:
        values = tuple((name, _axis_value(run, name)) for name in treatments)
        conditions = (entry for entry in run.conditions.items() if entry[0] not in ignored)
        return values, tuple(sorted(conditions))

    return kind


def _treatments(runs: Sequence[RunRow]) -> tuple[str, ...]:
    """The axes beside samples and models that a sweep varies, if every run has a value of them."""
    varied = dict.fromkeys(
        name
        for plan in _plans(runs)
        for name, values in plan.items()
        if len(values) > 1 and name not in (MODEL, PROMPT) and not is_sample(name)
    )
    return tuple(
        name
        for name in varied
        if all(
            name in (run.at("inputs") or {}) or (run.cell and name in run.cell.axes) for run in runs
        )
    )


def pooled_settings(groups: Sequence[Group]) -> list[str]:
    """The axes on which runs of one group differ."""
    return [
        name
        for name in _treatments([run for group in groups for run in group.runs])
        if any(len({_axis_value(run, name) for run in group.runs}) > 1 for group in groups)
    ]


def notices_on_pooled(settings: Sequence[str]) -> Iterator[str]:
    """A notice where runs of one model differ in settings that figures of models do not tell."""
    if settings:
        names = " and ".join(name.replace("_", " ") for name in settings)
        yield f"Runs of one model differ in {names}: its figures are over all of them."


def _axis_value(run: RunRow, name: str) -> Hashable:
    """By its document, so that runs outside sweeps have one, too; else by its cell."""
    inputs = run.at("inputs") or {}
    value = inputs[name] if name in inputs or not run.cell else run.cell.axes.get(name)
    return value if isinstance(value, Hashable) else repr(value)


def group_by_model(runs: Sequence[RunRow], baseline: str | None = None) -> list[Group]:
    """By model, and by argument if several arguments have a model; in the order of the runs."""
    sources: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        sources[run.model].add(run.source)
    by_name: dict[str, list[RunRow]] = defaultdict(list)
    for run in runs:
        is_only = len(sources[run.model]) == 1
        by_name[run.model if is_only else f"{run.model} ({run.source})"].append(run)
    return [
        Group(
            name=name,
            model=members[0].model,
            runs=tuple(members),
            is_baseline=members[0].source == baseline,
        )
        for name, members in by_name.items()
    ]


def pairs_of_groups(
    groups: Sequence[Group], failed: Collection[str] = ()
) -> list[tuple[Group, Group | None]]:
    """Each with each; with a baseline, each with its runs of the same model, or of the only model
    that it has. `failed` are the models of the baseline's failed cells.
    """
    baselines = [group for group in groups if group.is_baseline]
    if not baselines:
        return [*combinations(groups, 2)]
    models = {*failed, *(group.model for group in baselines)}
    only = baselines[0] if len(models) == 1 else None
    return [
        (group, next((base for base in baselines if base.model == group.model), only))
        for group in groups
        if not group.is_baseline
    ]


def pair_runs(first: Group, second: Group, design: Design, kind: KindOf | None = None) -> Pairing:
    """Pair runs of one sample, opening, kind and repeat, or seed if a run has no repeat. Several of
    these are paired in the order in which they began. The kind is the design's, or the given one.
    """
    has_repeats = all(run.repeat is not None for run in (*first.runs, *second.runs))
    by: PairedBy = "repeat" if has_repeats else "seed"
    ours, theirs = (_by_place(group.runs, by, kind or design.kind) for group in (first, second))
    pairs = tuple(
        (design.cluster(run), run, theirs[place]) for place, run in ours.items() if place in theirs
    )
    n_unpaired = len(ours) + len(theirs) - 2 * len(pairs)
    return Pairing(paired_by=by, pairs=pairs, n_unpaired=n_unpaired)


def _by_place(runs: Iterable[RunRow], by: PairedBy, kind: KindOf) -> Mapping[Hashable, RunRow]:
    places: dict[Hashable, RunRow] = {}
    n_seen: Counter[Hashable] = Counter()
    for run in sorted(runs, key=lambda run: run.run_id):
        place = (run.sample, run.prompt, kind(run), run.repeat if by == "repeat" else run.seed)
        n_seen[place] += 1
        places[place, n_seen[place]] = run
    return places


def differing_conditions(groups: Sequence[Group]) -> dict[str, dict[str, list[Any]]]:
    """Conditions in which groups differ: by path, the values of each group."""
    unlike: dict[str, dict[str, list[Any]]] = {}
    for path in dict.fromkeys(
        path for group in groups for run in group.runs for path in run.conditions
    ):
        values = {
            group.name: sorted(
                {run.conditions[path] for run in group.runs if path in run.conditions}, key=repr
            )
            for group in groups
        }
        if len({repr(group_values) for group_values in values.values() if group_values}) > 1:
            unlike[path] = values
    return unlike


def conditions_text(values: Mapping[str, Sequence[Any]]) -> str:
    """The values of a condition in words, group by group."""
    return "; ".join(
        f"{', '.join('null' if value is None else str(value) for value in group_values) or 'none'} "
        f"of {name}"
        for name, group_values in values.items()
    )
