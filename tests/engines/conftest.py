"""A Slurm of three nodes on this machine, by the tool that stands beside the checkout."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shutil import rmtree

import pytest

from tests.command import ROOT
from tests.resuming import Service

TOOL = ROOT.parent / "shared" / "tools" / "slurm.sh"
SLURM_TOOL = Path(os.environ.get("SLURM_TOOL") or TOOL)
STATE = "/tmp/socratic-slurm"  # noqa: S108 -- sockets need a short path


@pytest.fixture(scope="session")
def slurm() -> Iterator[Callable[..., str]]:
    """Runs a command of the tool, such as `slurm("run", "squeue")`, and returns what it prints."""
    env = {**os.environ, "STATE": STATE, "NODES": "3", "CPUS": "2"}

    def call(*words: str) -> str:
        return subprocess.run(
            ["bash", str(SLURM_TOOL), *words],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    call("down")
    rmtree(STATE, ignore_errors=True)  # else the queue of a session that was killed goes on
    call("up")
    try:
        yield call
    finally:
        call("down")


@pytest.fixture
def service() -> Iterator[Service]:
    with closing(Service()) as service:
        yield service
