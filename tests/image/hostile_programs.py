"""Executes programs that start processes, as the sandbox does. To be run in a container only.

Prints each program's outcome, and every process left in the container after it.
"""

import json
import os
import sys
import time
from pathlib import Path

from socratic_bench.benchmarks.execution.sandbox.client import Limits, sandbox

DAEMON = """
import os, time
def f():
    for _ in range(2):
        if os.fork():
            return 5
        os.setsid()
    while True:
        time.sleep(0.01)
"""
PROGRAMS = {
    # Its parents have ended, it has its own session, and it keeps all pipes open.
    "daemon": DAEMON,
    "deaf": DAEMON.replace(
        "    while True:",
        "    import signal\n    [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 13, 15)]\n"
        "    while True:",
    ),
    "bomb": """
import os
def f():
    while True:
        try:
            os.fork()
        except OSError:
            pass
""",
    # Each process starts the next and ends, so that killing one comes too late.
    "hops": """
import os
def f():
    while True:
        if os.fork():
            os._exit(0)
""",
    "waits": """
import os, time
def f():
    if os.fork():
        return 5
    time.sleep(1000)
""",
    "floods": DAEMON.replace("time.sleep(0.01)", "os.write(1, b'x' * 4096)"),
    "threads": """
import threading, time
def f():
    try:
        while True:
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    except RuntimeError:
        return 5
""",
    "kills": """
import os
def f():
    if os.fork() == 0:
        os.setsid()
        while True:
            pass
    os.kill(os.getppid(), 9)
    return 5
""",
    "forges": """
import os
def f():
    for n in range(1, 64):
        try:
            os.write(n, b'{"outcome": "ok", "cases": [{"repr": "5"}]}\\n')
        except OSError:
            pass
    os._exit(0)
""",
    "calm": "def f():\n    return 5\n",
}


def main() -> None:
    outcomes = {}
    limits = Limits(timeout_s=2, memory_bytes=2**28, refuses_calls=sys.argv[1:] == ["refused"])
    with sandbox(1, limits) as box:
        for name, code in PROGRAMS.items():
            (execution,) = box.execute(code, ["f()"])
            case = execution.cases[0] if execution.cases else None
            outcomes[name] = {
                "outcome": execution.outcome,
                "text": case and case.text,
                "error": case and case.error,
                "has_left": execution.n_left > 0,
                "processes": other_processes(),
            }
    time.sleep(0.1)
    print(json.dumps({"programs": outcomes, "processes": other_processes()}))  # noqa: T201 -- its result


def other_processes() -> list[str]:
    """All processes but this one and the sandbox's server."""
    here = os.getpid()
    left = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == here:
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        if not ("server.main()" in words and parent == here):
            left.append(f"{entry.name} of {parent}: {words}")
    return left


if __name__ == "__main__":
    main()
