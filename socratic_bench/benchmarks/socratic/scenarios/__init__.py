"""Students to teach: the built-in scenarios, one for any prompt, a teacher's own files."""

from socratic_bench.benchmarks.socratic.scenarios.loading import (
    DATA,
    FIRST_EDITION,
    builtin_ids,
    find_by_opening,
    load_builtin,
    load_file,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    AGES,
    FAMILIES,
    Age,
    Insight,
    Move,
    PressureWords,
    Scenario,
    Voice,
    is_english,
    own_sentences,
)

__all__ = [
    "AGES",
    "DATA",
    "FAMILIES",
    "FIRST_EDITION",
    "Age",
    "Insight",
    "Move",
    "PressureWords",
    "Scenario",
    "Voice",
    "builtin_ids",
    "find_by_opening",
    "is_english",
    "load_builtin",
    "load_file",
    "own_sentences",
]
