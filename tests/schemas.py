"""Holds documents to the schemas of their kinds."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.documents.schema import COMMON, Documents, schema_of
from socratic_bench.ports.parts import Parts
from socratic_bench.studies.sweep.settings import SweepSettings

_TYPES: Mapping[type, frozenset[str]] = {
    str: frozenset(("string",)),
    bool: frozenset(("boolean",)),
    type(None): frozenset(("null",)),
    int: frozenset(("integer", "number")),
    float: frozenset(("number",)),
}
_OF_PLAIN = frozenset(("type", "description", "minimum", "maximum"))
_OF_SEVERAL = frozenset(("anyOf", "description"))
Found = Iterator[Any] | None


DOCUMENTS = Documents(load_benchmark("socratic"), RunConfig, SweepSettings)
KINDS = sorted(DOCUMENTS.kinds)


@cache
def schema(kind: str) -> dict[str, Any]:
    """The schema of a kind of document of the default benchmark."""
    return DOCUMENTS.schema(kind)


def breaches(kind: str, document: object, parts: Parts | None = None) -> list[str]:
    """Where a document breaks the schema of its kind, or that of the benchmark with these parts."""
    return [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in _validator(kind, parts).iter_errors(document)
    ]


@cache
def _validator_of(benchmark: str, kind: str) -> Any:
    schema = Documents(load_benchmark(benchmark), RunConfig, SweepSettings).schema(kind)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def fitting(document: Any, benchmark: str) -> Any:
    """The document, which fits the schema that the benchmark has of its kind."""
    errors = _validator_of(benchmark, document["kind"]).iter_errors(document)
    assert [f"{error.json_path}: {error.message}" for error in errors] == []
    return document


@cache
def _validator(kind: str, parts: Parts | None) -> Any:
    return _Validator(schema_of(kind, COMMON[kind], parts) if parts else schema(kind))


def _plainly_fits(value: object, schema: Any) -> bool:
    """Whether it is a text, a number or the like that fits beyond doubt: of any other, all is
    looked at by the library, which takes ten times as long.
    """
    names = _TYPES.get(type(value))
    if names and schema.keys() <= _OF_SEVERAL:
        return any(_plainly_fits(value, one) for one in schema.get("anyOf", ()))
    if names is None or "type" not in schema or not schema.keys() <= _OF_PLAIN:
        return False
    types = schema["type"]
    if names.isdisjoint((types,) if isinstance(types, str) else types):
        return False
    if "number" not in names:
        return True
    number: Any = value
    return bool(schema.get("minimum", number) <= number <= schema.get("maximum", number))


def _properties(validator: Any, properties: Mapping[str, Any], value: Any, schema: Any) -> Found:
    if isinstance(value, dict):
        properties = {
            name: one
            for name, one in properties.items()
            if name in value and not _plainly_fits(value[name], one)
        }
    found: Found = Draft202012Validator.VALIDATORS["properties"](
        validator, properties, value, schema
    )
    return found


_EXTEND: Any = extend
_Validator = _EXTEND(Draft202012Validator, {"properties": _properties})
