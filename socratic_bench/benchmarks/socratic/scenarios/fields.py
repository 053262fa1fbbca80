"""Which fields a scenario file has, and everything that can be wrong with them."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields as fields_of

from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    WEAKNESS_OF,
    WEAKNESSES,
    Insight,
    Scenario,
    Text,
    as_table,
    flatten,
    normal,
)
from socratic_bench.concurrency import kind_of
from socratic_bench.errors import MOST_SHOWN
from socratic_bench.settings import MAX_TURNS

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# Fields of earlier files: what to do about each.
REMOVED = {
    "cues": "no field any more; remove it, since the example questions in asked do its work",
    "recall": "no field any more; remove it",
}
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


class Field(Struct, frozen=True):
    """A field of the file: where it stands, its type with `None` left out, and its bounds.

    `table` is the type of a table or of each of a list of tables, `None` for all else.
    """

    path: str
    kind: Any
    bounds: Text
    required: bool
    table: type[Struct] | None = None

    @property
    def allowed(self) -> tuple[str, ...]:
        """The words that it may be; empty if there are others."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def is_list(self) -> bool:
        return get_origin(self.kind) is tuple


@cache
def fields_in(table: type[Struct] = Scenario) -> tuple[Field, ...]:
    """The fields of a file, or of a table in it."""
    return tuple(_fields(table))


def _fields(table: type[Struct]) -> Iterator[Field]:
    for member in fields_of(table):
        for bounds in getattr(member.type, "__metadata__", ()):
            kind = member.type.__origin__
            kind = get_args(kind)[0] if get_origin(kind) is UnionType else kind
            inner = get_args(kind)[0] if get_origin(kind) is tuple else kind
            path = f"student.{member.name}" if bounds.is_students else member.name
            is_table = isinstance(inner, type) and issubclass(inner, Struct)
            yield Field(path, kind, bounds, member.required, inner if is_table else None)


def find_problems(table: Mapping[str, object]) -> list[str]:
    """Every mistake in a parsed file, as "field: reason". Empty: the file can be used."""
    values = flatten(table)
    return [*_problems(values, fields_in()), *_misfits(values)]


def _problems(
    values: Mapping[str, object], fields: Sequence[Field], place: str = ""
) -> Iterator[str]:
    yield from (f"{place}{reason}" for reason in _unknown(values, fields))
    for field in fields:
        path = f"{place}{field.path}"
        if field.path not in values:
            if field.required:
                yield f"{path}: missing"
        elif field.table is None:
            yield from (f"{path}{reason}" for reason in _wrong(field, values[field.path]))
        else:
            yield from _wrong_tables(field, values[field.path], path, field.table)


def _wrong_tables(field: Field, value: object, path: str, kind: type[Struct]) -> Iterator[str]:
    if not field.is_list:
        if isinstance(value, dict):
            yield from _problems(value, fields_in(kind), f"{path}.")
        else:
            yield f"{path}: must be a table, written as [{path}] on a line of its own"
        return
    if not isinstance(value, list):
        yield f"{path}: must be a list of tables, each begun with [[{path}]], not {kind_of(value)}"
        return
    if value or not field.required:
        yield from (f"{path}{reason}" for reason in _wrong_count(field, value))
    tables = map(as_table, value) if field.table is Insight else value
    for position, item in enumerate(tables, start=1):
        if isinstance(item, dict):
            yield from _problems(item, fields_in(kind), f"{path}, item {position}, ")
        else:
            yield f"{path}, item {position}: must be a table, not {kind_of(item)}"


def _unknown(values: Mapping[str, object], fields: Sequence[Field]) -> Iterator[str]:
    paths = {field.path for field in fields}
    for n, path in enumerate(path for path in values if path not in paths):
        if path in REMOVED:
            yield f"{path}: {REMOVED[path]}"
        elif path == "student":
            yield "student: must be a table, written as [student] on a line of its own"
        else:
            yield f"{path}: unknown field{_suggestion(path, paths) if n < MOST_SHOWN else ''}"


def _suggestion(path: str, paths: set[str]) -> str:
    places = {_leaf(other): other for other in sorted(paths)}
    if _leaf(path) in places:
        below = places[_leaf(path)].startswith("student.")
        return f"; {_leaf(path)} belongs {'below' if below else 'above'} [student]"
    near = difflib.get_close_matches(_leaf(path), places, n=1)
    if near:
        return f"; did you mean {places[near[0]]}?"
    at_top = {field.path for field in fields_in()}
    return f"; {path} belongs above the first table" if path in at_top else ""


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


def _wrong(field: Field, value: object) -> Iterator[str]:
    if field.kind is int:
        yield from _wrong_number(value)
    elif field.kind is bool:
        if not isinstance(value, bool):
            yield f": must be true or false, not {kind_of(value)}"
    elif not field.is_list:
        yield from _wrong_text(field, value)
    elif not isinstance(value, list):
        yield f": must be a list of texts, not {kind_of(value)}"
    else:
        yield from _wrong_list(field, value)


def _wrong_number(value: object) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield f": must be a whole number, not {kind_of(value)}"
    elif not 1 <= value <= MAX_TURNS:
        yield f": {value} given; 1 to {MAX_TURNS} allowed"


def _wrong_text(field: Field, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f": must be text in quotation marks, not {kind_of(value)}"
    elif not value.strip():
        yield ": empty"
    elif len(value.strip()) > field.bounds.longest:
        yield f": {len(value.strip())} characters; at most {field.bounds.longest} allowed"
    elif field.allowed and value not in field.allowed:
        yield f': "{value[:40]}" is not one of {", ".join(field.allowed)}'
    elif field.path == "id" and not _ID.fullmatch(value):
        yield f': "{value}" may only have small letters, digits and single hyphens between them'
    elif field.path == "language" and not _LANGUAGE.fullmatch(value):
        yield f': "{value}" is no tag of a language, such as en, es or pt-BR'


def _wrong_count(field: Field, values: Sequence[object]) -> Iterator[str]:
    fewest, most = field.bounds.count
    if not fewest <= len(values) <= most:
        yield f": {len(values)} given; {fewest} to {most} needed"


def _wrong_list(field: Field, values: list[object]) -> Iterator[str]:
    yield from _wrong_count(field, values)
    first_at: dict[str, int] = {}
    for position, value in enumerate(values, start=1):
        reasons = list(_wrong_text(field, value))
        yield from (f", item {position}{reason}" for reason in reasons)
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
    yield from _unspoken(values)
    for place in ("draws_out", "moves"):
        listed = values.get(place)
        for position, group in enumerate(listed if isinstance(listed, list) else (), start=1):
            yield from (f"{place}, item {position}, {problem}" for problem in _unmatched(group))


def _unmatched(group: object) -> Iterator[str]:
    """Example questions of which nobody knows what answers them."""
    table = group if isinstance(group, dict) else {}
    questions, says = table.get("asked"), table.get("says", [])
    if isinstance(questions, list) and isinstance(says, list) and len(questions) != len(says):
        counts = f"{len(questions)} given beside {len(says)} of says"
        yield f"asked: {counts}; write a text for each of them"


def _unspoken(values: Mapping[str, object]) -> Iterator[str]:
    """Too little to say, or more than can come."""
    if "moves" in values:
        if "replies" in values:
            yield "replies: given beside moves, which stand in their place; keep one of them"
        if "voice" not in values:
            yield "voice: missing; moves need it for what the student says when none of them fits"
    elif "replies" not in values:
        yield "replies: missing; write these, or moves and a voice"
