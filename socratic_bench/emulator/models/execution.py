"""Models that predict what a program returns: they know the problems that the package ships.

A program and its call are looked up by their text, function names aside, with the known output.
Nothing is executed.
"""

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from msgspec import Struct

from socratic_bench.emulator.dialogue import Dialogue, hashed

_FILE = Path(__file__).parents[2] / "benchmarks" / "execution" / "data" / "problems.jsonl"
_MODEL = re.compile(r"emulator\.(executes|recalls|hasty|picks-a|truncates)(?:-(\d+))?-v1:0")
_PROGRAM = re.compile(r"^\[PROGRAM(?: ([AB]))?\]\n(.*?)\n\[/PROGRAM", re.DOTALL | re.MULTILINE)
_ASKED = re.compile(r"^assert (.*) == \?\?$", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"\s*(\w+)\s*\(")
# Thinking tokens from which on a hasty model executes; with fewer it recalls.
ENOUGH_TOKENS = 2048
UNKNOWN = "I do not know this program."


class KnownProgram(Struct, frozen=True):
    """A program that is known by its text, with its own outputs and the original's by call."""

    problem: str
    is_original: bool
    outputs: Mapping[str, str]
    recalled: Mapping[str, str]


def execution_answer(dialogue: Dialogue, thinking_tokens: int) -> tuple[str, str] | None:
    """The reply of one of these models, and its stop reason; `None` for any other model."""
    model = _MODEL.fullmatch(dialogue.base_id)
    if model is None:
        return None
    if model[1] == "truncates":
        return "First, the function is called with", "max_tokens"
    text = dialogue.latest
    programs = {letter or "A": code for letter, code in _PROGRAM.findall(text)}
    question = _ASKED.search(text)
    name = _NAME.match(question[1]) if question else None
    if question is None or name is None:
        return UNKNOWN, "end_turn"
    variants = {
        letter: variant
        for letter, code in programs.items()
        if (variant := _programs().get(_nameless(code, name[1])))
    }
    if not variants or variants.keys() != programs.keys():
        return UNKNOWN, "end_turn"
    letter = _chosen(model[1], variants, programs)
    if model[1] == "hasty":
        is_recall = thinking_tokens < ENOUGH_TOKENS
    else:
        share, problem = model[2], variants[letter].problem
        is_recall = model[1] == "recalls" and (share is None or problem in _recalled(int(share)))
    outputs = variants[letter].recalled if is_recall else variants[letter].outputs
    output = outputs.get(_nameless(question[1], name[1]), "None")
    assertion = f"assert {question[1]} == {output}"
    if len(programs) == 1:
        return (
            f"Step by step, this is what it returns.\n[ANSWER]\n{assertion}\n[/ANSWER]",
            "end_turn",
        )
    return json.dumps({"chosen_program": letter, "assertion": assertion}), "end_turn"


def _chosen(kind: str, variants: Mapping[str, KnownProgram], programs: Mapping[str, str]) -> str:
    """The program that the model chooses: always A, the original, or the first by a hash."""
    if kind == "picks-a":
        return "A"
    if kind == "recalls":
        return next((letter for letter, variant in variants.items() if variant.is_original), "A")
    return min(programs, key=lambda letter: (hashed(programs[letter]), letter))


@lru_cache(maxsize=64)
def _recalled(share: int) -> frozenset[str]:
    """So many problems of a hundred, drawn by their hash."""
    names = sorted({variant.problem for variant in _programs().values()}, key=hashed)
    return frozenset(names[: round(len(names) * share / 100)])


@cache
def _programs() -> Mapping[str, KnownProgram]:
    programs: dict[str, KnownProgram] = {}
    for line in _FILE.read_text("utf-8").splitlines():
        row = json.loads(line)
        name = row["function_name"]
        calls = [_nameless(call, name) for call in _listed(row["input"])]
        original = dict(zip(calls, _listed(row["output"]), strict=True))
        mutated = dict(zip(calls, _listed(row["mutated_output"]), strict=True))
        programs[_nameless(row["code"], name)] = KnownProgram(row["id"], True, original, original)
        programs[_nameless(row["mutated_code"], name)] = KnownProgram(
            row["id"], False, mutated, original
        )
    return programs


def _nameless(text: str, name: str) -> str:
    return re.sub(rf"\b{re.escape(name)}\b", "_", text.strip())


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
