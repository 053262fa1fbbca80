"""Runs of the benchmark `execution`, looked at from outside."""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from socratic_bench.emulator import simulation
from tests import schemas
from tests.command import ROOT
from tests.fakes import Said, Sent, answer

SHIPPED = ROOT / "socratic_bench" / "benchmarks" / "execution" / "data" / "problems.jsonl"
MODEL = "some.model-v1:0"
ALL = ("--pred-num-problems", "0", "--choice-num-problems", "0")

fitting = partial(schemas.fitting, benchmark="execution")


def rows(path: Path = SHIPPED) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def row(name: str = "f", **columns: Any) -> dict[str, Any]:
    """A problem of one's own: what is not given is that of `return x + 1`."""
    return {
        "id": name,
        "function_name": name,
        "code": f"def {name}(x):\n    return x + 1\n",
        "input": f"{name}(1)",
        "output": "2",
        "mutated_code": f"def {name}(x):\n    return x - 1\n",
        "mutated_output": "0",
        "has_mutation": True,
        **columns,
    }


def data_set(folder: Path, *problems: Mapping[str, Any]) -> str:
    path = folder / "problems.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in problems))
    return str(path)


def prompt_of(sent: Sent) -> str:
    text: str = sent.body["messages"][0]["content"][0]["text"]
    return text


def answering(by_call: Mapping[str, str | Said]) -> Callable[[Sent], Said]:
    """A model that answers a call by what stands for it, within tags unless it says it all."""

    def script(sent: Sent) -> Said:
        prompt = prompt_of(sent)
        call = prompt.partition("[ASSERTION]\nassert ")[2].partition(" == ??\n")[0]
        said = by_call[call]
        return answer(said) if isinstance(said, str) else said

    return script


def tagged(value: str) -> str:
    return f"[ANSWER]\nassert f(x) == {value}\n[/ANSWER]"


def many(n_problems: int) -> list[dict[str, Any]]:
    """So many problems with one case each: the shipped ones, whose functions have other names."""
    found = []
    shipped = rows()
    for number in range(n_problems):
        one = shipped[number % len(shipped)]
        name = f"{one['function_name']}_{number}"
        first = {key: _first(one[key]) for key in ("input", "output", "mutated_output")}
        words = {
            key: re.sub(rf"\b{one['function_name']}\b", name, text)
            for key, text in {**one, **first}.items()
            if key in ("code", "mutated_code", "input")
        }
        found.append(
            {**one, **first, **words, "id": f"{one['id']}-{number}", "function_name": name}
        )
    return found


def emulated(model_id: str) -> Callable[[Sent], Said]:
    """What a model of the emulator says."""

    def script(sent: Sent) -> Said:
        said, _ = simulation.answer(model_id, sent.body)
        return answer(said["output"]["message"]["content"], said["stopReason"])

    return script


def _first(value: Any) -> str:
    found: str = value if isinstance(value, str) else value[0]
    return found
