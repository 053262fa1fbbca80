"""Runs in this process the commands of a shell that a page is typed into.

A script stands there for the command: it hands over its words, environment, folder and streams, and
ends with the command's exit code. A command that serves, or that reads what another command writes,
becomes a process of its own.
"""

import json
import os
import select
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.command import COMMAND, run_on_streams

# Starts without site packages, in a hundredth of a second.
SCRIPT = r"""
import json, os, socket, stat, sys

if sys.argv[1:2] == ["emulator"] or stat.S_ISFIFO(os.fstat(0).st_mode):
    os.execv(COMMAND[0], [*COMMAND, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect(SOCKET)
request = os.memfd_create("request")
os.write(request, json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode())
socket.send_fds(server, [b"."], [request, 0, 1, 2])
sys.exit(int(server.recv(16)))
"""


class StandIn:
    """A socket in a folder, and the script that asks there."""

    def __init__(self, folder: Path) -> None:
        path, script = folder / "socket", folder / "script.py"
        script.write_text(f"SOCKET={str(path)!r}; COMMAND={COMMAND!r}\n{SCRIPT}")
        self.command = (sys.executable, "-I", "-S", str(script))
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()

    def close(self) -> None:
        self._listening.close()

    def serve(self, process: subprocess.Popen[Any], timeout_s: float) -> None:
        """Run what is asked for, one command after the other, until the process has ended.

        It raises TimeoutExpired where nothing was asked for in so many seconds.
        """
        ended = os.pidfd_open(process.pid)
        try:
            while True:
                ready, _, _ = select.select([self._listening, ended], [], [], timeout_s)
                if not ready:
                    raise subprocess.TimeoutExpired(process.args, timeout_s)
                if self._listening not in ready:
                    return
                self._run_next()
        finally:
            os.close(ended)

    def _run_next(self) -> None:
        client, _ = self._listening.accept()
        with client:
            _, (request, stdin, stdout, stderr), _, _ = socket.recv_fds(client, 1, 4)
            with os.fdopen(request, "rb") as file:
                file.seek(0)
                words, env, cwd = json.load(file)
            streams = (os.fdopen(stdin, "rb"), os.fdopen(stdout, "wb"), os.fdopen(stderr, "wb"))
            code = run_on_streams(words, *streams, env=env, cwd=Path(cwd))
            client.send(str(code).encode())
