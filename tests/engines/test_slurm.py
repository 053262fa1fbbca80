"""A sweep as an array of a real Slurm with three nodes, of which one is killed."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.command import ROOT, account, run
from tests.engine_runs import MODELS, assert_played_once, plan
from tests.resuming import Service

SCRIPT = ROOT / "deploy" / "slurm" / "sweep.sbatch"


def submit(
    slurm: Callable[..., str],
    service: Service,
    path: Path,
    out: Path,
    *,
    n: int,
    at_once: int,
    attempts: int = 5,
) -> None:
    """Submit the array with the command of this checkout, which needs no other installation."""
    folder = path.parent
    runner = folder / "socratic-runner"
    env = account(service.url, *MODELS)
    names = [name for name in env if name.startswith(("AWS_", "BEDROCK_", "PYTHONPATH"))]
    lines = "".join(f"export {name}='{env[name]}'\n" for name in names)
    runner.write_text(f'#!/bin/bash\n{lines}exec {sys.executable} -m cli "$@"\n')
    runner.chmod(0o755)
    # With --export, Slurm would run a login shell for each task.
    variables = ("env", f"RUNNER={runner}", f"ATTEMPTS={attempts}")
    words = (f"--array=0-{n - 1}%{at_once}", f"--chdir={folder}")
    command = (str(SCRIPT), str(path), "-o", str(out), "--shards-at-once", str(at_once))
    slurm("run", *variables, "sbatch", "--mem=0", *words, *command)


def wait_until(is_true: Callable[[], object], seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < until_s
        time.sleep(0.3)


def n_processes(out: Path) -> int:
    """How often a process began or continued a run."""
    journals = [path.read_text() for path in out.glob("journal/runs/*.jsonl")]
    return sum(journal.count('"kind":"process"') for journal in journals)


def is_over(slurm: Callable[..., str]) -> bool:
    """Whether no task is left; those that Slurm holds for two minutes begin at once."""
    tasks = slurm("run", "squeue", "-h", "-r", "-O", "JobID,RestartCnt,StateCompact,StartTime")
    for job, n_restarts, state, _ in (line.split() for line in tasks.splitlines()):
        if state == "PD" and n_restarts != "0":
            with suppress(subprocess.CalledProcessError):  # it has begun meanwhile
                slurm("run", "scontrol", "update", f"jobid={job}", "starttime=now")
    return not tasks.strip()


def test_a_sweep_on_three_nodes_of_which_one_is_killed_plays_every_run_once(
    slurm, service: Service, tmp_path
):
    service.reset(latency_ms=300)
    path, out = plan(tmp_path, scenarios=["ai-ethics", "career-change"], repeats=4), tmp_path / "o"
    submit(slurm, service, path, out, n=6, at_once=6)
    wait_until(lambda: len([*out.glob("raw/runs/*/turn_000.json")]) >= 4, 60)
    slurm("kill", "node2")
    slurm("fail", "node2")
    slurm("boot", "node2")
    wait_until(lambda: is_over(slurm), 120)

    assert n_processes(out) > 16  # some runs were continued
    assert_played_once(service, path, out, n_cells=16)


def test_a_cancelled_task_leaves_a_whole_state(slurm, service: Service, tmp_path):
    service.reset(latency_ms=300)
    path, out = plan(tmp_path, scenarios=["ai-ethics"], repeats=2), tmp_path / "o"
    submit(slurm, service, path, out, n=1, at_once=1)
    wait_until(lambda: [*out.glob("raw/runs/*/turn_000.json")], 60)
    slurm("run", "scancel", "--signal=TERM", "--batch", "-n", "socratic-sweep")
    (document,) = tmp_path.glob("socratic-sweep-*_0.json")
    wait_until(lambda: document.stat().st_size, 5)
    slurm("run", "scancel", "-n", "socratic-sweep")
    status = run("sweep", "status", str(out)).document

    assert status["n_running"] == 0
    assert status["n_completed"] < status["n_runs"] == 4
    assert all(unfinished["n_turns"] for unfinished in status["unfinished"])
