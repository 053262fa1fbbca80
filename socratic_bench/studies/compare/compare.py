"""From what a command asks for to a comparison: all that is wrong is told at once."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from socratic_bench.documents.comparison import ComparisonDocument
from socratic_bench.errors import Problem, UsageError
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.statistics.bootstrap import Method
from socratic_bench.statistics.intervals import is_available
from socratic_bench.studies.compare.document import NO_INTERVALS, Compared, document_of
from socratic_bench.studies.figures import Figures
from socratic_bench.studies.gates import Bound, MaxDrop, misnamed
from socratic_bench.studies.groups import (
    clusters_by,
    differing,
    groups_of,
    pairs_of,
    told,
    too_few,
    twice,
)
from socratic_bench.studies.reading import read_runs, together
from socratic_bench.studies.times import times_of


class ComparisonRequest(Struct, frozen=True, kw_only=True):
    """What is to be compared: `arguments` as they are given, and of them the baseline, if any.
    Without `metrics` they are the benchmark's own choice. With `bounds` the runs of one model are
    enough. A `judging` names the verdicts that count in place of the first.
    """

    arguments: tuple[str, ...]
    baseline: str | None = None
    metrics: tuple[str, ...] = ()
    drops: tuple[MaxDrop, ...] = ()
    bounds: tuple[Bound, ...] = ()
    allows_differences: bool = False
    method: Method = "t"
    judging: str | None = None


def compare(
    asked: ComparisonRequest,
    region: Callable[[], str],
    misused: Sequence[UsageError] = (),
    call: Callable[[str], str] = str,
) -> ComparisonDocument:
    """Its notices call settings of a run as `call` does. Raises `UsageError` with all that is
    wrong, `misused` included, and `ArtifactError` for a store.
    """
    named = [*asked.arguments, *filter(None, [asked.baseline])]
    reading = read_runs(named, region, asked.judging)
    groups = groups_of(reading.runs, asked.baseline)
    unlike = differing(groups)
    mistakes = [*misused, *reading.mistakes, *twice(reading.runs), *_limitless(asked)]
    if reading.benchmark:
        mistakes += _unknown(asked, reading.benchmark)
    if unlike and not asked.allows_differences:
        said = [f"{path} differs: {told(values)}." for path, values in unlike.items()]
        mistakes.append(UsageError(said, hint=UNLIKE))
    failed = {one.model for one in reading.failed if one.source == asked.baseline}
    if not mistakes and not (asked.bounds and len(groups) == 1 and not asked.baseline):
        mistakes += too_few(groups, pairs_of(groups, failed))
    if mistakes or not reading.benchmark:
        raise together(mistakes)
    cluster_of, has_intervals = clusters_by(reading.runs), is_available()
    figures = Figures(
        metrics=_metrics(asked, reading.benchmark),
        cluster_of=cluster_of,
        has_intervals=has_intervals,
        times=times_of(groups, cluster_of, has_limits=has_intervals),
        method=asked.method,
    )
    compared = Compared(
        benchmark=reading.benchmark,
        groups=groups,
        failed=reading.failed,
        unlike=unlike,
        baseline=asked.baseline,
        drops=asked.drops,
        bounds=asked.bounds,
    )
    return document_of(compared, figures, call)


UNLIKE = Problem.of(
    "Runs that were not played alike say little of models: {allow} compares and flags them."
)


def _limitless(asked: ComparisonRequest) -> Iterator[UsageError]:
    limits = [one.is_of_limit for one in asked.drops] + [one.is_of_limit for one in asked.bounds]
    if any(limits) and not is_available():
        yield UsageError(["A gate on a limit of an interval needs scipy."], hint=NO_INTERVALS)


def _unknown(asked: ComparisonRequest, benchmark: Benchmark) -> Iterator[UsageError]:
    known = [one.name for one in benchmark.metrics]
    if unknown := [name for name in _names(asked, benchmark) if name not in known]:
        yield UsageError(
            [f"{name} is no metric of {benchmark.name}." for name in unknown],
            hint=f"There is {', '.join(known)}.",
        )
    elif wrong := [*misnamed(asked.bounds, benchmark)]:
        yield UsageError(wrong)


def _metrics(asked: ComparisonRequest, benchmark: Benchmark) -> list[MetricInfo]:
    known = {one.name: one for one in benchmark.metrics}
    return [known[name] for name in _names(asked, benchmark)]


def _names(asked: ComparisonRequest, benchmark: Benchmark) -> dict[str, None]:
    """The metrics that are asked for, those of gates, and the primary one."""
    names = asked.metrics or benchmark.compared_metrics
    dropped, bounded = [one.metric for one in asked.drops], [one.metric for one in asked.bounds]
    return dict.fromkeys((benchmark.primary_metric, *names, *dropped, *bounded))
