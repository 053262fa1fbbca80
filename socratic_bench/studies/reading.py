"""Reads the runs that arguments name: their documents alone, or with the files of their turns; and
one run by its id, file or folder.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.documents.encoding import loaded, read, read_value
from socratic_bench.documents.files import JudgeFile, TurnFile
from socratic_bench.documents.report import ShownDocument, ShownTurn
from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import Mistakes, Problem, UsageError
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.settings import S3
from socratic_bench.storage.keys import JUDGING_FILE, RunKeys
from socratic_bench.storage.stores import ListedStore, Region, store_at
from socratic_bench.studies.places import CURATED, SWEEPS, FoundRun, find_runs, folder_of, store_of
from socratic_bench.studies.rows import (
    COMPLETE_IT,
    Document,
    Files,
    RunRow,
    TurnRow,
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
    region: Region,
    mistakes: Mistakes,
    *,
    judging: str | None = None,
    has_files: bool = False,
) -> StoredRuns:
    """Read every run that the arguments name, with the files of turns and verdicts if `has_files`.
    A run that is named several times belongs to the first argument that names it. With a `judging`,
    its verdicts replace the first ones. What is wrong is added to `mistakes`. Raises
    `ArtifactError` if a store cannot be read.
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
    run: FoundRun, region: Region, *, argument: str = "", judging: str | None = None
) -> RunRow:
    """One run with the files of its turns. Raises `UsageError` if it is not complete."""
    document = run.document()
    return _read_row(argument, run, document, region, judging, has_files=True)


def _read_row(
    argument: str,
    run: FoundRun,
    document: Document,
    region: Region,
    judging: str | None,
    *,
    has_files: bool,
) -> RunRow:
    benchmark = benchmark_of(document, run.name)
    validate_run(document, benchmark, run.name)
    if judging:
        document = with_judging(judging, run, document, region)
    files: Files = {}
    if has_files and (store := run.store or folder_of(document)):
        keys = RunKeys(document["run_id"])
        files = dict(_read_folder(store, keys.judgings(judging) if judging else keys.raw, "judge_"))
        if benchmark.views.said is None:  # prompts are in files alone
            files |= _read_folder(store, keys.raw, "turn_")
    if has_files:
        refuse_unfounded_scores(document, benchmark, files, run.name)
    return run_row(document, benchmark, source=argument, cell=run.cell, files=files)


def _read_folder(store: ListedStore, folder: str, beginning: str) -> Iterator[tuple[str, Document]]:
    """Raises `UsageError` for a file that is broken."""
    for key in store.keys(f"{folder}{beginning}"):
        body = store.get(key)
        if body is not None:
            values = loaded(body, key)
            read_value(values, _FILE_TYPES[beginning], key)
            yield key.removeprefix(folder), values


def with_judging(name: str, run: FoundRun, document: Document, region: Region) -> Document:
    """The document of a run with the verdicts, and so the figures, of the judging `name`. Raises
    `UsageError` if the run has no such judging, and `ArtifactError` for a store.
    """
    benchmark = benchmark_of(document, run.name)
    store = run.store or store_of(document, region)
    if store is None:
        raise UsageError([f"{run.name}: its files are not here, nor its re-scorings."])
    run_id = str(document["run_id"])
    key = f"{RunKeys(run_id).judgings(name)}{JUDGING_FILE}"
    body = store.get(key)
    if body is None:
        names = ", ".join(sorted(store.folders(RunKeys(run_id).judgings()))) or "none"
        raise UsageError([f"Not every run has a re-scoring {name}; available: {names}."])
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


MOST_NAMED = 5
# A run's own file or folder in a store.
_OWN_PLACE = re.compile(
    r"(?P<root>.*?)/?(?:curated|raw)/runs/(?P<run_id>run-[A-Za-z0-9-]+)(?:\.json|/?)"
)
_RUN_ID = re.compile(r"run-[A-Za-z0-9-]+")


class Single(Struct, frozen=True, kw_only=True):
    """A run, its place, and the judging whose verdicts are shown, if one is named."""

    run: RunRow
    benchmark: Benchmark
    place: str
    judging: str | None

    @property
    def threshold(self) -> float | None:
        """The score below which a turn falls short, if the benchmark has one."""
        path = self.benchmark.views.threshold
        threshold = self.run.at(path) if path else None
        return float(threshold) if isinstance(threshold, int | float) else None

    def result_of(self, turn: TurnRow) -> str | None:
        """The result of a turn in a benchmark without a judge."""
        name = self.benchmark.views.result
        result = turn.heuristics.get(name) if name else None
        return None if result is None else str(result)

    def falls_short(self, turn: TurnRow) -> bool | None:
        """Whether a turn is below the threshold or wrong; `None` if that is unknown."""
        if (result := self.result_of(turn)) is not None:
            return result != self.benchmark.views.right
        if turn.score is None or self.threshold is None:
            return None
        return turn.score < self.threshold

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of scores in the chart: that of the primary metric, extended to all scores."""
        scores = [turn.score for turn in self.run.turns if turn.score is not None]
        by_name = {metric.name: metric for metric in self.benchmark.metrics}
        metric = by_name[self.benchmark.primary_metric]
        low, high = metric.low or 0.0, metric.high or 0.0
        return min([low, *scores]), max([high, *scores])

    @property
    def document(self) -> ShownDocument:
        primary = self.benchmark.primary_metric
        return ShownDocument(
            run_id=self.run.run_id,
            benchmark=self.benchmark.name,
            model=self.run.model,
            place=self.place,
            judging=self.judging,
            metric=primary,
            value=self.run.metrics[primary],
            threshold=self.threshold,
            n_turns=self.run.n_turns,
            turns=[
                ShownTurn(
                    turn=turn.turn,
                    score=turn.score,
                    result=self.result_of(turn),
                    falls_short=self.falls_short(turn),
                    unjudged_reason=turn.unjudged_reason,
                    events=[*(turn.events or ())],
                )
                for turn in self.run.turns
            ],
        )


def read_single(argument: str, roots: Sequence[str], region: Region, judging: str | None) -> Single:
    """Read the complete run that an argument names; an id is looked up in the `roots` in order.
    With a `judging`, its verdicts replace the first. Raises `UsageError` if there is none, or
    several, and `ArtifactError` if a store cannot be read.
    """
    source = _find_source(argument, roots, region)
    run = read_run(source, region, argument=argument, judging=judging)
    benchmark = benchmark_of(run.document, source.name)
    return Single(run=run, benchmark=benchmark, place=source.name, judging=judging)


def _find_source(argument: str, roots: Sequence[str], region: Region) -> FoundRun:
    if _RUN_ID.fullmatch(argument) and not Path(argument).exists():
        if not roots:
            message = "{argument} is not a file: give {output_dir} or {s3_bucket}."
            raise UsageError([Problem.of(message, argument=argument)])
        return _stored(argument, roots, region)
    if match := _OWN_PLACE.fullmatch(argument):
        return _stored(match["run_id"], [match["root"] or "."], region)
    is_place = argument.startswith(S3) or Path(argument).is_dir()
    if not is_place or f"/{SWEEPS}" in argument:
        sources = find_runs(argument, region).runs
        _check([Path(source.name).stem for source in sources], argument)
        return sources[0]
    root = argument.rstrip("/") or argument
    keys = store_at(root, region).keys(CURATED)
    names = [Path(key).stem for key in keys if key.endswith(".json")]
    _check(sorted(names), argument)
    return _stored(names[0], [root], region)


def _stored(run_id: str, roots: Sequence[str], region: Region) -> FoundRun:
    key = RunKeys(run_id).curated
    for root in roots:
        store = store_at(root, region)
        if body := store.get(key):
            expected = {"run_id": run_id}
            return FoundRun(name=store.location(key), body=body, store=store, expected=expected)
    raise UsageError(
        [f"There is no complete run {run_id} in {' or '.join(roots)} ({key})."], hint=COMPLETE_IT
    )


def _check(names: Sequence[str], argument: str) -> None:
    """Raises `UsageError` unless there is exactly one name."""
    if not names:
        raise UsageError(
            [f"{argument} has no complete run (curated/runs/*.json)."], hint=COMPLETE_IT
        )
    if len(names) > 1:
        last = ", ".join(names[-MOST_NAMED:])
        raise UsageError(
            [f"{argument} has {len(names)} runs, and one is shown. The last of them: {last}."],
            hint=Problem.of("Give the id of one, with {output_dir} or {s3_bucket}."),
        )
