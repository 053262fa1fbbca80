"""200 runs with 20 kills on each engine: every run once, and one report."""

import random
import time

import pytest

from tests.command import account, run
from tests.engine_runs import (
    MODELS,
    ArrayEngine,
    assert_played_once,
    batch_definition,
    batch_verdict,
    kubernetes_job,
    kubernetes_verdict,
    plan,
    shard_words,
)
from tests.engines.test_slurm import is_over, n_processes, submit, wait_until

SCENARIOS = ["ai-ethics", "career-change", "time-management", "quit-the-team", "honest-friend"]
N_CELLS, N_KILLS, N_SHARDS = 200, 20, 10
WORDS = ["sweep", "PLAN", "--shard=auto/N", "--shards-at-once=K", "--retry-failed"]


@pytest.mark.torture
@pytest.mark.parametrize("engine", ["kubernetes", "batch"])
def test_200_runs_with_20_kills_on_an_engine_that_is_played(engine, service, tmp_path):
    service.reset(latency_ms=400)
    path, out = plan(tmp_path, scenarios=SCENARIOS, repeats=20), tmp_path / "out"
    spec, definition = kubernetes_job(), batch_definition()
    is_kubernetes = engine == "kubernetes"
    array = ArrayEngine(
        variable="JOB_COMPLETION_INDEX" if is_kubernetes else "AWS_BATCH_JOB_ARRAY_INDEX",
        judge=(lambda *a: kubernetes_verdict(spec, *a))
        if is_kubernetes
        else (lambda *a: batch_verdict(definition, *a)),
        words=[*shard_words(WORDS, path, out, count=N_SHARDS), "--max-connections", "6"],
        env=account(service.url, *MODELS),
        count=N_SHARDS,
        at_once=3,
    )
    array.play(n_kills=N_KILLS, seed=40, every_s=2.5)

    assert (array.failed, array.n_killed) == ([], N_KILLS)
    assert sum(map(len, array.ended.values())) > N_SHARDS
    report = tmp_path / "report.html"
    assert run("sweep", "collect", str(out), "--html", str(report)).exit_code == 0
    assert report.stat().st_size
    assert_played_once(service, path, out, n_cells=N_CELLS)
    assert max(array.terminated_s) < 5


@pytest.mark.torture
def test_200_runs_with_20_kills_of_nodes_of_slurm(slurm, service, tmp_path):
    service.reset(latency_ms=400)
    path, out = plan(tmp_path, scenarios=SCENARIOS, repeats=20), tmp_path / "out"
    submit(slurm, service, path, out, n=N_SHARDS, at_once=4, attempts=N_KILLS + 1)
    chance, n_kills = random.Random(40), 0
    while n_kills < N_KILLS and not is_over(slurm):
        time.sleep(chance.uniform(1, 3))
        node = f"node{chance.randint(1, 3)}"
        slurm("kill", node)
        slurm("fail", node)
        slurm("boot", node)
        n_kills += 1
    wait_until(lambda: is_over(slurm), 300)

    assert n_kills == N_KILLS
    assert n_processes(out) > N_CELLS
    assert_played_once(service, path, out, n_cells=N_CELLS)
