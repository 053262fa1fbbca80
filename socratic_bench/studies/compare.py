"""Compares stored runs: reads them, finds every mistake, and makes the document."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.comparison import (
    ComparedPair,
    ComparedSurvival,
    ComparisonDocument,
    Condition,
    Contender,
    FailedContender,
    TurnScore,
)
from socratic_bench.documents.document import FIGURE_PLACES, ErrorEntry
from socratic_bench.errors import Mistakes, Naming, Problem, UsageError, Words
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.statistics.intervals import clustered, is_available
from socratic_bench.storage.stores import Region
from socratic_bench.studies.calibrate.corrections import (
    CorrectionRequest,
    correct_figures,
    read_corrections,
)
from socratic_bench.studies.figures import (
    Design,
    danger,
    difference_of,
    interval_of,
    limits_of,
    mean_of,
    notices_on_times,
    notices_on_unjudged,
    primary_metric,
    rank_of_group,
    survival_by_group,
    survival_difference,
    survival_with_curve,
)
from socratic_bench.studies.gates import (
    FigureBound,
    MaxDrop,
    bound_problems,
    drop_gates,
    figure_gates,
    metrics_of_many,
    missed_drops,
    missed_gates,
)
from socratic_bench.studies.groups import (
    Group,
    Pairing,
    Unlike,
    conditions_text,
    design_of,
    differing_conditions,
    group_by_model,
    kind_of,
    notices_on_pooled,
    pair_runs,
    pairs_of_groups,
    pooled_settings,
)
from socratic_bench.studies.primary import PairedRuns, primary_differences
from socratic_bench.studies.reading import FailedCell, read_runs
from socratic_bench.types import plural

UNLIKE = Problem.of("Such runs are not comparable; {allow} compares them with a warning.")
TWO_PLACES = "Give runs of two models, or two places that have runs of one."
NO_PAIR = Problem.of("Runs without a pair: use the same scenarios and {seed}, or one sweep.")
NO_INTERVALS = 'There are no intervals: install the extra stats (pip install ".[stats]").'


class ComparisonRequest(Struct, frozen=True, kw_only=True):
    """The comparison that a command asks for.

    Attributes:
        arguments: the places of runs, as they are given.
        baseline: the place of the runs with which all others are compared.
        metrics: their paths; empty: the benchmark's own choice.
        minima: with these the runs of one model are enough.
        corrections: the labels that correct figures; with these, too.
        judging: the name of the verdicts that replace the first ones.
    """

    arguments: tuple[str, ...]
    baseline: str | None = None
    metrics: tuple[str, ...] = ()
    drops: tuple[MaxDrop, ...] = ()
    bounds: tuple[FigureBound, ...] = ()
    allows_differences: bool = False
    judging: str | None = None
    corrections: CorrectionRequest | None = None


def compare(
    request: ComparisonRequest,
    region: Region,
    misused: Sequence[UsageError] = (),
    call: Naming = str,
) -> ComparisonDocument:
    """Compare runs; notices call settings by `call`, and `region` is that of buckets.

    A run that several arguments name belongs to the baseline, or else to the first of them. Raises
    `UsageError` with every mistake, `misused` included, and `ArtifactError` for a store.
    """
    mistakes = Mistakes()
    mistakes.add(*misused)
    arguments = [*filter(None, [request.baseline]), *request.arguments]
    stored = read_runs(arguments, region, mistakes, judging=request.judging)
    groups = group_by_model(stored.runs, request.baseline)
    groups.sort(key=lambda group: group.is_baseline)
    unlike = differing_conditions(groups)
    mistakes.add(*_mistakes(request, stored.benchmark))
    if unlike and not request.allows_differences:
        sentences = [f"{name} differs: {conditions_text(of)}." for name, of in unlike.items()]
        mistakes.add(UsageError(sentences, hint=UNLIKE))
    corrections = None
    if request.corrections and stored.benchmark:
        with mistakes:
            corrections = read_corrections(request.corrections, stored.runs, stored.benchmark)
    if not mistakes.sentences:
        mistakes.add(*_too_few(request, groups, stored.failed))
    if mistakes.sentences or not stored.benchmark:
        raise mistakes.error()
    comparison = _Comparison(
        request=request,
        benchmark=stored.benchmark,
        groups=groups,
        failed=stored.failed,
        unlike=unlike,
        design=design_of(stored.runs, has_limits=is_available()),
    )
    document = _document(comparison, call)
    if corrections is None:
        return document
    by_name = {group.name: group for group in groups}
    ordered = [by_name[contender.name] for contender in document.contenders]
    pairs = [(pair.first, pair.second) for pair in document.pairs]
    corrected = correct_figures(corrections, ordered, pairs, comparison.design)
    return replace(document, corrected=corrected)


def _mistakes(request: ComparisonRequest, benchmark: Benchmark | None) -> Iterator[UsageError]:
    gates: tuple[MaxDrop | FigureBound, ...] = (*request.drops, *request.bounds)
    if any(gate.is_of_limit for gate in gates) and not is_available():
        yield UsageError(["A gate on a limit of an interval needs scipy."], hint=NO_INTERVALS)
    if benchmark is None:
        return
    metrics = metrics_of_many(benchmark)
    if unknown := [name for name in _metric_names(request, benchmark) if name not in metrics]:
        yield UsageError(
            [f"{name} is no metric of {benchmark.name}." for name in unknown],
            hint=f"Available: {', '.join(metrics)}.",
        )
        return
    of_drops = (drop.problem(metrics[drop.metric]) for drop in request.drops)
    problems: list[Words] = [problem for problem in of_drops if problem]
    if problems := [*problems, *bound_problems(request.bounds, metrics)]:
        yield UsageError(problems)


def _too_few(
    request: ComparisonRequest, groups: Sequence[Group], failed: Sequence[FailedCell]
) -> Iterator[UsageError]:
    if (request.bounds or request.corrections) and len(groups) == 1 and not request.baseline:
        return
    pairs = pairs_of_groups(groups, _failed_models(failed, request.baseline))
    if not pairs:
        names = ", ".join(group.name for group in groups)
        yield UsageError([f"There is nothing to compare {names} with."], hint=TWO_PLACES)
    for group, baseline in pairs:
        if baseline is None:
            yield UsageError([f"The baseline has no runs of {group.model}, but of others."])


def _failed_models(failed: Sequence[FailedCell], source: str | None) -> set[str]:
    return {cell.row.model for cell in failed if cell.source == source}


def _metric_names(request: ComparisonRequest, benchmark: Benchmark) -> dict[str, None]:
    """The primary metric, those that are asked for, and those of gates."""
    names = request.metrics or benchmark.compared_metrics
    of_drops = [gate.metric for gate in request.drops]
    of_bounds = [bound.metric for bound in request.bounds]
    return dict.fromkeys((benchmark.primary_metric, *names, *of_drops, *of_bounds))


class _Comparison(Struct, frozen=True, kw_only=True):
    """What is compared, and how; `unlike` are the conditions in which groups differ."""

    request: ComparisonRequest
    benchmark: Benchmark
    groups: Sequence[Group]
    failed: Sequence[FailedCell]
    unlike: Unlike
    design: Design

    @property
    def metrics(self) -> list[MetricInfo]:
        by_name = {metric.name: metric for metric in self.benchmark.metrics}
        return [by_name[name] for name in _metric_names(self.request, self.benchmark)]


def _document(comparison: _Comparison, call: Naming = str) -> ComparisonDocument:
    """The document; its notices call settings by `call`."""
    request, benchmark = comparison.request, comparison.benchmark
    runs = {group.name: group.runs for group in comparison.groups}
    times = dict.fromkeys(name for group in runs.values() for run in group for name in run.times)
    survival = {
        name: survival_by_group(runs, name, comparison.design, survival_with_curve)
        for name in times
    }
    horizons = {name: next(iter(by_name.values())).horizon for name, by_name in survival.items()}
    groups = comparison.groups
    contenders = {group.name: _contender(group, comparison, survival) for group in groups}
    primary = primary_metric(benchmark, (contender.survival for contender in contenders.values()))

    def place(group: Group) -> tuple[bool, list[tuple[bool, float]]]:
        """The best first, a baseline last."""
        return group.is_baseline, rank_of_group(benchmark, primary, contenders[group.name].metrics)

    groups = sorted(groups, key=place)
    ordered = [contenders[group.name] for group in groups]
    pairings = [*_pairings(groups, comparison)]
    pairs = [_pair(*entry, comparison, horizons) for entry in pairings]
    samples = {run.sample for group in groups for run in group.runs}
    differences = primary_differences(
        [
            PairedRuns(first=first.name, second=second.name, pairs=pairing.pairs)
            for first, second, pairing in pairings
        ],
        comparison.benchmark,
        is_one_sample=len(samples) == 1,
        has_limits=comparison.design.has_limits,
    )
    failed = [*_failed_contenders(comparison)]
    failed_rivals = [contender for contender in failed if contender.source != request.baseline]
    drops = [*drop_gates(request.drops, pairs, failed_rivals, comparison.metrics)]
    rivals = [contenders[group.name] for group in groups if not group.is_baseline]
    # A baseline has no bounds; a model without a complete run misses all of them.
    figure_bounds = [
        gate
        for name, metrics, survival in (
            *((rival.name, rival.metrics, rival.survival) for rival in rivals),
            *((rival.model, {}, {}) for rival in failed_rivals),
        )
        for gate in figure_gates(request.bounds, name, metrics, survival)
    ]
    missed = [*missed_drops(drops), *missed_gates(figure_bounds)]
    return ComparisonDocument(
        benchmark=comparison.benchmark.name,
        primary_metric=primary,
        baseline=request.baseline,
        n_runs=sum(contender.n_runs for contender in ordered),
        contenders=ordered,
        failed=failed,
        differences=differences,
        pairs=pairs,
        conditions=[
            Condition(name=path, values={name: [*of] for name, of in values.items()})
            for path, values in comparison.unlike.items()
        ],
        gates=drops,
        figure_gates=figure_bounds,
        notices=[
            *_notices_on_pairs(pairs, comparison, call),
            *_notices_on_models(ordered, failed, benchmark.primary_metric),
            *notices_on_times(
                contender.survival[primary.name]
                for contender in ordered
                if primary.name in contender.survival
            ),
            *(
                notice
                for group in groups
                for notice in notices_on_unjudged(
                    group.name, (run.unjudged_differ_by for run in group.runs)
                )
            ),
        ],
        error=ErrorEntry.of_gates(missed, "The comparison itself is complete."),
    )


def _contender(
    group: Group, comparison: _Comparison, survival: Mapping[str, Mapping[str, ComparedSurvival]]
) -> Contender:
    design, sources = comparison.design, [*dict.fromkeys(run.source for run in group.runs)]
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
            name: by_name[group.name] for name, by_name in survival.items() if group.name in by_name
        },
    )


def _score_by_turn(group: Group, design: Design) -> list[TurnScore]:
    by_turn: dict[int, dict[Hashable, list[float]]] = {}
    for run in group.runs:
        for turn in run.turns:
            if turn.score is not None:
                clusters = by_turn.setdefault(turn.turn, {})
                clusters.setdefault(design.cluster(run), []).append(turn.score)
    scores = []
    for index, clusters in sorted(by_turn.items()):
        values = [*clusters.values()]
        mean = clustered(values)
        limits = limits_of(interval_of(None, values, has_limits=design.has_limits))
        scores.append(
            TurnScore(turn=index, mean=round(mean.mean, FIGURE_PLACES), n=mean.n, **limits)
        )
    return scores


def _pairings(
    groups: Sequence[Group], comparison: _Comparison
) -> Iterator[tuple[Group, Group, Pairing]]:
    """The pairs of groups that are compared, with their pairs of runs."""
    runs = [run for group in groups for run in group.runs]
    kind = kind_of(runs, comparison.unlike)
    failed = _failed_models(comparison.failed, comparison.request.baseline)
    for first, second in pairs_of_groups(groups, failed):
        if second is not None:
            yield first, second, pair_runs(first, second, comparison.design, kind)


def _pair(
    first: Group,
    second: Group,
    pairing: Pairing,
    comparison: _Comparison,
    horizons: Mapping[str, float],
) -> ComparedPair:
    survival = {
        name: survival_difference(pairing.pairs, name, horizon, comparison.design)
        for name, horizon in horizons.items()
    }
    return ComparedPair(
        first=first.name,
        second=second.name,
        paired_by=pairing.paired_by,
        n_pairs=len(pairing.pairs),
        n_unpaired=pairing.n_unpaired,
        differences={
            metric.name: difference_of(pairing.pairs, metric.name, comparison.design)
            for metric in comparison.metrics
        },
        survival={name: difference for name, difference in survival.items() if difference},
    )


def _failed_contenders(comparison: _Comparison) -> Iterator[FailedContender]:
    """The models of an argument that have no complete run there."""
    complete = {(run.model, run.source) for group in comparison.groups for run in group.runs}
    n_failed: dict[tuple[str, str], int] = defaultdict(int)
    for cell in comparison.failed:
        n_failed[cell.row.model, cell.source] += 1
    for (model, source), n in n_failed.items():
        if (model, source) not in complete:
            yield FailedContender(model=model, source=source, n_failed=n)


def _notices_on_pairs(
    pairs: Sequence[ComparedPair], comparison: _Comparison, call: Naming
) -> Iterator[str]:
    differences = [difference for pair in pairs for difference in pair.differences.values()]
    if not comparison.design.has_limits:
        yield NO_INTERVALS
    if comparison.unlike:
        paths = ", ".join(comparison.unlike)
        yield f"The runs have different settings ({paths}), which may explain differences."
    yield from notices_on_pooled(pooled_settings(comparison.groups))
    if any(not pair.n_pairs for pair in pairs):
        yield NO_PAIR.render(call)
    elif any(pair.n_unpaired for pair in pairs):
        yield "Some runs have no counterpart, and count in means alone."
    if any(difference.n_clusters == 1 for difference in differences):
        yield "No confidence interval with one scenario: use more."


def _notices_on_models(
    contenders: Sequence[Contender], failed: Sequence[FailedContender], metric: str
) -> Iterator[str]:
    for gone in failed:
        n = plural(gone.n_failed, "run")
        yield f"{gone.model} of {gone.source} has no complete run: {n} failed."
    for contender in contenders:
        if contender.n_failed:
            n = plural(contender.n_failed, "run")
            yield (
                f"{n} of {contender.name} failed, and count in no figure: they may have been "
                "harder."
            )
    for contender in contenders:
        yield from danger(contender.name, metric, contender.metrics[metric].two_groups)
