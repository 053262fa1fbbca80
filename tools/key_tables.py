# ruff: noqa: INP001 - a script, not a package
"""Writes the tables of keys in docs/runner.md from the types of a run's document: `make docs`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.documents.schema import Documents
from socratic_bench.studies.sweep.settings import SweepSettings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "runner.md"
ENDS = ("Begin", "End")
# Where the docs say more of a key.
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


def page() -> str:
    """The page docs/runner.md with the tables that the types make."""
    benchmark = load_benchmark(RunConfig(model="").benchmark)
    run = Documents(benchmark, RunConfig, SweepSettings).schema("run")
    turn = run["$defs"]["TurnEntry"]
    text = PAGE.read_text(encoding="utf-8")
    for name, properties in (("run", run["properties"]), ("turn", turn["properties"])):
        begin, end = (f"<!-- {word} of the keys of a {name}: make docs -->" for word in ENDS)
        head, below = text.split(begin)
        rows = [_row(key, node, run["$defs"]) for key, node in properties.items()]
        table = "\n".join(["| key | type | meaning |", "|---|---|---|", *rows])
        text = f"{head}{begin}\n{table}\n{end}{below.partition(end)[2]}"
    return text


def _row(key: str, node: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """A key, the types that it may have, what it means, the words or keys that it may hold."""
    forms = [_target(form, defs) for form in node.get("anyOf", [node])]
    types = dict.fromkeys(name for form in forms for name in _types(form))
    words = [word for form in forms for word in form.get("enum", ()) if isinstance(word, str)]
    keys = [name for form in forms for name in form.get("properties", ())]
    described = [node, *(form for form in forms)]
    meaning = next((form["description"] for form in described if "description" in form), "")
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
