"""The benchmarks by name; each is one room, imported when it is asked for.

`RunConfig` has the settings of all of them: those of a room with a module `settings`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from socratic_bench.errors import UsageError
from socratic_bench.settings import CoreConfig, compose

if TYPE_CHECKING:
    from socratic_bench.benchmarks.run_config import RunConfig as RunConfig
    from socratic_bench.ports.benchmark import Benchmark

BENCHMARKS = {
    "execution": "socratic_bench.benchmarks.execution",
    "golden": "socratic_bench.benchmarks.golden",
    "optimisation": "socratic_bench.benchmarks.optimisation",
    "socratic": "socratic_bench.benchmarks.socratic",
}


def _settings(module: str) -> type[CoreConfig]:
    """The core's and a benchmark's own, if it has any."""
    try:
        settings: type[CoreConfig] = import_module(module).Settings
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return CoreConfig
    return settings


if not TYPE_CHECKING:  # run_config.py, which `make docs` keeps, tells the types of it
    RunConfig = compose(
        "RunConfig", {name: _settings(f"{room}.settings") for name, room in BENCHMARKS.items()}
    )


def load_benchmark(name: str) -> "Benchmark":
    """The benchmark of that name. Raises `UsageError` for an unknown one."""
    if name not in BENCHMARKS:
        raise UsageError([f"No benchmark {name!r}; available: {', '.join(sorted(BENCHMARKS))}."])
    benchmark: Benchmark = import_module(f"{BENCHMARKS[name]}.benchmark").BENCHMARK
    return benchmark
