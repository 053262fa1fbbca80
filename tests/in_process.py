"""Plays here what a command line says: for facts that parser, streams and exit add nothing to."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from cli.arguments import parse
from cli.flags import build_parser
from cli.run import call_by_flags
from socratic_bench import RunConfig, forecast
from socratic_bench.emulator import MODEL_IDS
from socratic_bench.runner import prepare, run
from socratic_bench.settings import Sources, read_config
from tests.command import Outcome, environment


def read(words: Sequence[str], env: Mapping[str, str], patch: pytest.MonkeyPatch) -> RunConfig:
    """What the words and variables ask for, in this process's environment from now on."""
    for name, value in env.items():
        patch.setenv(name, value)
    flags, misused = parse(build_parser(), words)
    sources = Sources(
        flags=flags,
        environ={**env, "BEDROCK_MODEL_IDS": json.dumps([flags["model"]])},
        read_stdin=str,
        profile_region=lambda: None,
        offline_models=lambda: MODEL_IDS,
    )
    config, misread = read_config(RunConfig, sources)
    assert [*misused, *misread] == []
    return config


@contextmanager
def _asked(words: Sequence[str], env: Mapping[str, str] | None) -> Iterator[RunConfig]:
    with pytest.MonkeyPatch.context() as patch:
        yield read(words, environment() if env is None else env, patch)


def played(*words: str, env: Mapping[str, str] | None = None) -> Outcome:
    """What the command would leave, but for words for people."""
    with _asked(words, env) as config:
        result = run(config)
    if result.error:
        result.error.call_settings(call_by_flags())
    document = json.dumps(result.document, separators=(",", ":")).encode()
    return Outcome(result.exit_code, document + b"\n", "")


def predicted(*words: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The document of its dry run."""
    with _asked(words, env) as config:
        document: dict[str, Any] = forecast.dry_run(prepare(config), os.environ)
    return document
