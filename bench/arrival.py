"""From a process's start to its first byte at a server: a bare socket that notes the time."""

import socket
import subprocess
import time
from collections.abc import Sequence

from bench.contenders import ROOT, environment

MAX_WAIT_S = 60.0


def first_byte_s(words: Sequence[str]) -> float:
    """Seconds until the process has sent its first byte; it gets no answer, and is ended then."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(MAX_WAIT_S)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        started_s = time.monotonic()
        process = subprocess.Popen(
            words,
            env=environment(url),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(MAX_WAIT_S)
                connection.recv(1)
                return time.monotonic() - started_s
        finally:
            process.kill()
            process.wait()
