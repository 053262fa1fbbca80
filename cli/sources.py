"""Where a command reads settings from: flags, the environment, and the user's own files."""

import os
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Flags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.errors import Problem
    from socratic_bench.settings import Sources


def sources(flags: Flags) -> "Sources":
    """Where settings come from: flags, the environment, and the user's own files."""
    from socratic_bench.settings import Sources

    return Sources(
        flags=flags,
        environ=os.environ,
        read_stdin=partial(_read_stdin, quiet=bool(flags.get("quiet"))),
        profile_region=_profile_region,
        profile_problem=_profile_problem,
        offline_models=_offline_models,
    )


def read_untested(flags: Flags) -> "tuple[RunConfig, Sequence[Problem]]":
    """What is asked for where nobody is tested, which needs no list of models."""
    from msgspec.structs import replace

    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import read_config

    asked = sources({**flags, "model": "none"})
    environ = {**asked.environ, "BEDROCK_MODEL_IDS": '["none"]'}
    return read_config(RunConfig, replace(asked, environ=environ))


def bucket_region() -> str:
    """That of the buckets that runs are read from: as a run has it, by environment or profile."""
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import OFFLINE_REGION, read_config

    config, _ = read_config(RunConfig, sources({}))
    return config.region or OFFLINE_REGION


def _read_stdin(bound: int, *, quiet: bool) -> bytes:
    from .output import read_stdin

    return read_stdin(bound, "The opening words", quiet=quiet)


def _profile_region() -> str | None:
    from socratic_bench.models.bedrock.session import profile_region

    return profile_region()


def _profile_problem() -> str | None:
    from socratic_bench.models.bedrock.session import profile_problem

    return profile_problem()


def _offline_models() -> tuple[str, ...]:
    from socratic_bench.emulator import MODEL_IDS

    return MODEL_IDS
