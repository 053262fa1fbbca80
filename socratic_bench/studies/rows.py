"""A complete run as a comparison needs it, by its curated file or its document."""

from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from math import fsum
from typing import Any

import msgspec
from msgspec import Struct, defstruct, field

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.concurrency import convert
from socratic_bench.documents.encoding import loaded, read_value, reason
from socratic_bench.documents.inputs import own_inputs
from socratic_bench.documents.run import CuratedDocument, RunDocument
from socratic_bench.errors import UsageError
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.ports.parts import Part, Parts, Views
from socratic_bench.runs.gates import metric_at
from socratic_bench.statistics.survival import Time

JUDGES = "judge.model"
TEMPERATURE = "judge.temperature"
N_TURNS = "n_turns"
COMPLETE_IT = "One that was cut short counts once it is complete: socratic-runner resume."
# How several verdicts become one.
JURY_SETTINGS = ("samples", "quorum", "rule")
RUBRIC, RUBRIC_TEXT = "judge.rubric", "judge.rubric_sha256"


class ScoredTurn(Struct, frozen=True, kw_only=True):
    turn: int
    score: float | None


class RunKeys(Struct, frozen=True, kw_only=True):
    """The keys that every run's document has."""

    kind: str
    run_id: str
    status: str
    benchmark: str
    model: str
    prompt: str | None
    n_turns: int
    end_reason: str
    metrics: dict[str, Any]
    turns: list[ScoredTurn]
    seed: int | None = None


class StoredRun(Struct, frozen=True, kw_only=True):
    """`sample` is what was played, by the benchmark's own keys, `conditions` what must be alike in
    runs that are compared, by path; `times` are the metrics that are times until an event, as far
    as they are known; `judge_variance` is what the judge's own scatter adds to metrics; `repeat` is
    that of the sweep which it is of. `parts` has metrics of a run of many items by what these are
    of.
    """

    keys: RunKeys
    source: str
    sample: tuple[Any, ...]
    conditions: Mapping[str, Any]
    metrics: Mapping[str, float | None]
    times: Mapping[str, Time]
    judge_variance: Mapping[str, float] = {}
    repeat: int | None = None
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def values(self, metric: str, cluster: Hashable) -> Mapping[Hashable, float]:
        """A metric, where it is known, by what it is clustered by: its parts, or else the run's own
        `cluster`.
        """
        if parts := self.parts.get(metric):
            return {(self.sample, name): value for name, value in parts.items()}
        value = self.metrics[metric]
        return {} if value is None else {cluster: value}


def benchmark_of(body: bytes, name: str) -> str:
    """Which benchmark a document is of. Raises `UsageError` if it is no complete run's."""
    return _keys(_loaded(body, name), name).benchmark


def benchmark_at(body: bytes, name: str) -> Benchmark:
    """The same benchmark itself. Raises `UsageError` if there is none of that name, too."""
    return known_benchmark(benchmark_of(body, name), name)


def known_benchmark(benchmark: str, name: str) -> Benchmark:
    """Raises `UsageError` with the `name` of the file that says it is of this benchmark."""
    try:
        return load_benchmark(benchmark)
    except UsageError as error:
        raise UsageError([f"{name}: benchmark: {said}" for said in error.problems]) from error


def read_run(
    body: bytes, name: str, source: str, benchmark: Benchmark, repeat: int | None
) -> StoredRun:
    """Raises `UsageError` if it is no complete run's document, or a value in it is not of its type,
    whether a comparison has a use for it or not.
    """
    document = _loaded(body, name)
    keys = _keys(document, name)
    validate_run(document, benchmark, name)
    sample = benchmark.parts.sample.__struct_encode_fields__
    return StoredRun(
        keys=keys,
        source=source,
        sample=tuple(document.get(key) for key in sample),
        conditions=_conditions(document, keys, benchmark),
        metrics={one.name: metric_at(one.name, keys.metrics) for one in benchmark.metrics},
        times={
            one.name: time
            for one in benchmark.metrics
            if (time := _time(one, keys.metrics)) is not None
        },
        judge_variance=judge_variances(document, benchmark.views),
        repeat=repeat,
        parts=benchmark.views.parts(document),
    )


def _time(metric: MetricInfo, metrics: Mapping[str, Any]) -> Time | None:
    """`None`: it is no time, or it is not known until when the event was looked for."""
    if metric.censored_by is None:
        return None
    at, is_censored = (metric_at(path, metrics) for path in (metric.name, metric.censored_by))
    return None if at is None or is_censored is None else Time(at, is_event=not is_censored)


def _loaded(body: bytes, name: str) -> Mapping[str, Any]:
    found = loaded(body, name)
    return found if isinstance(found, dict) else {}


def _keys(document: Mapping[str, Any], name: str) -> RunKeys:
    try:
        keys = convert(document, RunKeys)
    except msgspec.ValidationError as error:
        kind = document.get("kind")
        is_other = isinstance(kind, str) and kind not in ("run", "curated")
        why = f"its kind is {kind!r}." if is_other else reason(error)
        raise UsageError([f"{name} is no complete run: {why}"]) from error
    if keys.kind not in ("run", "curated") or keys.status != "completed":
        told = f"{name} is no complete run: {keys.kind}, {keys.status}."
        raise UsageError([told], hint=COMPLETE_IT)
    return keys


def _conditions(
    document: Mapping[str, Any], keys: RunKeys, benchmark: Benchmark
) -> Mapping[str, Any]:
    """A run that ended by itself could have been of any length. An edition of a rubric whose text
    is another one is another rubric.
    """
    judge = document.get("judge") or {}
    rubric, text = judge.get("rubric"), judge.get("rubric_sha256")
    return {
        RUBRIC: rubric or text,
        **({RUBRIC_TEXT: text} if rubric and text else {}),
        JUDGES: _judges(judge),
        **{f"judge.{name}": judge.get(name) for name in JURY_SETTINGS},
        **{
            path: _scalar(value_at(document, path)) for path in (TEMPERATURE, *benchmark.conditions)
        },
        **({N_TURNS: keys.n_turns} if keys.end_reason == "max_turns" else {}),
    }


def _judges(judge: Mapping[str, Any]) -> str | None:
    """The models of all jurors; of runs that tell of none, the judge's."""
    jurors = sorted(str(one.get("model")) for one in judge.get("jurors") or ())
    return ", ".join(jurors) or judge.get("model")


def value_at(document: object, path: str) -> Any:  # noqa: ANN401 -- any value of a document
    """What stands at a dotted path; `None` where there is nothing."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


def _scalar(value: object) -> object:
    return value if isinstance(value, bool | int | float | str) else None


# A stored run's document, held to its own types: the core's and its benchmark's.


def validate_run(document: Mapping[str, Any], benchmark: Benchmark, name: str) -> None:
    """Raises `UsageError` with `name` and path for a value that is not of its type, wherever it
    stands. What a benchmark adds may be missing: it may be of another version.
    """
    kind = CuratedDocument if document.get("kind") == "curated" else RunDocument
    for one in (kind, *_own_types(benchmark.name, benchmark.parts)):
        read_value(document, one, name)


@cache
def _own_types(benchmark: str, parts: Parts) -> tuple[type[Struct], ...]:
    """A benchmark's keys by where they stand; those of one place are types of their own."""
    below = {
        "metrics": parts.metrics,
        "thresholds": parts.thresholds | None,
        "inputs": own_inputs(RunConfig, benchmark) | None,
    }
    beside = (parts.sample, parts.headline, parts.run)
    return (
        *(one for one in beside if one is not Part),
        defstruct("Below", [(name, kind, None) for name, kind in below.items()]),
        *(_turns(one) for one in (parts.turn, parts.scores) if one is not Part),
    )


def _turns(kind: type[Part]) -> type[Struct]:
    turns: Any = list
    return defstruct("Turns", [("turns", turns[kind])])


# How much of a run's figures is the judge's own scatter, where it gave several verdicts a turn.

MEDIAN = "median"


def judge_variances(document: Mapping[str, Any], views: Views) -> dict[str, float]:
    """By path, of a run's document: the variance that its judges' scatter adds to a metric which is
    a mean of scores over judged turns. Nothing of it is known with a single verdict of each judge,
    or where the median of several judges counts.

    A turn's score is the mean of J jurors' means of m samples, so that its variance is the sum of
    the jurors' s² / m over J² (`votes.within_jurors` has s); a mean of T turns has a T-th of their
    mean.
    """
    judge = document.get("judge") or {}
    if judge.get("rule") == MEDIAN or judge.get("samples", 1) == 1:
        return {}
    found = {
        metric: [*_of_turns(document, score, judge["samples"])]
        for metric, score in views.mean_scores.items()
    }
    return {metric: fsum(some) / len(some) ** 2 for metric, some in found.items() if some}


def _of_turns(document: Mapping[str, Any], score: str, n_samples: int) -> Iterator[float]:
    for turn in document["turns"]:
        votes = turn.get("votes")
        if turn["score"] is None or turn.get("replayed") or not votes:
            continue
        spreads = [one[score] for one in votes["within_jurors"].values() if one]
        if spreads and len(spreads) == votes["n_votes"]:
            yield fsum(one**2 for one in spreads) / n_samples / len(spreads) ** 2
