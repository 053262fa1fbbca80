"""What type checkers know of `RunConfig`, made by `make docs`. Nothing imports it."""

from socratic_bench.benchmarks.execution.settings import Settings as ExecutionSettings
from socratic_bench.benchmarks.golden.settings import Settings as GoldenSettings
from socratic_bench.benchmarks.optimisation.settings import Settings as OptimisationSettings
from socratic_bench.benchmarks.socratic.settings import Settings as SocraticSettings
from socratic_bench.settings import WholeConfig


class RunConfig(
    ExecutionSettings,
    GoldenSettings,
    OptimisationSettings,
    SocraticSettings,
    WholeConfig,
    frozen=True,
    kw_only=True,
):
    """Everything that one run depends on; what a field means stands beside it."""
