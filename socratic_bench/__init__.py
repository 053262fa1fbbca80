"""Measures how well a language model keeps to the Socratic method.

    from socratic_bench import RunConfig, run

`run(config)` plays one dialogue and returns a `RunResult`. Nothing is imported before it is used.
"""

from socratic_bench.version import VERSION as __version__  # noqa: N811 -- the customary name

TYPE_CHECKING = False  # the module of that name takes longer to import than all that is here
if TYPE_CHECKING:
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.documents.run import RunResult
    from socratic_bench.errors import BenchError, UsageError
    from socratic_bench.models.rate_limiter import RateTargets
    from socratic_bench.models.rate_target import RateTarget
    from socratic_bench.runs import CancelToken, run
    from socratic_bench.runs.services import Services
    from socratic_bench.settings import Gate

__all__ = [
    "BenchError",
    "CancelToken",
    "Gate",
    "RateTarget",
    "RateTargets",
    "RunConfig",
    "RunResult",
    "Services",
    "UsageError",
    "__version__",
    "run",
]

_HOMES = {
    "BenchError": "socratic_bench.errors",
    "Gate": "socratic_bench.settings",
    "CancelToken": "socratic_bench.runs",
    "RateTarget": "socratic_bench.models.rate_target",
    "RateTargets": "socratic_bench.models.rate_limiter",
    "RunConfig": "socratic_bench.benchmarks",
    "RunResult": "socratic_bench.documents.run",
    "Services": "socratic_bench.runs.services",
    "UsageError": "socratic_bench.errors",
    "run": "socratic_bench.runs",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
