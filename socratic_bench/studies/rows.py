"""A complete run as a row: what figures, comparisons, reports and labels need of its document."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import fsum
from typing import Any

import msgspec
from msgspec import Struct, defstruct

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.concurrency import convert
from socratic_bench.documents.encoding import loaded, read_value, reason
from socratic_bench.documents.run import CuratedDocument, RunDocument, own_inputs
from socratic_bench.errors import Problem, UsageError
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.ports.parts import Part, Parts, Views
from socratic_bench.runs.gates import metric_at
from socratic_bench.statistics.survival import Time
from socratic_bench.studies.figures import RunFigures
from socratic_bench.turns import Measure
from socratic_bench.types import Json

Scores = Mapping[str, float | None]
Document = Mapping[str, Any]
Files = Mapping[str, Document]

N_TURNS = "n_turns"
LONGEST_NAME = 80
MEDIAN = "median"
COMPLETE_IT = "Complete interrupted runs first: socratic-runner resume."
RESTORE_IT = Problem.of(
    "Remove that file, and go on with its sweep (sweep {resume}) or run (socratic-runner resume): "
    "it is written anew from the journal."
)
ROUNDING = 0.01
_NOT_IN_ROWS = ("turns", "journal")
_TIMES = ("ttft_ms", "latency_ms", "output_tokens_per_s", "overhead_ms")


class SweepCell(Struct, frozen=True, kw_only=True):
    """The place of a run in its sweep: its value of each axis, and by `plan` all values of each."""

    axes: Mapping[str, Json]
    repeat: int
    plan: Mapping[str, Sequence[Json]]


class VerdictRow(Struct, frozen=True, kw_only=True):
    """A juror's verdict on one turn. `score` is the sum of `scores`, `None` if the turn is unjudged
    for `unjudged_reason`. `rationale` is by score, empty if no verdict files are read.
    """

    juror: str
    score: float | None
    scores: Scores
    rationale: Mapping[str, str | None] = {}
    events: Mapping[str, str] | None = None
    quotes: Mapping[str, str | None] | None = None
    unjudged_reason: str | None = None


class TurnRow(Struct, frozen=True, kw_only=True):
    """One turn. `said` is the prompt of the model under test, `reply` its answer; `own` has the
    benchmark's own keys. Times are milliseconds of the request that answered. `spread` is the
    largest standard deviation of the overall score, between jurors or within one.
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
    overhead_ms: float | None = None
    verdicts: tuple[VerdictRow, ...] = ()
    spread: float = 0.0


class RunRow(RunFigures, frozen=True, kw_only=True):
    """A complete run.

    Attributes:
        source: the argument that named it.
        sample: what was played, by the benchmark's own keys.
        conditions: what must be alike in runs that are compared, by path.
        turns: with prompts and reasons where the files of turns and verdicts are read.
        document: its document without turns and journal.
        cell: its place in its sweep, if it is of one.
    """

    run_id: str
    source: str
    model: str
    prompt: str | None
    seed: int | None
    n_turns: int
    sample: tuple[Any, ...]
    conditions: Mapping[str, Any]
    turns: tuple[TurnRow, ...]
    document: Document
    cell: SweepCell | None = None

    @property
    def sample_name(self) -> str:
        """The benchmark's own names of what was played, or else the beginning of its prompt."""
        names = [str(name) for name in self.sample if name is not None]
        return " ".join(names) or (self.prompt or "")[:LONGEST_NAME]

    @property
    def repeat(self) -> int | None:
        """Its number among the repeats of its cell; `None` outside sweeps."""
        return self.cell.repeat if self.cell else None

    def at(self, path: str) -> Any:  # noqa: ANN401 -- any value of a document
        """The value at a dotted path of the document; `None` if there is none."""
        return value_at(self.document, path)


class _RunKeys(Struct, frozen=True, kw_only=True):
    """The keys without which a document is no complete run's."""

    kind: str
    run_id: str
    status: str
    benchmark: str
    model: str
    prompt: str | None
    n_turns: int
    end_reason: str
    metrics: dict[str, Any]
    turns: list[Any]
    seed: int | None = None


def read_document(body: bytes, name: str, **expected: Json) -> Document:
    """The document of a complete run in the file `name`; its values are yet to be validated.
    `expected` are values that the file's name and the index tell of the run; `None` is any. Raises
    `UsageError` if it is something else, or another run's.
    """
    document = loaded(body, name)
    document = document if isinstance(document, dict) else {}
    try:
        keys = convert(document, _RunKeys)
    except msgspec.ValidationError as error:
        kind = document.get("kind")
        is_other = isinstance(kind, str) and kind not in ("run", "curated")
        why = f"its kind is {kind!r}." if is_other else reason(error)
        raise UsageError([f"{name} is no complete run: {why}"]) from error
    if keys.kind not in ("run", "curated") or keys.status != "completed":
        sentence = f"{name} is no complete run: {keys.kind}, {keys.status}."
        raise UsageError([sentence], hint=COMPLETE_IT)
    for key, value in expected.items():
        if value is not None and document.get(key, value) != value:
            sentence = f"{name} holds another run's document: {key} is {document[key]!r}, "
            raise UsageError([f"{sentence}not {value!r}."], hint=RESTORE_IT)
    return document


def benchmark_of(document: Document, name: str) -> Benchmark:
    """The benchmark of a complete run in the file `name`. Raises `UsageError` if it is unknown."""
    try:
        return load_benchmark(document["benchmark"])
    except UsageError as error:
        raise UsageError([f"{name}: benchmark: {text}" for text in error.problems]) from error


def validate_run(document: Document, benchmark: Benchmark, name: str) -> None:
    """Raise `UsageError` with the path of a value of a wrong type; a benchmark's may be missing."""
    kind = CuratedDocument if document.get("kind") == "curated" else RunDocument
    for type_ in (kind, *_benchmark_types(benchmark.name, benchmark.parts)):
        read_value(document, type_, name)


@cache
def _benchmark_types(benchmark: str, parts: Parts) -> tuple[type[Struct], ...]:
    """The benchmark's own keys as types: those at the top, below other keys, and in turns."""
    below = {
        "metrics": parts.metrics,
        "thresholds": parts.thresholds | None,
        "inputs": own_inputs(RunConfig, benchmark) | None,
    }
    top = (parts.sample, parts.headline, parts.run)
    list_type: Any = list
    return (
        *(part for part in top if part is not Part),
        defstruct("Below", [(name, kind, None) for name, kind in below.items()]),
        *(
            defstruct("Turns", [("turns", list_type[part])])
            for part in (parts.turn, parts.scores)
            if part is not Part
        ),
    )


def refuse_unfounded_scores(
    document: Document, benchmark: Benchmark, files: Files, name: str
) -> None:
    """Raise `UsageError` for scores other than the verdicts', and means other than the scores'."""
    problems = []
    for entry in document["turns"]:
        file = files.get(f"judge_{entry.get('turn', -1):03d}.json", entry)
        if (told := entry.get("scores") or {}) != (stored := file.get("scores") or {}):
            problems.append(f"{name}: turn {entry['turn']} has {told}, its verdict {stored}.")
    judged = [entry for entry in document["turns"] if not entry.get("replayed")]
    for metric, score in benchmark.views.mean_scores.items() if files else ():
        values = [{"overall_score": turn["score"], **(turn.get("scores") or {})} for turn in judged]
        points = [value[score] for value in values if value.get(score) is not None]
        mean = metric_at(metric, document["metrics"])
        if points and mean is not None and abs(mean - fsum(points) / len(points)) > ROUNDING:
            expected = round(fsum(points) / len(points), 2)
            problems.append(f"{name}: {metric} is {mean}, the mean of its turns {expected}.")
    if problems:
        raise UsageError(problems, hint=RESTORE_IT)


def run_row(
    document: Document,
    benchmark: Benchmark,
    *,
    source: str,
    cell: SweepCell | None = None,
    files: Files,
) -> RunRow:
    """The row of a validated document; `files` are those of its turns and verdicts, by name."""
    metrics, views = document["metrics"], benchmark.views
    times = {metric.name: _time(metric, metrics) for metric in benchmark.metrics}
    return RunRow(
        run_id=document["run_id"],
        source=source,
        model=document["model"],
        prompt=document["prompt"],
        seed=document.get("seed"),
        n_turns=document["n_turns"],
        sample=tuple(document.get(key) for key in benchmark.parts.sample.__struct_encode_fields__),
        conditions=_conditions(document, benchmark),
        metrics={metric.name: metric_at(metric.name, metrics) for metric in benchmark.metrics},
        times={name: time for name, time in times.items() if time},
        judge_variance=judge_variances(document, views),
        parts=views.parts(document),
        exposures=views.exposures(document),
        unjudged_differ_by=unjudged_differences(document, views),
        turns=tuple(
            _turn_row(entry, document, benchmark, files)
            for entry in document["turns"]
            if "turn" in entry
        ),
        document={key: value for key, value in document.items() if key not in _NOT_IN_ROWS},
        cell=cell,
    )


def value_at(document: object, path: str) -> Any:  # noqa: ANN401 -- any value of a document
    """The value at a dotted path; `None` if there is none."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


def _time(metric: MetricInfo, metrics: Mapping[str, Any]) -> Time | None:
    """`None`: the metric is no time, or it is unknown whether its event happened."""
    if metric.censored_by is None or metric.is_of_run_alone:
        return None
    at, is_censored = (metric_at(path, metrics) for path in (metric.name, metric.censored_by))
    return None if at is None or is_censored is None else Time(at, is_event=not is_censored)


def _conditions(document: Document, benchmark: Benchmark) -> Mapping[str, Any]:
    """The length counts only if it was the limit. A rubric with another text is another rubric."""
    judge = document.get("judge") or {}
    rubric, text = judge.get("rubric"), judge.get("rubric_sha256")
    jurors = ", ".join(sorted(str(juror.get("model")) for juror in judge.get("jurors") or ()))
    paths = ("judge.temperature", *benchmark.conditions)
    values = {path: value_at(document, path) for path in paths}
    return {
        "judge.rubric": rubric or text,
        **({"judge.rubric_sha256": text} if rubric and text else {}),
        "judge.model": jurors or judge.get("model"),
        **{f"judge.{name}": judge.get(name) for name in ("samples", "quorum", "rule")},
        **{
            path: value if isinstance(value, bool | int | float | str) else None
            for path, value in values.items()
        },
        **({N_TURNS: document["n_turns"]} if document["end_reason"] == "max_turns" else {}),
    }


def unjudged_differences(document: Document, views: Views) -> list[str]:
    """In what the unjudged turns of a run are unlike the judged ones, as far as it is known."""
    return (value_at(document, views.unlike) if views.unlike else None) or []


def judge_variances(document: Document, views: Views) -> dict[str, float]:
    """The variance that the judges' own scatter adds to each metric that is a mean of scores over
    judged turns. It is unknown with a single verdict of each judge, and for a median of judges.

    A turn's score is the mean of J jurors' means of m samples, so its variance is the sum of the
    jurors' s² / m over J² (`votes.within_jurors` has s); a mean of T turns has a T-th of their
    mean.
    """
    judge = document.get("judge") or {}
    if judge.get("rule") == MEDIAN or judge.get("samples", 1) == 1:
        return {}
    by_metric = {
        metric: [*_turn_variances(document, score, judge["samples"])]
        for metric, score in views.mean_scores.items()
    }
    return {
        metric: fsum(variances) / len(variances) ** 2
        for metric, variances in by_metric.items()
        if variances
    }


def _turn_variances(document: Document, score: str, n_samples: int) -> Iterator[float]:
    for turn in document["turns"]:
        votes = turn.get("votes")
        if turn["score"] is None or turn.get("replayed") or not votes:
            continue
        spreads = [spread[score] for spread in votes["within_jurors"].values() if spread]
        if spreads and len(spreads) == votes["n_votes"]:
            yield fsum(spread**2 for spread in spreads) / n_samples / len(spreads) ** 2


def _turn_row(entry: Document, document: Document, benchmark: Benchmark, files: Files) -> TurnRow:
    file_name = f"{entry['turn']:03d}.json"
    own_keys = [key for key in benchmark.parts.turn.__struct_encode_fields__ if key in entry]
    prompt_key = benchmark.views.said
    votes = entry.get("votes") or {}
    deviations = (votes.get("between_jurors"), *(votes.get("within_jurors") or {}).values())
    turn_file = files.get(f"turn_{file_name}", {})
    prompts = map(turn_file.get, benchmark.parts.turn_prompt.__struct_encode_fields__)
    texts = (prompt for prompt in prompts if isinstance(prompt, str))
    request = (entry.get("latency") or {}).get(benchmark.parts.tested) or {}
    return TurnRow(
        turn=entry["turn"],
        said=entry.get(prompt_key) if prompt_key else next(texts, None),
        reply=entry["question"],
        score=entry["score"],
        scores=entry.get("scores") or {},
        events=entry.get("events"),
        quotes=entry.get("quotes"),
        heuristics=entry.get("heuristics") or {},
        own={key: entry[key] for key in own_keys if key != prompt_key},
        unjudged_reason=entry.get("unjudged_reason"),
        is_replayed=bool(entry.get("replayed")),
        outcome=entry.get("outcome") or "answered",
        stop_reason=str(entry.get("stop_reason")),
        **{name: request.get(name) for name in _TIMES},
        verdicts=_verdict_rows(entry, document, files.get(f"judge_{file_name}")),
        spread=max(
            (values.get("overall_score", 0.0) for values in deviations if values), default=0.0
        ),
    )


def _verdict_rows(
    entry: Document, document: Document, file: Document | None
) -> tuple[VerdictRow, ...]:
    """The verdicts of the file, one for each juror; without a file that of the turn, which has no
    reasons and no jurors. Empty for a turn that no judge was asked about.
    """
    if file is None:
        model = (document.get("judge") or {}).get("model")
        return () if model is None or entry.get("replayed") else (_verdict_row(entry, str(model)),)
    jurors = [juror for juror in file.get("jurors") or () if isinstance(juror, dict)]
    judge = str(file.get("judge_model") or "judge")
    if not jurors:
        return (_verdict_row(file, judge),)
    return tuple(
        _verdict_row(juror, str(juror.get("judge_model") or juror.get("model") or judge))
        for juror in jurors
    )


def _verdict_row(verdict: Document, juror: str) -> VerdictRow:
    scores = verdict.get("scores") or {}
    points = [score for score in scores.values() if score is not None]
    return VerdictRow(
        juror=juror,
        score=sum(points) if points and len(points) == len(scores) else None,
        scores=scores,
        rationale=verdict.get("rationale") or {},
        events=verdict.get("events"),
        quotes=verdict.get("quotes"),
        unjudged_reason=verdict.get("unjudged_reason"),
    )
