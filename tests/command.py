"""Runs the real command as a user would, and looks at what comes out."""

import gc
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TypeVar

import pytest

from cli import process
from cli.runner import run_command
from socratic_bench import redaction
from tests.schemas import breaches

ROOT = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-m", "cli")
CLAUDE = "anthropic.claude-3-5-sonnet-20241022-v1:0"
LLAMA = "meta.llama3-1-70b-instruct-v1:0"
MISTRAL = "mistral.mistral-large-2407-v1:0"
TITAN = "amazon.titan-text-premier-v1:0"
# One of a user's own: under it a judge is asked for no insights.
PLAIN_RUBRIC = str(ROOT / "tests" / "data" / "rubric_without_events.toml")
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
) -> subprocess.Popen[bytes]:
    """Start the command, with pipes for what it says unless told otherwise."""
    env = environment() if env is None else env
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT, **streams}
    return subprocess.Popen([*COMMAND, *words], env=dict(env), **streams)


def run(
    *words: str,
    env: Mapping[str, str] | None = None,
    entry: Sequence[str] = COMMAND,
    cwd: Path = ROOT,
    stdin: bytes = b"",
) -> Outcome:
    """Run the command to its end: in this process, unless what is tested needs one of its own."""
    env = environment() if env is None else env
    if (*entry,) == COMMAND and can_share_this_process(env):
        return run_here(words, env=env, cwd=cwd, stdin=stdin)
    process = subprocess.run(
        [*entry, *words], env=dict(env), cwd=cwd, input=stdin, capture_output=True, check=False
    )
    return Outcome(process.returncode, process.stdout, process.stderr.decode())


def can_share_this_process(env: Mapping[str, str]) -> bool:
    """Not with variables that an interpreter reads as it starts, nor beside another thread's."""
    is_alone = threading.current_thread() is threading.main_thread()
    return is_alone and _read_at_start(env) == _read_at_start(environment())


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    names = ("HOME", "PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "TZ")
    return {name: value for name, value in env.items() if name.startswith(names)}


def run_here(
    words: Sequence[str], *, env: Mapping[str, str], cwd: Path = ROOT, stdin: bytes = b""
) -> Outcome:
    """Run the command by its own function, with streams, environment and folder of its own."""
    with ExitStack() as stack:
        inputs, outputs, errors = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        inputs.write(stdin)
        inputs.seek(0)
        code = run_on_streams(words, *map(_duplicate, (inputs, outputs, errors)), env=env, cwd=cwd)
        outputs.seek(0)
        errors.seek(0)
        return Outcome(code, outputs.read(), errors.read().decode())


def _duplicate(file: IO[bytes]) -> IO[bytes]:
    return os.fdopen(os.dup(file.fileno()), file.mode)


def run_on_streams(
    words: Sequence[str],
    stdin: IO[bytes],
    stdout: IO[bytes],
    stderr: IO[bytes],
    *,
    env: Mapping[str, str],
    cwd: Path,
) -> int:
    """Run the command by its own function on streams that it closes: its exit code."""
    with ExitStack() as stack:
        stack.callback(os.environ.update, dict(os.environ))
        stack.callback(os.environ.clear)  # the command may set variables for the SDK
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(sys, "stdin", io.TextIOWrapper(stdin, encoding="utf-8"))
        patch.setattr(sys, "stdout", io.TextIOWrapper(stdout, encoding="utf-8"))
        patch.setattr(
            sys,
            "stderr",
            io.TextIOWrapper(stderr, "utf-8", "backslashreplace", line_buffering=True),
        )
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stack.callback(_close, stream)
        patch.setattr(redaction, "_learned", frozenset())
        patch.setattr(redaction, "_standing", None)
        patch.setattr(process, "_remembered", [])
        patch.setattr(process, "_first_s", [])
        for name in {*os.environ} - {*env}:
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.chdir(cwd)
        stack.enter_context(_process_settings())
        try:
            return run_command([os.fsdecode(word) for word in words])
        except SystemExit as ended:  # argparse has printed help
            return int(ended.code or 0)


def _close(stream: IO[str]) -> None:
    """Nobody may read any more what is still to be written."""
    with suppress(OSError):
        stream.close()


@contextmanager
def _process_settings() -> Iterator[None]:
    """Put handlers of signals and thresholds of garbage collection back."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    handlers = {number: signal.getsignal(number) for number in numbers}
    thresholds = gc.get_threshold()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        for number, handler in handlers.items():
            signal.signal(number, handler)


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
