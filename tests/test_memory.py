"""What many runs keep in memory, and what their processes do not."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.command import ROOT, environment

TUNABLE = b"glibc.malloc.tcache_count=0"
WORDS = ("--models", "emulator.socratic-v1:0", "--scenarios", "career-change", "--turns", "40")
PATIENCE_S = 120.0
is_glibc = sys.platform == "linux" and "CS_GNU_LIBC_VERSION" in os.confstr_names


@pytest.mark.skipif(not is_glibc, reason="another C library")
class TestThreadCaches:
    """The C library keeps none for the threads of a process that plays many runs."""

    @pytest.mark.parametrize("said", ["", "glibc.malloc.arena_max=4"])
    def test_a_process_of_many_runs_starts_again_without(self, tmp_path, said):
        with_what = {"GLIBC_TUNABLES": said} if said else {}
        with_what |= {"RUNNER_OUTPUT_DIR": str(tmp_path)}
        found = _variables((*WORDS, "--repeats", "128", "--max-connections", "128"), with_what)

        assert TUNABLE in found
        assert said.encode() in found

    def test_so_do_processes_that_it_starts(self, tmp_path):
        found = _variables(
            (*WORDS, "--repeats", "2", "--processes", "2"),
            {"RUNNER_OUTPUT_DIR": str(tmp_path)},
            of=_child,
        )

        assert TUNABLE in found


def _child(pid: int) -> int | None:
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for word in path.read_text().split():
            if b"spawn_main" in Path(f"/proc/{word}/cmdline").read_bytes():
                return int(word)
    return None


def _variables(
    words: tuple[str, ...], more: dict[str, str], of: Callable[[int], int | None] = lambda pid: pid
) -> bytes:
    """What the process was started with, once the setting is there; else when it has ended."""
    command = [sys.executable, "-m", "cli", "sweep", "--offline", "--quiet", *words]
    nowhere = subprocess.DEVNULL
    env = environment() | more
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=nowhere, stderr=nowhere)
    found, until_s = b"", time.monotonic() + PATIENCE_S
    try:
        while TUNABLE not in found and process.poll() is None and time.monotonic() < until_s:
            time.sleep(0.01)
            with suppress(OSError):  # one that has just ended
                pid = of(process.pid)
                found = Path(f"/proc/{pid}/environ").read_bytes() if pid else b""
    finally:
        process.kill()
        process.wait()
    return found
