"""Whether programs could reach anything, if the kernel let them."""

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

_INTERFACES = Path("/sys/class/net")
_LOOP = "lo"
_IS_UP = 1


def is_network_open() -> bool:
    """Whether any network interface is up, except the loop; one that tells nothing counts as up."""
    names = [name for _, name in socket.if_nameindex() if name != _LOOP]
    return any(_flags(name) & _IS_UP for name in names)


def _flags(name: str) -> int:
    try:
        return int((_INTERFACES / name / "flags").read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return _IS_UP


# Programs executed in processes of their own, as the rest of the program asks for it.

# The modules of the server are found here, and nothing else of ours.
_FOLDER = Path(__file__).parents[1]
_BEGIN = (
    f"import sys; sys.path.insert(0, {str(_FOLDER)!r}); from sandbox import server; "
    "sys.path.pop(0); server.main()"
)
# Over a program's own time: a server that says nothing by then is ended itself.
_PATIENCE_S = 60.0

# `ok`: its calls were evaluated; `no_result`: it ended the process by itself.
Outcome = Literal["ok", "timeout", "output", "memory", "crashed", "no_result", "abandoned"]


class Limits(Struct, frozen=True, kw_only=True):
    """What one execution of a program may use. The time is that on the clock, for all calls.

    `refuses_calls`: the kernel is to refuse processes, sockets and the like, and to hide files, if
    it can.
    """

    timeout_s: float = 5.0
    memory_bytes: int = 512 * 2**20
    printed_bytes: int = 65_536
    refuses_calls: bool = True


class Case(Struct, frozen=True, kw_only=True):
    """What a call gave: the text of its value, or its error. Neither: the text was too long.

    `holds` is the class of what is no literal in the value, whatever it prints.
    """

    text: str | None = field(name="repr", default=None)
    holds: str | None = None
    error: str | None = None
    message: str = ""


class Execution(Struct, frozen=True, kw_only=True):
    """What became of a program. `n_left` processes were killed that it had left.

    `lines` are those that its calls executed, `arcs` which came after which; if it was traced.
    """

    outcome: Outcome
    cases: tuple[Case, ...] = ()
    lines: frozenset[int] = frozenset()
    arcs: frozenset[tuple[int, int]] = frozenset()
    n_left: int = 0
    is_filtered: bool | None = None  # whether the kernel refused system calls
    is_hidden: bool | None = None  # whether it hid files


class Sandbox:
    """Servers of several hash seeds, each of which executes whatever is executed."""

    def __init__(self, servers: Sequence["_Server"], limits: Limits) -> None:
        self._servers = servers
        self._limits = limits
        self._filtered: set[bool | None] = set()
        self._hidden: set[bool | None] = set()

    @property
    def refuses_calls(self) -> bool | None:
        """Whether the kernel refused system calls to all programs; `None`: none has told."""
        return _all_known(self._filtered)

    @property
    def hides_files(self) -> bool | None:
        """Whether the kernel hid files from all programs; `None`: none has told."""
        return _all_known(self._hidden)

    def execute(
        self, code: str, calls: Sequence[str], *, is_traced: bool = False
    ) -> list[Execution]:
        """The program once under each hash seed. Raises `UsageError` if it cannot be confined."""
        return self._executed([code] * len(self._servers), calls, is_traced=is_traced)

    def execute_each(
        self, codes: Sequence[str], calls: Sequence[str], *, is_traced: bool = False
    ) -> list[Execution]:
        """Each program once, under any hash seed. Raises as `execute` does."""
        n_servers, found = len(self._servers), []
        for first in range(0, len(codes), n_servers):
            some = codes[first : first + n_servers]
            found += self._executed(some, calls, is_traced=is_traced)
        return found

    def _executed(
        self, codes: Sequence[str], calls: Sequence[str], *, is_traced: bool
    ) -> list[Execution]:
        """At once, each by a server of its own."""
        servers = self._servers[: len(codes)]
        shared = {"calls": calls, "is_traced": is_traced, **asdict(self._limits)}
        for server, code in zip(servers, codes, strict=True):
            server.send(json.dumps({"code": code, **shared}).encode() + b"\n")
        patience_s = self._limits.timeout_s + _PATIENCE_S
        found = [_execution(server.receive(patience_s)) for server in servers]
        self._filtered.update(one.is_filtered for one in found)
        self._hidden.update(one.is_hidden for one in found)
        return found


@contextmanager
def sandbox(n_seeds: int, limits: Limits) -> Iterator[Sandbox]:
    """Servers of so many hash seeds, until the block ends. Raises `UsageError` but on Linux."""
    if sys.platform != "linux":
        raise UsageError(
            ["Programs are executed on Linux alone."], hint="The image has what it needs."
        )
    become_subreaper()
    set_readable(readable=False)
    try:
        with ExitStack() as stack:
            family: set[int] = set()
            servers = [stack.enter_context(_Server(seed, family)) for seed in range(n_seeds)]
            yield Sandbox(servers, limits)
    finally:
        set_readable(readable=True)


class _Server:
    """One process of `server`, and one of a `family`; it is begun anew if it was lost."""

    def __init__(self, seed: int, family: set[int]) -> None:
        self._seed = seed
        self._family = family
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def send(self, line: bytes) -> None:
        process = self._process or self._begin()
        with suppress(BrokenPipeError):  # it is found lost when its answer is read
            assert process.stdin  # noqa: S101 -- it has pipes
            process.stdin.write(line)
            process.stdin.flush()

    def receive(self, patience_s: float) -> dict[str, Any]:
        """Its answer; one that was lost has been ended by what it executed."""
        line = self._line(time.monotonic() + patience_s)
        if not line:
            self._end()
            sweep(self._family)  # what it can no longer kill
            return {"outcome": "no_result"}
        found: dict[str, Any] = json.loads(line)
        return found

    def _line(self, deadline_s: float) -> bytes:
        assert self._process  # noqa: S101 -- it was sent something
        assert self._process.stdout  # noqa: S101
        source = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            left_s = deadline_s - time.monotonic()
            piece = b""
            if left_s > 0 and select.select([source], [], [], left_s)[0]:
                piece = os.read(source, 2**20)
            if not piece:
                return b""
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _begin(self) -> "subprocess.Popen[bytes]":
        self._rest = b""
        # Not -I: that ignores the hash seed.
        self._process = subprocess.Popen(  # noqa: S603 -- ourselves
            [sys.executable, "-s", "-S", "-P", "-B", "-c", _BEGIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONHASHSEED": str(self._seed)},
            cwd="/",
            start_new_session=True,
        )
        self._family.add(self._process.pid)
        return self._process

    def _end(self) -> None:
        """It kills what it executes once nobody is there, and ends."""
        if self._process is None:
            return
        process, self._process = self._process, None
        for stream in (process.stdin, process.stdout):
            if stream:
                with suppress(BrokenPipeError):
                    stream.close()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._family.discard(process.pid)


def _all_known(told: set[bool | None]) -> bool | None:
    known = told - {None}
    return all(known) if known else None


def _execution(answer: dict[str, Any]) -> Execution:
    if answer["outcome"] == "unconfined":
        raise UsageError(
            ["This process may not take rights from itself, as executing programs needs."],
            hint="Run it as a user that is not root, as the image does.",
        )
    return convert(answer, Execution)
