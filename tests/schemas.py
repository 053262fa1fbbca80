"""Holds documents to the schemas of their kinds."""

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from socratic_bench.documents.generation import schema_of
from socratic_bench.documents.kinds import COMMON
from socratic_bench.documents.schemas import contract_keys, load_schema
from socratic_bench.parts import Parts


def breaches(kind: str, document: object, parts: Parts | None = None) -> list[str]:
    """Where a document breaks the schema of its kind, or that of the benchmark with these parts."""
    return [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
        for error in _validator(kind, parts).iter_errors(document)
    ]


@cache
def _validator(kind: str, parts: Parts | None) -> Draft202012Validator:
    # That the published ones are schemas at all is looked at once, in tests/test_cli_run.py.
    found: Any = load_schema(kind)
    if parts:
        found = schema_of(kind, COMMON[kind], parts, promised=contract_keys(kind))
        Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)
