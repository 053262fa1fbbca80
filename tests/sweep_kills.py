"""Kills a sweep at a moment that chance chooses, has it go on, and counts."""

import json
import random
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.command import account, run
from tests.resuming import Service, bodies, start

MODELS = ("emulator.socratic-v1:0", "emulator.leading-v1:0")
SCENARIOS = ("ai-ethics", "career-change", "time-management")
LATENCY_MS = 10
AT_ONCE = 8
WORDS = (
    *("sweep", "--models", *MODELS, "--scenarios", *SCENARIOS, "--repeats", "4", "--turns", "2"),
    *("--judge-model", "emulator.judge-v1:0", "--seed", "3", "--max-connections", str(AT_ONCE)),
)
N_CELLS = 24


@dataclass(frozen=True)
class Whole:
    """The sweep that nobody kills: its document, its requests, and how long it takes. `looked` are
    the requests of the look at its models, which each process of a sweep has beside its cells.
    """

    document: dict[str, Any]
    requests: Counter[str]
    looked: frozenset[str]
    seconds: float


def environment_of(service: Service) -> dict[str, str]:
    return account(service.url, *MODELS)


def play_whole(service: Service, folder: Path) -> Whole:
    service.reset()
    run("doctor", *WORDS[1:], env=environment_of(service))
    looked = frozenset(bodies(service))
    service.reset(latency_ms=LATENCY_MS)
    began_s = time.monotonic()
    outcome = run(*WORDS, "--output-dir", str(folder), env=environment_of(service))
    assert (outcome.exit_code, outcome.document["n_completed"]) == (0, N_CELLS), outcome.stderr
    seconds = time.monotonic() - began_s
    assert looked
    assert looked <= bodies(service).keys()
    return Whole(outcome.document, bodies(service), looked, seconds)


def kill_and_go_on(service: Service, folder: Path, whole: Whole, seed: int) -> None:
    """Kill one sweep at a moment drawn by the seed, and resume it."""
    chance = random.Random(seed)
    service.reset(latency_ms=LATENCY_MS)
    words = (*WORDS, "--output-dir", str(folder))
    process = start(*words, env=environment_of(service))
    try:
        process.wait(chance.uniform(0, whole.seconds))
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    ended = _ended(folder)
    n_under_way = sum(under_way(path) for path in folder.glob("journal/runs/*.jsonl"))
    outcome = run(*words, "--resume", env=environment_of(service))

    assert outcome.exit_code == 0, outcome.stderr
    document = outcome.document
    assert _figures(document) == _figures(whole.document)
    assert set(bodies(service)) == set(whole.requests)
    repeated = bodies(service) - whole.requests
    assert sum(repeated[body] for body in repeated if body not in whole.looked) <= n_under_way
    runs = [cell["run_id"] for cell in document["runs"]]
    assert len({*runs}) == N_CELLS
    assert {path.stem for path in folder.glob("curated/runs/*.json")} == {*runs}
    assert ended.items() <= _ended(folder).items()  # none was written anew


def _figures(document: dict[str, Any]) -> list[tuple[str, float]]:
    return [(cell["key"], cell["value"]) for cell in document["runs"]]


def _ended(folder: Path) -> dict[str, int]:
    """The runs that are complete, and when their files were written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("curated/runs/*.json")}


def under_way(path: Path) -> int:
    """Calls that were sent and not answered, by a journal."""
    asked: set[str] = set()
    for line in path.read_bytes().split(b"\n")[:-1]:  # a line that was cut is none
        entry = json.loads(line)
        key = json.dumps(entry.get("key"), sort_keys=True)
        if entry["kind"] == "asked":
            asked.add(key)
        elif entry["kind"] in ("answered", "failed"):
            asked.discard(key)
    return len(asked)
