"""What the arguments of a comparison name: runs, cells that failed, and all that is wrong."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.encoding import read
from socratic_bench.errors import UsageError
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.settings import S3
from socratic_bench.storage.keys import JUDGING_FILE, RunKeys
from socratic_bench.storage.stores import ListedStore, store_at
from socratic_bench.studies.places import Found, failed_cells_at, found_at
from socratic_bench.studies.rows import (
    StoredRun,
    benchmark_at,
    benchmark_of,
    known_benchmark,
    read_run,
    validate_run,
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


def read_runs(
    arguments: Sequence[str], region: Callable[[], str], judging: str | None = None
) -> LoadedRuns:
    """With the verdicts of a `judging` in place of the first, if one is named. Raises
    `ArtifactError` if a store cannot be read_runs.
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


# Stored runs with the verdicts of a named judging in place of the first: the reader of them.

# What a judging says nothing of: how the run was played, where it is, and what that took.
_OF_THE_RUN = (
    *("kind", "schema_version", "run_id", "status", "benchmark", "model", "prompt", "n_turns"),
    *("turns", "items", "s3_artifacts", "output_artifacts", "timestamps", "usage", "cost"),
    *("latency", "end_reason", "seed", "inputs", "journal", "notices", "error"),
)
# Of what was asked for, and of a turn, what a judging does say.
_OF_JUDGING = ("judge_context",)
_OF_VERDICTS = ("score", "scores", "votes", "events", "quotes", "unquoted", "unjudged_reason")


def runs_at(argument: str, region: Callable[[], str], judging: str | None) -> list[Found]:
    """Those of `found_at`, each by the verdicts of a `judging` if one is named."""
    found = found_at(argument, region)
    return [judged_by(one, judging, region) for one in found] if judging else found


def judged_by(found: Found, name: str, region: Callable[[], str]) -> Found:
    """The same run with the verdicts, and so the figures, of the judging `name`; `region` is that
    of buckets.

    Raises `UsageError` if the run has none of that name, and `ArtifactError` for a store.
    """
    benchmark, document = benchmark_at(found.body, found.name), orjson.loads(found.body)
    validate_run(document, benchmark, found.name)
    run_id = str(document.get("run_id"))
    store = found.store or own_store(document, region)
    if store is None:
        raise UsageError([f"{found.name}: no store keeps this run, and so none its judgings."])
    key = f"{RunKeys(run_id).judgings(name)}{JUDGING_FILE}"
    body = store.get(key)
    if body is None:
        raise UsageError([f"{found.name} has no judging {name}{_others(store, run_id)}."])
    judging = read(body, dict[str, Any], key)
    validate_run(judging, benchmark, key)
    return replace(found, body=orjson.dumps(overlaid(document, judging)))


def overlaid(document: Mapping[str, Any], judging: Mapping[str, Any]) -> dict[str, Any]:
    """A run's document with all that follows from verdicts taken from a judging's."""
    # What stands under an actor's name is of how the run was played, too.
    actors = {one.name for one in load_benchmark(document["benchmark"]).parts.actors}
    kept = {*_OF_THE_RUN, *actors}
    verdicts = {entry["turn"]: entry for entry in judging["turns"]}
    flat = {name for entry in judging["turns"] for name in entry.get("scores") or ()}
    of_verdicts = {*_OF_VERDICTS, *flat}
    return {
        **document,
        **{key: value for key, value in judging.items() if key not in kept},
        "inputs": {
            **(document.get("inputs") or {}),
            **_among(judging.get("inputs") or {}, _OF_JUDGING),
        },
        "turns": [
            {
                **{key: value for key, value in entry.items() if key not in of_verdicts},
                **_among(verdicts.get(entry["turn"], {}), of_verdicts),
            }
            for entry in document["turns"]
        ],
    }


def _among(entry: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key in keys}


def own_store(document: Mapping[str, Any], region: Callable[[], str]) -> ListedStore | None:
    """Where a run's document says that it is kept: the folder if it is still there."""
    ending = RunKeys(str(document.get("run_id"))).raw
    for kept in (document.get("output_artifacts"), document.get("s3_artifacts")):
        raw = str((kept or {}).get("raw") or "")
        root = raw.removesuffix(ending).rstrip("/")
        if raw and (root.startswith(S3) or Path(root).is_dir()):
            return store_at(root, region)
    return None


def _others(store: ListedStore, run_id: str) -> str:
    """The names of a run's judgings, complete or not."""
    names = sorted(store.folders(RunKeys(run_id).judgings()))
    return f"; it has {', '.join(names)}" if names else ", and no other"
