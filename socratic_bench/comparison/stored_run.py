"""A complete run as a comparison needs it, by its curated file or its document."""

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from socratic_bench.converting import convert
from socratic_bench.documents.plain import reason
from socratic_bench.errors import UsageError
from socratic_bench.ports import Benchmark
from socratic_bench.runner.gates import metric_at

JUDGE_PATHS = ("judge.model", "judge.temperature")
N_TURNS = "n_turns"
RUBRIC = "judge.rubric"


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
    runs that are compared, by path; `repeat` is that of the sweep which it is of.
    """

    keys: RunKeys
    source: str
    sample: tuple[Any, ...]
    conditions: Mapping[str, Any]
    metrics: Mapping[str, float | None]
    repeat: int | None = None


def benchmark_of(body: bytes, name: str) -> str:
    """Which benchmark a document is of. Raises `UsageError` if it is no complete run's."""
    return _keys(_loaded(body, name), name).benchmark


def read_run(
    body: bytes, name: str, source: str, benchmark: Benchmark, repeat: int | None
) -> StoredRun:
    """Raises `UsageError` if it is no complete run's document."""
    document = _loaded(body, name)
    keys = _keys(document, name)
    sample = benchmark.parts.sample.__struct_encode_fields__
    return StoredRun(
        keys=keys,
        source=source,
        sample=tuple(document.get(key) for key in sample),
        conditions=_conditions(document, keys, benchmark),
        metrics={one.name: metric_at(one.name, keys.metrics) for one in benchmark.metrics},
        repeat=repeat,
    )


def _loaded(body: bytes, name: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UsageError([f"{name} is no JSON document: {error}."]) from error
    return found if isinstance(found, dict) else {}


def _keys(document: Mapping[str, Any], name: str) -> RunKeys:
    try:
        keys = convert(document, RunKeys)
    except msgspec.ValidationError as error:
        raise UsageError([f"{name} is no complete run: {reason(error)}"]) from error
    if keys.kind not in ("run", "curated") or keys.status != "completed":
        raise UsageError([f"{name} is no complete run: {keys.kind}, {keys.status}."])
    return keys


def _conditions(
    document: Mapping[str, Any], keys: RunKeys, benchmark: Benchmark
) -> Mapping[str, Any]:
    """A run that ended by itself could have been of any length."""
    judge = document.get("judge") or {}
    return {
        RUBRIC: judge.get("rubric") or judge.get("rubric_sha256"),
        **{path: _at(document, path) for path in (*JUDGE_PATHS, *benchmark.conditions)},
        **({N_TURNS: keys.n_turns} if keys.end_reason == "max_turns" else {}),
    }


def _at(document: object, path: str) -> Any:  # noqa: ANN401 -- any value of a document
    """What stands at a dotted path; `None` where there is nothing."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, Mapping) else None
    return document if isinstance(document, bool | int | float | str) else None
