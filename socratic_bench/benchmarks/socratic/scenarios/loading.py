"""Reads scenarios: the built-in ones by id, family or opening, a user's own by path.

A file's fields, their types and bounds stand in `scenario`; everything wrong with a file is told.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields as fields_of

from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    CUSTOM,
    FAMILIES,
    WEAKNESS_OF,
    WEAKNESSES,
    Insight,
    Scenario,
    Text,
    as_table,
    flatten,
    normal,
)
from socratic_bench.concurrency import convert, kind_of
from socratic_bench.errors import MOST_SHOWN, Problem, UsageError
from socratic_bench.settings import MAX_TURNS, read_bounded
from socratic_bench.settings.files import UnreadableTomlError, parse_toml

DATA = Path(__file__).with_name("data")
ALL = "all"
FAMILY = "family:"
_MOST_SUGGESTED = 3
# Comparing takes quadratic time, and no name is longer.
_LONGEST_NAME = 100
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@cache
def builtin_ids() -> tuple[str, ...]:
    """The ids of the scenarios in the package, sorted, `custom` among them."""
    names = os.listdir(DATA)  # noqa: PTH208 -- a tenth of the time
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@cache
def load_builtin(name: str) -> Scenario:
    """A built-in scenario. Raises `UsageError` with similar names if there is none of this id."""
    ids = builtin_ids()
    if name in ids:
        content = (DATA / f"{name}.toml").read_bytes()  # not checked: tests do that
        return _build(tomllib.loads(content.decode()), content)
    near = get_close_matches(name, ids, n=_MOST_SUGGESTED)
    meant = f"; did you mean {', '.join(near)}?" if near else "."
    raise UsageError(
        [f"No scenario {name!r}{meant}"], hint="socratic-runner scenarios lists them all."
    )


def load_file(path: Path | str) -> Scenario:
    """A scenario from a file. Raises `UsageError` with everything that is wrong with it."""
    path = Path(path)
    try:
        content = read_bounded(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError([_mistake(path, f"cannot be read: {reason}")]) from error
    try:
        table = parse_toml(content)
    except UnreadableTomlError as error:
        raise UsageError([_mistake(path, str(error))]) from error
    if problems := find_problems(table):
        raise UsageError([_mistake(path, problem) for problem in problems])
    return _build(table, content)


def find_by_opening(prompt: str) -> Scenario | None:
    """The built-in scenario that has this opening, white space and case aside."""
    wanted = normal(prompt)
    if not wanted:
        return None
    for path in sorted(DATA.glob("*.toml")):
        # Parsing costs ten times as much as reading, so only files that can match are parsed.
        # The openings stand above the first table.
        head = path.read_text(encoding="utf-8").partition("\n[")[0]
        if wanted in normal(head.replace('\\"', '"')):
            scenario = load_builtin(path.stem)
            if wanted in map(normal, scenario.openings):
                return scenario
    return None


def scenarios_of(word: str) -> tuple[str, ...]:
    """The ids of `all`, `family:NAME` or one id. Raises `UsageError` for another word."""
    subjects = tuple(name for name in builtin_ids() if name != CUSTOM)
    if word == ALL:
        return subjects
    if word.startswith(FAMILY):
        family = word.removeprefix(FAMILY)
        if family not in FAMILIES:
            raise _unknown("family", family, FAMILIES)
        return tuple(name for name in subjects if load_builtin(name).family == family)
    if word not in builtin_ids():
        raise _unknown("scenario", word, builtin_ids())
    return (word,)


def _mistake(path: Path, mistake: str) -> Problem:
    return Problem("{mistake}", (("name", path.name), ("mistake", mistake)), "{name}")


def _build(table: Mapping[str, object], content: bytes) -> Scenario:
    values = {
        name.removeprefix("student."): _clean(value) for name, value in flatten(table).items()
    }
    insights = values["draws_out"]
    assert isinstance(insights, list)  # noqa: S101 -- checked before
    insights = [as_table(insight) for insight in insights]
    sha256 = hashlib.sha256(content).hexdigest()
    return convert({**values, "draws_out": insights, "sha256": sha256}, Scenario)


def _clean(value: object) -> object:
    """Strip the white space at the ends of texts."""
    if isinstance(value, dict):
        return {name: _clean(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value.strip() if isinstance(value, str) else value


def _unknown(what: str, name: str, names: tuple[str, ...]) -> UsageError:
    near = get_close_matches(name[:_LONGEST_NAME], names, n=_MOST_SUGGESTED)
    meant = f"; did you mean {' or '.join(near)}?" if near else f". There is {', '.join(names)}."
    text = "{scenarios}: no {what} is called {name!r}{meant}"
    return UsageError([Problem.of(text, what=what, name=name, meant=meant)])


class Field(Struct, frozen=True):
    """A field of the file; `table` is the type of a table, or of each of a list of tables."""

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
    fields = []
    for member in fields_of(table):
        for bounds in getattr(member.type, "__metadata__", ()):
            kind = member.type.__origin__
            kind = get_args(kind)[0] if get_origin(kind) is UnionType else kind
            inner = get_args(kind)[0] if get_origin(kind) is tuple else kind
            path = f"student.{member.name}" if bounds.is_students else member.name
            is_table = isinstance(inner, type) and issubclass(inner, Struct)
            fields.append(Field(path, kind, bounds, member.required, inner if is_table else None))
    return tuple(fields)


def find_problems(table: Mapping[str, object]) -> list[str]:
    """Every mistake in a parsed file, as "field: reason". Empty: the file can be used."""
    values = flatten(table)
    return [*_problems(values, fields_in()), *_misfits(values)]


def _problems(
    values: Mapping[str, object], fields: Sequence[Field], place: str = ""
) -> Iterator[str]:
    yield from (f"{place}{reason}" for reason in _unknown_fields(values, fields))
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


def _unknown_fields(values: Mapping[str, object], fields: Sequence[Field]) -> Iterator[str]:
    paths = {field.path for field in fields}
    for n, path in enumerate(path for path in values if path not in paths):
        if path == "student":
            yield "student: must be a table, written as [student] on a line of its own"
        else:
            yield f"{path}: unknown field{_suggestion(path, paths) if n < MOST_SHOWN else ''}"


def _suggestion(path: str, paths: set[str]) -> str:
    places = {_leaf(other): other for other in sorted(paths)}
    if _leaf(path) in places:
        below = places[_leaf(path)].startswith("student.")
        return f"; {_leaf(path)} belongs {'below' if below else 'above'} [student]"
    near = get_close_matches(_leaf(path), places, n=1)
    if near:
        return f"; did you mean {places[near[0]]}?"
    at_top = {field.path for field in fields_in()}
    return f"; {path} belongs above the first table" if path in at_top else ""


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


def _wrong(field: Field, value: object) -> Iterator[str]:
    if field.kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            yield f": must be a whole number, not {kind_of(value)}"
        elif not 1 <= value <= MAX_TURNS:
            yield f": {value} given; 1 to {MAX_TURNS} allowed"
    elif field.kind is bool:
        if not isinstance(value, bool):
            yield f": must be true or false, not {kind_of(value)}"
    elif not field.is_list:
        yield from _wrong_text(field, value)
    elif not isinstance(value, list):
        yield f": must be a list of texts, not {kind_of(value)}"
    else:
        yield from _wrong_list(field, value)


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
