"""How a command reads settings: from flags, the environment, and the user's own files."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.emulator import MODEL_IDS
from socratic_bench.errors import Problem, UsageError
from socratic_bench.models.bedrock.session import profile_problem, profile_region
from socratic_bench.settings import OFFLINE_REGION, Sources, flag_names, read_config

from .arguments import Flags
from .options import Options
from .output import read_stdin


def read(flags: Flags) -> tuple[RunConfig, tuple[Problem, ...]]:
    """The configuration of a run, and every setting that cannot be read."""
    return read_config(RunConfig, sources(flags))


def sources(flags: Flags) -> Sources:
    """Where settings come from: flags, the environment, and the user's own files."""
    return Sources(
        flags=flags,
        environ=os.environ,
        read_stdin=partial(_read_stdin, quiet=bool(flags.get("quiet"))),
        profile_region=profile_region,
        profile_problem=profile_problem,
        offline_models=lambda: MODEL_IDS,
    )


def read_untested(flags: Flags) -> tuple[RunConfig, Sequence[Problem]]:
    """The configuration of a command that tests no model, and so needs no list of models."""
    own_sources = sources({**flags, "model": "none"})
    environ = {**own_sources.environ, "BEDROCK_MODEL_IDS": '["none"]'}
    return read_config(RunConfig, replace(own_sources, environ=environ))


def bucket_region() -> str:
    """The region of the buckets that runs are read from: as a run has it, by environment or
    profile.
    """
    config, _ = read({})
    return config.region or OFFLINE_REGION


def call_by_flags() -> Callable[[str], str]:
    """What turns a setting's name into its flag, for messages."""
    return flag_names((RunConfig, Options))


@contextmanager
def calling_flags() -> Iterator[None]:
    """Errors that are raised in the block name flags instead of settings."""
    try:
        yield
    except UsageError as error:
        error.call_settings(call_by_flags())
        raise


def _read_stdin(bound: int, *, quiet: bool) -> bytes:
    return read_stdin(bound, "The opening words", quiet=quiet)
