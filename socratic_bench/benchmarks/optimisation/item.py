"""One item from its start to its turn: prepared, evaluated, and its files stored."""

import json
import threading
from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.optimisation import evidence
from socratic_bench.benchmarks.optimisation.agent import StepRecord
from socratic_bench.benchmarks.optimisation.conversation import LineLog
from socratic_bench.benchmarks.optimisation.document import (
    MOST_PATCH_CHARACTERS,
    OptimisationTurn,
)
from socratic_bench.benchmarks.optimisation.evaluating import (
    Evaluation,
    Venue,
    evaluate,
    regrade,
)
from socratic_bench.benchmarks.optimisation.evidence import Evidence
from socratic_bench.benchmarks.optimisation.measuring import Ratio
from socratic_bench.benchmarks.optimisation.outcomes import ItemResult
from socratic_bench.benchmarks.optimisation.preparing import (
    ItemFolder,
    Prepared,
    Workplace,
    folder_of,
    prepare_item,
)
from socratic_bench.benchmarks.optimisation.task import ItemSpec
from socratic_bench.benchmarks.optimisation.task_text import VERSION
from socratic_bench.benchmarks.optimisation.trajectory import (
    TrajectoryStep,
    summary_of,
    trajectory_of,
)
from socratic_bench.ports.benchmark import EpisodeContext
from socratic_bench.turns import recorded_reply
from socratic_bench.types import clean

POLL_S = 0.2
MOST_STEPS_SHOWN = 200
# Items are prepared side by side and measured one after the other, so that none slows another.
_measuring = threading.Lock()


class Item(Struct, frozen=True, kw_only=True):
    """An item of a run; `expected_tests` and the `human`'s speed-up are of its certificate."""

    spec: ItemSpec
    expected_tests: tuple[str, ...]
    human: Ratio | None = None
    is_measurable: bool = True


def play_item(
    context: EpisodeContext, index: int, item: Item, place: Workplace, venue: Venue | None
) -> OptimisationTurn:
    """Have the item prepared and, with a venue, evaluated. Raises what ends the run."""
    prepared = prepare_item(context, index, item.spec, place)
    folder = folder_of(place.folder, index)
    evaluation = _evaluated(context, item, prepared, folder, venue) if venue else None
    steps = _trajectory(prepared, folder)
    signs = _signs(evaluation, steps, folder)
    result = _result(item, prepared, evaluation)
    patch = prepared.patch.decode("utf-8", "replace")
    reply = prepared.calls[-1] if prepared.calls else recorded_reply("", "end_turn")
    reasons = (
        prepared.result.message,
        evaluation.patch_reason if evaluation else "",
        evaluation.correctness_reason if evaluation else "",
        evaluation.fault if evaluation else "",
    )
    turn = OptimisationTurn(
        index=index,
        prompt=prepared.text,
        reply=reply,
        result=result,
        agent_calls=prepared.calls,
        message=clean(" ".join(filter(None, reasons))),
        prediction=prepared.result.prediction,
        n_steps=prepared.result.n_steps,
        worked_s=prepared.result.worked_s,
        patch=clean(patch[:MOST_PATCH_CHARACTERS]),
        changed=tuple(map(clean, prepared.changed)),
        outside=tuple(map(clean, prepared.outside)),
        skipped=tuple(map(clean, prepared.skipped)),
        trajectory=tuple(map(summary_of, steps[:MOST_STEPS_SHOWN])),
        speed=evaluation.verdict if evaluation else None,
        evidence=signs,
        samples=evaluation.samples if evaluation else (),
        metric=item.spec.metric,
        summary=_summary(result),
    )
    _store(context, prepared, turn, folder)
    return turn


def _evaluated(
    context: EpisodeContext, item: Item, prepared: Prepared, folder: ItemFolder, venue: Venue
) -> Evaluation:
    """A new evaluation or, of an item that was evaluated before, its samples judged again. What
    base or human failed by is tried again.
    """
    stored = folder.read("evaluation.json")
    earlier = msgspec.json.decode(stored, type=Evaluation) if stored is not None else None
    if earlier is not None and not earlier.fault:
        return regrade(earlier)
    while not _measuring.acquire(timeout=POLL_S):
        context.check()
    try:
        venue = replace(venue, check=context.check)
        evaluation = evaluate(item.spec, prepared.patch, venue, expected_tests=item.expected_tests)
    finally:
        _measuring.release()
    folder.write("evaluation.json", msgspec.json.encode(evaluation))
    return evaluation


def _trajectory(prepared: Prepared, folder: ItemFolder) -> list[TrajectoryStep]:
    """The steps of the agent; an external agent may have written its own file of them."""
    records = [*LineLog(folder.path / "steps.jsonl", StepRecord).read()]
    steps = trajectory_of(prepared.calls, records)
    if not folder.read("trajectory.json"):
        folder.write("trajectory.json", msgspec.json.encode(steps))
    return steps


def _signs(
    evaluation: Evaluation | None, steps: Sequence[TrajectoryStep], folder: ItemFolder
) -> tuple[Evidence, ...]:
    commands = [
        str(argument)
        for step in steps
        for call in step.calls
        if isinstance(call.arguments, dict) and call.tool != "replace"
        for argument in call.arguments.values()
    ]
    found = evidence.in_commands(commands, str(folder.workspace))
    return (*(evaluation.evidence if evaluation else ()), *found)


def _result(item: Item, prepared: Prepared, evaluation: Evaluation | None) -> ItemResult:
    verdict = evaluation.verdict if evaluation else None
    human = verdict.human_over_base if verdict else item.human
    is_lost = prepared.result.stop == "setup_failed" or bool(evaluation and evaluation.fault)
    return ItemResult(
        item_id=item.spec.item_id,
        stop=prepared.result.stop,
        patch=evaluation.patch if evaluation else prepared.status,
        correctness=evaluation.correctness if evaluation else None,
        performance=verdict.performance if verdict else None,
        improved=verdict.improved if verdict else None,
        at_least_similar=verdict.at_least_similar if verdict else None,
        speedup=verdict.over_base.median if verdict else None,
        ratio=verdict.over_human.median if verdict else None,
        human_speedup=human.median if human else None,
        expected_speedup=prepared.result.prediction.expected_speedup,
        is_evaluated=evaluation is not None and not is_lost,
        is_measurable=item.is_measurable,
        is_lost=is_lost,
    )


def _summary(result: ItemResult) -> str:
    """The item in a few words for progress lines."""
    speed = f", {result.speedup:.2f} times as fast" if result.speedup else ""
    how = "success" if result.is_success else result.failure or result.patch
    return f"{result.item_id}: {how}{speed}"


def _store(
    context: EpisodeContext,
    prepared: Prepared,
    turn: OptimisationTurn,
    folder: ItemFolder,
) -> None:
    """Write the item's files by the names of the original pipeline, and have the run store them."""
    result = turn.result
    is_ok = result.stop == "finished" and result.patch != "empty"
    statuses = {
        "stop": result.stop,
        "patch": result.patch,
        "correctness": result.correctness,
        "performance": result.performance,
    }
    summary = {
        "item_id": result.item_id,
        **statuses,
        "is_success": result.is_success,
        "n_steps": turn.n_steps,
        "worked_s": turn.worked_s,
        "expected_speedup": result.expected_speedup,
        "cause": turn.prediction.cause,
        "evidence": msgspec.to_builtins(turn.evidence),
    }
    targets = {
        "changed": [*turn.changed],
        "allowed": [name for name in turn.changed if name not in turn.outside],
        "disallowed": [*turn.outside],
        "ok": not turn.outside,
    }
    prediction = {
        "instance_id": result.item_id,
        "model_patch": prepared.patch.decode("utf-8", "replace"),
        "model_name_or_path": context.tested.model_id,
    }
    journal = {
        "item_id": result.item_id,
        "status": "success" if is_ok else "error",
        **statuses,
        "message": turn.message,
    }
    prompt = {"text_version": VERSION, "task": prepared.text, "item_id": result.item_id}
    for name, value in (
        ("prompt.json", prompt),
        ("diff_targets.json", targets),
        ("run_summary.json", summary),
        ("journal.json", journal),
    ):
        folder.write(name, json.dumps(value, indent=2).encode() + b"\n")
    folder.write("prediction.jsonl", json.dumps(prediction).encode() + b"\n")
    for name in STORED_FILES:
        body = folder.read(name)
        if body is not None:
            context.store(f"items/{result.item_id}/{name}", body)


STORED_FILES = (
    *("journal.json", "prompt.json", "task.txt", "trajectory.json", "model_patch.diff"),
    *("diff_targets.json", "prediction.jsonl", "agent_stdout.txt", "agent_stderr.txt"),
    *("run_summary.json", "evaluation.json"),
)
