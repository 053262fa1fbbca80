"""In new namespaces of `unshare`: hides folders, gives up all rights, and runs one command.

A script of the standard library alone, started by `isolation`. Its argument is JSON:
`{"hidden", "visible", "writable", "folder", "command"}`. The first process of the namespace stays
as the parent of the command, since signals would not reach the command in its place; when the
parent exits, the kernel kills whatever the command has left behind.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_MS_BIND, _MS_REC, _MS_NOSUID, _MS_NODEV = 0x1000, 0x4000, 2, 4
_MOUNT_SETATTR = 442  # the number of the system call on all machines
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_READ_ONLY = 1
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def main() -> None:
    order: dict[str, Any] = json.loads(sys.argv[1])
    start_loopback()
    hide_folders(order)
    give_up_rights()
    os.chdir(order["folder"])
    pid = os.fork()
    if pid == 0:
        os.execv("/bin/sh", ["sh", "-c", order["command"]])  # noqa: S606 -- what this is for
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for descriptor in range(3):  # a reader sees the end of the command's output
        os.close(descriptor)
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def start_loopback() -> None:
    """The command may talk to itself at 127.0.0.1, and to nobody else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def hide_folders(order: dict[str, Any]) -> None:
    """Make all files read-only, cover the hidden folders, and bring back those that are visible."""
    shown = [*order["visible"], *order["writable"]]
    # Opened beforehand: their paths may be covered below.
    descriptors = {folder: os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in shown}
    _set_read_only("/", sets=_READ_ONLY, flags=_AT_RECURSIVE)
    for folder in order["hidden"]:
        if Path(folder).is_dir():
            _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0777")
    for folder, descriptor in descriptors.items():
        Path(folder).mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", folder, None, _MS_BIND | _MS_REC, None)
        os.close(descriptor)
    for folder in order["writable"]:
        _set_read_only(folder, clears=_READ_ONLY)


def give_up_rights() -> None:
    """Without capabilities the command can neither uncover what is hidden nor write elsewhere."""
    capability = 0
    while _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None) -> None:
    words = [word.encode() if word is not None else None for word in (source, target, kind, data)]
    result = _LIBC.mount(*words[:3], ctypes.c_ulong(flags), words[3])
    _check(result, f"mount over {target}")


def _set_read_only(folder: str, *, sets: int = 0, clears: int = 0, flags: int = 0) -> None:
    attributes = struct.pack("QQQQ", sets, clears, 0, 0)
    number, path = ctypes.c_long(_MOUNT_SETATTR), folder.encode()
    size = ctypes.c_size_t(len(attributes))
    result = _LIBC.syscall(number, _AT_FDCWD, path, flags, attributes, size)
    _check(result, f"mount_setattr of {folder}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
