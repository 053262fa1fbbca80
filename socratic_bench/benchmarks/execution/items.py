"""What is asked: problems, one item for each call, and the prompt of an item."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.execution.literals import Value, compare, parse_literal
from socratic_bench.benchmarks.execution.settings import Level, Settings

Program = Literal["original", "mutated"]
Kind = Literal["prediction", "choice", "control", "reasoning"]
Letter = Literal["A", "B"]
PROGRAMS: tuple[Program, ...] = get_args(Program)
LEVELS: tuple[Level, ...] = get_args(Level)
# Keys of the JSON object in which a choice is answered.
CHOSEN, ASSERTION = "chosen_program", "assertion"

_PROMPTS_FILE = Path(__file__).with_name("prompts.toml")


class Mutation(Struct, frozen=True, kw_only=True):
    """How a mutated program was made; what is not known is `None`."""

    mutation_type: str | None = None
    mutation_id: int | None = None
    coverage_similarity: float | None = None  # 0 to 1: lines that both programs execute


class Problem(Struct, frozen=True, kw_only=True):
    """A row of a data set: a program, calls of it with their outputs, and a mutated program.

    Calls and outputs are source text: `peak([1, 2])`, `[2]`. There is one output for each input.
    `mutated_code` and `mutated_outputs` are both `None`, or neither is. `sha256` is that of what
    is executed: codes, inputs and outputs.
    """

    id: str
    function_name: str
    code: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    mutated_code: str | None = None
    mutated_outputs: tuple[str, ...] | None = None
    mutation: Mutation | None = None
    difficulty: str | None = None
    n_lines: int | None = None  # as the data set says
    sha256: str = ""


class Item(Struct, frozen=True, kw_only=True):
    """One call of a model.

    In `prediction` and `reasoning` the prompt shows `program`; in `choice` that one is A and the
    other program B; in `control` both are `program`. `round` counts generations or decisions from
    0. `can_revert`: the other program's output can be told from a wrong answer.
    """

    kind: Kind
    problem: Problem
    case: int
    round: int
    program: Program
    level: Level
    can_revert: bool

    @property
    def call(self) -> str:
        """The source text of the function call whose output is asked for."""
        return self.problem.inputs[self.case].strip()

    @property
    def is_choice(self) -> bool:
        """Whether the prompt shows two programs."""
        return self.kind in ("choice", "control")

    def code(self, program: Program) -> str:
        return (self.problem.mutated_code or "") if program == "mutated" else self.problem.code

    def output(self, program: Program) -> str | None:
        """The output of a program, as a literal; `None` if there is no such program."""
        if program == "original":
            return self.problem.outputs[self.case]
        mutated = self.problem.mutated_outputs
        return mutated[self.case] if mutated else None


def other_program(program: Program) -> Program:
    """The mutated program for the original one, and the reverse."""
    return "mutated" if program == "original" else "original"


@lru_cache(maxsize=4096)
def value_of(text: str) -> Value:
    """The value of a data set's output, which its reader has checked to be a literal."""
    return parse_literal(text)


def make_items(settings: Settings, problems: Sequence[Problem]) -> tuple[Item, ...]:
    """All calls of a run, round by round; within a round the task's seed gives the order."""
    seeded: list[tuple[int, Item]] = []
    if settings.task != "choice":
        chosen = _select(problems, settings.pred_start_index, settings.pred_num_problems)
        items = _single_program_items("prediction", chosen, settings, settings.pred_reasoning)
        seeded += [(settings.pred_seed, item) for item in items]
    if settings.task != "prediction":
        seeded += [(settings.choice_seed, item) for item in _choice_items(settings, problems)]
    if settings.compare_reasoning:
        chosen = _select(problems, settings.pred_start_index, settings.comparison_samples)
        for level in LEVELS:
            items = _single_program_items("reasoning", chosen, settings, level)
            seeded += [(settings.pred_seed, item) for item in items]
    seeded.sort(key=lambda pair: (pair[1].round, _sort_digest(*pair)))
    return tuple(item for _, item in seeded)


def _single_program_items(
    kind: Kind, problems: Sequence[Problem], settings: Settings, level: Level
) -> Iterator[Item]:
    for number, problem in product(range(settings.pred_generations), problems):
        programs = PROGRAMS if problem.mutated_code is not None else PROGRAMS[:1]
        for program, case in product(programs, range(len(problem.inputs))):
            yield Item(
                kind=kind,
                problem=problem,
                case=case,
                round=number,
                program=program,
                level=level,
                can_revert=_can_revert(problem, case, skips_boolean=settings.pred_skip_boolean),
            )


def _choice_items(settings: Settings, problems: Sequence[Problem]) -> Iterator[Item]:
    chosen = _select(problems, settings.choice_start_index, settings.choice_num_problems)
    for problem in (problem for problem in chosen if problem.mutated_code is not None):
        for case in range(len(problem.inputs)):
            first = Item(
                kind="choice",
                problem=problem,
                case=case,
                round=0,
                program="original",
                level=settings.choice_reasoning,
                can_revert=_can_revert(problem, case, skips_boolean=settings.choice_skip_boolean),
            )
            for number in range(settings.choice_runs):
                # Each program is A in turn; in an odd last decision it is drawn.
                is_odd = number == settings.choice_runs - 1 and settings.choice_runs % 2
                drawn = _digest(settings.choice_seed, "first", problem.id)[0]
                program = PROGRAMS[(drawn if is_odd else number) % 2]
                yield replace(first, round=number, program=program)
            if settings.choice_control:
                yield replace(first, kind="control", can_revert=False)


def _select(problems: Sequence[Problem], start: int, number: int) -> Sequence[Problem]:
    """`number` problems from `start` on; all of them if the number is not positive."""
    return problems[start : start + number] if number > 0 else problems[start:]


def _can_revert(problem: Problem, case: int, *, skips_boolean: bool) -> bool:
    """Whether the other program's output shows recall: if it differs from the shown program's and,
    with `skips_boolean`, if no output of the problem is True or False, since each wrong one of
    these is the other.
    """
    if problem.mutated_outputs is None:
        return False
    every = (*problem.outputs, *problem.mutated_outputs)
    if skips_boolean and any(isinstance(value_of(text), bool) for text in every):
        return False
    outputs = problem.outputs[case], problem.mutated_outputs[case]
    return compare(*map(value_of, outputs)) != "equal"


def _sort_digest(seed: int, item: Item) -> bytes:
    """The same at all levels of a task, so that runs at several levels begin alike."""
    level = item.level if item.kind == "reasoning" else None
    return _digest(seed, item.kind, item.problem.id, item.case, item.program, level)


def _digest(*parts: object) -> bytes:
    """Computed by SHA-256, so that it is the same on any Python and any machine."""
    return sha256(repr(parts).encode()).digest()


def system_prompt(level: Level) -> str:
    """The built-in system prompt, with the sentence of a level of reasoning."""
    return _fill(_prompts()["system"], {"reasoning": reasoning_sentence(level)})


def reasoning_sentence(level: Level) -> str:
    """The sentence by which a model is asked to reason."""
    sentence: str = _prompts()["reasoning"][level]
    return sentence


def prompt_of(item: Item) -> str:
    """The user's message of one item."""
    if not item.is_choice:
        program = item.code(item.program)
        return _fill(
            _prompts()["prediction"]["text"], {"program": program.strip("\n"), "call": item.call}
        )
    second = item.program if item.kind == "control" else other_program(item.program)
    form = {CHOSEN: "A or B", ASSERTION: f"assert {item.call} == VALUE"}
    values = {
        "program_a": item.code(item.program).strip("\n"),
        "program_b": item.code(second).strip("\n"),
        "call": item.call,
        "form": json.dumps(form, ensure_ascii=False),
    }
    return _fill(_prompts()["choice"]["text"], values)


def prompts_sha256() -> str:
    return sha256(_PROMPTS_FILE.read_bytes()).hexdigest()


def _fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its `{name}`s replaced in one pass: braces in values stay as they are."""
    names = "|".join(map(re.escape, values))
    return re.sub(rf"\{{({names})\}}", lambda match: values[match[1]], template).strip()


@cache
def _prompts() -> Mapping[str, Any]:
    return tomllib.loads(_PROMPTS_FILE.read_text("utf-8"))
