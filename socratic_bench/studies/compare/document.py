"""The document of a comparison: contenders and pairs, and what readers should know about them."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from msgspec import Struct

from socratic_bench.documents.comparison import (
    ComparedPair,
    ComparisonDocument,
    Condition,
    Contender,
    FailedContender,
    TurnScore,
)
from socratic_bench.documents.document import FIGURE_PLACES, ErrorEntry, to_places
from socratic_bench.documents.sweep import FigureGate, PairedDifference, PrimaryMetric
from socratic_bench.errors import Problem
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.statistics.intervals import Clusters, clustered
from socratic_bench.studies.figures import (
    Design,
    danger,
    difference_of,
    differences_by_cluster,
    interval_of,
    mean_of,
    primary_metric,
    rank,
)
from socratic_bench.studies.gates import (
    FigureBound,
    MaxDrop,
    drop_gates,
    drop_gates_of_failed,
    figure_gates,
    missed_drops,
    missed_gates,
)
from socratic_bench.studies.groups import (
    Group,
    Pairing,
    Unlike,
    kind_of,
    pair_runs,
    pairs_of_groups,
)
from socratic_bench.studies.primary import PairedRuns, primary_differences
from socratic_bench.studies.reading import FailedCell
from socratic_bench.studies.times import (
    common_horizon,
    survival_difference,
    survival_with_curve,
    times_by_cluster,
)
from socratic_bench.types import plural

NO_PAIR = Problem.of(
    "Some have no pair: give runs the same samples and {seed}, or play them in one sweep."
)
NO_INTERVALS = 'There are no intervals: install the extra stats (pip install ".[stats]").'


class Comparison(Struct, frozen=True, kw_only=True):
    """What is compared, and how; `unlike` are the conditions in which groups differ."""

    benchmark: Benchmark
    metrics: Sequence[MetricInfo]
    groups: Sequence[Group]
    failed: Sequence[FailedCell]
    unlike: Unlike
    baseline: str | None
    drops: Sequence[MaxDrop]
    bounds: Sequence[FigureBound]
    design: Design

    @property
    def has_limits(self) -> bool:
        """Whether there are intervals: the extra `stats` is installed."""
        return self.design.has_limits


def document_of(comparison: Comparison, call: Callable[[str], str] = str) -> ComparisonDocument:
    """The document; its notices call settings by `call`."""
    primary = primary_metric(comparison.benchmark)
    horizons = _horizons(comparison)
    contenders = {
        group.name: _contender(group, comparison, horizons) for group in comparison.groups
    }

    def place(group: Group) -> tuple[bool, tuple[bool, float]]:
        """The best first, a baseline last."""
        mean = contenders[group.name].metrics[primary.name].mean
        return group.is_baseline, rank(mean, primary)

    groups = sorted(comparison.groups, key=place)
    ordered = [contenders[group.name] for group in groups]
    pairings = [*_pairings(groups, comparison)]
    pairs = [_pair(*entry, comparison, horizons) for entry in pairings]
    differences = _primary(pairings, comparison)
    failed = [*_failed_contenders(comparison)]
    failed_rivals = [contender for contender in failed if contender.source != comparison.baseline]
    drops = [
        *drop_gates(comparison.drops, pairs, comparison.metrics),
        *drop_gates_of_failed(comparison.drops, failed_rivals),
    ]
    rivals = [contenders[group.name] for group in groups if not group.is_baseline]
    figure_bounds = [*_figure_gates(rivals, failed_rivals, comparison.bounds)]
    return ComparisonDocument(
        benchmark=comparison.benchmark.name,
        primary_metric=primary,
        baseline=comparison.baseline,
        n_runs=sum(contender.n_runs for contender in ordered),
        contenders=ordered,
        failed=failed,
        differences=differences,
        pairs=pairs,
        conditions=[
            Condition(
                name=path, values={name: [*group_values] for name, group_values in values.items()}
            )
            for path, values in comparison.unlike.items()
        ],
        gates=drops,
        figure_gates=figure_bounds,
        notices=[
            *_notices_on_pairs(pairs, comparison, call),
            *_notices_on_failed(ordered, failed),
            *_dangers(ordered, primary),
        ],
        error=_error([*missed_drops(drops), *missed_gates(figure_bounds)]),
    )


def _horizons(comparison: Comparison) -> Mapping[str, float]:
    """One horizon of each metric that is a time, for all contenders."""
    names = dict.fromkeys(
        name for group in comparison.groups for run in group.runs for name in run.times
    )
    return {
        name: common_horizon(
            times_by_cluster(group.runs, name, comparison.design) for group in comparison.groups
        )
        for name in names
    }


def _contender(group: Group, comparison: Comparison, horizons: Mapping[str, float]) -> Contender:
    design, sources = comparison.design, [*dict.fromkeys(run.source for run in group.runs)]
    times = {name: times_by_cluster(group.runs, name, design) for name in horizons}
    return Contender(
        name=group.name,
        model=group.model,
        sources=sources,
        n_runs=len(group.runs),
        n_failed=sum(
            cell.row.model == group.model and cell.source in sources for cell in comparison.failed
        ),
        metrics={metric.name: mean_of(group.runs, metric, design) for metric in comparison.metrics},
        score_by_turn=_score_by_turn(group, design),
        survival={
            name: survival_with_curve(clusters, horizons[name], has_limits=comparison.has_limits)
            for name, clusters in times.items()
            if clusters
        },
    )


def _score_by_turn(group: Group, design: Design) -> list[TurnScore]:
    by_turn: dict[int, dict[Hashable, list[float]]] = {}
    for run in group.runs:
        for turn in run.turns:
            if turn.score is not None:
                clusters = by_turn.setdefault(turn.turn, {})
                clusters.setdefault(design.cluster(run), []).append(turn.score)
    return [_turn_score(turn, [*by_turn[turn].values()], design) for turn in sorted(by_turn)]


def _turn_score(turn: int, clusters: Clusters, design: Design) -> TurnScore:
    mean, interval = clustered(clusters), interval_of(None, clusters, has_limits=design.has_limits)
    return TurnScore(
        turn=turn,
        mean=round(mean.mean, FIGURE_PLACES),
        n=mean.n,
        low=to_places(interval.low if interval else None, FIGURE_PLACES),
        high=to_places(interval.high if interval else None, FIGURE_PLACES),
    )


def _pairings(
    groups: Sequence[Group], comparison: Comparison
) -> Iterator[tuple[Group, Group, Pairing]]:
    """The pairs of groups that are compared, with their pairs of runs."""
    runs = [run for group in groups for run in group.runs]
    kind = kind_of(runs, comparison.unlike)
    failed = {cell.row.model for cell in comparison.failed if cell.source == comparison.baseline}
    for first, second in pairs_of_groups(groups, failed):
        if second is not None:
            yield first, second, pair_runs(first, second, comparison.design, kind)


def _primary(
    pairings: Sequence[tuple[Group, Group, Pairing]], comparison: Comparison
) -> list[PairedDifference]:
    paired = [
        PairedRuns(first=first.name, second=second.name, pairs=pairing.pairs)
        for first, second, pairing in pairings
    ]
    samples = {run.sample for group in comparison.groups for run in group.runs}
    return primary_differences(
        paired,
        comparison.benchmark,
        is_one_sample=len(samples) == 1,
        has_limits=comparison.has_limits,
    )


def _pair(
    first: Group,
    second: Group,
    pairing: Pairing,
    comparison: Comparison,
    horizons: Mapping[str, float],
) -> ComparedPair:
    survival = {
        name: survival_difference(pairing.pairs, name, horizon, has_limits=comparison.has_limits)
        for name, horizon in horizons.items()
    }
    return ComparedPair(
        first=first.name,
        second=second.name,
        paired_by=pairing.paired_by,
        n_pairs=len(pairing.pairs),
        n_unpaired=pairing.n_unpaired,
        differences={
            metric.name: difference_of(
                differences_by_cluster(pairing.pairs, metric.name),
                has_limits=comparison.has_limits,
            )
            for metric in comparison.metrics
        },
        survival={name: difference for name, difference in survival.items() if difference},
    )


def _failed_contenders(comparison: Comparison) -> Iterator[FailedContender]:
    """The models of an argument that have no complete run there."""
    complete = {(run.model, run.source) for group in comparison.groups for run in group.runs}
    n_failed: dict[tuple[str, str], int] = defaultdict(int)
    for cell in comparison.failed:
        n_failed[cell.row.model, cell.source] += 1
    for (model, source), n in n_failed.items():
        if (model, source) not in complete:
            yield FailedContender(model=model, source=source, n_failed=n)


def _figure_gates(
    contenders: Sequence[Contender],
    failed: Sequence[FailedContender],
    bounds: Sequence[FigureBound],
) -> Iterator[FigureGate]:
    """A baseline has no bounds; a model without a complete run misses all of them."""
    for contender in contenders:
        yield from figure_gates(bounds, contender.name, contender.metrics, contender.survival)
    for gone in failed:
        yield from figure_gates(bounds, gone.model, {}, {})


def _notices_on_pairs(
    pairs: Sequence[ComparedPair], comparison: Comparison, call: Callable[[str], str]
) -> Iterator[str]:
    differences = [difference for pair in pairs for difference in pair.differences.values()]
    if not comparison.has_limits:
        yield NO_INTERVALS
    if comparison.unlike:
        paths = ", ".join(comparison.unlike)
        yield f"The runs were not played alike ({paths}): differences may be of that."
    if any(not pair.n_pairs for pair in pairs):
        yield NO_PAIR.render(call)
    elif any(pair.n_unpaired for pair in pairs):
        yield "Some runs have no counterpart, and count in means alone."
    if any(difference.n_clusters == 1 for difference in differences):
        yield "A difference over one sample has no interval: play several."


def _notices_on_failed(
    contenders: Sequence[Contender], failed: Sequence[FailedContender]
) -> Iterator[str]:
    for gone in failed:
        n = plural(gone.n_failed, "cell")
        yield f"{gone.model} of {gone.source} has no complete run: {n} failed."
    for contender in contenders:
        if contender.n_failed:
            n = plural(contender.n_failed, "cell")
            yield (
                f"{n} of {contender.name} failed, and count in no figure: they may have been "
                "harder."
            )


def _dangers(contenders: Sequence[Contender], primary: PrimaryMetric) -> Iterator[str]:
    for contender in contenders:
        yield from danger(contender.name, primary.name, contender.metrics[primary.name].two_groups)


def _error(sentences: Sequence[str]) -> ErrorEntry | None:
    if not sentences:
        return None
    return ErrorEntry(
        code="gate",
        message=" ".join(sentences),
        hint="The comparison itself is complete.",
        retryable=False,
    )
