"""The JSON Schemas of the documents, as data files."""

import json
from importlib.resources import files

from socratic_bench.types import Json

KINDS = (
    "run",
    "brief",
    "turn",
    "judge",
    "curated",
    "scenarios",
    "scenario_check",
    "emulator",
    "error",
    "dry_run",
    "prices",
)


def load_schema(kind: str) -> dict[str, Json]:
    """The schema of a kind of document; `KINDS` lists them."""
    file = files(__package__).joinpath("schemas", f"{kind}.json")
    schema: dict[str, Json] = json.loads(file.read_bytes())
    return schema
