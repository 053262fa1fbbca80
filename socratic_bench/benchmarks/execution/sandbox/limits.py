"""Takes from a program's process what it does not need: resources, rights, files, system calls.

Landlock hides files, but for Python's own and those of the system's libraries, and keeps the
process from looking into any other one, be it of the same user: see landlock(7). A seccomp filter
refuses processes, signals to others, sockets, whatever changes a file, and memory that outlives
the process. A program may read, compute and start threads.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 4, 22
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_NOBODY = 65534
_MAX_FILES = 64
# Threads of the same user besides those that are there already, and processes, where the kernel
# does not refuse these.
_MAX_MORE_THREADS = 32
_OOM_SCORE_OF_FIRST_TO_GO = "1000"

# Landlock: numbers of system calls, the same on all machines, and of its rights.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_VISIBLE_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo")
_VISIBLE_FILES = ("/dev/null", "/dev/urandom", "/dev/zero", "/etc/localtime")

# seccomp. Instructions: load a word, jump if equal, if not below, if a bit is set, return.
_FILTER_MODE = 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000  # calls of another interface of x86-64, with numbers of their own
_THREAD = 0x10000  # of clone: a thread, and no process
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

# Name -> number on x86-64 and on 64-bit ARM; one that a machine has not is -1.
_REFUSED = {
    # processes
    "fork": (57, -1), "vfork": (58, -1), "execve": (59, 221), "execveat": (322, 281),
    # other processes
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "process_madvise": (440, 440), "kcmp": (312, 272),
    "setpriority": (141, 140), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    # the network, and memory that outlives a process
    "socket": (41, 198), "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186),
    "mq_open": (240, 180), "memfd_create": (319, 279),
    # the kernel itself
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "unshare": (272, 97),
    "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    # files
    "creat": (85, -1), "mkdir": (83, -1), "mkdirat": (258, 34), "mknod": (133, -1),
    "mknodat": (259, 33), "link": (86, -1), "linkat": (265, 37), "symlink": (88, -1),
    "symlinkat": (266, 36), "rename": (82, -1), "renameat": (264, 38), "renameat2": (316, 276),
    "unlink": (87, -1), "unlinkat": (263, 35), "rmdir": (84, -1), "truncate": (76, 45),
    "fallocate": (285, 47), "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1),
    "fchownat": (260, 54), "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1),
    "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466),
}  # fmt: skip
# The C library does without these where they are unknown.
_UNKNOWN = {"clone3": (435, 435), "openat2": (437, 437)}
# Name -> numbers, the argument that decides, and its bits that refuse the call.
_BY_BITS = {
    "open": ((2, -1), 1, _WRITES),
    "openat": ((257, 56), 2, _WRITES),
    "prlimit64": ((302, 261), 0, 0xFFFFFFFF),  # those of another process
}
_CLONE = (56, 220)
# What Python calls a machine -> its place in the pairs, and what the kernel calls it.
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


class Confinement(NamedTuple):
    """Whether the kernel refuses system calls from now on, and whether it hides files."""

    is_filtered: bool
    is_hidden: bool


def confine(cpu_s: int, memory_bytes: int, server: int, *, refuses_calls: bool) -> Confinement:
    """Take from this process, for good, what no program needs. Raises `OSError` if it cannot."""
    # If memory runs out, the kernel is to end this process, and no other.
    set_readable(readable=True)  # otherwise the file is root's
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE_OF_FIRST_TO_GO, encoding="ascii")
    max_threads = _n_threads_of(os.getuid() or _NOBODY) + _MAX_MORE_THREADS
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, _MAX_FILES),
        (resource.RLIMIT_NPROC, max_threads),
        (resource.RLIMIT_AS, memory_bytes),
    ):
        _limit(kind, limit, limit)
    _limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)
    if os.getuid() == 0 or os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        raise OSError("the server is gone")
    set_readable(readable=False)
    is_hidden = refuses_calls and _hide_files()
    return Confinement(refuses_calls and _refuse_calls(), is_hidden)


def become_subreaper() -> None:
    """Whatever a descendant leaves becomes a child of this process. Raises `OSError`."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_readable(*, readable: bool) -> None:
    """Whether others of the same user may look into this process's memory and files."""
    with suppress(OSError):
        _prctl(_PR_SET_DUMPABLE, int(readable))


def _limit(kind: int, soft: int, hard: int) -> None:
    """Set a limit, never above the present one."""
    _, present = resource.getrlimit(kind)
    if present != resource.RLIM_INFINITY:
        soft, hard = min(soft, present), min(hard, present)
    resource.setrlimit(kind, (soft, hard))


def _n_threads_of(user: int) -> int:
    count = 0
    for entry in os.scandir("/proc"):
        with suppress(OSError):
            if entry.name.isdecimal() and entry.stat().st_uid == user:
                count += sum(1 for _ in os.scandir(f"{entry.path}/task"))
    return count


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _hide_files() -> bool:
    """Hide files from this process and all of its threads; `False` if the kernel cannot."""
    call = ctypes.CDLL(None).syscall
    rights = struct.pack("=Q", _READ_FILE | _READ_FOLDER)
    ruleset = call(_CREATE_RULESET, rights, len(rights), 0)
    if ruleset < 0:
        return False
    try:
        for folder in (os.path.dirname(os.__file__), *_VISIBLE_FOLDERS):  # noqa: PTH120 -- pathlib is slow
            _allow_reading(call, ruleset, folder, _READ_FILE | _READ_FOLDER)
        for file in _VISIBLE_FILES:
            _allow_reading(call, ruleset, file, _READ_FILE)
        error = ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return not error and not call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow_reading(call: ctypes._NamedFuncPointer, ruleset: int, path: str, rights: int) -> None:
    """Let a path, and all below it, be read; a path that is not there is passed over."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
        finally:
            os.close(descriptor)


class _Program(ctypes.Structure):
    """The kernel's `struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _refuse_calls() -> bool:
    """Have the kernel refuse calls to this process and all of its threads; `False` if it cannot."""
    if sys.maxsize < 2**32 or os.uname().machine not in _MACHINES:
        return False
    instructions = b"".join(_filter(*_MACHINES[os.uname().machine]))
    program = _Program(len(instructions) // 8, instructions)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return not prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0)


def _filter(column: int, machine: int) -> Iterator[bytes]:
    """The instructions, each the kernel's `struct sock_filter`. A jump counts those it skips."""
    yield _instruction(_LOAD, _MACHINE_AT)
    yield from (_instruction(_EQUAL, machine, 1, 0), _instruction(_RETURN, _KILL))
    yield _instruction(_LOAD, _NUMBER_AT)
    yield from (_instruction(_AT_LEAST, _X32, 0, 1), _fail(errno.ENOSYS))
    for calls, code in ((_REFUSED, errno.EPERM), (_UNKNOWN, errno.ENOSYS)):
        for number in (numbers[column] for numbers in calls.values() if numbers[column] >= 0):
            yield from (_instruction(_EQUAL, number, 0, 1), _fail(code))
    for numbers, argument, bits in _BY_BITS.values():
        if numbers[column] >= 0:
            yield from (_instruction(_EQUAL, numbers[column], 0, 4), _load_argument(argument))
            yield from (_instruction(_ANY_BIT, bits, 0, 1), _fail(errno.EACCES))
            yield _instruction(_RETURN, _ALLOW)
    yield from (_instruction(_EQUAL, _CLONE[column], 0, 3), _load_argument(0))
    yield from (_instruction(_ANY_BIT, _THREAD, 1, 0), _fail(errno.EPERM))
    yield _instruction(_RETURN, _ALLOW)


def _load_argument(index: int) -> bytes:
    """Load the lower half of an argument: all of these are shorter."""
    return _instruction(_LOAD, _ARGUMENTS_AT + 8 * index)


def _fail(code: int) -> bytes:
    return _instruction(_RETURN, _FAIL | code)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
