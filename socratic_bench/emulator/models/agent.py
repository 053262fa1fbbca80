"""Agents that make a repository faster by a script: they know the tasks of the package's fixtures.

By a model's id an agent applies the good, better or slow patch of the task, changes nothing, breaks
the syntax, edits the tests, stops the clock, or starts a process that never ends.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from socratic_bench.emulator.dialogue import Dialogue, JsonObject

KINDS = ("good", "better", "slow", "noop", "broken", "edits-tests", "cheats", "hangs")
_MODEL = re.compile(rf"emulator\.agent-({'|'.join(KINDS)})-v1:0")
_SPEEDUPS = {"good": 2.0, "better": 4.0, "slow": 1.5, "noop": 3.0, "cheats": 9.0, "hangs": 1.0}
_STOPPED_CLOCK = "\nimport time as time\ntime.perf_counter = lambda: 0.0\n"


class KnownTask(Struct, frozen=True, kw_only=True):
    """A task by its problem: diffs by kind, the file that it is about, and one of its tests."""

    problem: str
    patches: Mapping[str, str]
    target: str
    test: str


_learned: dict[str, KnownTask] = {}


def learn(rows: Iterable[Mapping[str, Any]]) -> None:
    """Let the agents of this process know tasks."""
    for row in rows:
        if "patches" in row:
            _learned[row["problem"]] = KnownTask(
                problem=row["problem"],
                patches=row["patches"],
                target=row["target"],
                test=row["test"],
            )


def agent_answer(dialogue: Dialogue) -> tuple[JsonObject, ...] | None:
    """The content of the next answer of one of these agents; `None` for any other model."""
    model = _MODEL.fullmatch(dialogue.base_id)
    if model is None:
        return None
    kind, text = model[1], dialogue.user_texts[0] if dialogue.user_texts else ""
    task = next((task for task in _learned.values() if task.problem in text), None)
    n_step = sum(role == "assistant" for role, _ in dialogue.messages)
    calls = [*_script(kind, task)] if task else []
    name, arguments = calls[n_step] if n_step < len(calls) else _finish(kind, task)
    use = {"toolUseId": f"tooluse_{kind}_{n_step}", "name": name, "input": arguments}
    return ({"text": f"Step {n_step + 1}."}, {"toolUse": use})


def _script(kind: str, task: KnownTask) -> Iterable[tuple[str, JsonObject]]:
    """The calls of tools before the last one."""
    yield "list_files", {}
    yield "read_file", {"path": task.target}
    if patch := task.patches.get(kind) or (task.patches["good"] if kind == "better" else ""):
        yield _command(f"git apply --whitespace=nowarn <<'END_OF_PATCH'\n{patch}\nEND_OF_PATCH")
    elif kind == "broken":
        yield _command(f"echo 'def broken(:' >> {task.target}")
    elif kind == "edits-tests":
        yield _command(f"echo '' >> {task.test}")
    elif kind == "cheats":
        yield _command(f"cat >> {task.target} <<'END_OF_CODE'{_STOPPED_CLOCK}END_OF_CODE")
    elif kind == "hangs":
        yield _command("(trap '' TERM; sleep 600) & sleep 600")
    yield _command("git status --short")


def _command(text: str) -> tuple[str, JsonObject]:
    return "run_command", {"command": text}


def _finish(kind: str, task: KnownTask | None) -> tuple[str, JsonObject]:
    cause = "The script of this agent." if task else "This agent does not know the task."
    speedup = _SPEEDUPS.get(kind, 1.0) if task else 1.0
    return "finish", {"expected_speedup": speedup, "cause": cause}
