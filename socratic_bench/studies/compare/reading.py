"""What the arguments of a comparison name: runs, cells that failed, and all that is wrong."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from socratic_bench.errors import UsageError
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.studies.compare.judged import runs_at
from socratic_bench.studies.compare.places import Found, failed_cells_at
from socratic_bench.studies.compare.stored_run import (
    StoredRun,
    benchmark_of,
    known_benchmark,
    read_run,
)

# What an argument stands for, beside the argument.
_Named = tuple[str, Found]


class FailedCells(Struct, frozen=True, kw_only=True):
    """How many cells of a model's in an argument's sweeps were not played to their end."""

    model: str
    source: str
    n: int


class LoadedRuns(Struct, frozen=True, kw_only=True):
    """`benchmark` is `None` if no run says which it is."""

    benchmark: Benchmark | None
    runs: Sequence[StoredRun]
    failed: Sequence[FailedCells]
    mistakes: Sequence[UsageError]


def read(
    arguments: Sequence[str], region: Callable[[], str], judging: str | None = None
) -> LoadedRuns:
    """With the verdicts of a `judging` in place of the first, if one is named. Raises
    `ArtifactError` if a store cannot be read.
    """
    mistakes = [*_twice(arguments)]
    found: list[tuple[str, Found]] = []
    failed: Counter[tuple[str, str]] = Counter()
    for argument in dict.fromkeys(arguments):
        try:
            found += [(argument, one) for one in runs_at(argument, region, judging)]
            failed.update((row.model, argument) for row in failed_cells_at(argument, region))
        except UsageError as error:
            mistakes.append(error)
    benchmark, complete = _benchmark(found, mistakes)
    return LoadedRuns(
        benchmark=benchmark,
        runs=[*_runs(complete, benchmark, mistakes)] if benchmark else [],
        failed=[
            FailedCells(model=model, source=source, n=n) for (model, source), n in failed.items()
        ],
        mistakes=mistakes,
    )


def together(mistakes: Sequence[UsageError]) -> UsageError:
    """One error with what all of them say."""
    error = UsageError([sentence for mistake in mistakes for sentence in mistake.sentences])
    error.hints = tuple(dict.fromkeys(hint for one in mistakes for hint in one.hints))
    return error


def _twice(arguments: Iterable[str]) -> Iterator[UsageError]:
    for argument, n in Counter(arguments).items():
        if n > 1:
            yield UsageError([f"{argument} is named twice: name it once."])


def _benchmark(
    found: Sequence[_Named], mistakes: list[UsageError]
) -> tuple[Benchmark | None, Sequence[_Named]]:
    """The one that all runs are of, and those that are complete."""
    places: dict[str, str] = {}
    complete: list[_Named] = []
    for argument, one in found:
        try:
            places.setdefault(benchmark_of(one.body, one.name), one.name)
            complete.append((argument, one))
        except UsageError as error:
            mistakes.append(error)
    if len(places) > 1:
        told = ", ".join(f"{name} ({where})" for name, where in sorted(places.items()))
        mistakes.append(UsageError([f"Runs of several benchmarks cannot be compared: {told}."]))
    if len(places) != 1:
        return None, complete
    ((name, where),) = places.items()
    try:
        return known_benchmark(name, where), complete
    except UsageError as error:
        mistakes.append(error)
        return None, complete


def _runs(
    complete: Sequence[_Named], benchmark: Benchmark, mistakes: list[UsageError]
) -> Iterator[StoredRun]:
    """Those without a mistake in them."""
    for argument, one in complete:
        try:
            yield read_run(one.body, one.name, argument, benchmark, one.repeat)
        except UsageError as error:
            mistakes.append(error)
