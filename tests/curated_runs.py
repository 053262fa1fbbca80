"""Curated files of runs that were never played, so that what they come to is known."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

N_TURNS = 40


def curated_run(
    number: int, model: str, scenario: str, metrics: Mapping[str, Any], **keys: object
) -> dict[str, Any]:
    """The keys of a complete run that comparisons read; runs of one `seed` are pairs."""
    return {
        "kind": "curated",
        "run_id": f"run-{number:026d}",
        "status": "completed",
        "benchmark": "socratic",
        "model": model,
        "scenario": scenario,
        "prompt": f"About {scenario}.",
        "n_turns": N_TURNS,
        "end_reason": "max_turns",
        "seed": 1,
        "judge": judge_entry(),
        "metrics": dict(metrics),
        "usage": {},
        "turns": [],
        **keys,
    }


def judge_entry(*jurors: str, **keys: object) -> dict[str, Any]:
    """Who judged such a run, with all keys that have no default."""
    return {
        "model": "emulator.judge-v1:0",
        "coverage": None,
        "rubric": "socratic-disposition-2",
        "rubric_sha256": "a",
        "jurors": [{"model": one, "judged_turns": 0} for one in jurors],
        "judged_turns": 0,
        "unjudged_turns": 0,
        "unjudged_reasons": {},
        **keys,
    }


def student_entry(**keys: object) -> dict[str, Any]:
    """The same of a student."""
    return {
        "mode": "scripted",
        "model": None,
        "pressure": "none",
        "prompt_sha256": None,
        "pressure_sha256": None,
        "closing": None,
        "closing_flags": None,
        "fidelity": None,
        **keys,
    }


def write_runs(folder: Path, runs: Sequence[Mapping[str, Any]]) -> Path:
    place = folder / "curated" / "runs"
    place.mkdir(parents=True, exist_ok=True)
    for one in runs:
        (place / f"{one['run_id']}.json").write_text(json.dumps(one))
    return folder
