"""What a report is made of: runs, their turns, the verdicts on these, and cells that failed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from socratic_bench.concurrency import convert
from socratic_bench.documents.encoding import loaded, read_value
from socratic_bench.documents.files import JudgeFile, TurnFile
from socratic_bench.documents.judge import Juror, silent_jurors
from socratic_bench.documents.judge_status import JudgeIdentity, JudgeStatus, StoredCalibration
from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import Mistakes, UsageError
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.ports.parts import Exposure
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import ListedFolder, ListedStore
from socratic_bench.studies.places import Found, failed_cells_at
from socratic_bench.studies.reading import runs_at
from socratic_bench.studies.rows import (
    StoredRun,
    benchmark_of,
    known_benchmark,
    read_run,
    value_at,
)
from socratic_bench.turns import Measure
from socratic_bench.types import Json

Scores = Mapping[str, float | None]
# Rows of what arguments name: runs, folders, prefixes of buckets, sweeps.

READERS = 16
LONGEST_NAME = 80
UNNAMED = "judge"
_ELSEWHERE = ("turns", "journal")
Files = Mapping[str, Mapping[str, Any]]
# Of the files of turns and verdicts, by how their names begin.
_TYPES: Mapping[str, type[Struct]] = {"turn_": TurnFile, "judge_": JudgeFile}


class VerdictRow(Struct, frozen=True, kw_only=True):
    """What one judge said of one turn. `score` is the sum of `scores`, `None` if it is unjudged,
    for `unjudged_reason`; `rationale` holds its reasons by score, empty where they are not stored.
    """

    juror: str
    score: float | None
    scores: Scores
    rationale: Mapping[str, str | None] = {}
    events: Mapping[str, str] | None = None
    quotes: Mapping[str, str | None] | None = None
    unjudged_reason: str | None = None


class TurnRow(Struct, frozen=True, kw_only=True):
    """One turn. `said` is what the model under test was told, `reply` what it answered; `own` are
    the benchmark's own keys. Times are milliseconds of the attempt that answered.
    """

    turn: int
    said: str | None
    reply: str
    score: float | None
    scores: Scores
    events: Mapping[str, str] | None
    quotes: Mapping[str, str | None] | None
    heuristics: Mapping[str, Measure]
    own: Mapping[str, Json]
    unjudged_reason: str | None
    is_replayed: bool
    outcome: str
    stop_reason: str
    ttft_ms: float | None
    latency_ms: float | None
    output_tokens_per_s: float | None
    verdicts: tuple[VerdictRow, ...] = ()


class RunRow(Struct, frozen=True, kw_only=True):
    """One complete run. `sample` names what was played, `document` has all else of its document,
    turns and journal left out, `exposures` by event the turns in which it could come.
    """

    stored: StoredRun
    sample: str
    document: Mapping[str, Any]
    turns: tuple[TurnRow, ...]
    exposures: Mapping[str, Exposure]

    @property
    def run_id(self) -> str:
        return self.stored.keys.run_id

    @property
    def model(self) -> str:
        return self.stored.keys.model

    @property
    def metrics(self) -> Mapping[str, float | None]:
        return self.stored.metrics

    def at(self, path: str) -> Any:  # noqa: ANN401 -- any value of a document
        """What stands at a dotted path of the document; `None` where there is nothing."""
        return value_at(self.document, path)


class FailedRow(Struct, frozen=True, kw_only=True):
    """A cell of a sweep that could not be played to its end; `code` is that of its error."""

    run_id: str
    model: str
    axes: Mapping[str, Json]
    end_reason: str
    code: str | None
    message: str | None


class Rows(Struct, frozen=True, kw_only=True):
    """All that is reported: complete runs in the order of their ids, and what failed."""

    benchmark: Benchmark
    runs: Sequence[RunRow]
    failed: Sequence[FailedRow] = ()

    @property
    def models(self) -> list[str]:
        return [*dict.fromkeys(run.model for run in self.runs)]

    @property
    def samples(self) -> list[str]:
        """In the order of their names."""
        return sorted({run.sample for run in self.runs})

    def of(self, model: str) -> list[RunRow]:
        return [run for run in self.runs if run.model == model]

    def turns(self) -> Iterator[tuple[RunRow, TurnRow]]:
        """Every turn that was played."""
        for run in self.runs:
            for turn in run.turns:
                if not turn.is_replayed:
                    yield run, turn


def read_rows(
    arguments: Sequence[str],
    region: Callable[[], str],
    judging: str | None = None,
    held: Sequence[StoredCalibration] = (),
) -> Rows:
    """A run that several arguments have counts once. If a `judging` is named, its verdicts count in
    place of the first. What runs say of their judges' calibration gives way to that by `held`, if
    there are any.

    Raises `UsageError` with all that is wrong, and `ArtifactError` for a store.
    """
    mistakes = Mistakes()
    found: list[tuple[str, Found]] = []
    failed: list[CellRow] = []
    for argument in dict.fromkeys(arguments):
        with mistakes:
            found += [(argument, one) for one in runs_at(argument, region, judging)]
            failed += failed_cells_at(argument, region)
    if mistakes.sentences or not found:
        raise mistakes.error()
    benchmark = _benchmark([one for _, one in found])
    with ThreadPoolExecutor(READERS, thread_name_prefix="reading") as pool:
        reading = [pool.submit(row_of, name, one, benchmark, judging) for name, one in found]
    rows: list[RunRow] = []
    for row in reading:
        with mistakes:
            rows.append(row.result())
    if mistakes.sentences:
        raise mistakes.error()
    runs = {row.run_id: row for row in sorted(rows, key=lambda one: one.run_id)}
    cells = {row.cell: row for row in failed if row.run_id not in runs}
    return Rows(
        benchmark=benchmark,
        runs=[_held_to(one, held) if held else one for one in runs.values()],
        failed=[_failed(row) for row in cells.values()],
    )


def _benchmark(found: Sequence[Found]) -> Benchmark:
    """The one that all runs are of. Raises `UsageError` with every mistake."""
    mistakes = Mistakes()
    places: dict[str, str] = {}
    for one in found:
        with mistakes:
            places.setdefault(benchmark_of(one.body, one.name), one.name)
    if mistakes.sentences:
        raise mistakes.error()
    if len(places) > 1:
        raise UsageError(
            [f"Runs of several benchmarks have no report: {', '.join(sorted(places))}."],
            hint="Name runs of one benchmark: their documents, or a sweep (DIR/sweeps/SWEEP_ID).",
        )
    ((name, where),) = places.items()
    return known_benchmark(name, where)


def _held_to(row: RunRow, held: Sequence[StoredCalibration]) -> RunRow:
    judge = row.document.get("judge")
    if judge is None:
        return row
    context, jurors = row.at("inputs.judge_context"), judge.get("jurors") or []
    asked = replace(
        convert(judge, JudgeIdentity),
        silent=silent_jurors(convert(jurors, list[Juror])),
        **({} if context is None else {"context": context}),
    )
    status = to_builtins(JudgeStatus.of(asked, held))
    return replace(row, document={**row.document, "judge": {**judge, "calibration": status}})


def row_of(argument: str, found: Found, benchmark: Benchmark, judging: str | None) -> RunRow:
    """One run with the files of its turns. Raises `UsageError` if it is not complete."""
    stored = read_run(found.body, found.name, argument, benchmark, found.repeat)
    document = orjson.loads(found.body)
    keys, store = RunKeys(stored.keys.run_id), _store_of(found, document)
    files = _files(store, keys.judgings(judging) if judging else keys.raw, "judge_")
    if benchmark.views.said is None:  # then it stands in files of turns alone
        files = {**files, **_files(store, keys.raw, "turn_")}
    return RunRow(
        stored=stored,
        sample=_sample(stored),
        document={key: value for key, value in document.items() if key not in _ELSEWHERE},
        turns=tuple(
            _turn(one, document, benchmark, files) for one in document["turns"] if "turn" in one
        ),
        exposures=benchmark.views.exposures(document),
    )


def _sample(stored: StoredRun) -> str:
    """What was played: the benchmark's own names of it, or else how it opened."""
    names = [str(one) for one in stored.sample if one is not None]
    return " ".join(names) or (stored.keys.prompt or "")[:LONGEST_NAME]


def _store_of(found: Found, document: Mapping[str, Any]) -> ListedStore | None:
    """Where the files of its turns are: the store that it was found in, or else its own folder."""
    if found.store is not None:
        return found.store
    place = document.get("output_artifacts")
    raw = place.get("raw") if isinstance(place, dict) else None
    if not isinstance(raw, str) or not Path(raw).is_dir():
        return None
    return ListedFolder(str(Path(raw).parents[2]))


def _files(store: ListedStore | None, folder: str, begin: str) -> Files:
    """Of a folder, by name, those that begin so. Raises `UsageError` if one is broken."""
    if store is None:
        return {}
    keys = store.keys(f"{folder}{begin}")
    bodies = {key.removeprefix(folder): store.get(key) for key in keys}
    found = {
        name: loaded(body, f"{folder}{name}") for name, body in bodies.items() if body is not None
    }
    for name, values in found.items():
        read_value(values, _TYPES[begin], f"{folder}{name}")
    return found


def _turn(
    entry: Mapping[str, Any], document: Mapping[str, Any], benchmark: Benchmark, files: Files
) -> TurnRow:
    number = f"{entry['turn']:03d}.json"
    own = [one for one in benchmark.parts.turn.__struct_encode_fields__ if one in entry]
    said = benchmark.views.said
    answered = (entry.get("latency") or {}).get(benchmark.parts.tested) or {}
    return TurnRow(
        turn=entry["turn"],
        said=entry.get(said) if said else _prompt(files.get(f"turn_{number}", {}), benchmark),
        reply=entry["question"],
        score=entry["score"],
        scores=entry.get("scores") or {},
        events=entry.get("events"),
        quotes=entry.get("quotes"),
        heuristics=entry.get("heuristics") or {},
        own={key: entry[key] for key in own if key != said},
        unjudged_reason=entry.get("unjudged_reason"),
        is_replayed=bool(entry.get("replayed")),
        outcome=entry.get("outcome") or "answered",
        stop_reason=str(entry.get("stop_reason")),
        ttft_ms=answered.get("ttft_ms"),
        latency_ms=answered.get("latency_ms"),
        output_tokens_per_s=answered.get("output_tokens_per_s"),
        verdicts=_verdicts(entry, document, files.get(f"judge_{number}")),
    )


def _verdicts(
    entry: Mapping[str, Any], document: Mapping[str, Any], file: Mapping[str, Any] | None
) -> tuple[VerdictRow, ...]:
    """By the file of the verdict; without one by the turn, which tells no reasons, and no jurors.
    Nothing of a turn that nobody was asked about.
    """
    if file is None:
        model = (document.get("judge") or {}).get("model")
        return () if model is None or entry.get("replayed") else (_verdict(entry, str(model)),)
    jurors = [one for one in file.get("jurors") or () if isinstance(one, dict)]
    judge = str(file.get("judge_model") or UNNAMED)
    if not jurors:
        return (_verdict(file, judge),)
    return tuple(_verdict(one, _name(one, judge)) for one in jurors)


def _name(juror: Mapping[str, Any], judge: str) -> str:
    return str(juror.get("judge_model") or juror.get("model") or judge)


def _verdict(found: Mapping[str, Any], juror: str) -> VerdictRow:
    scores = found.get("scores") or {}
    known = [score for score in scores.values() if score is not None]
    return VerdictRow(
        juror=juror,
        score=sum(known) if known and len(known) == len(scores) else None,
        scores=scores,
        rationale=found.get("rationale") or {},
        events=found.get("events"),
        quotes=found.get("quotes"),
        unjudged_reason=found.get("unjudged_reason"),
    )


def _prompt(file: Mapping[str, Any], benchmark: Benchmark) -> str | None:
    keys = benchmark.parts.turn_prompt.__struct_encode_fields__
    return next((file[key] for key in keys if isinstance(file.get(key), str)), None)


def _failed(row: CellRow) -> FailedRow:
    return FailedRow(
        run_id=row.run_id,
        model=row.model,
        axes=row.axes,
        end_reason=row.end_reason,
        code=row.error.code if row.error else None,
        message=row.error.message if row.error else None,
    )
