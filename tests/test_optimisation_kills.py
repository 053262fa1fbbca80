"""A run that is killed again and again loses no finished item, and pays no call twice."""

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.emulator.models import agent
from tests.command import account, begin, run
from tests.optimisation_emulated import known_tasks, prepare

MODEL = "emulator.agent-good-v1:0"
AT_ONCE = 4
CALLS = 5  # of an agent, for an item


def kill_again_and_again(folder: Path, task, *, kills: int, chance: random.Random) -> None:
    """Kill the run at moments that chance chooses, let it go on, and count."""
    agent.learn(known_tasks())
    words = (
        *("run", "--model", MODEL, *task.words, "--output-dir", str(folder), "--resume", "--quiet"),
        *("--max-concurrency", str(AT_ONCE)),
    )
    finished: dict[Path, bytes] = {}
    with Emulator(Settings()) as emulator:
        env = account(emulator.url, MODEL)
        for _ in range(kills):
            process = begin(*words, env=env)
            time.sleep(chance.uniform(0.5, 6.0))
            process.kill()
            process.communicate()
            assert {path: path.read_bytes() for path in finished} == finished
            for name in ("ended.json", "evaluation.json", "model_patch.diff"):
                for path in folder.glob(f"optimisation-work/run-*/*/{name}"):
                    finished.setdefault(path, path.read_bytes())
        outcome = run(*words, env=env)
        bodies = Counter(request.body_sha256 for request in emulator.requests)

    document = json.loads(outcome.stdout)
    assert outcome.exit_code == 0, outcome.stderr
    assert len([*folder.glob("optimisation-work/run-*")]) == 1
    assert {path: path.read_bytes() for path in finished} == finished
    assert [turn["item_id"] for turn in document["turns"]] == task.ids
    assert all(turn["performance"] == "similar" for turn in document["turns"])
    assert document["usage"]["model"]["calls"] == CALLS * len(task.ids)
    # Only what was under way when the process was killed is sent again.
    assert len(bodies) == CALLS * len(task.ids)
    assert sum(bodies.values()) - len(bodies) <= AT_ONCE * kills


def test_a_killed_run_goes_on(tmp_path):
    task = prepare(tmp_path / "task", "render", visible=False)
    kill_again_and_again(tmp_path / "out", task, kills=2, chance=random.Random(1))


@pytest.mark.torture
def test_twenty_kills_of_twelve_items(tmp_path):
    task = prepare(tmp_path / "task", "match", "clean", "render", n_copies=4, visible=False)
    kill_again_and_again(tmp_path / "out", task, kills=20, chance=random.Random(2))
