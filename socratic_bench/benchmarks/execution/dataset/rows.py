"""Plain rows as problems: every mistake of every row is found."""

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from hashlib import sha256
from typing import Annotated, Any

import msgspec
import orjson
from msgspec import Meta, Struct

from socratic_bench.benchmarks.execution.items import Mutation, Problem
from socratic_bench.benchmarks.execution.literals import (
    MAX_CHARACTERS,
    LiteralError,
    parse_literal,
    parse_python,
)
from socratic_bench.concurrency import convert

MOST_ROWS = 100_000
_Word = Annotated[str, Meta(min_length=1, max_length=200)]
_Code = Annotated[str, Meta(max_length=MAX_CHARACTERS)]
_Texts = _Code | Annotated[list[_Code], Meta(min_length=1, max_length=100)]
_Table = dict[str, Any]
# What a cell may hold; one that is null counts as none. Other columns are no matter of ours.
_CELLS: Mapping[str, Any] = {
    "id": _Word | int,
    "function_name": _Word,
    "code": _Code,
    "original_code": _Code,
    "input": _Texts,
    "inputs": _Texts,
    "output": _Texts,
    "outputs": _Texts,
    "correct_condition": _Texts,
    "mutated_code": _Code,
    "mutated_output": _Texts,
    "mutated_outputs": _Texts,
    "has_mutation": bool,
    "mutation_info": _Table,
    "question_id": int,
    "submission_id": int,
    "contest_id": _Word | int,
    "contest_date": _Word,
    "difficulty": _Word,
    "metrics": _Table,
}
_INFO: Mapping[str, Any] = {
    "mutation_type": _Word,
    "mutation_id": int,
    "coverage_similarity": Annotated[float, Meta(ge=0, le=1)],
}
_METRICS: Mapping[str, Any] = {
    "loc": Annotated[int, Meta(ge=0)],
    "coverage": Annotated[float, Meta(ge=0)],
}
_FIRST_FUNCTION = re.compile(r"^(?:async )?def\s+(\w+)", re.MULTILINE)


class ParsedRow(Struct, frozen=True):
    """What a row gave: a problem, or what is wrong with it."""

    problem: Problem | None
    mistakes: tuple[str, ...] = ()


class _Cells:
    """The cells of one row by column, and what is wrong with them."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._wrong: list[tuple[str, str]] = []
        self._found = dict(self._read(row, _CELLS, ""))
        self.info = dict(self._read(self._found.get("mutation_info") or {}, _INFO, "mutation_info"))
        self.metrics = dict(self._read(self._found.get("metrics") or {}, _METRICS, "metrics"))

    def get(self, *columns: str) -> Any:  # noqa: ANN401 -- as the column's type has it
        """The first of these columns that holds something."""
        return next((self._found[name] for name in columns if name in self._found), None)

    def text(self, *columns: str) -> str | None:
        found = self.get(*columns)
        return found if isinstance(found, str) and found.strip() else None

    def texts(self, *columns: str) -> tuple[str, ...] | None:
        found = self.get(*columns)
        return None if found is None else (found,) if isinstance(found, str) else tuple(found)

    @property
    def mistakes(self) -> tuple[str, ...]:
        return tuple(f"{path}: {why}" for path, why in self._wrong)

    def lack(self, path: str, why: str) -> None:
        self._wrong.append((path, why))

    def is_wrong(self, *columns: str) -> bool:
        """Whether something is said of one of these already."""
        return not {path for path, _ in self._wrong}.isdisjoint(columns)

    def _read(
        self, row: Mapping[str, Any], types: Mapping[str, Any], below: str
    ) -> Iterator[tuple[str, Any]]:
        for name, kind in types.items():
            value = _plain(row.get(name))
            if value is None:
                continue
            path = ".".join(filter(None, (below, name)))
            if isinstance(value, float) and not math.isfinite(value):
                self.lack(path, f"{value} is no number.")
                continue
            try:
                yield name, convert(value, kind)
            except msgspec.ValidationError as error:
                self.lack(path, f"{str(error).split(' - at ')[0]}.")


def read_row(row: object, *, needs_literals: bool) -> ParsedRow:
    """A row as a problem."""
    if not isinstance(row, dict):
        return ParsedRow(None, ("the row is no object.",))
    cells = _Cells(row)
    inputs, outputs = _cases(cells)
    code = cells.text("code", "original_code")
    if code is None and not cells.is_wrong("code", "original_code"):
        cells.lack("code", "missing or blank.")
    name: str = cells.get("function_name") or _first_function(code or "")
    if code is not None and not name:
        cells.lack("function_name", "missing, and the code defines no function.")
    if cells.get("id") is None and not cells.is_wrong("id"):
        cells.lack("id", "missing.")
    mutated_code, mutated_outputs = _mutant(cells, len(inputs))
    if needs_literals:
        _check_literals(cells, "output", outputs)
        _check_literals(cells, "mutated_output", mutated_outputs or ())
    if cells.mistakes:
        return ParsedRow(None, cells.mistakes)
    problem = Problem(
        id=str(cells.get("id")),
        function_name=name,
        code=code or "",
        inputs=inputs,
        outputs=outputs,
        mutated_code=mutated_code,
        mutated_outputs=mutated_outputs,
        mutation=Mutation(**cells.info) if cells.info else None,
        difficulty=cells.get("difficulty"),
        n_lines=cells.metrics.get("loc"),
    )
    return ParsedRow(msgspec.structs.replace(problem, sha256=digest(problem)))


def digest(problem: Problem) -> str:
    """The sha256 of what is executed, hexadecimal."""
    parts = [
        problem.code,
        problem.inputs,
        problem.outputs,
        problem.mutated_code,
        problem.mutated_outputs,
    ]
    return sha256(orjson.dumps(parts)).hexdigest()


def _cases(cells: _Cells) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Calls and their outputs; those that lack are looked for in `correct_condition`."""
    inputs, outputs = cells.texts("input", "inputs"), cells.texts("output", "outputs")
    conditions = cells.texts("correct_condition")
    if (inputs is None or outputs is None) and conditions is not None:
        calls, literals = _all_sides(cells, conditions)
        inputs = calls if inputs is None else inputs
        outputs = literals if outputs is None else outputs
    for name, found in (("input", inputs), ("output", outputs)):
        if found is None and not cells.is_wrong(name, f"{name}s", "correct_condition"):
            cells.lack(name, "missing.")
    if inputs is not None and outputs is not None and len(inputs) != len(outputs):
        cells.lack("output", f"{len(outputs)} for {len(inputs)} inputs.")
    return inputs or (), outputs or ()


def _all_sides(cells: _Cells, conditions: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sides = [_sides(one) for one in conditions]
    if None in sides:
        cells.lack("correct_condition", "it is not `call == literal`.")
    known = [one for one in sides if one]
    return tuple(call for call, _ in known), tuple(literal for _, literal in known)


def _sides(condition: str) -> tuple[str, str] | None:
    """Left and right of `call == literal`, as they are written."""
    text = condition.strip().removeprefix("assert ").strip()
    try:
        tree = parse_python(ast.Expression, text).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if not (isinstance(tree, ast.Compare) and [*map(type, tree.ops)] == [ast.Eq]):
        return None
    sides = [ast.get_source_segment(text, one) for one in (tree.left, tree.comparators[0])]
    return (sides[0], sides[1]) if sides[0] and sides[1] else None


def _mutant(cells: _Cells, n_inputs: int) -> tuple[str | None, tuple[str, ...] | None]:
    """The mutated program and its outputs; a blank one is none."""
    code = cells.text("mutated_code")
    if code is None:
        return None, None
    found = cells.get("mutated_output", "mutated_outputs")
    outputs = cells.texts("mutated_output", "mutated_outputs")
    if outputs is None:
        if not cells.is_wrong("mutated_output", "mutated_outputs"):
            cells.lack("mutated_output", "missing, though there is mutated_code.")
    elif n_inputs and len(outputs) != n_inputs:
        what = "a single one" if isinstance(found, str) else str(len(outputs))
        cells.lack("mutated_output", f"{what} for {n_inputs} inputs.")
    return code, outputs


def _check_literals(cells: _Cells, column: str, outputs: Sequence[str]) -> None:
    for index, text in enumerate(outputs):
        try:
            parse_literal(text)
        except LiteralError as error:
            cells.lack(column, f"number {index + 1} is no Python literal: {error}.")


def _first_function(code: str) -> str:
    """Its name, or "" if there is none."""
    found = _FIRST_FUNCTION.search(code)
    return found[1] if found else ""


def _plain(value: object) -> object:
    """As JSON would have it: tables keep dates as dates, and integers beside missing cells as
    floats.
    """
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value
