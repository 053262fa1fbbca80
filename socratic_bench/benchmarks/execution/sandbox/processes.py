"""Which processes are below this one, and their end."""

import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

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
