"""The benchmarks by name; each is one room, imported when it is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING

from socratic_bench.errors import UsageError

if TYPE_CHECKING:
    from socratic_bench.ports import Benchmark

BENCHMARKS = {"socratic": "socratic_bench.benchmarks.socratic.benchmark"}


def load_benchmark(name: str) -> "Benchmark":
    """The benchmark of that name. Raises `UsageError` for an unknown one."""
    if name not in BENCHMARKS:
        raise UsageError([f"No benchmark {name!r}: there is {', '.join(sorted(BENCHMARKS))}."])
    benchmark: Benchmark = import_module(BENCHMARKS[name]).BENCHMARK
    return benchmark
