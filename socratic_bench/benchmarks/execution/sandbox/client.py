"""Executes programs in processes of their own: starts servers, sends jobs, reads results."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Self

from msgspec import Struct, field
from msgspec.structs import asdict

from socratic_bench.benchmarks.execution.sandbox.limits import become_subreaper, set_readable
from socratic_bench.benchmarks.execution.sandbox.server import sweep
from socratic_bench.concurrency import convert
from socratic_bench.errors import UsageError

# The server imports its modules from here, and nothing else of ours.
_FOLDER = Path(__file__).parents[1]
_SERVER_CODE = (
    f"import sys; sys.path.insert(0, {str(_FOLDER)!r}); from sandbox import server; "
    "sys.path.pop(0); server.main()"
)
# Beyond a program's own time: a server that has not answered by then is killed.
_SERVER_TIMEOUT_S = 60.0

_INTERFACES = Path("/sys/class/net")
_LOOP = "lo"
_IS_UP = 1

# `ok`: its calls were evaluated; `no_result`: it ended the process by itself.
Outcome = Literal["ok", "timeout", "output", "memory", "crashed", "no_result", "abandoned"]


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of one execution; time is by the clock, and calls are refused if the kernel can."""

    timeout_s: float = 5.0
    memory_bytes: int = 512 * 2**20
    printed_bytes: int = 65_536
    refuses_calls: bool = True


class Case(Struct, frozen=True, kw_only=True):
    """A call's value as text, and a class in it that is no literal's; or its error; or neither."""

    text: str | None = field(name="repr", default=None)
    holds: str | None = None
    error: str | None = None
    message: str = ""


class Execution(Struct, frozen=True, kw_only=True):
    """The execution of a program. `n_left` is the number of processes that it left, now killed.

    `lines` are those that its calls executed, `arcs` which came after which, if it was traced.
    """

    outcome: Outcome
    cases: tuple[Case, ...] = ()
    lines: frozenset[int] = frozenset()
    arcs: frozenset[tuple[int, int]] = frozenset()
    n_left: int = 0
    is_filtered: bool | None = None  # whether the kernel refused system calls
    is_hidden: bool | None = None  # whether it hid files


@contextmanager
def sandbox(n_seeds: int, limits: Limits) -> Iterator[Sandbox]:
    """A server for each hash seed, until the block ends. Raises `UsageError` if not on Linux."""
    if sys.platform != "linux":
        raise UsageError(
            ["Programs are executed on Linux alone."], hint="The image has what it needs."
        )
    become_subreaper()
    set_readable(readable=False)
    try:
        with ExitStack() as stack:
            server_pids: set[int] = set()
            servers = [stack.enter_context(_Server(seed, server_pids)) for seed in range(n_seeds)]
            yield Sandbox(servers, limits)
    finally:
        set_readable(readable=True)


class Sandbox:
    """Servers with different hash seeds, which execute programs."""

    def __init__(self, servers: Sequence[_Server], limits: Limits) -> None:
        self._servers = servers
        self._limits = limits
        self._filtered: set[bool | None] = set()
        self._hidden: set[bool | None] = set()

    @property
    def refuses_calls(self) -> bool | None:
        """Whether the kernel refused system calls to all programs; `None` if it is not known."""
        return _all_true(self._filtered)

    @property
    def hides_files(self) -> bool | None:
        """Whether the kernel hid files from all programs; `None` if it is not known."""
        return _all_true(self._hidden)

    def execute(
        self, code: str, calls: Sequence[str], *, is_traced: bool = False
    ) -> list[Execution]:
        """Execute it once under each hash seed. Raises `UsageError` if it cannot be confined."""
        return self._execute_at_once([code] * len(self._servers), calls, is_traced=is_traced)

    def execute_each(
        self, codes: Sequence[str], calls: Sequence[str], *, is_traced: bool = False
    ) -> list[Execution]:
        """Execute each program once, under any hash seed. Raises as `execute` does."""
        n_servers = len(self._servers)
        executions: list[Execution] = []
        for start in range(0, len(codes), n_servers):
            batch = codes[start : start + n_servers]
            executions += self._execute_at_once(batch, calls, is_traced=is_traced)
        return executions

    def _execute_at_once(
        self, codes: Sequence[str], calls: Sequence[str], *, is_traced: bool
    ) -> list[Execution]:
        """Execute each program by a server of its own."""
        servers = self._servers[: len(codes)]
        shared = {"calls": calls, "is_traced": is_traced, **asdict(self._limits)}
        for server, code in zip(servers, codes, strict=True):
            server.send(json.dumps({"code": code, **shared}).encode() + b"\n")
        timeout_s = self._limits.timeout_s + _SERVER_TIMEOUT_S
        answers = [server.receive(timeout_s) for server in servers]
        if any(answer["outcome"] == "unconfined" for answer in answers):
            raise UsageError(
                ["This process may not take rights from itself, as executing programs needs."],
                hint="Run it as a user that is not root, as the image does.",
            )
        executions = convert(answers, list[Execution])
        self._filtered.update(execution.is_filtered for execution in executions)
        self._hidden.update(execution.is_hidden for execution in executions)
        return executions


class _Server:
    """One process of `server`, started again if it was lost; `server_pids` has those of all."""

    def __init__(self, seed: int, server_pids: set[int]) -> None:
        self._seed = seed
        self._server_pids = server_pids
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def send(self, line: bytes) -> None:
        process = self._process or self._start()
        with suppress(BrokenPipeError):  # `receive` finds that it is lost
            assert process.stdin  # noqa: S101 -- it has pipes
            process.stdin.write(line)
            process.stdin.flush()

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """The answer to the job. A server is lost when the program has ended it."""
        line = self._read_line(time.monotonic() + timeout_s)
        if not line:
            self._end()
            sweep(self._server_pids)  # the processes that it can no longer kill
            return {"outcome": "no_result"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _read_line(self, deadline_s: float) -> bytes:
        """The next line; nothing if there is none in time."""
        assert self._process  # noqa: S101 -- it was sent a job
        assert self._process.stdout  # noqa: S101
        source = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            left_s = deadline_s - time.monotonic()
            piece = b""
            if left_s > 0 and select.select([source], [], [], left_s)[0]:
                piece = os.read(source, 2**20)
            if not piece:
                return b""
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _start(self) -> subprocess.Popen[bytes]:
        self._unread = b""
        # Not -I: that ignores the hash seed.
        self._process = subprocess.Popen(  # noqa: S603 -- ourselves
            [sys.executable, "-s", "-S", "-P", "-B", "-c", _SERVER_CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONHASHSEED": str(self._seed)},
            cwd="/",
            start_new_session=True,
        )
        self._server_pids.add(self._process.pid)
        return self._process

    def _end(self) -> None:
        """Close its pipes: it then kills what it executes, and ends."""
        if self._process is None:
            return
        process, self._process = self._process, None
        for stream in (process.stdin, process.stdout):
            if stream:
                with suppress(BrokenPipeError):
                    stream.close()
        try:
            process.wait(_SERVER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._server_pids.discard(process.pid)


def is_network_open() -> bool:
    """Whether any network interface but the loop is up; one whose state is unknown counts as up."""
    for _, name in socket.if_nameindex():
        with suppress(OSError, ValueError):
            flags = int((_INTERFACES / name / "flags").read_text(encoding="ascii"), 16)
            if name == _LOOP or not flags & _IS_UP:
                continue
        if name != _LOOP:
            return True
    return False


def _all_true(values: set[bool | None]) -> bool | None:
    known_values = values - {None}
    return all(known_values) if known_values else None
