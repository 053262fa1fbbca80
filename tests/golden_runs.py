"""Runs of the benchmark `golden`, looked at from outside."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests import schemas
from tests.command import ROOT, Outcome, account, run

DATA = ROOT / "socratic_bench" / "benchmarks" / "golden" / "data"
JUDGE = "emulator.judge-v1:0"
KINDS = ("right", "half-right", "wrong", "refuses", "off-format")

fitting = partial(schemas.fitting, benchmark="golden")


def model(kind: str) -> str:
    return f"emulator.{kind}-v1:0"


def shipped() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "items.jsonl").read_text().splitlines()]


def row(name: str = "capital", **fields: Any) -> dict[str, Any]:
    """An item of one's own, which the emulator's models know."""
    return {
        "id": name,
        "prompt": f"What is the capital of France? ({name})",
        "golden_answer": "Paris is the capital of France.",
        "emulator_answer": {"half-right": "It is Paris.", "wrong": "It is Lyon."},
        **fields,
    }


def data_set(path: Path, *rows: Mapping[str, Any]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return str(path)


def golden(*words: str, kind: str = "right") -> Outcome:
    """A run on the embedded endpoint."""
    base = ("--offline", "--benchmark", "golden", "--model", model(kind), "--seed", "1")
    return run(*base, *words)


def played(*words: str, kind: str = "right", exit_code: int = 0) -> Any:
    """The document of such a run."""
    outcome = golden(*words, kind=kind)
    assert outcome.exit_code == exit_code, outcome.stderr
    return fitting(json.loads(outcome.stdout))


def served(
    *words: str, faults: Sequence[str] = (), kind: str = "right", exit_code: int = 0
) -> tuple[Any, list[Any]]:
    """The document of a run against an emulator with faults, and the requests that this one got."""
    options = Settings(faults=tuple(map(parse_fault, faults)), keep_bodies=True)
    with Emulator(options) as emulator:
        base = ("--benchmark", "golden", "--model", model(kind), "--judge-model", JUDGE)
        base = (*base, "--seed", "1", *words)
        outcome = run(*base, env=account(emulator.url, model(kind)))
        assert outcome.exit_code == exit_code, outcome.stderr
        return json.loads(outcome.stdout), emulator.requests
