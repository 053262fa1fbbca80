"""The JSON Schemas of the documents, as they were made from the types: see `make schemas`."""

from functools import cache
from pathlib import Path

import orjson
from msgspec import Struct

from socratic_bench.documents.plain import plain_keys
from socratic_bench.documents.scalars import SCHEMA_VERSION, Version
from socratic_bench.types import Json

_FOLDER = Path(__file__).with_name("schemas")
# Kinds whose keys are promised, whatever the benchmark.
CONTRACT = ("run", "brief", "curated", "turn", "judge", "dry_run")
KINDS = tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


def load_schema(kind: str) -> dict[str, Json]:
    """The schema of a kind of document; `KINDS` lists them."""
    schema: dict[str, Json] = orjson.loads((_FOLDER / f"{kind}.json").read_bytes())
    return schema


@cache
def contract_keys(kind: str) -> tuple[str, ...]:
    """The keys that a document of a kind has, whatever its benchmark."""
    found = load_schema(kind)["required"] if kind in CONTRACT else []
    assert isinstance(found, list)  # noqa: S101 -- all schemas are made in one way
    return tuple(str(name) for name in found)


def whole(document: Struct, kind: str) -> dict[str, Json]:
    """A document as plain values; keys of the contract that the benchmark lacks are null."""
    keys = plain_keys(document)
    return {**keys, **dict.fromkeys(name for name in contract_keys(kind) if name not in keys)}


class Printable(Struct, frozen=True, kw_only=True):
    """A document, or a stored file, that says of which `kind` it is."""

    @property
    def printed(self) -> dict[str, Json]:
        """As it is printed and stored."""
        return whole(self, getattr(self, "kind"))  # noqa: B009 -- a field of those that extend this


class Document(Printable, frozen=True, kw_only=True):
    """One that begins with its kind."""

    kind: str
    schema_version: Version = SCHEMA_VERSION
