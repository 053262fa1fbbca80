"""Which processes are below this one, and their end."""

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

# What cannot be killed by then hangs in the kernel.
_MOST_SWEEPING_S = 20.0
# Stopped, being traced, dead: whoever is held begins nothing.
_HELD = ("T", "t", "Z", "X")
# What hangs in the kernel is not stopped either: so each of so many passes kills all the same.
_MOST_STOPPING = 100


def sweep(spared: Collection[int] = ()) -> dict[int, tuple[int, float]]:
    """Kill all that is below this process, but for children that are spared: how each that became
    a child of this one has ended, and how many seconds of a processor it took.

    All are stopped first: whoever is killed makes room for others, whoever is stopped keeps it, and
    begins none. This process must be a subreaper. Raises `TimeoutError` if some cannot be killed.
    """
    ended: dict[int, tuple[int, float]] = {}
    deadline_s = time.monotonic() + _MOST_SWEEPING_S
    n_passes = 0
    while _may_have_children(spared):
        n_passes += 1
        found = [one for child in _children() if child not in spared for one in _tree(child)]
        running = [one for one in found if _state(one) not in _HELD]
        is_stopping = bool(running) and n_passes % _MOST_STOPPING
        _signal(
            running if is_stopping else found, signal.SIGSTOP if is_stopping else signal.SIGKILL
        )
        if not is_stopping:
            ended.update(_reaped(found))
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{len(found)} processes cannot be killed")
    return ended


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _reaped(processes: Iterable[int]) -> Iterator[tuple[int, tuple[int, float]]]:
    for process in processes:
        with suppress(ChildProcessError):  # not this one's child yet
            one, status, used = os.wait4(process, os.WNOHANG)
            if one:
                yield one, (status, used.ru_utime + used.ru_stime)


def _may_have_children(spared: Collection[int]) -> bool:
    """The kernel's list may leave one out that ends meanwhile, but waiting knows them all."""
    if spared:
        return any(one not in spared for _ in range(2) for one in _children())
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _tree(process: int) -> Iterator[int]:
    """It and all that is below it, as far as can be seen while it changes."""
    waiting = [process]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += _children(one)


def _children(process: int | None = None) -> list[int]:
    """Those of a process, of whichever of its threads: of this one, unless another is named. Dead
    ones that wait to be told of are among them.
    """
    here = Path("/proc") / (str(process) if process else "self") / "task"
    try:
        listed = [(one / "children").read_text(encoding="ascii") for one in here.iterdir()]
    except OSError:  # a kernel without it, or a thread has ended meanwhile
        return [one for one in _processes() if _parent(one) == (process or os.getpid())]
    return [int(word) for text in listed for word in text.split()]


def _processes() -> Iterator[int]:
    return (int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal())


def _parent(process: int) -> int | None:
    found = _status(process)
    return int(found[1]) if found else None


def _state(process: int) -> str:
    """A letter: see proc(5). "X" if it is gone."""
    return next(iter(_status(process)), "X")


def _status(process: int) -> list[str]:
    """What the kernel tells of it, behind its name: its state, its parent, ..."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="latin-1")
    except OSError:
        return []
    return status.rpartition(")")[2].split()


# The process that executes programs: one job a line on stdin, one result a line on stdout.
#
# Each program has a process of its own, a fork of this one. Whatever that leaves becomes a child of
# this process and is killed before the result is told. When stdin is closed, all ends.

# How a program's process ends by our own hand.
_DONE, _UNCONFINED = 0, 97
_RESULT = 3
_MAX_RESULT_BYTES = 8 * 2**20
_PIECE_BYTES = 65_536
_NONCE_BYTES = 16
_LOOK_MS = 20


class _ProcessResult(NamedTuple):
    """What was seen of a program's process: what it said, and why it was ended, if it was."""

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
        answer = json.dumps(_executed(json.loads(line)))
        sys.stdout.buffer.write(answer.encode() + b"\n")
        sys.stdout.buffer.flush()


def _executed(job: dict[str, Any]) -> dict[str, Any]:
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
    return {**_told(watched, *ended[child], job, nonce), "n_left": len(ended) - 1}


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
        confined = confine(
            int(job["timeout_s"]) + 1,
            job["memory_bytes"],
            server,
            refuses_calls=job["refuses_calls"],
        )
        code, program = _DONE, os.getpid()
        found = {**evaluate(job), **confined._asdict()}
        if os.getpid() == program:  # and not a fork of it, which comes back here, too
            _write(_RESULT, nonce + json.dumps(found).encode())
    except BaseException:  # noqa: BLE001 -- the exit code tells; a traceback would be the program's
        code = code or 1
    finally:
        os._exit(code)


def _write(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _watch(child: int, job: dict[str, Any], bounds: dict[int, int]) -> _ProcessResult:
    """Read what it says until it ends, its time is over, or it says too much.

    The first of the descriptors has the result. Whoever else has them may keep them open.
    """
    deadline_s = time.monotonic() + job["timeout_s"]
    poll = select.poll()
    for descriptor in bounds:
        os.set_blocking(descriptor, False)
        poll.register(descriptor, select.POLLIN)
    poll.register(sys.stdin.fileno(), 0)  # that nobody is there any more is told in any case
    said: dict[int, bytearray] = {descriptor: bytearray() for descriptor in bounds}
    outcome = None
    while outcome is None:
        has_ended = _has_ended(child)
        ready = {one for one, _ in poll.poll(0 if has_ended else _LOOK_MS)}
        n_read = sum(_read(one, said[one], poll) for one in ready & bounds.keys())
        if any(len(said[one]) > bound for one, bound in bounds.items()):
            outcome = "output"
        elif sys.stdin.fileno() in ready:
            outcome = "abandoned"
        elif has_ended and not n_read:
            break
        elif time.monotonic() > deadline_s:
            outcome = "timeout"
    return _ProcessResult(bytes(next(iter(said.values()))), outcome)


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _read(descriptor: int, said: bytearray, poll: select.poll) -> int:
    """How many bytes more there are."""
    try:
        piece = os.read(descriptor, _PIECE_BYTES)
    except BlockingIOError:
        return 0
    if not piece:
        poll.unregister(descriptor)
    said += piece
    return len(piece)


def _told(
    watched: _ProcessResult, status: int, used_s: float, job: dict[str, Any], nonce: bytes
) -> dict[str, Any]:
    """The result of a process that ended by itself; of any other one, how it ended."""
    if watched.outcome:
        return {"outcome": watched.outcome}
    if os.WIFSIGNALED(status):
        return {"outcome": _killed(os.WTERMSIG(status), is_late=used_s >= job["timeout_s"])}
    code = os.WEXITSTATUS(status)
    if code == _UNCONFINED:
        return {"outcome": "unconfined"}
    if code != _DONE or watched.result[:_NONCE_BYTES] != nonce:
        return {"outcome": "no_result"}
    try:
        return {"outcome": "ok", **json.loads(watched.result[_NONCE_BYTES:])}
    except ValueError:
        return {"outcome": "no_result"}


def _killed(number: int, *, is_late: bool) -> str:
    """What a signal that ended it means, if it was not ours."""
    if number == signal.SIGXCPU or (number == signal.SIGKILL and is_late):
        return "timeout"
    return "memory" if number == signal.SIGKILL else "crashed"  # the kernel had none left
