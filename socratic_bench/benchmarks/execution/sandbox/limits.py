"""What a process of a program's may use, and who it is."""

import ctypes
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .hidden_files import hide_files
from .system_calls import forbid

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_NOBODY = 65534
_MOST_FILES = 64
# Threads of the same user that may be there besides those that are there already, and processes,
# where the kernel does not refuse these.
_MORE_THREADS = 32
_GIVEN_UP_FIRST = "1000"


def become_subreaper() -> None:
    """Have whatever a descendant leaves become a child of this process. Raises `OSError`."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_readable(*, readable: bool) -> None:
    """Whether others of the same user may look into this process's memory and files."""
    with suppress(OSError):
        _prctl(_PR_SET_DUMPABLE, int(readable))


class Confinement(NamedTuple):
    """Whether the kernel refuses system calls from now on, and whether it hides files."""

    is_filtered: bool
    is_hidden: bool


def confine(cpu_s: int, memory_bytes: int, server: int, *, refuses_calls: bool) -> Confinement:
    """Take from this process all that a program does not need; never to be given back.

    Raises `OSError` if root cannot become nobody, or if the server is gone.
    """
    _raise_oom_score()
    most_threads = _threads_of(os.getuid() or _NOBODY) + _MORE_THREADS
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, _MOST_FILES),
        (resource.RLIMIT_NPROC, most_threads),
        (resource.RLIMIT_AS, memory_bytes),
    ):
        _limit(what, most, most)
    _limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)
    if os.getuid() == 0 or os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        raise OSError("the server is gone")
    set_readable(readable=False)
    is_hidden = refuses_calls and hide_files()
    return Confinement(refuses_calls and forbid(), is_hidden)


def _limit(what: int, soft: int, hard: int) -> None:
    """Never above what holds already."""
    _, known = resource.getrlimit(what)
    if known != resource.RLIM_INFINITY:
        soft, hard = min(soft, known), min(hard, known)
    resource.setrlimit(what, (soft, hard))


def _raise_oom_score() -> None:
    """Should memory run out, the kernel is to end this process, and no other."""
    set_readable(readable=True)  # otherwise the file is root's
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_GIVEN_UP_FIRST, encoding="ascii")


def _threads_of(user: int) -> int:
    count = 0
    for entry in os.scandir("/proc"):
        with suppress(OSError):
            if entry.name.isdecimal() and entry.stat().st_uid == user:
                count += sum(1 for _ in os.scandir(f"{entry.path}/task"))
    return count


def _prctl(what: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(what, value, 0, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
