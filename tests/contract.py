"""What users of the program rely on, as the program is now: `python -m tests.contract`.

It is written into tests/data/contract.json. tests/test_contract.py checks that all of it is still
there, with the same types; new keys and flags may be added. Documents fit their schemas, by the
tests of each command, so that the schemas are enough.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import fields

from socratic_bench import RunConfig, RunResult
from socratic_bench.errors import ENDINGS
from socratic_bench.storage.keys import RunKeys
from tests.command import OFFLINE, Outcome, environment, run
from tests.schemas import KINDS, schema

FILE = Path(__file__).parent / "data" / "contract.json"
MAX_DEPTH = 12
TWO_TURNS = (*OFFLINE, "--turns", "2", "--seed", "7", "--quiet")

Contract = dict[str, Any]
Paths = dict[str, str]


def contract() -> Contract:
    """Keys of schemas by path, flags and variables, names of files, and the library."""
    return {
        "schemas": {kind: schema_paths(schema(kind)) for kind in KINDS},
        "required": {kind: required_keys(schema(kind)) for kind in KINDS},
        "command": command(),
        "endings": {
            reason: [ending.status, ending.exit_code] for reason, ending in ENDINGS.items()
        },
        "keys": keys(),
        "library": {
            "RunConfig": {field.name: plain(field.default) for field in fields(RunConfig)},
            "RunResult": sorted(name for name in dir(RunResult) if not name.startswith("_")),
        },
    }


def required_keys(schema: Mapping[str, Any]) -> list[str]:
    """The keys that a document of this kind always has."""
    return sorted(schema.get("required", ()))


def schema_paths(schema: Mapping[str, Any]) -> Paths:
    """Key path -> the types that the schema allows there; `*` is any key, `[]` any item."""
    found: dict[str, set[str]] = {}
    _walk_schema(schema, schema, "", found, 0)
    return {path: "|".join(sorted(types)) for path, types in sorted(found.items()) if path}


def _walk_schema(
    node: object, root: Mapping[str, Any], path: str, found: dict[str, set[str]], depth: int
) -> None:
    if not isinstance(node, Mapping) or depth > MAX_DEPTH:
        return
    for part in _alternatives(node, root):
        found.setdefault(path, set()).update(_types(part))
        for name, below in part.get("properties", {}).items():
            _walk_schema(below, root, f"{path}.{name}", found, depth + 1)
        _walk_schema(part.get("items"), root, f"{path}[]", found, depth + 1)
        _walk_schema(part.get("additionalProperties"), root, f"{path}.*", found, depth + 1)


def _alternatives(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in node:
        target: Any = root
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        yield from _alternatives(target, root)
        return
    several = [*node.get("anyOf", ()), *node.get("oneOf", ())]
    for one in several:
        yield from _alternatives(one, root)
    if not several or "type" in node:
        yield node


def _types(node: Mapping[str, Any]) -> set[str]:
    given = node.get("type", [])
    types = {given} if isinstance(given, str) else set(given)
    for value in [*node.get("enum", ()), *([node["const"]] if "const" in node else ())]:
        types.add(type_name(value))
    return types


def type_name(value: object) -> str:
    """The name that JSON Schema has for a value's type."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def command() -> dict[str, Any]:
    """Flags by subcommand, and the variables that help names."""
    texts = {name: help_of(name) for name in ("run", "resume", "scenarios", "schema", "emulator")}
    return {
        "flags": {name: sorted(set(flags_in(text))) for name, text in texts.items()},
        "variables": sorted(set(re.findall(r"\b[A-Z]+_[A-Z0-9_]+[A-Z0-9]\b", texts["run"]))),
    }


def help_of(name: str) -> str:
    """The whole help of a subcommand, wide enough that no word is broken."""
    outcome: Outcome = run(name, "--help", "all", env=environment(COLUMNS="200"))
    return outcome.stdout.decode()


def flags_in(text: str) -> list[str]:
    """The flags that a help text lists."""
    return re.findall(r"(?<![\w-])--[a-z0-9][a-z0-9-]*", text)


def keys() -> dict[str, str]:
    """The names of a run's files and objects."""
    names = RunKeys("run-01H7X8K2P9Q4R6S7T8V9W0X1Y2")
    return {
        "raw": names.raw,
        "curated": names.curated,
        "turn": names.turn(7),
        "judge": names.judge(1234),
        "closing_verdict": names.closing_verdict,
        "journal": names.journal,
        "entry": names.entry(12),
        "lease": names.lease,
        "index": names.index("0123abc"),
        "journal_file": names.journal_file,
    }


def plain(value: object) -> object:
    """A default as JSON has it; a required keyword has none, which is told by a word."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, str | int | float | bool | None) else "required"


if __name__ == "__main__":
    FILE.write_text(json.dumps(contract(), indent=1, sort_keys=True) + "\n")
    sys.stderr.write(f"Wrote {FILE.name}.\n")
