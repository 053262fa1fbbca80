"""The kinds of documents and stored files, and their JSON Schemas, made from their types.

msgspec makes a schema of each type; what the marks in the types say is worked into it here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from socratic_bench.catalogue.price_file import PriceFile
from socratic_bench.documents.calibration import CalibrationDocument, Label, LabellingDocument
from socratic_bench.documents.comparison import ComparisonDocument, JudgingsDocument, JudgingsDryRun
from socratic_bench.documents.doctor import (
    DashboardDocument,
    DoctorDocument,
    EmulatorDocument,
    ModelList,
    ValidationDocument,
)
from socratic_bench.documents.document import (
    PROMISED_KEYS,
    SCHEMA_VERSION,
    ErrorDocument,
    optional_keys,
)
from socratic_bench.documents.dry_run import DryRunDocument, SweepDryRun
from socratic_bench.documents.files import ClosingFile, JudgeFile, TurnFile
from socratic_bench.documents.journal import LINE_SUM, JournalEntry, LeaseFile, Link
from socratic_bench.documents.report import (
    ConfigDocument,
    ExportDocument,
    ListDocument,
    ReportDocument,
    ShownDocument,
)
from socratic_bench.documents.run import Brief, CuratedDocument, RunDocument, own_inputs
from socratic_bench.documents.sweep import CellRow, SweepDocument, SweepFile
from socratic_bench.documents.sweep_plan import PromptLine, plan_type
from socratic_bench.documents.sweep_status import SpendingFile, SweepStatus
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.settings import CoreConfig, Kind
from socratic_bench.types import doc

Node = dict[str, Any]

# The kinds that every benchmark has, with their types or unions of types.
COMMON: Mapping[str, object] = {
    "run": RunDocument,
    "brief": Brief,
    "curated": CuratedDocument,
    "turn": TurnFile,
    "judge": JudgeFile,
    "closing_verdict": ClosingFile,
    "dry_run": DryRunDocument,
    "sweep": SweepDocument,
    "sweep_begun": SweepFile,
    "sweep_row": CellRow,
    "sweep_spending": SpendingFile,
    "sweep_status": SweepStatus,
    "sweep_dry_run": SweepDryRun,
    "comparison": ComparisonDocument,
    "judgings": JudgingsDocument,
    "judgings_dry_run": JudgingsDryRun,
    "calibration": CalibrationDocument,
    "label": Label,
    "labelling": LabellingDocument,
    "report": ReportDocument,
    "export": ExportDocument,
    "list": ListDocument,
    "config": ConfigDocument,
    "shown": ShownDocument,
    "doctor": DoctorDocument,
    "validation": ValidationDocument,
    "emulator": EmulatorDocument,
    "dashboard": DashboardDocument,
    "models": ModelList,
    "error": ErrorDocument,
    "journal": Annotated[
        JournalEntry, doc("An entry of a journal"), optional_keys(sha256=LINE_SUM)
    ],
    "journal_entry": Link,
    "lease": LeaseFile,
    "prices": PriceFile,
    "prompts_line": PromptLine,
}

# The keys of a mapping that is marked with `keys`, by the mark.
KEYS: Mapping[str, Callable[[Parts], list[str]]] = {
    "roles": lambda parts: [*parts.roles],
    "roles and total": lambda parts: [*parts.roles, "total"],
    "some roles": lambda parts: [*parts.roles],
    "actors": lambda parts: [actor.name for actor in parts.actors],
    "tested and others": lambda parts: [*parts.roles],
    "settings of others": lambda parts: [actor.setting for actor in parts.actors[1:]],
}

# Files that people write, whose keys may be left out if they have a default.
WRITTEN_BY_PEOPLE = ("prices", "prompts_line", "sweep_plan")

_KIND = "kind of the document or entry"
# Keywords that only msgspec or this module needs.
_INTERNAL = ("default", "title", "discriminator", "x-part", "x-known", "x-keys", "x-optional")


class Documents(Struct, frozen=True):
    """The documents of a benchmark, for the settings of a run and of a sweep."""

    benchmark: Benchmark
    config: type[CoreConfig]
    sweep: Kind

    @property
    def kinds(self) -> Mapping[str, object]:
        """Each kind with its type, or union of types."""
        plan = plan_type((self.config, self.sweep), self.benchmark.name)
        return {**COMMON, "sweep_plan": plan, **self.benchmark.documents}

    def schema(self, kind: str) -> Node:
        """The schema of a kind. Raises `KeyError` for an unknown one."""
        inputs = own_inputs(self.config, self.benchmark.name)
        return schema_of(kind, self.kinds[kind], self.benchmark.parts, inputs)


def schema_of(kind: str, document: object, parts: Parts, inputs: type[Part] = Part) -> Node:
    """The schema of a document, which is a type or a union of types, with its benchmark's keys.

    All keys are required and no others allowed; in files that people write, keys with a default may
    be left out. Promised keys that the benchmark lacks are null.
    """
    types = {name: getattr(parts, name) for name in Parts.__struct_fields__}
    part_types = {name: type_ for name, type_ in types.items() if isinstance(type_, type)}
    part_types["inputs"] = inputs
    (root, *_), defs = msgspec.json.schema_components(
        [document, *part_types.values()], ref_template="#/$defs/{name}"
    )
    rewriting = _Rewriting(defs, parts, part_types, all_required=kind not in WRITTEN_BY_PEOPLE)
    top = rewriting.rewrite(_target(root, defs) if "$ref" in root else root)
    for name in PROMISED_KEYS.get(kind, ()):
        if name not in top["properties"]:
            top["properties"][name] = {"type": "null"}
            top["required"].append(name)
    rewritten = {name: rewriting.rewrite(node) for name, node in defs.items()}
    for alternative in top["anyOf"] if "x-optional" in root else ():
        _target(alternative, rewritten)["properties"] |= root["x-optional"]
    used = _used(top, rewritten)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"socratic-runner:{kind}:{SCHEMA_VERSION}",
        "title": str(top.pop("description", kind)).rstrip("."),
        **top,
        **({"$defs": used} if used else {}),
    }


class _Rewriting:
    """Turns the schemas that msgspec makes of types into those of documents."""

    def __init__(
        self,
        defs: Mapping[str, Node],
        parts: Parts,
        part_types: Mapping[str, type[Part]],
        *,
        all_required: bool,
    ) -> None:
        self._defs = defs
        self._parts = parts
        self._part_types = part_types
        self._all_required = all_required

    def rewrite(self, node: Node) -> Node:
        schema = {key: value for key, value in node.items() if key not in _INTERNAL}
        if node.get("x-part"):
            schema = self._part(node, schema)
        elif names := node.get("x-keys"):
            return self._with_fixed_keys(names, schema)
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                schema[key] = self.rewrite(schema[key])
        if "anyOf" in schema:
            schema["anyOf"] = [self.rewrite(form) for form in schema["anyOf"]]
        return self._object(schema) if "properties" in schema else schema

    def _part(self, node: Node, schema: Node) -> Node:
        """The schema of the benchmark's part, in place of the reference to the empty type."""
        schema = {**self._defs[self._part_types[node["x-part"]].__name__], **schema}
        del schema["$ref"], schema["title"]
        if node["x-known"]:
            keys = schema["properties"].items()
            schema["properties"] = {name: _without_null(value) for name, value in keys}
        return schema

    def _object(self, node: Node) -> Node:
        """An object with all its keys, including those of fields that are spread into it."""
        keys: Node = {}
        additional: Any = node.get("additionalProperties", False)
        for name, inner in node["properties"].items():
            schema = self.rewrite(inner)
            if name == "kind":  # it is mostly a tag, which cannot have a description
                schema.setdefault("description", _KIND)
            if not name.startswith("*"):
                keys[name] = schema
                continue
            spread = self.rewrite(_target(schema, self._defs)) if "$ref" in schema else schema
            keys.update(spread.get("properties", {}))
            additional = spread.get("additionalProperties") or additional
        required = [*keys] if self._all_required else node["required"]
        return {
            **node,
            "properties": keys,
            "required": required,
            "additionalProperties": additional,
        }

    def _with_fixed_keys(self, mark: str | Sequence[str], node: Node) -> Node:
        value = self.rewrite(node["additionalProperties"])
        names = KEYS[mark](self._parts) if isinstance(mark, str) else [*mark]
        properties = dict.fromkeys(names, value)
        if mark == "tested and others":
            reference = next(form for form in value["anyOf"] if "$ref" in form)
            properties[names[0]] = {"description": "of the model under test", **reference}
        return {
            **node,
            "properties": properties,
            "required": [] if mark == "some roles" else names,
            "additionalProperties": False,
        }


def _without_null(node: Node) -> Node:
    forms = [form for form in node.get("anyOf", []) if form != {"type": "null"}]
    outside = {key: value for key, value in node.items() if key != "anyOf"}
    return {**outside, **forms[0]} if len(forms) == 1 else node


def _target(node: Node, defs: Mapping[str, Node]) -> Node:
    target: Node = defs[node["$ref"].rpartition("/")[2]]
    return target


def _used(top: Node, defs: Mapping[str, Node]) -> dict[str, Node]:
    """The definitions that a schema refers to, directly or by others."""
    used: dict[str, Node] = {}
    waiting = [*_references(top)]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used[name] = defs[name]
            waiting.extend(_references(defs[name]))
    return dict(sorted(used.items()))


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)
