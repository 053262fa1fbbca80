"""The process that forks commands for the tests: see `forked.py`."""

import atexit
import gc
import json
import os
import re
import runpy
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import walk_packages

# Run in a process of their own, confined, or only read by type checkers.
APART = (
    "socratic_bench.benchmarks.execution.sandbox",
    "socratic_bench.benchmarks.run_config",
)
# What the project's own modules import only where they need it.
LATER = (
    "botocore.client",
    "botocore.endpoint",
    "botocore.session",
    "difflib",
    "html.parser",
    "jinja2",
    "krippendorff",
    "scipy.optimize",
    "scipy.stats",
    "statistics",
    "tomllib",
    "ulid",
    "urllib3.connectionpool",
    "vl_convert",
)
# What plays here, apart, tells which patterns commands compile where they first need them.
MODELS = ("emulator.socratic-v1:0", "emulator.lecturer-v1:0")
STUDENTS = (None, "emulator.student-v1:0")
# More than `re` keeps of its own accord.
PATTERNS_KEPT = 10_000
# The exit code of a command that has come to its end.
_LEAVE: list[int] = []


def _import_all() -> None:
    for room in ("cli", "socratic_bench"):
        package = import_module(room)
        for module in walk_packages(package.__path__, f"{room}."):
            if not module.name.startswith(APART) and not module.name.endswith("__main__"):
                import_module(module.name)
    for name in LATER:
        import_module(name)
    _compile_all()
    # Nothing of it is garbage, and what a collector touches is copied for each process.
    gc.collect()
    gc.freeze()


def _compile_all() -> None:
    """Compile what runs compile, which takes as long as all else in a short one.

    They are played in another process: this one is to have run nothing.
    """
    re._MAXCACHE = PATTERNS_KEPT
    found, told = os.pipe()
    if not os.fork():
        try:
            _play()
            with os.fdopen(told, "w") as pipe:
                json.dump([key[1:] for key in re._cache if key[0] is str], pipe)
        finally:
            os._exit(0)  # never a second server: the first one fails where nothing was told
    os.close(told)
    with os.fdopen(found) as pipe:
        patterns = json.load(pipe)
    os.wait()
    for pattern, flags in patterns:
        re.compile(pattern, flags)


def _play() -> None:
    from socratic_bench import RunConfig, run

    for model, student in product(MODELS, STUDENTS):
        run(
            RunConfig(
                offline=True,
                model=model,
                student_model=student,
                judge_model="emulator.judge-v1:0",
                prompt="I'm considering a career change but unsure where to start.",
                turns=8,
            )
        )


def _serve(orders: socket.socket) -> None:
    """Fork for each order; returns in the process that is to be the command."""
    statuses: dict[int, int] = {}
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([orders, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _report(statuses)
        if orders in ready:
            _, descriptors, _, _ = socket.recv_fds(orders, 1, 5)
            if not descriptors:
                os._exit(0)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                orders.close()
                for descriptor in (woken, waker, *statuses.values()):
                    os.close(descriptor)
                _become(descriptors)
                return
            *others, statuses[pid] = descriptors
            for descriptor in others:
                os.close(descriptor)
            _write(statuses[pid], f"{pid}\n")


def _report(statuses: dict[int, int]) -> None:
    """Say how those ended that have ended."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = statuses.pop(ended[0])
            _write(status, str(os.waitstatus_to_exitcode(ended[1])))
            os.close(status)


def _write(status: int, text: str) -> None:
    with suppress(BrokenPipeError):
        os.write(status, text.encode())


def _leave() -> None:
    """Leave the modules unfreed, which are shared with other processes; streams are whole."""
    if _LEAVE:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_LEAVE[0])


def _become(descriptors: Sequence[int]) -> None:
    """Take the words, environment, folder and streams of the order."""
    order, *streams, status = descriptors
    os.lseek(order, 0, os.SEEK_SET)
    words, env, cwd = json.loads(os.fdopen(order, "rb").read())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.close(status)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    sys.path.insert(0, cwd)
    sys.argv = ["cli", *words]
    sys.orig_argv = [sys.executable, "-m", "cli", *words]


if __name__ == "__main__":
    atexit.register(_leave)
    _import_all()
    assert len([*Path("/proc/self/task").iterdir()]) == 1, "threads do not survive a fork"
    _serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_module("cli", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, int):
            # The first that is registered is called last: when all is done but to free the modules.
            _LEAVE.append(ended.code)
        raise
