"""JSON Schemas made from the types of documents; `make schemas` writes them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from socratic_bench.documents.scalars import SCHEMA_VERSION
from socratic_bench.ports.parts import Part, Parts

Node = dict[str, Any]

# By the mark of a mapping, which keys it has.
KEYS: Mapping[str, Callable[[Parts], list[str]]] = {
    "roles": lambda parts: [*parts.roles],
    "roles and total": lambda parts: [*parts.roles, "total"],
    "some roles": lambda parts: [*parts.roles],
    "actors": lambda parts: [actor.name for actor in parts.actors],
    "tested and others": lambda parts: [*parts.roles],
    "settings of others": lambda parts: [actor.setting for actor in parts.actors[1:]],
}

KIND = "which kind of document or entry this is"

# Keywords that only msgspec or this module needs.
_LEFT_OUT = ("default", "title", "discriminator", "x-part", "x-known", "x-keys", "x-optional")


# What people write, so that keys may be left out.
READ_ONLY = ("prices", "prompts_line", "sweep_plan")


def schema_of(
    kind: str,
    document: object,
    parts: Parts,
    inputs: type[Part] = Part,
    *,
    promised: Sequence[str] = (),
) -> Node:
    """The schema of a kind of document, a type or a union of types, with what its benchmark adds.

    The types themselves accept what older versions stored. In what the program writes all keys are
    required and no others allowed; in files that people write keys with a default may be left out.
    `promised`: keys added as null if the type lacks them.
    """
    types = {name: getattr(parts, name) for name in Parts.__struct_fields__}
    own = {name: one for name, one in types.items() if isinstance(one, type)} | {"inputs": inputs}
    (root, *_), defs = msgspec.json.schema_components(
        [document, *own.values()], ref_template="#/$defs/{name}"
    )
    maker = _Maker(defs, parts, own, written=kind not in READ_ONLY)
    top = maker.made(_target(root, defs) if "$ref" in root else root)
    for name in (name for name in promised if name not in top["properties"]):
        top["properties"][name] = {"type": "null"}
        top["required"].append(name)
    made = {name: maker.made(node) for name, node in defs.items()}
    for one in top["anyOf"] if "x-optional" in root else ():
        _target(one, made)["properties"] |= root["x-optional"]
    used = _used(top, made)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"socratic-runner:{kind}:{SCHEMA_VERSION}",
        "title": str(top.pop("description", kind)).rstrip("."),
        **top,
        **({"$defs": used} if used else {}),
    }


class _Maker:
    """Turns the schemas that msgspec makes of types into those of documents."""

    def __init__(
        self,
        defs: Mapping[str, Node],
        parts: Parts,
        own: Mapping[str, type[Part]],
        *,
        written: bool,
    ) -> None:
        self._defs = defs
        self._parts = parts
        self._own = own
        self._written = written

    def made(self, node: Node) -> Node:
        kept = {key: value for key, value in node.items() if key not in _LEFT_OUT}
        if node.get("x-part"):
            kept = self._own_part(node, kept)
        elif which := node.get("x-keys"):
            return self._named(which, kept)
        for key in ("items", "additionalProperties"):
            if isinstance(kept.get(key), dict):
                kept[key] = self.made(kept[key])
        if "anyOf" in kept:
            kept["anyOf"] = [self.made(one) for one in kept["anyOf"]]
        return self._object(kept) if "properties" in kept else kept

    def _own_part(self, node: Node, kept: Node) -> Node:
        """The benchmark's own schema of a part, in place of the reference to it."""
        kept = {**self._defs[self._own[node["x-part"]].__name__], **kept}
        del kept["$ref"], kept["title"]
        if node["x-known"]:
            kept["properties"] = {key: _known(one) for key, one in kept["properties"].items()}
        return kept

    def _object(self, node: Node) -> Node:
        """An object with all its keys, including those of fields that are spread into it."""
        keys: Node = {}
        others: Any = node.get("additionalProperties", False)
        for name, below in node["properties"].items():
            made = self.made(below)
            if name == "kind":  # mostly a tag, which cannot have a description
                made.setdefault("description", KIND)
            if not name.startswith("*"):
                keys[name] = made
                continue
            beside = self.made(_target(made, self._defs)) if "$ref" in made else made
            keys.update(beside.get("properties", {}))
            others = beside.get("additionalProperties") or others
        required = [*keys] if self._written else node["required"]
        return {**node, "properties": keys, "required": required, "additionalProperties": others}

    def _named(self, which: str | Sequence[str], node: Node) -> Node:
        value = self.made(node["additionalProperties"])
        names = KEYS[which](self._parts) if isinstance(which, str) else [*which]
        properties = dict.fromkeys(names, value)
        if which == "tested and others":
            own = next(one for one in value["anyOf"] if "$ref" in one)
            properties[names[0]] = {"description": "of the model under test", **own}
        return {
            **node,
            "properties": properties,
            "required": [] if which == "some roles" else names,
            "additionalProperties": False,
        }


def _known(node: Node) -> Node:
    """The same schema without null."""
    forms = [one for one in node.get("anyOf", []) if one != {"type": "null"}]
    kept = {key: value for key, value in node.items() if key != "anyOf"}
    return {**kept, **forms[0]} if len(forms) == 1 else node


def _target(node: Node, defs: Mapping[str, Node]) -> Node:
    found: Node = defs[node["$ref"].rpartition("/")[2]]
    return found


def _used(top: Node, defs: Mapping[str, Node]) -> dict[str, Node]:
    """The definitions that a schema refers to, in the end."""
    found: dict[str, Node] = {}
    waiting = [*_references(top)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = defs[name]
            waiting.extend(_references(defs[name]))
    return dict(sorted(found.items()))


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for below in node.values():
            yield from _references(below)
    elif isinstance(node, list):
        for below in node:
            yield from _references(below)
