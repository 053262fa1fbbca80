"""Flags that a config file gives (`--config`): below flags and variables, above defaults."""

import os
from collections.abc import Sequence

from socratic_bench.benchmarks import RunConfig
from socratic_bench.errors import Problem
from socratic_bench.settings import table
from socratic_bench.studies.sweep.plan_file import read_plan_file
from socratic_bench.studies.sweep.settings import SweepSettings

from .arguments import Flags
from .settings import export_variables


def with_config_file(flags: Flags) -> tuple[Flags, Sequence[Problem]]:
    """The flags of a run with those of its config file below them, and every mistake in the file.

    Raises `UsageError` if it cannot be read.
    """
    export_variables(flags)
    file = read_plan_file(str(flags["config"]), is_sweep=False)
    return {**below_variables(file.flags), **flags}, file.mistakes


def below_variables(flags: Flags) -> Flags:
    """The flags of a config file without those that a variable sets, too."""
    fields = [field for kind in (RunConfig, SweepSettings) for field in table(kind).values()]
    variables = {field.flag: field.setting.variables for field in fields}
    return {
        flag: value
        for flag, value in flags.items()
        if not any(map(os.environ.get, variables.get(flag, ())))
    }
