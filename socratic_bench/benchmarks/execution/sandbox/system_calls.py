"""What a program may not ask of the kernel: a seccomp filter, where the kernel knows of any.

A program may read, reckon and begin threads. It is refused processes, signals to others, sockets,
whatever changes a file, and memory that outlives it.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterator

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER_MODE = 22, 38, 2
# Instructions of the filter: load a word, jump if equal, if not below, if a bit is set, return.
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


class _Program(ctypes.Structure):
    """The kernel's `struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def forbid() -> bool:
    """Have the kernel refuse these calls to this process and all of its threads, from now on.

    `False` if it cannot.
    """
    if sys.maxsize < 2**32 or os.uname().machine not in _MACHINES:
        return False
    written = b"".join(_filter(*_MACHINES[os.uname().machine]))
    program = _Program(len(written) // 8, written)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return not prctl(_PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0)


def _filter(place: int, machine: int) -> Iterator[bytes]:
    """Each of the kernel's `struct sock_filter`. A jump counts the instructions that it skips."""
    yield from (_one(_LOAD, _MACHINE_AT), _one(_EQUAL, machine, 1, 0), _one(_RETURN, _KILL))
    yield _one(_LOAD, _NUMBER_AT)
    yield from (_one(_AT_LEAST, _X32, 0, 1), _fail(errno.ENOSYS))
    for known, code in ((_REFUSED, errno.EPERM), (_UNKNOWN, errno.ENOSYS)):
        for number in (numbers[place] for numbers in known.values() if numbers[place] >= 0):
            yield from (_one(_EQUAL, number, 0, 1), _fail(code))
    for numbers, argument, bits in _BY_BITS.values():
        if numbers[place] >= 0:
            yield from (_one(_EQUAL, numbers[place], 0, 4), _load(argument))
            yield from (_one(_ANY_BIT, bits, 0, 1), _fail(errno.EACCES), _one(_RETURN, _ALLOW))
    yield from (_one(_EQUAL, _CLONE[place], 0, 3), _load(0))
    yield from (_one(_ANY_BIT, _THREAD, 1, 0), _fail(errno.EPERM))
    yield _one(_RETURN, _ALLOW)


def _load(argument: int) -> bytes:
    """Its lower half: all of these arguments are shorter."""
    return _one(_LOAD, _ARGUMENTS_AT + 8 * argument)


def _fail(code: int) -> bytes:
    return _one(_RETURN, _FAIL | code)


def _one(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
