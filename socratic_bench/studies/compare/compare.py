"""Compares stored runs: reads them, finds every mistake, and makes the document."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.comparison import ComparisonDocument
from socratic_bench.errors import Mistakes, Problem, UsageError, Words
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.statistics.intervals import is_available
from socratic_bench.studies.calibrate.corrections import (
    CorrectionRequest,
    Corrections,
    correct_figures,
    read_corrections,
)
from socratic_bench.studies.compare.document import NO_INTERVALS, Comparison, document_of
from socratic_bench.studies.figures import Design
from socratic_bench.studies.gates import FigureBound, MaxDrop, bound_problems, metrics_of_many
from socratic_bench.studies.groups import (
    Group,
    conditions_text,
    design_of,
    differing_conditions,
    group_by_model,
    pairs_of_groups,
)
from socratic_bench.studies.reading import StoredRuns, read_runs

UNLIKE = Problem.of(
    "Runs that were not played alike say little of models: {allow} compares and flags them."
)
TWO_PLACES = "Give runs of two models, or two places that have runs of one."


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
    region: Callable[[], str],
    misused: Sequence[UsageError] = (),
    call: Callable[[str], str] = str,
) -> ComparisonDocument:
    """Compare runs; notices call settings by `call`, and `region` is that of buckets.

    A run that several arguments name belongs to the baseline, or else to the first of them. Raises
    `UsageError` with every mistake, `misused` included, and `ArtifactError` for a store.
    """
    mistakes = Mistakes()
    for error in misused:
        with mistakes:
            raise error
    arguments = [*filter(None, [request.baseline]), *request.arguments]
    stored = read_runs(arguments, region, mistakes, judging=request.judging)
    groups = sorted(
        group_by_model(stored.runs, request.baseline), key=lambda group: group.is_baseline
    )
    unlike = differing_conditions(groups)
    for error in _mistakes(request, stored.benchmark):
        with mistakes:
            raise error
    if unlike and not request.allows_differences:
        sentences = [
            f"{path} differs: {conditions_text(values)}." for path, values in unlike.items()
        ]
        with mistakes:
            raise UsageError(sentences, hint=UNLIKE)
    failed = {cell.row.model for cell in stored.failed if cell.source == request.baseline}
    corrections = _corrections(request, stored, mistakes)
    has_purpose = request.bounds or request.corrections
    is_one_enough = has_purpose and len(groups) == 1 and not request.baseline
    if not mistakes.sentences and not is_one_enough:
        for error in _too_few(groups, pairs_of_groups(groups, failed)):
            with mistakes:
                raise error
    if mistakes.sentences or not stored.benchmark:
        raise mistakes.error()
    design = design_of(stored.runs, has_limits=is_available())
    comparison = Comparison(
        benchmark=stored.benchmark,
        metrics=_metrics(request, stored.benchmark),
        groups=groups,
        failed=stored.failed,
        unlike=unlike,
        baseline=request.baseline,
        drops=request.drops,
        bounds=request.bounds,
        design=design,
    )
    return _with_corrections(document_of(comparison, call), corrections, groups, design)


def _corrections(
    request: ComparisonRequest, stored: StoredRuns, mistakes: Mistakes
) -> Corrections | None:
    if request.corrections and stored.benchmark:
        with mistakes:
            return read_corrections(request.corrections, stored.runs, stored.benchmark)
    return None


def _with_corrections(
    document: ComparisonDocument,
    corrections: Corrections | None,
    groups: Sequence[Group],
    design: Design,
) -> ComparisonDocument:
    """The document with figures of its contenders and pairs that labels correct, if there are
    labels.
    """
    if corrections is None:
        return document
    by_name = {group.name: group for group in groups}
    ordered = [by_name[contender.name] for contender in document.contenders]
    pairs = [(pair.first, pair.second) for pair in document.pairs]
    return replace(document, corrected=correct_figures(corrections, ordered, pairs, design))


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
            hint=f"There is {', '.join(metrics)}.",
        )
        return
    of_drops = (drop.problem(metrics[drop.metric]) for drop in request.drops)
    problems: list[Words] = [problem for problem in of_drops if problem]
    if problems := [*problems, *bound_problems(request.bounds, metrics)]:
        yield UsageError(problems)


def _too_few(
    groups: Sequence[Group], pairs: Sequence[tuple[Group, Group | None]]
) -> Iterator[UsageError]:
    if not pairs:
        names = ", ".join(group.name for group in groups)
        yield UsageError([f"There is nothing to compare {names} with."], hint=TWO_PLACES)
    for group, baseline in pairs:
        if baseline is None:
            yield UsageError([f"The baseline has no runs of {group.model}, but of others."])


def _metrics(request: ComparisonRequest, benchmark: Benchmark) -> list[MetricInfo]:
    by_name = {metric.name: metric for metric in benchmark.metrics}
    return [by_name[name] for name in _metric_names(request, benchmark)]


def _metric_names(request: ComparisonRequest, benchmark: Benchmark) -> dict[str, None]:
    """The primary metric, those that are asked for, and those of gates."""
    names = request.metrics or benchmark.compared_metrics
    of_drops = [gate.metric for gate in request.drops]
    of_bounds = [bound.metric for bound in request.bounds]
    return dict.fromkeys((benchmark.primary_metric, *names, *of_drops, *of_bounds))
