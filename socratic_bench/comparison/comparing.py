"""From what a command asks for to the document of a comparison."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.comparison.contenders import Group, clusters_by, differing, groups_of
from socratic_bench.comparison.drops import MaxDrop, held, missed
from socratic_bench.comparison.figures import Figures, corrected
from socratic_bench.comparison.pairing import paired
from socratic_bench.comparison.places import Found, found_at
from socratic_bench.comparison.stored_run import StoredRun, benchmark_of, read_run
from socratic_bench.documents.comparison import (
    ComparedPair,
    ComparisonDocument,
    Condition,
    Contender,
)
from socratic_bench.documents.error import ErrorEntry
from socratic_bench.documents.sweep import PrimaryMetric
from socratic_bench.errors import UsageError, Words
from socratic_bench.ports import Benchmark, MetricInfo
from socratic_bench.statistics.quantiles import is_available

NO_INTERVALS = (
    "There are no intervals, tests or ties without scipy: install the extra stats "
    '(pip install ".[stats]").'
)


class Asked(Struct, frozen=True, kw_only=True):
    """What is to be compared: `arguments` as they are given, and of them the baseline, if any.
    Without `metrics` they are the benchmark's own choice.
    """

    arguments: tuple[str, ...]
    baseline: str | None = None
    metrics: tuple[str, ...] = ()
    drops: tuple[MaxDrop, ...] = ()
    allows_differences: bool = False


def compare(asked: Asked, region: Callable[[], str]) -> ComparisonDocument:
    """Raises `UsageError` with all that is wrong, and `ArtifactError` for a store."""
    if any(one.is_of_limit for one in asked.drops) and not is_available():
        raise UsageError(["A gate on a limit of an interval needs scipy."], hint=NO_INTERVALS)
    benchmark, runs = _read(asked, region)
    metrics = _metrics(asked, benchmark)
    groups = groups_of(runs, asked.baseline)
    unlike = differing(groups)
    if unlike and not asked.allows_differences:
        raise UsageError([*_sentences(unlike)], hint=UNLIKE)
    figures = Figures(metrics=metrics, cluster_of=clusters_by(runs), has_intervals=is_available())
    return _document(asked, benchmark, groups, figures, unlike)


UNLIKE = "Runs that were not played alike say little of models: --allow compares and flags them."


def _read(asked: Asked, region: Callable[[], str]) -> tuple[Benchmark, list[StoredRun]]:
    problems: list[Words] = []
    found: list[tuple[str, Found]] = []
    for argument in dict.fromkeys((*asked.arguments, *filter(None, [asked.baseline]))):
        try:
            found += [(argument, one) for one in found_at(argument, region)]
        except UsageError as error:
            problems += error.said
    if problems or not found:
        raise UsageError(problems)
    names = sorted({benchmark_of(one.body, one.name) for _, one in found})
    if len(names) > 1:
        raise UsageError([f"Runs of several benchmarks cannot be compared: {', '.join(names)}."])
    benchmark = load_benchmark(names[0])
    return benchmark, [
        read_run(one.body, one.name, argument, benchmark, one.repeat) for argument, one in found
    ]


def _metrics(asked: Asked, benchmark: Benchmark) -> list[MetricInfo]:
    """Those that are asked for, those of gates, and the primary one."""
    known = {one.name: one for one in benchmark.metrics}
    names = asked.metrics or tuple(benchmark.compared_metrics)
    wanted = dict.fromkeys((benchmark.primary_metric, *names, *(one.metric for one in asked.drops)))
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(
            [f"{name} is no metric of {benchmark.name}." for name in unknown],
            hint=f"There is {', '.join(known)}.",
        )
    return [known[name] for name in wanted]


def _sentences(unlike: Mapping[str, Mapping[str, Sequence[Any]]]) -> Iterator[str]:
    for path, values in unlike.items():
        told = (
            f"{', '.join(map(_shown, some)) or 'none'} of {name}" for name, some in values.items()
        )
        yield f"{path} differs: {'; '.join(told)}."


def _shown(value: object) -> str:
    return "null" if value is None else str(value)


def _document(
    asked: Asked,
    benchmark: Benchmark,
    groups: Sequence[Group],
    figures: Figures,
    unlike: Mapping[str, Mapping[str, Sequence[Any]]],
) -> ComparisonDocument:
    primary = _primary(benchmark)
    told = {one.name: figures.contender(one) for one in groups}
    ordered = sorted(groups, key=lambda one: _rank(one, told[one.name], primary))
    pairs = corrected(
        [
            figures.pair(one, other, paired(one, other, unlike, figures.cluster_of))
            for one, other in _both(ordered)
        ]
    )
    gates = [*held(asked.drops, pairs, figures.metrics)]
    return ComparisonDocument(
        benchmark=benchmark.name,
        primary_metric=primary,
        baseline=asked.baseline,
        n_runs=sum(len(one.runs) for one in groups),
        contenders=[told[one.name] for one in ordered],
        pairs=pairs,
        tied=_tied(pairs, primary.name),
        conditions=[
            Condition(name=path, values={name: [*some] for name, some in values.items()})
            for path, values in unlike.items()
        ],
        gates=gates,
        notices=[*_notices(pairs, unlike, has_intervals=figures.has_intervals)],
        error=_missed(missed(gates)),
    )


def _primary(benchmark: Benchmark) -> PrimaryMetric:
    name = benchmark.primary_metric
    higher = next(one.higher_is_better for one in benchmark.metrics if one.name == name)
    return PrimaryMetric(name=name, higher_is_better=higher)


def _rank(group: Group, told: Contender, primary: PrimaryMetric) -> tuple[bool, bool, float]:
    """The best first, the unknown after them, a baseline last."""
    mean = told.metrics[primary.name].mean
    sign = -1 if primary.higher_is_better else 1
    return group.is_baseline, mean is None, sign * (mean or 0.0)


def _both(groups: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Each with the baseline's runs of its model, or with the only model there; else each with
    each.
    """
    bases = [one for one in groups if one.is_baseline]
    if not bases:
        return [*combinations(groups, 2)]
    only = bases[0] if len(bases) == 1 else None
    found = []
    problems = []
    for group in groups:
        if group.is_baseline:
            continue
        base = next((one for one in bases if one.model == group.model), only)
        if base is None:
            problems.append(f"The baseline has no runs of {group.model}, but of several others.")
        else:
            found.append((group, base))
    if problems:
        raise UsageError(problems)
    return found


def _tied(pairs: Sequence[ComparedPair], metric: str) -> list[list[str]] | None:
    known = [pair for pair in pairs if pair.differences[metric].tied is not None]
    if not known:
        return None
    return [[pair.first, pair.second] for pair in known if pair.differences[metric].tied]


def _notices(
    pairs: Sequence[ComparedPair], unlike: Mapping[str, object], *, has_intervals: bool
) -> Iterator[str]:
    if not has_intervals:
        yield NO_INTERVALS
    if unlike:
        yield f"The runs were not played alike ({', '.join(unlike)}): differences may be of that."
    if any(not pair.n_pairs for pair in pairs):
        yield (
            "Some have no pair: give runs the same samples and --seed, or play them in one sweep."
        )
    elif any(pair.n_unpaired for pair in pairs):
        yield "Some runs have no counterpart, and count in means alone."
    if any(one.n_clusters == 1 for pair in pairs for one in pair.differences.values()):
        yield "A difference over one sample has no interval: play several."


def _missed(sentences: Sequence[str]) -> ErrorEntry | None:
    if not sentences:
        return None
    return ErrorEntry(
        code="gate",
        message=" ".join(sentences),
        hint="The comparison itself is complete.",
        retryable=False,
    )
