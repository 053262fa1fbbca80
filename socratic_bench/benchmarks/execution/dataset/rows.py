"""Reads rows of a data set as problems, with every mistake of every row."""

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

_Word = Annotated[str, Meta(min_length=1, max_length=200)]
_Code = Annotated[str, Meta(max_length=MAX_CHARACTERS)]
_Texts = _Code | Annotated[list[_Code], Meta(min_length=1, max_length=100)]
_Table = dict[str, Any]
# The types of cells by column. A null counts as no cell; other columns are ignored.
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
    """A row's problem, or its mistakes."""

    problem: Problem | None
    mistakes: tuple[str, ...] = ()


class _Cells:
    """The cells of one row by column, and the mistakes in them."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._mistakes: list[tuple[str, str]] = []
        self._cells = dict(self._read(row, _CELLS, ""))
        self.info = dict(self._read(self._cells.get("mutation_info") or {}, _INFO, "mutation_info"))
        self.metrics = dict(self._read(self._cells.get("metrics") or {}, _METRICS, "metrics"))

    def get(self, *columns: str) -> Any:  # noqa: ANN401 -- as the column's type has it
        """The first of these columns' cells that is not empty."""
        return next((self._cells[name] for name in columns if name in self._cells), None)

    def text(self, *columns: str) -> str | None:
        cell = self.get(*columns)
        return cell if isinstance(cell, str) and cell.strip() else None

    def texts(self, *columns: str) -> tuple[str, ...] | None:
        cell = self.get(*columns)
        return None if cell is None else (cell,) if isinstance(cell, str) else tuple(cell)

    @property
    def mistakes(self) -> tuple[str, ...]:
        return tuple(f"{path}: {why}" for path, why in self._mistakes)

    def add_mistake(self, path: str, why: str) -> None:
        self._mistakes.append((path, why))

    def has_mistake(self, *columns: str) -> bool:
        """Whether one of these columns has a mistake already."""
        return not {path for path, _ in self._mistakes}.isdisjoint(columns)

    def _read(
        self, row: Mapping[str, Any], types: Mapping[str, Any], below: str
    ) -> Iterator[tuple[str, Any]]:
        for name, kind in types.items():
            value = row.get(name)
            # As JSON has it: tables keep dates, and integers beside missing cells as floats.
            if isinstance(value, date):
                value = value.isoformat()
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if value is None:
                continue
            path = ".".join(filter(None, (below, name)))
            if isinstance(value, float) and not math.isfinite(value):
                self.add_mistake(path, f"{value} is not a number.")
                continue
            try:
                yield name, convert(value, kind)
            except msgspec.ValidationError as error:
                self.add_mistake(path, f"{str(error).split(' - at ')[0]}.")


def read_row(row: object, *, needs_literals: bool) -> ParsedRow:
    """Read one row; with `needs_literals`, outputs that are no literals are mistakes."""
    if not isinstance(row, dict):
        return ParsedRow(None, ("the row is not an object.",))
    cells = _Cells(row)
    inputs, outputs = _cases(cells)
    code = cells.text("code", "original_code")
    if code is None and not cells.has_mistake("code", "original_code"):
        cells.add_mistake("code", "missing or blank.")
    first_function = _FIRST_FUNCTION.search(code or "")
    name: str = cells.get("function_name") or (first_function[1] if first_function else "")
    if code is not None and not name:
        cells.add_mistake("function_name", "missing, and the code defines no function.")
    if cells.get("id") is None and not cells.has_mistake("id"):
        cells.add_mistake("id", "missing.")
    mutated_code, mutated_outputs = _mutated_program(cells, len(inputs))
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
    names = ("code", "inputs", "outputs", "mutated_code", "mutated_outputs")
    return sha256(orjson.dumps([getattr(problem, name) for name in names])).hexdigest()


def _cases(cells: _Cells) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Calls and their outputs; those that lack are looked for in `correct_condition`."""
    inputs, outputs = cells.texts("input", "inputs"), cells.texts("output", "outputs")
    conditions = cells.texts("correct_condition")
    if (inputs is None or outputs is None) and conditions is not None:
        calls, literals = _all_sides(cells, conditions)
        inputs = calls if inputs is None else inputs
        outputs = literals if outputs is None else outputs
    for name, texts in (("input", inputs), ("output", outputs)):
        if texts is None and not cells.has_mistake(name, f"{name}s", "correct_condition"):
            cells.add_mistake(name, "missing.")
    if inputs is not None and outputs is not None and len(inputs) != len(outputs):
        cells.add_mistake("output", f"{len(outputs)} for {len(inputs)} inputs.")
    return inputs or (), outputs or ()


def _all_sides(cells: _Cells, conditions: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sides = [_sides(condition) for condition in conditions]
    if None in sides:
        cells.add_mistake("correct_condition", "it is not `call == literal`.")
    pairs = [pair for pair in sides if pair]
    return tuple(call for call, _ in pairs), tuple(literal for _, literal in pairs)


def _sides(condition: str) -> tuple[str, str] | None:
    """Left and right of `call == literal`, as they are written."""
    text = condition.strip().removeprefix("assert ").strip()
    try:
        tree = parse_python(ast.Expression, text).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if not (isinstance(tree, ast.Compare) and [*map(type, tree.ops)] == [ast.Eq]):
        return None
    sides = [ast.get_source_segment(text, side) for side in (tree.left, tree.comparators[0])]
    return (sides[0], sides[1]) if sides[0] and sides[1] else None


def _mutated_program(cells: _Cells, n_inputs: int) -> tuple[str | None, tuple[str, ...] | None]:
    """The mutated program and its outputs; a blank one is none."""
    code = cells.text("mutated_code")
    if code is None:
        return None, None
    cell = cells.get("mutated_output", "mutated_outputs")
    outputs = cells.texts("mutated_output", "mutated_outputs")
    if outputs is None:
        if not cells.has_mistake("mutated_output", "mutated_outputs"):
            cells.add_mistake("mutated_output", "missing, though there is mutated_code.")
    elif n_inputs and len(outputs) != n_inputs:
        what = "a single one" if isinstance(cell, str) else str(len(outputs))
        cells.add_mistake("mutated_output", f"{what} for {n_inputs} inputs.")
    return code, outputs


def _check_literals(cells: _Cells, column: str, outputs: Sequence[str]) -> None:
    for index, text in enumerate(outputs):
        try:
            parse_literal(text)
        except LiteralError as error:
            cells.add_mistake(column, f"number {index + 1} is not a Python literal: {error}.")
