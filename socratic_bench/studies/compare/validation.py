"""A stored run's document, held to its own types: the core's and its benchmark's."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct, defstruct

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.encoding import read_value
from socratic_bench.documents.inputs import own_inputs
from socratic_bench.documents.run import CuratedDocument, RunDocument
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.ports.parts import Part, Parts


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
