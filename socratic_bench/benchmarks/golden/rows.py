"""Reads rows of a data set as items, with every mistake by line and field.

Understood are this benchmark's own fields, those of 360-Eval's scenarios, and those of Bedrock's
data sets for evaluation jobs.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any
from unicodedata import combining, normalize

import msgspec
import orjson
from msgspec import Meta, Struct

from socratic_bench.benchmarks.data_files import Source, read_source
from socratic_bench.benchmarks.data_settings import HUB, SHIPPED
from socratic_bench.benchmarks.golden.checks import Check, mistakes_of
from socratic_bench.benchmarks.golden.settings import Settings
from socratic_bench.benchmarks.images import ImageError, ImagePlaces, read_image
from socratic_bench.catalogue.models import takes_images
from socratic_bench.concurrency import convert
from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.settings import MAX_TEXT_BYTES, is_folder
from socratic_bench.settings.reader import parse_number
from socratic_bench.turns import Dimension
from socratic_bench.types import Image

SHIPPED_FILE = Path(__file__).parent / "data" / "items.jsonl"
# Data sets' own names of fields; a name with a point is of a key below another.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "prompt": ("text_prompt",),
    "golden_answer": ("referenceResponse",),
    "task_type": ("task.task_type", "category"),
    "task_criteria": ("task.task_criteria",),
    "image": ("url_image",),
    "dimensions": ("user_defined_metrics",),
    "responses": ("modelResponses",),
}
JSON_FIELDS = ("criteria", "dimensions", "checks", "responses", "emulator_answer")
ANSWER_KINDS = {"", "right", "half-right", "wrong", "refuses", "off-format"}
NUMBERS = ("temperature", "weight", "expected_output_tokens")
SCALE = (1, 5)
DIMENSIONS = (
    *("correctness", "completeness", "relevance"),
    *("format", "coherence", "following_instructions"),
)
_RESERVED = ("rationale", "quotes", "events", "before", "reply", "why", "prompt", "declined")
_RANGE = re.compile(r"(?P<name>.*?)\s*:\s*(?P<low>-?\d+)\s*-\s*(?P<high>-?\d+)\s*")

_Text = Annotated[str, Meta(max_length=MAX_TEXT_BYTES)]
_Name = Annotated[str, Meta(min_length=1, max_length=200)]


class Criterion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement that is true or false of an answer; a negative weight marks a fault."""

    text: Annotated[str, Meta(min_length=1, max_length=2000)]
    weight: float = 1.0


class OwnDimension(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dimension of the user's own."""

    name: _Name
    meaning: str | None = None
    low: int = SCALE[0]
    high: int = SCALE[1]


class Response(Struct, frozen=True, kw_only=True, rename="camel"):
    """A given response, in Bedrock's words."""

    response: _Text
    model_identifier: str | None = None


_TYPES: Mapping[str, Any] = {
    "id": _Name | int,
    "prompt": _Text,
    "golden_answer": _Text,
    "task_type": _Name,
    "task_criteria": _Text,
    "temperature": Annotated[float, Meta(ge=0, le=1)],
    "expected_output_tokens": Annotated[int, Meta(ge=1, le=1_000_000)],
    "weight": Annotated[float, Meta(gt=0)],
    "image": Annotated[str, Meta(min_length=1)],
    "dimensions": str | list[_Name | OwnDimension],
    "criteria": list[Criterion],
    "checks": list[Check],
    "responses": list[Response],
    "emulator_answer": str | dict[str, str],
}


class Row(Struct, frozen=True, kw_only=True):
    """A row of a data set: a prompt, the golden answer, and how an answer is judged."""

    id: str
    prompt: str
    golden_answer: str | None
    task_type: str
    task_criteria: str | None
    temperature: float | None
    expected_output_tokens: int | None
    weight: float
    image: str | None
    dimensions: tuple[Dimension, ...]
    criteria: tuple[Criterion, ...]
    checks: tuple[Check, ...]
    responses: tuple[Response, ...]
    emulator_answer: Mapping[str, str]


class DataSet(Struct, frozen=True, kw_only=True):
    """A data set; `rows` are those that are asked, of `n_rows`."""

    place: str
    sha256: str
    n_rows: int
    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ()


def read_rows(settings: Settings) -> DataSet:
    """Read the data set that the settings name. Raises `UsageError` with every mistake."""
    source = read_source(settings.dataset, settings.split, SHIPPED_FILE)
    problems: list[Words] = [*_column_problems(settings, source)]
    readers = [_RowReader(row, number, settings) for number, row in enumerate(source.rows, start=1)]
    rows = [reader.read() for reader in readers]
    for place, reader in zip(source.places, readers, strict=True):
        problems += [f"{settings.dataset}: {place}, {mistake}" for mistake in reader.mistakes]
    problems += _repeated_ids(settings.dataset, rows)
    if problems:
        raise UsageError(problems, hint="docs/golden.md says what the fields hold.")
    names = dict.fromkeys(name for row in source.rows if isinstance(row, dict) for name in row)
    chosen = rows[: settings.num_items] if settings.num_items else rows
    return DataSet(
        place=settings.dataset,
        sha256=source.sha256,
        n_rows=len(rows),
        rows=tuple(chosen),
        columns=(*names,),
    )


def read_images(settings: Settings, rows: Sequence[Row]) -> dict[str, Image]:
    """The images of rows, by id. Raises `UsageError` with what is wrong with each, and for models
    that take none.
    """
    illustrated = [row for row in rows if row.image]
    path = SHIPPED_FILE if settings.dataset == SHIPPED else Path(settings.dataset)
    folder = path if is_folder(path) else path.parent
    folders = () if settings.dataset.startswith(HUB) else (str(folder),)
    places = ImagePlaces((*folders, *settings.image_folders), settings.image_hosts)
    problems: list[Problem] = []
    images: dict[str, Image] = {}
    for row in illustrated:
        try:
            images[row.id] = read_image(row.image or "", places)
        except ImageError as error:
            problems.append(Problem.of(f"The image of item {{id}}: {error}.", id=row.id))
    is_called = any(not row.responses for row in illustrated)
    if is_called and not takes_images(settings.model):
        problems.append(Problem.of("{model} {id} takes no images.", id=settings.model))
    jurors = () if settings.latency_only else settings.jurors
    for juror in (juror for juror in jurors if illustrated and not takes_images(juror)):
        text = "{judge_model} {id} takes no images, and {items} of {dataset} have one."
        problems.append(Problem.of(text, id=juror, items=len(illustrated)))
    if problems:
        raise UsageError(problems)
    return images


def own_dimensions(words: str) -> Iterator[OwnDimension]:
    """The dimensions in a list by commas, each with its range if it is not 1 to 5."""
    for word in filter(None, map(str.strip, words.split(","))):
        ranged = _RANGE.fullmatch(word)
        if ranged:
            low, high = int(ranged["low"]), int(ranged["high"])
            yield OwnDimension(name=ranged["name"], low=low, high=high)
        else:
            yield OwnDimension(name=word)


def to_dimension(dimension: OwnDimension) -> Dimension:
    """As a judge is asked for it. Raises `ValueError` for a name or a range that cannot be used."""
    name = _argument_name(dimension.name)
    if not name or name in _RESERVED:
        raise ValueError(f"{dimension.name!r} cannot be the name of a dimension.")
    if name in DIMENSIONS:
        raise ValueError(f"{dimension.name!r} is a dimension of every item: leave it out.")
    if dimension.low >= dimension.high:
        raise ValueError(
            f"{dimension.name}: the range {dimension.low} to {dimension.high} is empty."
        )
    levels = {
        str(dimension.high): dimension.meaning
        if dimension.meaning and dimension.name.isascii()
        else f"{dimension.name}: {dimension.meaning or 'fully'}",
        str(dimension.low): "not at all",
    }
    return Dimension(name=name, low=dimension.low, high=dimension.high, step=1, levels=levels)


def _argument_name(name: str) -> str:
    """The name of a tool's argument, which takes letters of ASCII alone: without accents, and of
    other scripts in Punycode (RFC 3492), so that two names stay two.
    """
    plain = "".join(sign for sign in normalize("NFKD", name.casefold()) if not combining(sign))
    words = re.sub(r"\W+", "_", plain).strip("_")
    ascii_name = words if words.isascii() else words.encode("punycode").decode().replace("-", "_")
    return ascii_name.strip("_")[:60]


class _RowReader:
    """Reads one row; `mistakes` collects what is wrong, each with its field."""

    def __init__(self, row: object, number: int, settings: Settings) -> None:
        self.mistakes: list[str] = []
        self._number = number
        self._settings = settings
        self._values: dict[str, Any] = {}
        if not isinstance(row, dict):
            self.mistakes.append("it is not an object.")
            return
        columns = dict(settings.columns)
        for name, kind in _TYPES.items():
            names = (columns[name],) if name in columns else (name, *ALIASES.get(name, ()))
            for key in names:
                value = _value_at(row, key)
                if value is not None:
                    self._read(name, key, value, kind)
                    break
        self.mistakes += _misspelt(row, columns)

    def read(self) -> Row:
        """The row; where something is wrong with a field, without it."""
        values, settings = self._values, self._settings
        if not values.get("prompt", "").strip() and not self._is_wrong("prompt"):
            self.mistakes.append("prompt: missing or empty.")
        criteria = values.get("criteria", ())
        if criteria and not any(criterion.weight > 0 for criterion in criteria):
            self.mistakes.append("criteria: none has a positive weight.")
        answers = values.get("emulator_answer", {})
        return Row(
            id=str(values.get("id", self._number)),
            prompt=values.get("prompt", ""),
            golden_answer=values.get("golden_answer", "").strip() or None,
            task_type=values.get("task_type") or settings.task_type or "task",
            task_criteria=values.get("task_criteria") or settings.task_criteria,
            temperature=values.get("temperature"),
            expected_output_tokens=values.get("expected_output_tokens"),
            weight=values.get("weight", 1.0),
            image=values.get("image"),
            dimensions=tuple(self._dimensions(values.get("dimensions") or settings.dimensions)),
            criteria=tuple(criteria),
            checks=tuple(self._checks(values.get("checks", ()))),
            responses=tuple(values.get("responses", ())),
            emulator_answer={"": answers} if isinstance(answers, str) else answers,
        )

    def _read(self, name: str, key: str, value: object, kind: Any) -> None:  # noqa: ANN401
        try:
            self._values[name] = convert(_from_text(name, value), kind)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$")
            self.mistakes.append(f"{key}{where.rstrip('`')}: {what}.")
        except ValueError as error:
            self.mistakes.append(f"{key}: {error}.")

    def _is_wrong(self, name: str) -> bool:
        keys = (name, *ALIASES.get(name, ()), dict(self._settings.columns).get(name, name))
        return any(mistake.startswith(key) for mistake in self.mistakes for key in keys)

    def _dimensions(self, given: str | Sequence[str | OwnDimension] | None) -> Iterator[Dimension]:
        words = own_dimensions(given) if isinstance(given, str) else given or ()
        names: set[str] = set()
        for entry in words:
            try:
                dimension = to_dimension(
                    OwnDimension(name=entry) if isinstance(entry, str) else entry
                )
            except ValueError as error:
                self.mistakes.append(f"dimensions: {error}")
                continue
            if dimension.name in names:
                self.mistakes.append(f"dimensions: {dimension.name} is there twice.")
            names.add(dimension.name)
            yield dimension

    def _checks(self, checks: Sequence[Check]) -> Iterator[Check]:
        for number, check in enumerate(checks):
            self.mistakes += [f"checks[{number}]: {text}" for text in mistakes_of(check)]
            yield check


def _value_at(row: Mapping[str, Any], key: str) -> object:
    """The value of a key, which may be one below another; `None` for a missing or empty one."""
    value: Any = row.get(key)
    if value is None and "." in key:
        outer, _, inner = key.partition(".")
        value = row.get(outer)
        value = value.get(inner) if isinstance(value, dict) else None
    if isinstance(value, float) and math.isnan(value):  # a missing cell of a table
        return None
    return None if value == "" else value


def _from_text(name: str, value: object) -> object:
    """The value that a text stands for where no text is expected, as in CSV; of a number as golden
    answer, its text.
    """
    if name == "golden_answer" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and name in JSON_FIELDS and value.lstrip().startswith(("[", "{")):
        if name != "emulator_answer":
            return orjson.loads(value)
        # An answer may be JSON itself.
        answers = _from_json(value)
        is_by_kind = isinstance(answers, dict) and {*answers} <= ANSWER_KINDS
        return answers if is_by_kind else value
    if isinstance(value, str) and name in NUMBERS:
        number = parse_number(value)
        value = value if number is None else number
    if isinstance(value, float) and value.is_integer() and name == "expected_output_tokens":
        return int(value)
    return value


def _from_json(text: str) -> object:
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(text)
    return None


def _misspelt(row: Mapping[str, Any], columns: Mapping[str, str]) -> Iterator[str]:
    """Keys that are almost a field's name; others are the user's own, and ignored."""
    names = {*_TYPES, *(alias for aliases in ALIASES.values() for alias in aliases), "task"}
    for key in row.keys() - names - {*columns.values()}:
        if near := get_close_matches(str(key), [*_TYPES], n=1, cutoff=0.85):
            yield f"{key}: unknown; did you mean {near[0]}?"


def _column_problems(settings: Settings, source: Source) -> Iterator[Problem]:
    columns = {name for row in source.rows if isinstance(row, dict) for name in row}
    for field, column in settings.columns:
        if field not in _TYPES:
            text = "{columns} names no field: {field!r}. Available: {fields}."
            yield Problem.of(text, field=field, fields=", ".join(_TYPES))
        elif column.partition(".")[0] not in columns and column not in columns:
            text = "{columns}: {dataset} has no column {column!r}. Available: {there}."
            yield Problem.of(text, column=column, there=", ".join(map(str, sorted(columns)[:20])))


def _repeated_ids(place: str, rows: Sequence[Row]) -> Iterator[str]:
    for name, count in Counter(row.id for row in rows).items():
        if count > 1:
            yield f"{place}: {count} rows have the id {name!r}."
