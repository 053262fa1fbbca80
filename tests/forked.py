"""Starts commands without what each would spend on importing the same modules, and on compiling
the same regular expressions.

A process that has done so, and has run nothing, forks for each command: this has a process of its
own, with its own words, environment, folder, streams, signals and end, and runs `python -m cli`
from its first line on. What differs is only when modules were imported and patterns compiled, so
tests of that start the interpreter, and so does everything while coverage is measured.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from threading import Lock, Thread
from typing import IO, Self

ROOT = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-m", "cli")
# Read by the interpreter or the C library before its first line, or by the SDK when it is imported.
AT_THE_START = (
    "HOME",
    "PYTHON",
    "LC_",
    "LANG",
    "LD_",
    "MALLOC_",
    "COVERAGE_",
    "GLIBC_",
    "OPENBLAS_",
    "OMP_",
)
_BEGINNING = Lock()


def can_fork(env: Mapping[str, str]) -> bool:
    """Whether an interpreter that starts with these variables is like the one that is forked."""
    return _read_at_the_start(env) == _read_at_the_start(_own())


def _read_at_the_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(AT_THE_START)}


@cache
def _own() -> dict[str, str]:
    from tests.command import environment

    return {k: v for k, v in environment().items() if not k.startswith("COVERAGE_")}


class Process:
    """A command under way, which is used as a `subprocess.Popen` is."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path = ROOT,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> None:
        self.returncode: int | None = None
        self._readers: dict[str, Thread] = {}
        self._read = {"stdout": b"", "stderr": b""}
        with ExitStack() as handed_over:
            self.stdin, inputs = _stream(stdin, handed_over, is_input=True)
            self.stdout, outputs = _stream(stdout, handed_over)
            self.stderr, errors = _stream(stderr, handed_over)
            status, theirs = _stream(subprocess.PIPE, handed_over)
            assert status
            self._status = status
            order = handed_over.enter_context(tempfile.TemporaryFile())
            order.write(json.dumps([[*map(os.fsdecode, words)], dict(env), str(cwd)]).encode())
            order.flush()
            fork_server().send([order.fileno(), inputs, outputs, errors, theirs])
        self.pid = int(self._status.readline())

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(COMMAND, timeout or 0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = int(self._status.read())
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(
        self, content: bytes = b"", timeout: float | None = None
    ) -> tuple[bytes | None, bytes | None]:
        """Hand it the content; what it has said, once it has ended, on streams that are pipes."""
        until_s = None if timeout is None else time.monotonic() + timeout
        if self.stdin and not self.stdin.closed:
            Thread(target=_write, args=(self.stdin, content), daemon=True).start()
        for name in ("stdout", "stderr"):
            if getattr(self, name) and name not in self._readers:
                self._readers[name] = Thread(target=self._keep, args=(name,), daemon=True)
                self._readers[name].start()
        for reader in self._readers.values():
            reader.join(None if until_s is None else max(0, until_s - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(COMMAND, timeout or 0)
        self.wait(None if until_s is None else max(0, until_s - time.monotonic()))
        return (
            self._read["stdout"] if self.stdout else None,
            self._read["stderr"] if self.stderr else None,
        )

    def _keep(self, name: str) -> None:
        with getattr(self, name) as pipe:
            self._read[name] = pipe.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream:
                with suppress(BrokenPipeError):
                    stream.close()
        self.wait()


def _stream(
    given: int, handed_over: ExitStack, *, is_input: bool = False
) -> tuple[IO[bytes] | None, int]:
    """Our end of a pipe, if one is asked for, and what the command gets."""
    if given == subprocess.PIPE:
        end, other = os.pipe()
        mine, theirs = (other, end) if is_input else (end, other)
        handed_over.callback(os.close, theirs)
        return os.fdopen(mine, "wb" if is_input else "rb"), theirs
    if given == subprocess.DEVNULL:
        theirs = os.open(os.devnull, os.O_RDWR)
        handed_over.callback(os.close, theirs)
        return None, theirs
    return None, given


def _write(pipe: IO[bytes], content: bytes) -> None:
    with suppress(BrokenPipeError), pipe:
        pipe.write(content)


class ForkServer:
    """The process that forks, as those who want a command know it."""

    def __init__(self) -> None:
        self._mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        # Libraries for numbers begin threads, which a fork would not survive.
        env = {**_own(), "OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            command = [sys.executable, "-P", "-m", "tests.fork_server", str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=env, cwd=ROOT, pass_fds=[theirs.fileno()])
        self._lock = Lock()

    def send(self, descriptors: Sequence[int]) -> None:
        """An order: a file of words, environment and folder; stdin, stdout, stderr; and a pipe for
        the process's id and, once it has ended, its exit code as `subprocess` says it.
        """
        with self._lock:
            socket.send_fds(self._mine, [b"."], descriptors)

    def close(self) -> None:
        """End the process, once the commands have ended; what it took counts as this one's."""
        self._mine.close()
        self._process.wait()


@cache
def _fork_server() -> ForkServer:
    return ForkServer()


def fork_server() -> ForkServer:
    """The one of this process, begun when it is first needed."""
    with _BEGINNING:
        return _fork_server()


def close() -> None:
    """End it, if there is one."""
    if _fork_server.cache_info().currsize:
        fork_server().close()
        _fork_server.cache_clear()
