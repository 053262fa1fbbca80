"""The document of a comparison: contenders and pairs, and what readers should know of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.comparison import (
    ComparedPair,
    ComparisonDocument,
    Condition,
    Contender,
    Difference,
    FailedContender,
)
from socratic_bench.documents.document import ErrorEntry
from socratic_bench.documents.sweep import MinimumGate, PrimaryMetric
from socratic_bench.errors import Problem
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.studies import gates as bounds
from socratic_bench.studies.figures import Figures, corrected, danger
from socratic_bench.studies.gates import (
    Bound,
    MaxDrop,
    drop_gates,
    drop_gates_of_failed,
    missed_drops,
)
from socratic_bench.studies.groups import Group, Unlike, paired, pairs_of
from socratic_bench.studies.reading import FailedCells
from socratic_bench.types import plural

NO_PAIR = Problem.of(
    "Some have no pair: give runs the same samples and {seed}, or play them in one sweep."
)
NO_INTERVALS = (
    "There are no intervals, tests or ties without scipy: install the extra stats "
    '(pip install ".[stats]").'
)


class Compared(Struct, frozen=True, kw_only=True):
    """What is compared; `unlike` is what was not alike in it."""

    benchmark: Benchmark
    groups: Sequence[Group]
    failed: Sequence[FailedCells]
    unlike: Unlike
    baseline: str | None
    drops: Sequence[MaxDrop]
    bounds: Sequence[Bound]


def document_of(
    compared: Compared, figures: Figures, call: Callable[[str], str] = str
) -> ComparisonDocument:
    """Raises nothing: what can be wrong was looked at before. Notices call settings as `call`."""
    primary = _primary(compared.benchmark)
    told = {one.name: _contender(one, compared.failed, figures) for one in compared.groups}
    ordered = sorted(compared.groups, key=lambda one: _rank(one, told[one.name], primary))
    pairs = corrected([*_pairs(ordered, compared, figures)])
    failed = [*_failed(compared)]
    gates = [
        *drop_gates(compared.drops, pairs, figures.metrics),
        *drop_gates_of_failed(
            compared.drops, [one for one in failed if one.source != compared.baseline]
        ),
    ]
    contenders = [told[one.name] for one in ordered]
    minima = [*_held(ordered, told, compared.bounds), *_held_of_failed(failed, compared)]
    return ComparisonDocument(
        benchmark=compared.benchmark.name,
        primary_metric=primary,
        baseline=compared.baseline,
        interval=figures.method if figures.has_intervals else None,
        n_runs=sum(one.n_runs for one in contenders),
        contenders=contenders,
        failed=failed,
        pairs=pairs,
        tied=_tied(pairs, primary.name),
        conditions=[
            Condition(name=path, values={name: [*some] for name, some in values.items()})
            for path, values in compared.unlike.items()
        ],
        gates=gates,
        minimum_gates=minima,
        notices=[
            *_notices(pairs, compared.unlike, call, has_intervals=figures.has_intervals),
            *_notices_of_failed(contenders, failed),
            *_dangers(contenders, primary.name),
        ],
        error=_missed([*missed_drops(gates), *bounds.missed_minima(minima)]),
    )


def _held(
    groups: Sequence[Group], told: Mapping[str, Contender], asked: Sequence[Bound]
) -> Iterator[MinimumGate]:
    """A baseline is what others are held to, and is held to nothing."""
    for group in groups:
        one = told[group.name]
        if not group.is_baseline:
            yield from bounds.minimum_gates(asked, one.name, one.metrics, one.survival)


def _held_of_failed(failed: Sequence[FailedContender], compared: Compared) -> Iterator[MinimumGate]:
    """What has no complete run has no figure that could reach a bound."""
    for gone in failed:
        if gone.source != compared.baseline:
            yield from bounds.minimum_gates(compared.bounds, gone.model, {}, {})


def _contender(group: Group, failed: Sequence[FailedCells], figures: Figures) -> Contender:
    told = figures.contender(group)
    mine = [one for one in failed if one.model == group.model and one.source in told.sources]
    return replace(told, n_failed=sum(one.n for one in mine))


def _pairs(
    ordered: Sequence[Group], compared: Compared, figures: Figures
) -> Iterator[ComparedPair]:
    failed = {one.model for one in compared.failed if one.source == compared.baseline}
    for one, other in pairs_of(ordered, failed):
        if other is not None:
            pairing = paired(one, other, compared.unlike, figures.cluster_of)
            yield figures.pair(one, other, pairing)


def _failed(compared: Compared) -> Iterator[FailedContender]:
    """What has no complete run at all."""
    complete = {(run.keys.model, run.source) for one in compared.groups for run in one.runs}
    for one in compared.failed:
        if (one.model, one.source) not in complete:
            yield FailedContender(model=one.model, source=one.source, n_failed=one.n)


def _notices_of_failed(
    contenders: Sequence[Contender], failed: Sequence[FailedContender]
) -> Iterator[str]:
    for gone in failed:
        n = plural(gone.n_failed, "cell")
        yield f"{gone.model} of {gone.source} has no complete run: {n} failed."
    for one in contenders:
        if one.n_failed:
            n = plural(one.n_failed, "cell")
            yield f"{n} of {one.name} failed, and count in no figure: they may have been harder."


def _dangers(contenders: Sequence[Contender], metric: str) -> Iterator[str]:
    for one in contenders:
        yield from danger(one.name, metric, one.metrics[metric].two_groups)


def _primary(benchmark: Benchmark) -> PrimaryMetric:
    name = benchmark.primary_metric
    higher = next(one.higher_is_better for one in benchmark.metrics if one.name == name)
    return PrimaryMetric(name=name, higher_is_better=higher)


def _rank(group: Group, told: Contender, primary: PrimaryMetric) -> tuple[bool, bool, float]:
    """The best first, the unknown after them, a baseline last."""
    mean = told.metrics[primary.name].mean
    sign = -1 if primary.higher_is_better else 1
    return group.is_baseline, mean is None, sign * (mean or 0.0)


def _tied(pairs: Sequence[ComparedPair], metric: str) -> list[list[str]] | None:
    known = [pair for pair in pairs if pair.differences[metric].tied is not None]
    if not known:
        return None
    return [[pair.first, pair.second] for pair in known if pair.differences[metric].tied]


def _notices(
    pairs: Sequence[ComparedPair],
    unlike: Unlike,
    call: Callable[[str], str],
    *,
    has_intervals: bool,
) -> Iterator[str]:
    if not has_intervals:
        yield NO_INTERVALS
    if unlike:
        yield f"The runs were not played alike ({', '.join(unlike)}): differences may be of that."
    if any(not pair.n_pairs for pair in pairs):
        yield NO_PAIR.render(call)
    elif any(pair.n_unpaired for pair in pairs):
        yield "Some runs have no counterpart, and count in means alone."
    if any(one.n_clusters == 1 for pair in pairs for one in pair.differences.values()):
        yield "A difference over one sample has no interval: play several."
    if any(_is_constant(one) for pair in pairs for one in pair.differences.values()):
        yield (
            "A difference that is the same in all of a few samples has no interval: that proves "
            "little below six."
        )


def _is_constant(one: Difference) -> bool:
    return bool(one.mean) and one.p is not None and one.low is one.detectable is None


def _missed(sentences: Sequence[str]) -> ErrorEntry | None:
    if not sentences:
        return None
    return ErrorEntry(
        code="gate",
        message=" ".join(sentences),
        hint="The comparison itself is complete.",
        retryable=False,
    )
