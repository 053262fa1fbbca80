"""The process that executes programs: one job a line on stdin, one result a line on stdout.

Each program has a process of its own, a fork of this one. Whatever that leaves becomes a child of
this process and is killed before the result is written. When stdin is closed, all ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from .child import IMPORTED, MODULES, SELDOM, evaluate
from .limits import become_subreaper, confine, set_readable

# Exit codes of a program's process, from our own code.
_DONE, _UNCONFINED = 0, 97
_RESULT = 3
_ENDED_YET = os.WEXITED | os.WNOHANG | os.WNOWAIT  # asked without waiting or reaping
_MAX_RESULT_BYTES = 8 * 2**20
_PIECE_BYTES = 65_536
_NONCE_BYTES = 16
_POLL_MS = 20
# What cannot be killed by then hangs in the kernel.
_MAX_SWEEP_S = 20.0
# Stopped, being traced, dead, gone: such a process starts no other; see proc(5).
_STOPPED_STATES: tuple[list[str], ...] = (["T"], ["t"], ["Z"], ["X"], [])
# A process that hangs in the kernel does not stop either: so each of so many passes kills all the
# same.
_PASSES_PER_KILL = 100


class _ProcessResult(NamedTuple):
    """The output of a program's process, and the reason for which it was ended, if it was."""

    result: bytes
    outcome: str | None


def main() -> None:
    """Serve until stdin is closed."""
    become_subreaper()
    set_readable(readable=False)
    for name in (*MODULES, *IMPORTED, *(SELDOM if os.geteuid() == 0 else ())):
        with suppress(ImportError):  # not every Python has all of them
            __import__(name)
    for line in sys.stdin.buffer:
        answer = json.dumps(_execute(json.loads(line)))
        sys.stdout.buffer.write(answer.encode() + b"\n")
        sys.stdout.buffer.flush()


def _execute(job: dict[str, Any]) -> dict[str, Any]:
    nonce = os.urandom(_NONCE_BYTES)
    result, result_end = os.pipe()
    printed, printed_end = os.pipe()
    server = os.getpid()
    child = os.fork()
    if child == 0:
        _run_in_child(job, nonce, result_end, printed_end, server)
    os.close(result_end)
    os.close(printed_end)
    try:
        watched = _watch(child, job, {result: _MAX_RESULT_BYTES, printed: job["printed_bytes"]})
    finally:
        os.close(result)
        os.close(printed)
        ended = sweep()
    return {**_answer(watched, *ended[child], job, nonce), "n_left": len(ended) - 1}


def _run_in_child(
    job: dict[str, Any], nonce: bytes, result: int, printed: int, server: int
) -> NoReturn:
    """In the fork. Never returns; nothing of the server's is left open."""
    code = _UNCONFINED
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        os.dup2(result, _RESULT)
        os.closerange(_RESULT + 1, 65_536)
        os.chdir("/")
        confinement = confine(
            int(job["timeout_s"]) + 1,
            job["memory_bytes"],
            server,
            refuses_calls=job["refuses_calls"],
        )
        code, program = _DONE, os.getpid()
        evaluation = {**evaluate(job), **confinement._asdict()}
        if os.getpid() == program:  # and not a fork of it, which comes back here, too
            remaining = memoryview(nonce + json.dumps(evaluation).encode())
            while remaining:
                remaining = remaining[os.write(_RESULT, remaining) :]
    except BaseException:  # noqa: BLE001 -- the exit code tells; a traceback would be the program's
        code = code or 1
    finally:
        os._exit(code)


def _watch(child: int, job: dict[str, Any], bounds: dict[int, int]) -> _ProcessResult:
    """Read a process's output until it ends, its time is over, or it writes too much.

    `bounds` has the largest number of bytes by descriptor; the first one has the result. Whoever
    else has the descriptors may keep them open.
    """
    deadline_s = time.monotonic() + job["timeout_s"]
    poll = select.poll()
    for descriptor in bounds:
        os.set_blocking(descriptor, False)
        poll.register(descriptor, select.POLLIN)
    poll.register(sys.stdin.fileno(), 0)  # reports that the client is gone in any case
    output: dict[int, bytearray] = {descriptor: bytearray() for descriptor in bounds}
    outcome = None
    while outcome is None:
        has_ended = os.waitid(os.P_PID, child, _ENDED_YET) is not None
        ready = {descriptor for descriptor, _ in poll.poll(0 if has_ended else _POLL_MS)}
        n_read = sum(
            _read(descriptor, output[descriptor], poll) for descriptor in ready & bounds.keys()
        )
        if any(len(output[descriptor]) > bound for descriptor, bound in bounds.items()):
            outcome = "output"
        elif sys.stdin.fileno() in ready:
            outcome = "abandoned"
        elif has_ended and not n_read:
            break
        elif time.monotonic() > deadline_s:
            outcome = "timeout"
    return _ProcessResult(bytes(next(iter(output.values()))), outcome)


def _read(descriptor: int, output: bytearray, poll: select.poll) -> int:
    """Append what can be read; returns the number of bytes."""
    try:
        piece = os.read(descriptor, _PIECE_BYTES)
    except BlockingIOError:
        return 0
    if not piece:
        poll.unregister(descriptor)
    output += piece
    return len(piece)


def _answer(
    watched: _ProcessResult, status: int, used_s: float, job: dict[str, Any], nonce: bytes
) -> dict[str, Any]:
    """The result of a process that ended by itself; of any other one, how it ended."""
    if watched.outcome:
        return {"outcome": watched.outcome}
    if os.WIFSIGNALED(status):
        number, is_late = os.WTERMSIG(status), used_s >= job["timeout_s"]
        if number == signal.SIGXCPU or (number == signal.SIGKILL and is_late):
            return {"outcome": "timeout"}
        # Killed, but not by us: the kernel had no memory left.
        return {"outcome": "memory" if number == signal.SIGKILL else "crashed"}
    code = os.WEXITSTATUS(status)
    if code == _DONE and watched.result[:_NONCE_BYTES] == nonce:
        with suppress(ValueError):
            return {"outcome": "ok", **json.loads(watched.result[_NONCE_BYTES:])}
    return {"outcome": "unconfined" if code == _UNCONFINED else "no_result"}


def sweep(spared: Collection[int] = ()) -> dict[int, tuple[int, float]]:
    """Kill all descendants of this process, but for spared children and what is below them.

    Returns, for each that became a child of this process, its exit status and the seconds of
    processor time that it took. All are stopped first: a killed process makes room for another, a
    stopped one keeps its place and starts none. This process must be a subreaper. Raises
    `TimeoutError` if some cannot be killed.
    """
    ended: dict[int, tuple[int, float]] = {}
    deadline_s = time.monotonic() + _MAX_SWEEP_S
    n_passes = 0
    while _may_have_children(spared):
        n_passes += 1
        processes = [
            process for child in _children() if child not in spared for process in _tree(child)
        ]
        running = [process for process in processes if _status(process)[:1] not in _STOPPED_STATES]
        if running and n_passes % _PASSES_PER_KILL:
            _signal(running, signal.SIGSTOP)
        else:
            _signal(processes, signal.SIGKILL)
            ended.update(_reap(processes))
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{len(processes)} processes cannot be killed")
    return ended


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _reap(processes: Iterable[int]) -> Iterator[tuple[int, tuple[int, float]]]:
    for process in processes:
        with suppress(ChildProcessError):  # not this one's child yet
            ended, status, usage = os.wait4(process, os.WNOHANG)
            if ended:
                yield ended, (status, usage.ru_utime + usage.ru_stime)


def _may_have_children(spared: Collection[int]) -> bool:
    """The kernel's list may leave out a process that ends meanwhile, but waiting knows them all."""
    if spared:
        return any(child not in spared for _ in range(2) for child in _children())
    try:
        os.waitid(os.P_ALL, 0, _ENDED_YET)
    except ChildProcessError:
        return False
    return True


def _tree(process: int) -> Iterator[int]:
    """A process and all its descendants, as far as can be seen while they change."""
    waiting = [process]
    while waiting:
        parent = waiting.pop()
        yield parent
        waiting += _children(parent)


def _children(process: int | None = None) -> list[int]:
    """The children of all threads of a process, or of this one, dead ones among them."""
    tasks = Path("/proc") / (str(process) if process else "self") / "task"
    try:
        lists = [(task / "children").read_text(encoding="ascii") for task in tasks.iterdir()]
    except OSError:  # a kernel without it, or a thread has ended meanwhile
        parent = str(process or os.getpid())
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
        return [number for number in numbers if _status(number)[1:2] == [parent]]
    return [int(word) for text in lists for word in text.split()]


def _status(process: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name: state, parent, ...; none if it is gone."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="latin-1")
    except OSError:
        return []
    return status.rpartition(")")[2].split()
