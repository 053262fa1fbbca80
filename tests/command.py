"""Runs the real command as a user would, and looks at what comes out."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.forked import COMMAND, Process, can_fork
from tests.schemas import breaches

ROOT = Path(__file__).resolve().parents[1]
CLAUDE = "anthropic.claude-3-5-sonnet-20241022-v1:0"
LLAMA = "meta.llama3-1-70b-instruct-v1:0"
MISTRAL = "mistral.mistral-large-2407-v1:0"
TITAN = "amazon.titan-text-premier-v1:0"
OPENING = "I'm considering a career change but unsure where to start."
# Settings that the machine may have, and that no command under test is to see.
OF_THE_MACHINE = ("AWS_", "RUNNER_", "BEDROCK_", "PYTHON", "COLUMNS", "NO_COLOR", "TERM")
OFFLINE = ("--offline", "--model", "emulator.socratic-v1:0", "--prompt", OPENING)


Played = TypeVar("Played")


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code, its one document and its words for people."""

    exit_code: int
    stdout: bytes
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The one document: a single compact line that ends with a newline."""
        assert self.stdout.endswith(b"\n"), self
        assert self.stdout.count(b"\n") == 1, self
        _assert_fits(self.stdout)
        found: dict[str, Any] = json.loads(self.stdout)
        return found


def printed(stdout: bytes | None) -> dict[str, Any]:
    """The one document on a stream, which fits the schema of its kind."""
    return Outcome(0, stdout or b"", "").document


def environment(**variables: str) -> dict[str, str]:
    """An environment without settings of the machine, plus the given variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OF_THE_MACHINE)}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        **variables,
    }


def without_scipy(folder: Path) -> dict[str, str]:
    """An environment in which scipy is not installed, as the folder stands before it."""
    (folder / "scipy").mkdir()
    (folder / "scipy" / "__init__.py").write_text("raise ImportError('not installed')")
    return environment(PYTHONPATH=f"{folder}:{ROOT}")


def account(url: str, *models: str, **variables: str) -> dict[str, str]:
    """An environment with dummy keys whose Bedrock endpoint is `url`."""
    return environment(
        AWS_ENDPOINT_URL_BEDROCK_RUNTIME=url,
        AWS_ACCESS_KEY_ID="AKIAEXAMPLE",
        AWS_SECRET_ACCESS_KEY="example",
        AWS_REGION="us-east-1",
        BEDROCK_MODEL_IDS=json.dumps(models or [CLAUDE]),
        **variables,
    )


def begin(
    *words: str, env: Mapping[str, str] | None = None, **streams: Any
) -> "Process | subprocess.Popen[bytes]":
    """Start the command, with pipes for what it says unless told otherwise."""
    env = environment() if env is None else env
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT, **streams}
    if can_fork(env):
        return Process(words, env=env, **streams)
    return subprocess.Popen([*COMMAND, *words], env=dict(env), **streams)


def run(
    *words: str,
    env: Mapping[str, str] | None = None,
    entry: Sequence[str] = COMMAND,
    cwd: Path = ROOT,
    stdin: bytes = b"",
) -> Outcome:
    """Run the command to its end."""
    if (*entry,) == COMMAND:
        with begin(*words, env=env, cwd=cwd, stdin=subprocess.PIPE) as begun:
            stdout, stderr = begun.communicate(stdin)
            assert stdout is not None
            assert stderr is not None
        return Outcome(begun.returncode or 0, stdout, stderr.decode())
    process = subprocess.run(
        [*entry, *words],
        env=dict(env if env is not None else environment()),
        cwd=cwd,
        input=stdin,
        capture_output=True,
        check=False,
    )
    return Outcome(process.returncode, process.stdout, process.stderr.decode())


def in_time(
    play: Callable[[float], Played], is_in_time: Callable[[Played], bool], first_s: float = 3
) -> Played:
    """What is played with a deadline in seconds that comes after what the test is about.

    How soon that happens is the machine's doing: where it did not, the deadline is put off.
    """
    for deadline_s in (first_s, 5 * first_s, 25 * first_s):
        played = play(deadline_s)
        if is_in_time(played):
            break
    return played


def daily(cases: Iterable[Any], *names: object, first: int = 0) -> list[Any]:
    """The cases as parameters of a test: the named or the first ones are those of every day.

    The others, variants of the same fact, are for `make torture`.
    """
    cases = list(cases)
    kept = [*cases[:first], *names]
    assert all(name in cases for name in kept), names
    assert 0 < len(kept) < len(cases), cases
    return [case if case in kept else _variant(case) for case in cases]


def _variant(case: object) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.torture)


def assert_valid(kind: str, document: object) -> None:
    """The document fits its published schema."""
    assert breaches(kind, document) == []


@lru_cache
def _assert_fits(stdout: bytes) -> None:
    """The document fits the schema of its kind; the short form has none, and nor has a schema."""
    found = json.loads(stdout)
    assert isinstance(found, dict)
    if "$schema" not in found:
        assert_valid(found.get("kind", "brief"), found)
