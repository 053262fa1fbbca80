"""The primary figure: by how much one model is better than another, and how sure that is.

It is the difference in the benchmark's primary figure over runs of the same scenarios, with an
exact test for every pair of models. Every other figure is described, without a test.
"""

from collections.abc import Hashable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.document import FIGURE_PLACES, to_places
from socratic_bench.documents.sweep import NoInterval, PairedDifference
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.statistics.differences import (
    ALPHA,
    SubsetMeans,
    clusters_needed,
    fewest_clusters,
    holm_factors,
    sign_flip_interval,
    sign_flip_p,
    smallest_seen,
    subset_means,
)
from socratic_bench.statistics.intervals import NO_ERROR
from socratic_bench.studies.figures import RunFigures, differences_by_cluster
from socratic_bench.types import plural

SMALLEST_P, LARGEST_P = 0.001, 0.99
NO_INTERVALS: Mapping[NoInterval, str] = {
    "no_spread": "same difference in every {unit}",
    "too_few_scenarios": "no CI",
    "needs_stats": "CI needs the extra stats",
}


class PairedRuns(Struct, frozen=True, kw_only=True):
    """Runs of two models, each with its run of the other and their cluster."""

    first: str
    second: str
    pairs: Sequence[tuple[Hashable, RunFigures, RunFigures]]


class _Sample(Struct, frozen=True, kw_only=True):
    """The differences of two models, one for each scenario, and what the test makes of them."""

    first: str
    second: str
    differences: Sequence[float]
    means: SubsetMeans
    p: float | None


def primary_figure(benchmark: Benchmark) -> MetricInfo:
    """The metric by which models are told apart: how long they keep to the task, if it is known."""
    name = benchmark.views.endurance or benchmark.primary_metric
    return next(metric for metric in benchmark.metrics if metric.name == name)


def primary_differences(
    paired: Sequence[PairedRuns],
    benchmark: Benchmark,
    *,
    is_one_sample: bool = False,
    has_limits: bool,
) -> list[PairedDifference]:
    """The primary figure of each pair of models, corrected for their number. Intervals and what is
    detectable need the extra `stats`: without it, `has_limits` is false.
    """
    metric = primary_figure(benchmark)
    samples = [_sample(runs, metric.name) for runs in paired]
    is_of_items = any(run.parts.get(metric.name) for runs in paired for _, run, _ in runs.pairs)
    sample_unit = benchmark.views.prompt if is_one_sample else benchmark.views.sample
    comparison = _Comparison(
        metric=metric,
        is_time=benchmark.views.endurance is not None,
        unit=benchmark.views.part if is_of_items else sample_unit,
        n_pairs=len(samples),
        n_models=len({name for sample in samples for name in (sample.first, sample.second)}),
        has_limits=has_limits,
    )
    factors = iter(holm_factors([sample.p for sample in samples if sample.p is not None]))
    return [
        _difference(sample, 1.0 if sample.p is None else next(factors), comparison)
        for sample in samples
    ]


class _Comparison(Struct, frozen=True, kw_only=True):
    """What all pairs have in common; `unit` is what one difference is of, as a noun."""

    metric: MetricInfo
    is_time: bool
    unit: str
    n_pairs: int
    n_models: int
    has_limits: bool


def _sample(runs: PairedRuns, metric: str) -> _Sample:
    differences = [fmean(values) for values in differences_by_cluster(runs.pairs, metric)]
    means = subset_means(differences)
    return _Sample(
        first=runs.first,
        second=runs.second,
        differences=differences,
        means=means,
        p=sign_flip_p(means) if differences else None,
    )


def _difference(sample: _Sample, factor: float, comparison: _Comparison) -> PairedDifference:
    """`factor` is that of Holm's correction: interval and test are of the same corrected level."""
    n, values, alpha = len(sample.differences), sample.differences, ALPHA / factor
    mean = fmean(values) if values else None
    p_adjusted = None if sample.p is None else min(1.0, sample.p * factor)
    interval = sign_flip_interval(sample.means, alpha)
    has_spread = n > 1 and max(values) - min(values) > NO_ERROR
    has_limits = bool(interval and has_spread and comparison.has_limits)
    is_decided = p_adjusted is not None and p_adjusted <= ALPHA
    needed = clusters_needed(values, comparison.n_pairs) if n and not is_decided else None
    difference = PairedDifference(
        first=sample.first,
        second=sample.second,
        metric=comparison.metric.name,
        difference=to_places(mean, FIGURE_PLACES),
        low=round(interval.low, FIGURE_PLACES) if interval and has_limits else None,
        high=round(interval.high, FIGURE_PLACES) if interval and has_limits else None,
        no_interval_because=None
        if has_limits
        else "too_few_scenarios"
        if interval is None
        else "needs_stats"
        if has_spread
        else "no_spread",
        p=sample.p,
        is_p_drawn=sample.means.is_drawn,
        p_adjusted=p_adjusted,
        n_scenarios=n,
        detectable=round(smallest_seen(stdev(values) / sqrt(n), n, alpha), FIGURE_PLACES)
        if has_limits
        else None,
        # A sample that is large enough by the normal distribution may not have decided.
        scenarios_needed=needed and max(needed, n + 1),
    )
    claim = _claim(mean, sample.first, sample.second, comparison)
    if not is_decided or mean is None:
        why = _why(difference, comparison)
        summary = f"{claim}, but {why}" if mean else f"{claim}; {why}"
        return replace(difference, undecided_because=why, summary=summary)
    is_first = (mean > 0) == comparison.metric.higher_is_better
    result = f"p {p_text(p_adjusted)}; {plural(n, comparison.unit)}"
    return replace(
        difference,
        winner=sample.first if is_first else sample.second,
        summary=f"{claim} ({_interval_text(difference, mean, comparison)}; {result})",
    )


def _interval_text(difference: PairedDifference, mean: float, comparison: _Comparison) -> str:
    """The interval of the difference as its sentence has it, from the better model's side."""
    if difference.low is None or difference.high is None:
        reason = NO_INTERVALS[difference.no_interval_because or "too_few_scenarios"]
        return reason.format(unit=comparison.unit)
    low, high = difference.low, difference.high
    low, high = (low, high) if mean > 0 else (0.0 - high, 0.0 - low)
    places = 1 if comparison.is_time else 2
    return f"95 % CI {low:.{places}f} to {high:.{places}f}"


def _why(difference: PairedDifference, comparison: _Comparison) -> str:
    """Why no model is called better, and what would decide it."""
    n, needed = difference.n_scenarios, difference.scenarios_needed
    if not n:
        return f"they have no {comparison.unit} in common"
    count = plural(n, comparison.unit)
    least = fewest_clusters(comparison.n_pairs)
    if n < least:
        models = plural(comparison.n_models, "model")
        best_p = min(1.0, 2.0 ** (1 - n) * comparison.n_pairs)  # of a test by signs, corrected
        return (
            f"not significant: with {count} and {models} p is at best {best_p:.3g}; "
            f"at least {plural(max(needed or 0, least), comparison.unit)} are needed"
        )
    if needed is None:
        return f"no difference in {count}: longer or harder runs may show one"
    return (
        f"not significant with {count} (p {p_text(difference.p_adjusted)}); about {needed} would "
        "be enough if they vary like these"
    )


def _claim(mean: float | None, first: str, second: str, comparison: _Comparison) -> str:
    """Which of two models is better so far, and by how much."""
    if mean is None:
        return f"{first} and {second} cannot be compared"
    if not mean:
        equal = "held equally long" if comparison.is_time else "are equally good"
        return f"{first} and {second} {equal}"
    if (mean > 0) != comparison.metric.higher_is_better:
        first, second = second, first
    if comparison.is_time:
        return f"{first} held {abs(mean):.1f} turns longer than {second}"
    return f"{first} is better than {second} by {abs(mean):.2f} in {comparison.metric.name}"


def p_text(p: float | None) -> str:
    """A p in words; a large one proves nothing, so that its digits do not matter."""
    if p is None:
        return "unknown"
    if p > LARGEST_P:
        return f"over {LARGEST_P}"
    return f"under {SMALLEST_P}" if p < SMALLEST_P else f"{p:.3f}"
