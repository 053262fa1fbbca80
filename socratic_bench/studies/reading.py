"""Reads the runs that arguments name: their documents alone, or with the files of their turns."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec import Struct

from socratic_bench.documents.encoding import loaded, read, read_value
from socratic_bench.documents.files import JudgeFile, TurnFile
from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import Mistakes, UsageError
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.storage.keys import JUDGING_FILE, RunKeys
from socratic_bench.storage.stores import ListedStore
from socratic_bench.studies.places import FoundRun, find_runs, folder_of, store_of
from socratic_bench.studies.rows import (
    Document,
    Files,
    RunRow,
    benchmark_of,
    refuse_unfounded_scores,
    run_row,
    validate_run,
)

N_READERS = 16
# The files of a run's turns and verdicts, by how their names begin.
_FILE_TYPES: Mapping[str, type[Struct]] = {"turn_": TurnFile, "judge_": JudgeFile}
# Keys of a run that new verdicts do not replace: how it was played, where it is, what it took.
_KEYS_OF_RUN = (
    *("kind", "schema_version", "run_id", "status", "benchmark", "model", "prompt", "n_turns"),
    *("turns", "items", "s3_artifacts", "output_artifacts", "timestamps", "usage", "cost"),
    *("latency", "end_reason", "seed", "inputs", "journal", "notices", "error"),
)
# Keys of its inputs and of a turn that they do replace.
_INPUTS_OF_VERDICTS = ("judge_context",)
_KEYS_OF_VERDICTS = ("score", "scores", "votes", "events", "quotes", "unquoted", "unjudged_reason")


class FailedCell(Struct, frozen=True):
    """A cell of a sweep without a complete run, and the argument that names the sweep."""

    source: str
    row: CellRow


class StoredRuns(Struct, frozen=True, kw_only=True):
    """The complete runs that arguments name, each once, and failed cells of their sweeps.

    `benchmark` is `None` if it is unknown, or if there are several; then there are no runs.
    """

    benchmark: Benchmark | None
    runs: Sequence[RunRow]
    failed: Sequence[FailedCell]


def read_runs(
    arguments: Sequence[str],
    region: Callable[[], str],
    mistakes: Mistakes,
    *,
    judging: str | None = None,
    has_files: bool = False,
) -> StoredRuns:
    """Read every run that the arguments name, with the files of turns and verdicts if `has_files`.
    A run that is named several times belongs to the first argument that names it. With a `judging`,
    its verdicts replace the first ones. What is wrong is added to `mistakes`.

    Raises `ArtifactError` if a store cannot be read.
    """
    runs: list[tuple[str, FoundRun, Document]] = []
    failed: dict[str, FailedCell] = {}
    for argument in dict.fromkeys(arguments):
        with mistakes:
            argument_runs = find_runs(argument, region)
            for row in argument_runs.failed:
                failed.setdefault(row.run_id, FailedCell(argument, row))
            for run in argument_runs.runs:
                with mistakes:
                    runs.append((argument, run, run.document()))
    unique: dict[str, tuple[str, FoundRun, Document]] = {}
    for entry in runs:
        unique.setdefault(entry[2]["run_id"], entry)
    benchmark = None
    with mistakes:
        benchmark = _common_benchmark([*unique.values()])

    def read_row(argument: str, run: FoundRun, document: Document) -> RunRow:
        return _read_row(argument, run, document, region, judging, has_files=has_files)

    rows: list[RunRow] = []
    if benchmark:
        with ThreadPoolExecutor(N_READERS, thread_name_prefix="reading") as pool:
            for future in [pool.submit(read_row, *entry) for entry in unique.values()]:
                with mistakes:
                    rows.append(future.result())
    return StoredRuns(
        benchmark=benchmark,
        runs=rows,
        failed=[cell for run_id, cell in failed.items() if run_id not in unique],
    )


def _common_benchmark(runs: Sequence[tuple[str, FoundRun, Document]]) -> Benchmark | None:
    """Raises `UsageError` if there are several, or if it is unknown."""
    places: dict[str, tuple[FoundRun, Document]] = {}
    for _, run, document in runs:
        places.setdefault(document["benchmark"], (run, document))
    if len(places) > 1:
        listed = ", ".join(f"{name} ({run.name})" for name, (run, _) in sorted(places.items()))
        raise UsageError(
            [f"Runs of several benchmarks cannot be read together: {listed}."],
            hint="Name runs of one benchmark: their documents, or a sweep (DIR/sweeps/SWEEP_ID).",
        )
    for run, document in places.values():
        return benchmark_of(document, run.name)
    return None


def read_run(
    run: FoundRun, region: Callable[[], str], *, argument: str = "", judging: str | None = None
) -> RunRow:
    """One run with the files of its turns. Raises `UsageError` if it is not complete."""
    document = run.document()
    return _read_row(argument, run, document, region, judging, has_files=True)


def _read_row(
    argument: str,
    run: FoundRun,
    document: Document,
    region: Callable[[], str],
    judging: str | None,
    *,
    has_files: bool,
) -> RunRow:
    benchmark = benchmark_of(document, run.name)
    validate_run(document, benchmark, run.name)
    if judging:
        document = with_judging(judging, run, document, region)
    files: Files = {}
    if has_files:
        files = _read_files(run.store or folder_of(document), document, benchmark, judging)
        refuse_unfounded_scores(document, benchmark, files, run.name)
    return run_row(document, benchmark, source=argument, cell=run.cell, files=files)


def _read_files(
    store: ListedStore | None, document: Document, benchmark: Benchmark, judging: str | None
) -> Files:
    """The files of a run's verdicts, and of its turns if prompts are there alone, by name."""
    if store is None:
        return {}
    keys = RunKeys(document["run_id"])
    files = dict(_read_folder(store, keys.judgings(judging) if judging else keys.raw, "judge_"))
    if benchmark.views.said is None:
        files |= _read_folder(store, keys.raw, "turn_")
    return files


def _read_folder(store: ListedStore, folder: str, beginning: str) -> Iterator[tuple[str, Document]]:
    """Raises `UsageError` for a file that is broken."""
    for key in store.keys(f"{folder}{beginning}"):
        body = store.get(key)
        if body is not None:
            values = loaded(body, key)
            read_value(values, _FILE_TYPES[beginning], key)
            yield key.removeprefix(folder), values


def with_judging(
    name: str, run: FoundRun, document: Document, region: Callable[[], str]
) -> Document:
    """The document of a run with the verdicts, and so the figures, of the judging `name`.

    Raises `UsageError` if the run has no such judging, and `ArtifactError` for a store.
    """
    benchmark = benchmark_of(document, run.name)
    store = run.store or store_of(document, region)
    if store is None:
        raise UsageError([f"{run.name}: no store keeps this run, and so none its judgings."])
    run_id = str(document["run_id"])
    key = f"{RunKeys(run_id).judgings(name)}{JUDGING_FILE}"
    body = store.get(key)
    if body is None:
        names = ", ".join(sorted(store.folders(RunKeys(run_id).judgings())))
        hint = f"; it has {names}" if names else ", and no other"
        raise UsageError([f"{run.name} has no judging {name}{hint}."])
    judging = read(body, dict[str, Any], key)
    validate_run(judging, benchmark, key)
    return overlaid(document, judging, benchmark)


def overlaid(document: Document, judging: Document, benchmark: Benchmark) -> Document:
    """A run's document with everything that follows from verdicts replaced by a judging's."""
    actors = {actor.name for actor in benchmark.parts.actors}  # the keys of actors are the run's
    run_keys = {*_KEYS_OF_RUN, *actors}
    verdicts = {entry["turn"]: entry for entry in judging["turns"]}
    flat_scores = {name for entry in judging["turns"] for name in entry.get("scores") or ()}
    replaced = {*_KEYS_OF_VERDICTS, *flat_scores}
    return {
        **document,
        **{key: value for key, value in judging.items() if key not in run_keys},
        "inputs": {
            **(document.get("inputs") or {}),
            **_subset(judging.get("inputs") or {}, _INPUTS_OF_VERDICTS),
        },
        "turns": [
            {
                **{key: value for key, value in entry.items() if key not in replaced},
                **_subset(verdicts.get(entry["turn"], {}), replaced),
            }
            for entry in document["turns"]
        ],
    }


def _subset(entry: Document, keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key in keys}
