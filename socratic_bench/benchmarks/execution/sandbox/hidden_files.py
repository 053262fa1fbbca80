"""What a program may not see: files and other processes, where the kernel has Landlock.

Python's own files stay, and those of the system's libraries. Landlock also keeps a process from
looking into any other one that is not confined with it, as into its environment, be it of the same
user: see landlock(7).
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import suppress

_PR_SET_NO_NEW_PRIVS = 38
# The same on all machines.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo")
_FILES = ("/dev/null", "/dev/urandom", "/dev/zero", "/etc/localtime")


def hide_files() -> bool:
    """From this process and all of its threads, from now on; `False` if the kernel cannot."""
    call = ctypes.CDLL(None).syscall
    handled = struct.pack("=Q", _READ_FILE | _READ_FOLDER)
    ruleset = call(_CREATE_RULESET, handled, len(handled), 0)
    if ruleset < 0:
        return False
    try:
        for path, access in _readable():
            with suppress(OSError):  # not every system has all of them
                _allow(call, ruleset, path, access)
        no_more = ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return not no_more and not call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _readable() -> Iterator[tuple[str, int]]:
    for folder in (os.path.dirname(os.__file__), *_FOLDERS):  # noqa: PTH120 -- pathlib is slow
        yield folder, _READ_FILE | _READ_FOLDER
    yield from ((file, _READ_FILE) for file in _FILES)


def _allow(call: "ctypes._NamedFuncPointer", ruleset: int, path: str, access: int) -> None:
    """What is at a path, and all below it. Raises `OSError` if there is nothing."""
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", access, place)
        call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(place)
