"""A problem: a program, calls of it with their outputs, and the same of a mutated program."""

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


class Mutation(Struct, frozen=True, kw_only=True):
    """How the mutated program came about; what is not known is `None`."""

    mutation_type: str | None = None
    mutation_id: int | None = None
    coverage_similarity: float | None = None  # 0 to 1: lines that both programs execute


class Problem(Struct, frozen=True, kw_only=True):
    """A row of a data set. Calls and outputs are source text: `peak([1, 2])`, `[2]`.

    `mutated_code` and `mutated_outputs` are both `None`, or neither is; outputs are one for each of
    `inputs`. `sha256` is that of what is executed: codes, inputs and outputs.
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


# What is asked: one item for each call, in an order that the seeds give.

Program = Literal["original", "mutated"]
Kind = Literal["prediction", "choice", "control", "reasoning"]
Letter = Literal["A", "B"]
PROGRAMS: tuple[Program, ...] = get_args(Program)
LEVELS: tuple[Level, ...] = get_args(Level)
# Keys of the JSON object in which a choice is answered.
CHOSEN, ASSERTION = "chosen_program", "assertion"


class Item(Struct, frozen=True, kw_only=True):
    """One call. In `prediction` and `reasoning` it shows `program`; in `choice` that one is A, and
    the other one B; in `control` it is both. `round` counts generations or decisions from 0.
    `can_revert`: whether the other program's output is told from a wrong answer.
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
        return self.problem.inputs[self.case].strip()

    @property
    def is_choice(self) -> bool:
        return self.kind in ("choice", "control")

    def code(self, program: Program) -> str:
        return (self.problem.mutated_code or "") if program == "mutated" else self.problem.code

    def output(self, program: Program) -> str | None:
        """What a program returns, as a literal; `None` if there is no such program."""
        if program == "original":
            return self.problem.outputs[self.case]
        mutated = self.problem.mutated_outputs
        return mutated[self.case] if mutated else None


def other(program: Program) -> Program:
    return "mutated" if program == "original" else "original"


@lru_cache(maxsize=4096)
def value_of(text: str) -> Value:
    """The value of a data set's output, which is a literal: its reader has seen to that."""
    return parse_literal(text)


def can_revert(problem: Problem, case: int, *, skips_boolean: bool) -> bool:
    """Whether the other program's output tells recall from execution: if it differs from the shown
    one's and, as the problems of a task are counted, if none of the problem's outputs is True or
    False, since each wrong one of these is the other.
    """
    if problem.mutated_outputs is None or (skips_boolean and _is_boolean(problem)):
        return False
    outputs = problem.outputs[case], problem.mutated_outputs[case]
    return compare(*map(value_of, outputs)) != "equal"


def _is_boolean(problem: Problem) -> bool:
    outputs = (*problem.outputs, *(problem.mutated_outputs or ()))
    return any(isinstance(value_of(text), bool) for text in outputs)


def items_of(settings: Settings, problems: Sequence[Problem]) -> tuple[Item, ...]:
    """All calls of a run: round by round, so that one which ends early has asked all problems, and
    within a round in an order that follows from the task's seed.
    """
    found: list[tuple[int, Item]] = []
    if settings.task != "choice":
        found += [(settings.pred_seed, one) for one in _predictions(settings, problems)]
    if settings.task != "prediction":
        found += [(settings.choice_seed, one) for one in _choices(settings, problems)]
    if settings.compare_reasoning:
        found += [(settings.pred_seed, one) for one in _levels(settings, problems)]
    return tuple(one for _, one in sorted(found, key=lambda pair: (pair[1].round, _drawn(*pair))))


def selected(problems: Sequence[Problem], start: int, number: int) -> Sequence[Problem]:
    """So many in their order; all if the number is not positive."""
    return problems[start : start + number] if number > 0 else problems[start:]


def _predictions(settings: Settings, problems: Sequence[Problem]) -> Iterator[Item]:
    chosen = selected(problems, settings.pred_start_index, settings.pred_num_problems)
    yield from _shown("prediction", chosen, settings, settings.pred_reasoning)


def _levels(settings: Settings, problems: Sequence[Problem]) -> Iterator[Item]:
    chosen = selected(problems, settings.pred_start_index, settings.comparison_samples)
    for level in LEVELS:
        yield from _shown("reasoning", chosen, settings, level)


def _shown(
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
                can_revert=can_revert(problem, case, skips_boolean=settings.pred_skip_boolean),
            )


def _choices(settings: Settings, problems: Sequence[Problem]) -> Iterator[Item]:
    chosen = selected(problems, settings.choice_start_index, settings.choice_num_problems)
    for problem in (one for one in chosen if one.mutated_code is not None):
        for case in range(len(problem.inputs)):
            first = Item(
                kind="choice",
                problem=problem,
                case=case,
                round=0,
                program="original",
                level=settings.choice_reasoning,
                can_revert=can_revert(problem, case, skips_boolean=settings.choice_skip_boolean),
            )
            for number in range(settings.choice_runs):
                program = _first_program(settings, problem, number)
                yield replace(first, round=number, program=program)
            if settings.choice_control:
                yield replace(first, kind="control", can_revert=False)


def _first_program(settings: Settings, problem: Problem, number: int) -> Program:
    """In turn; an odd decision's, which has no other to balance it, is drawn."""
    if number == settings.choice_runs - 1 and settings.choice_runs % 2:
        number = _digest(settings.choice_seed, "first", problem.id)[0]
    return PROGRAMS[number % 2]


def _drawn(seed: int, item: Item) -> bytes:
    """The same at all levels of a task, so that runs of several begin alike."""
    level = item.level if item.kind == "reasoning" else None
    return _digest(seed, item.kind, item.problem.id, item.case, item.program, level)


def _digest(*parts: object) -> bytes:
    """Computed by SHA-256, so that it is the same on any Python and any machine."""
    return sha256(repr(parts).encode()).digest()


# The words that a model is asked with, made of prompts.toml.

_FILE = Path(__file__).with_name("prompts.toml")


def system_prompt(level: Level) -> str:
    """With the sentence of a level of reasoning."""
    return _filled(_texts()["system"], {"reasoning": sentence(level)})


def sentence(level: Level) -> str:
    """How a model is asked to reason."""
    said: str = _texts()["reasoning"][level]
    return said


def prompt_of(item: Item) -> str:
    """What is said for one item."""
    if not item.is_choice:
        program = item.code(item.program)
        return _filled(
            _texts()["prediction"]["text"], {"program": program.strip("\n"), "call": item.call}
        )
    second = item.program if item.kind == "control" else other(item.program)
    programs = {"program_a": item.code(item.program), "program_b": item.code(second)}
    words = {name: code.strip("\n") for name, code in programs.items()}
    form = {CHOSEN: "A or B", ASSERTION: f"assert {item.call} == VALUE"}
    words |= {"call": item.call, "form": json.dumps(form, ensure_ascii=False)}
    return _filled(_texts()["choice"]["text"], words)


def prompts_sha256() -> str:
    return sha256(_FILE.read_bytes()).hexdigest()


def _filled(text: str, words: Mapping[str, str]) -> str:
    """What is put in is not looked through for braces of its own."""
    names = "|".join(map(re.escape, words))
    return re.sub(rf"\{{({names})\}}", lambda found: words[found[1]], text).strip()


@cache
def _texts() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text("utf-8"))
