"""Kills a run at a moment that chance chooses, has it go on, and counts."""

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.command import assert_valid, run
from tests.resuming import AT_ONCE, BOTH, Service, account_of, bodies, comparable, start

TURNS = 40
LATENCY_MS = 15
WORDS = (*BOTH, "--seed", "3", "--quiet", "--turns")


@dataclass(frozen=True)
class Whole:
    """The run that nobody kills: its document, its requests, and how long it takes."""

    document: dict[str, Any]
    requests: Counter[str]
    seconds: float

    @property
    def turns(self) -> int:
        turns: int = self.document["n_turns"]
        return turns

    @property
    def words(self) -> Sequence[str]:
        return (*WORDS, str(self.turns))


def play_whole(service: Service, folder: Path, turns: int = TURNS) -> Whole:
    service.reset(latency_ms=LATENCY_MS)
    began_s = time.monotonic()
    store = ("--output-dir", str(folder))
    outcome = run(*WORDS, str(turns), *store, env=account_of(service))
    seconds = time.monotonic() - began_s
    assert (outcome.exit_code, outcome.document["judge"]["judged_turns"]) == (0, turns)
    return Whole(outcome.document, bodies(service), seconds)


def kill_and_go_on(service: Service, folder: Path, whole: Whole, seed: int) -> int:
    """Kill one run at a moment drawn by the seed and resume it; how many calls were repeated."""
    chance = random.Random(seed)
    service.reset(latency_ms=LATENCY_MS)
    store = ("--output-dir", str(folder))
    process = start(*whole.words, *store, "--resume", env=account_of(service))
    try:
        process.wait(chance.uniform(0, whole.seconds))
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    run_id, under_way = _left_by(folder)
    assert under_way <= AT_ONCE
    by_id = run_id is not None and chance.random() < 0.5
    again = ("resume", str(run_id)) if by_id else (*whole.words, "--resume")
    outcome = run(*again, *store, env=account_of(service))

    assert outcome.exit_code == 0, outcome.stderr
    document = outcome.document
    assert_valid("run", document)
    assert run_id in (None, document["run_id"])
    assert comparable(document) == comparable(whole.document)
    assert set(bodies(service)) == set(whole.requests)
    repeated = (bodies(service) - whole.requests).total()
    assert repeated <= under_way
    _assert_whole(folder, document, whole.turns)
    return repeated


def _left_by(folder: Path) -> tuple[str | None, int]:
    """The run that the journal holds, if there is one, and the calls that were under way."""
    found = list(folder.glob("journal/runs/*.jsonl"))
    if not found:
        return None, 0
    asked: set[str] = set()
    lines = found[0].read_bytes().split(b"\n")[:-1]  # a line that was cut is none
    for entry in map(json.loads, lines):
        key = json.dumps(entry.get("key"), sort_keys=True)
        if entry["kind"] == "asked":
            asked.add(key)
        elif entry["kind"] in ("answered", "failed"):
            asked.discard(key)
    return (found[0].stem if lines else None), len(asked)


def _assert_whole(folder: Path, document: dict[str, Any], turns: int) -> None:
    """Every file of the run is there, and the curated one says what was printed."""
    run_id = document["run_id"]
    names = {path.name for path in (folder / "raw" / "runs" / run_id).iterdir()}
    assert names >= {f"{kind}_{n:03d}.json" for kind in ("turn", "judge") for n in range(turns)}
    curated = json.loads((folder / "curated" / "runs" / f"{run_id}.json").read_bytes())
    assert curated == {**document, "kind": "curated"}
    assert list(folder.rglob(".*")) == []  # what the killed process had half written
