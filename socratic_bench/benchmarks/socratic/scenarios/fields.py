"""Which fields a scenario file has, and everything that can be wrong with them."""

import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    WEAKNESS_OF,
    WEAKNESSES,
    Scenario,
    Text,
    normal,
)
from socratic_bench.errors import MOST_SHOWN
from socratic_bench.settings import MAX_TURNS

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_WORDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (str, "text"),
    (list, "a list"),
    (dict, "a table"),
)


class Field(Struct, frozen=True):
    """A field of the file: where it stands, its type with `None` left out, and its bounds."""

    path: str
    kind: Any
    bounds: Text
    required: bool

    @property
    def allowed(self) -> tuple[str, ...]:
        """The words that it may be; empty if there are others."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()


def _fields() -> Iterator[Field]:
    for name, annotation in Scenario.__annotations__.items():
        for bounds in getattr(annotation, "__metadata__", ()):
            kind = annotation.__origin__
            is_optional = get_origin(kind) is UnionType
            path = f"student.{name}" if bounds.is_students else name
            yield Field(path, get_args(kind)[0] if is_optional else kind, bounds, not is_optional)


FIELDS = tuple(_fields())


def find_problems(table: Mapping[str, object]) -> list[str]:
    """Every mistake in a parsed file, as "field: reason". Empty: the file can be used."""
    values = flatten(table)
    problems = list(_unknown(values))
    for field in FIELDS:
        if field.path in values:
            problems += [f"{field.path}{found}" for found in _wrong(field, values[field.path])]
        elif field.required:
            problems.append(f"{field.path}: missing")
    return [*problems, *_misfits(values)]


def flatten(table: Mapping[str, object]) -> dict[str, object]:
    """The table with the fields of [student] lifted up as "student.persona" and so on."""
    student = table.get("student", {})
    flat = {name: value for name, value in table.items() if name != "student"}
    if not isinstance(student, dict):
        return {**flat, "student": student}
    return {**flat, **{f"student.{name}": value for name, value in student.items()}}


def _unknown(values: Mapping[str, object]) -> Iterator[str]:
    known = {field.path for field in FIELDS}
    for n, path in enumerate(path for path in values if path not in known):
        if path == "student":
            yield "student: must be a table, written as [student] on a line of its own"
        else:
            yield f"{path}: unknown field{_suggestion(path, known) if n < MOST_SHOWN else ''}"


def _suggestion(path: str, known: set[str]) -> str:
    import difflib

    places = {_leaf(other): other for other in sorted(known)}
    if _leaf(path) in places:
        below = places[_leaf(path)].startswith("student.")
        return f"; {_leaf(path)} belongs {'below' if below else 'above'} [student]"
    near = difflib.get_close_matches(_leaf(path), places, n=1)
    return f"; did you mean {places[near[0]]}?" if near else ""


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


def _wrong(field: Field, value: object) -> Iterator[str]:
    if field.kind is int:
        yield from _wrong_number(value)
    elif get_origin(field.kind) is not tuple:
        yield from _wrong_text(field, value)
    elif not isinstance(value, list):
        yield f": must be a list of texts, not {_word(value)}"
    else:
        yield from _wrong_list(field, value)


def _wrong_number(value: object) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield f": must be a whole number, not {_word(value)}"
    elif not 1 <= value <= MAX_TURNS:
        yield f": {value} given; 1 to {MAX_TURNS} allowed"


def _wrong_text(field: Field, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f": must be text in quotation marks, not {_word(value)}"
    elif not value.strip():
        yield ": empty"
    elif len(value.strip()) > field.bounds.longest:
        yield f": {len(value.strip())} characters; at most {field.bounds.longest} allowed"
    elif field.allowed and value not in field.allowed:
        yield f': "{value[:40]}" is not one of {", ".join(field.allowed)}'
    elif field.path == "id" and not _ID.fullmatch(value):
        yield f': "{value}" may only have small letters, digits and single hyphens between them'


def _wrong_list(field: Field, values: list[object]) -> Iterator[str]:
    fewest, most = field.bounds.count
    if not fewest <= len(values) <= most:
        yield f": {len(values)} given; {fewest} to {most} needed"
    first_at: dict[str, int] = {}
    for position, value in enumerate(values, start=1):
        found = list(_wrong_text(field, value))
        yield from (f", item {position}{reason}" for reason in found)
        if isinstance(value, str) and value.strip():
            first = first_at.setdefault(normal(value), position)
            if first != position:
                yield f", item {position}: the same as item {first}"


def _misfits(values: Mapping[str, object]) -> Iterator[str]:
    """Fields that are fine alone and do not go together."""
    family, weakness = values.get("family"), values.get("student.weakness")
    for name, fitting in WEAKNESS_OF.items():
        if family == name and weakness in WEAKNESSES and weakness != fitting:
            yield f'student.weakness: must be "{fitting}" in the family {name}, not "{weakness}"'
    if "closes_after" in values and "closing" not in values:
        yield "closing: missing; closes_after needs the words that the student closes with"
    if "closing" in values and "closes_after" not in values:
        yield "closes_after: missing; without it the student never says its closing"


def _word(value: object) -> str:
    for kind, word in _WORDS:
        if isinstance(value, kind):
            return word
    return "a date or time"
