"""A dialogue as its stored turns and verdicts have it, complete or not."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from socratic_bench.benchmarks import RunConfig
from socratic_bench.settings import table
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import ListedStore
from socratic_bench.studies.places import read_all

SCORE = "overall_score"


class ShownTurn(Struct, frozen=True, kw_only=True):
    """A turn with its verdict; `is_lapse` is `None` while there is none."""

    turn: int
    speakers: tuple[str, str]
    prompt: str
    reply: str
    pressure: str | None = None
    score: float | None = None
    scores: Mapping[str, float | None] = {}
    rationale: Mapping[str, str] = {}
    events: Sequence[str] = ()
    is_judged: bool = False
    is_lapse: bool | None = None
    unjudged_reason: str | None = None


class Dialogue(Struct, frozen=True, kw_only=True):
    """The turns of a run, in order."""

    run_id: str
    turns: Sequence[ShownTurn]


def read_dialogue(store: ListedStore, run_id: str) -> Dialogue:
    """What is stored of a run by now."""
    keys = sorted(key for key in store.keys(RunKeys(run_id).raw) if key.endswith(".json"))
    names = {key: key.rpartition("/")[2].removesuffix(".json") for key in keys}
    wanted = [key for key in keys if names[key].startswith(("turn_", "judge_"))]
    files: dict[str, Mapping[str, Any]] = {}
    for key, body in zip(wanted, read_all(wanted, store.get), strict=True):
        with suppress(msgspec.DecodeError):
            files[names[key]] = msgspec.json.decode(body or b"{}", type=dict)
    threshold = table(RunConfig)["compliance_threshold"].default
    turns = [
        _turn(file, files.get(name.replace("turn_", "judge_")), threshold)
        for name, file in sorted(files.items(), key=lambda entry: entry[1].get("turn", 0))
        if name.startswith("turn_")
    ]
    return Dialogue(run_id=run_id, turns=turns)


def _turn(
    file: Mapping[str, Any], verdict: Mapping[str, Any] | None, threshold: float
) -> ShownTurn:
    verdict = verdict or {}
    score = verdict.get(SCORE)
    return ShownTurn(
        turn=file.get("turn", 0),
        speakers=("Student", "Tutor") if "scenario" in file else ("Prompt", "Reply"),
        prompt=str(file.get("student_prompt") or file.get("prompt") or ""),
        reply=str(file.get("ai_response") or ""),
        pressure=file.get("pressure"),
        score=score,
        scores=verdict.get("scores") or {},
        rationale=verdict.get("rationale") or {},
        events=[name for name, is_there in (verdict.get("events") or {}).items() if is_there],
        is_judged=score is not None,
        is_lapse=None if score is None else score < threshold,
        unjudged_reason=verdict.get("unjudged_message") or verdict.get("unjudged_reason"),
    )
