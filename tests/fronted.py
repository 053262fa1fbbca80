"""Forks commands that other processes ask for: those of a shell that a document is typed into.

A script stands there for the command: it hands over words, environment, folder and streams, passes
signals on, and ends as the command has ended. If it is killed, so is the command.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from tests.forked import COMMAND, Process, can_fork

# Starts without site packages, in a hundredth of a second.
SCRIPT = r"""
import json, os, signal, socket, sys

asked = socket.socket(socket.AF_UNIX)
asked.connect(SOCKET)
order = os.memfd_create("order")
os.write(order, json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode())
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, lambda number, _: asked.send(bytes([number])))
socket.send_fds(asked, [b"."], [order, 0, 1, 2])
code = int(asked.recv(16) or sys.exit("nobody forks commands any more"))
if code == CANNOT:
    os.execv(COMMAND[0], [*COMMAND, *sys.argv[1:]])
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""
CANNOT = 1000  # no exit code: with these variables an interpreter has to be started


class Front:
    """A socket in a folder, and the script that asks there."""

    def __init__(self, folder: Path) -> None:
        path, script = folder / "socket", folder / "script.py"
        constants = f"SOCKET={str(path)!r}; CANNOT={CANNOT}; COMMAND={COMMAND!r}\n"
        script.write_text(constants + SCRIPT)
        self.command = (sys.executable, "-I", "-S", str(script))
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._served: list[Thread] = []
        self._accepting = Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """No more commands; those under way have ended then."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listening.close()
        for one in self._served:
            one.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                asked, _ = self._listening.accept()
                self._served.append(Thread(target=_serve, args=(asked,), daemon=True))
                self._served[-1].start()


def _serve(asked: socket.socket) -> None:
    with asked:
        _, descriptors, _, _ = socket.recv_fds(asked, 1, 4)
        try:
            process = _begun(descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        code = CANNOT
        if process:
            has_ended = Event()
            Thread(target=_pass_on, args=(asked, process.pid, has_ended), daemon=True).start()
            code = process.wait()
            has_ended.set()
        with suppress(BrokenPipeError):
            asked.send(str(code).encode())


def _begun(descriptors: Sequence[int]) -> Process | None:
    order, stdin, stdout, stderr = descriptors
    os.lseek(order, 0, os.SEEK_SET)
    words, env, cwd = json.loads(os.fdopen(order, "rb", closefd=False).read())
    # What is read in a home when modules are imported is not there, in the one or the other.
    if not can_fork({**env, "HOME": os.environ["HOME"]}):
        return None
    return Process(words, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)


def _pass_on(asked: socket.socket, pid: int, has_ended: Event) -> None:
    """Signals, as long as there is somebody who gets them."""
    with suppress(OSError):
        while number := asked.recv(1):
            os.kill(pid, number[0])
        if not has_ended.is_set():
            os.kill(pid, signal.SIGKILL)
