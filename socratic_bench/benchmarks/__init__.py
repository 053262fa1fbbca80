"""The benchmarks by name; each is one room, imported when it is asked for.

`RunConfig` has the settings of all of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from socratic_bench.errors import UsageError
from socratic_bench.settings import WholeConfig, composed

if TYPE_CHECKING:
    from socratic_bench.benchmarks.socratic.settings import Settings as SocraticSettings
    from socratic_bench.ports import Benchmark

BENCHMARKS = {
    "socratic": "socratic_bench.benchmarks.socratic",
}

if TYPE_CHECKING:

    class RunConfig(SocraticSettings, WholeConfig, frozen=True, kw_only=True):
        """Everything that one run depends on; what a field means stands beside it."""

else:
    RunConfig = composed(
        "RunConfig",
        {name: import_module(f"{room}.settings").Settings for name, room in BENCHMARKS.items()},
    )


def load_benchmark(name: str) -> "Benchmark":
    """The benchmark of that name. Raises `UsageError` for an unknown one."""
    if name not in BENCHMARKS:
        raise UsageError([f"No benchmark {name!r}: there is {', '.join(sorted(BENCHMARKS))}."])
    benchmark: Benchmark = import_module(f"{BENCHMARKS[name]}.benchmark").BENCHMARK
    return benchmark
