"""Students to teach: thirty built-in scenarios, one for any prompt, a teacher's own files."""

from socratic_bench.benchmarks.socratic.scenarios.loading import (
    builtin_ids,
    find_by_opening,
    load_builtin,
    load_file,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    AGES,
    FAMILIES,
    Age,
    Family,
    Resistance,
    Scenario,
    ScenarioError,
)

__all__ = [
    "AGES",
    "FAMILIES",
    "Age",
    "Family",
    "Resistance",
    "Scenario",
    "ScenarioError",
    "builtin_ids",
    "find_by_opening",
    "load_builtin",
    "load_file",
]
