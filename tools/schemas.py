# ruff: noqa: INP001 - a script, not a package
"""Writes the JSON Schemas of all documents and stored files, made from their types."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.documents.kinds import Documents
from socratic_bench.studies.sweep.settings import SweepSettings

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "socratic_bench" / "documents" / "schemas"
PAGE = ROOT / "docs" / "runner.md"
ENDS = ("Begin", "End")
# Those of the benchmark that is played by default are kept.
KEPT = Documents(load_benchmark(RunConfig(model="").benchmark), RunConfig, SweepSettings)
# Where the documents tell more of a key.
LINKS = {
    "turns": "#a-turn",
    "cost": "cost.md#the-cost-entry",
    "latency": "#latency",
    "end_reason": "#how-a-run-ends",
    "timestamps": "resume.md#what-may-differ",
    "inputs": "#settings-of-the-model-under-test",
    "journal": "resume.md#without-a-store",
    "error": "#errors",
    "metrics": "benchmark.md",
    "heuristics": "benchmark.md#heuristics",
    "unjudged_reason": "benchmark.md#turns-without-a-score",
    "pressure": "benchmark.md#pressure",
    "student_flags": "benchmark.md#fidelity",
    "injection_suspected": "benchmark.md#what-the-judge-sees",
}


def text(kind: str) -> str:
    """The schema as it is kept."""
    return json.dumps(KEPT.schema(kind, ()), indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    """docs/runner.md with the tables of the document and of its turns as the types have them."""
    run = KEPT.schema("run", ())
    turn = run["$defs"]["TurnEntry"]
    found = PAGE.read_text(encoding="utf-8")
    for name, properties in (("run", run["properties"]), ("turn", turn["properties"])):
        begin, end = (f"<!-- {word} of the keys of a {name}: make schemas -->" for word in ENDS)
        head, rest = found.split(begin)
        rows = [_row(key, node, run["$defs"]) for key, node in properties.items()]
        table = "\n".join(["| key | type | meaning |", "|---|---|---|", *rows])
        found = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return found


def _row(key: str, node: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """A key, the types that it may have, what it means, the words or keys that it may hold."""
    forms = [_target(one, defs) for one in node.get("anyOf", [node])]
    types = dict.fromkeys(name for form in forms for name in _types(form))
    words = [word for form in forms for word in form.get("enum", ()) if isinstance(word, str)]
    keys = [name for form in forms for name in form.get("properties", ())]
    described = [node, *(form for form in forms)]
    meaning = next((one["description"] for one in described if "description" in one), "")
    meaning = meaning.rstrip(".").replace("|", "\\|")
    if key in LINKS:
        meaning = f"{meaning} ([more]({LINKS[key]}))".lstrip()
    elif words or keys:
        meaning = f"{meaning}: {', '.join(f'`{name}`' for name in [*words, *keys])}".lstrip(": ")
    return f"| `{key}` | {' or '.join(types)} | {meaning} |"


def _target(node: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    name = node.get("$ref", "").rpartition("/")[2]
    return {**defs[name], **node} if name else node


def _types(form: Mapping[str, Any]) -> list[str]:
    if "type" in form:
        return [form["type"]]
    names = {str: "string", int: "integer", type(None): "null"}
    return [names[type(word)] for word in form.get("enum", ())]


def main() -> None:
    for kind in KEPT.kinds:
        (FOLDER / f"{kind}.json").write_text(text(kind), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    sys.stderr.write(f"Wrote {len(KEPT.kinds)} schemas, and the tables of {PAGE.name}.\n")


if __name__ == "__main__":
    main()
