"""Reads flags over environment variables over defaults into a configuration."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from socratic_bench.errors import Problem
from socratic_bench.settings.core import CoreConfig
from socratic_bench.settings.problems import foreign_problem
from socratic_bench.settings.reader import Reader, Sources
from socratic_bench.settings.table import foreign, table
from socratic_bench.types import is_text

# What is read here and by the SDK, whose own files and folders may have any name.
VARIABLES = ("AWS_", "BEDROCK_", "RUNNER_")
SDK_PATH = r"AWS_\w+_(BUNDLE|DIRECTORY|FILE|PATH)"

Config = TypeVar("Config", bound=CoreConfig)


def read_config(kind: type[Config], sources: Sources) -> tuple[Config, tuple[Problem, ...]]:
    """The configuration that the sources describe, and what could not be read of them.

    What could not be read stands in the configuration as its default, so that the other values can
    be checked in the same go. Nothing may be run while there are problems.
    """
    reader = Reader(kind, sources)
    reader.problems.extend(_undecodable(sources.environ))
    benchmark = reader.read("benchmark")
    others = foreign(kind, benchmark)
    values = {
        name: kind.READERS[name](reader) if name in kind.READERS else reader.read(name)
        for name in table(kind)
        if name not in others
    }
    return kind(**values), (*reader.problems, *_foreign_flags(reader, others, benchmark))


def _foreign_flags(
    reader: Reader, others: Mapping[str, Sequence[str]], benchmark: str
) -> Iterator[Problem]:
    """The variables of another benchmark's settings are not meant; its flags are mistakes."""
    for name, owners in others.items():
        for flag in reader.flagged(name):
            yield foreign_problem(flag, owners, benchmark)


def _undecodable(environ: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in environ.items():
        if not name.startswith(VARIABLES) or is_text(value):
            continue
        if not re.fullmatch(SDK_PATH, name):
            yield Problem.of("{variable} is no UTF-8 text.", variable=name)
