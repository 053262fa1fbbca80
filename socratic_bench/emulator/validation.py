"""Checks request bodies against the service model that botocore ships, read as a data file.

Every shape is compiled once into a small function; a path is put together only for a body that fails.
"""

import binascii
import gzip
import json
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from socratic_bench.emulator.errors import ServiceError, invalid

MODEL_FOLDER = Path("bedrock-runtime", "2023-09-30")
_SHOWN = 100

Shape = Mapping[str, Any]
Check = Callable[[object], None]


def validate(operation: str, model_id: str, body: object) -> None:
    """Raise the service's error for a body that breaks the operation's model. No model: no check."""
    model = service_model()
    if model is None:
        return
    try:
        _id_check(operation, model_id)
        _body_check(operation)(body)
    except MismatchError as error:
        raise error.as_service_error() from None


class MismatchError(Exception):
    """Where and why a value breaks its shape; the path grows outwards as the error travels."""

    def __init__(self, reason: str, path: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = [path] if path is not None else []

    def as_service_error(self) -> ServiceError:
        return invalid(self.reason.replace("{path}", ".".join(reversed(self.path)) or "body"))


def _constraint(value: object, rule: str, path: str | None = None) -> MismatchError:
    shown = "null" if value is None else f"'{str(value)[:_SHOWN]}'"
    return MismatchError(
        f"1 validation error detected: Value {shown} at '{{path}}' failed to satisfy constraint: {rule}",
        path,
    )


@cache
def service_model() -> Mapping[str, Any] | None:
    """botocore's description of the runtime API, or `None` where botocore is not installed."""
    spec = find_spec("botocore")
    if spec is None or spec.origin is None:
        return None
    return read_model(Path(spec.origin).parent / "data" / MODEL_FOLDER)


def read_model(folder: Path) -> Mapping[str, Any] | None:
    """Read the plain or the compressed file, whichever is there."""
    plain, packed = folder / "service-2.json", folder / "service-2.json.gz"
    model: Mapping[str, Any] | None = None
    if plain.is_file():
        model = json.loads(plain.read_bytes())
    elif packed.is_file():
        model = json.loads(gzip.decompress(packed.read_bytes()))
    return model


@lru_cache(maxsize=1024)
def _id_check(operation: str, model_id: str) -> None:
    model = service_model() or {}
    members = model["shapes"][_input_name(operation)]["members"]
    _shape_check(members["modelId"]["shape"])(model_id)


def _input_name(operation: str) -> str:
    name: str = (service_model() or {})["operations"][operation]["input"]["shape"]
    return name


@cache
def _body_check(operation: str) -> Check:
    return _shape_check(_input_name(operation))


@cache
def _shape_check(name: str) -> Check:
    """The compiled check of a shape. Shapes may hold themselves, so members are looked up late."""
    shape: Shape = (service_model() or {})["shapes"][name]
    if shape.get("document"):
        return _anything
    match shape["type"]:
        case "structure":
            return _structure(name, shape)
        case "list":
            return _list(shape)
        case "map":
            return _map(shape)
        case "string":
            return _string(shape)
        case "integer" | "long" | "float" | "double":
            return _number(shape)
        case "boolean":
            return _boolean
        case "blob":
            return _blob
        case _:
            return _anything


def _anything(value: object) -> None:
    del value


def _expect(value: object, kind: type, word: str) -> None:
    if type(value) is not kind:
        raise MismatchError(f"The value at '{{path}}' is not {word}. Send {word} and try again.")


def _structure(name: str, shape: Shape) -> Check:
    members = {
        key: member["shape"] for key, member in shape["members"].items() if "location" not in member
    }
    required = tuple(key for key in shape.get("required", ()) if key in members)
    checks: dict[str, Check] = {}
    union = bool(shape.get("union"))

    def check(value: object) -> None:
        _expect(value, dict, "an object")
        fields: dict[str, object] = value  # type: ignore[assignment]  # just checked
        for key, part in fields.items():
            if part is None:
                continue
            try:
                (checks.get(key) or member_check(key))(part)
            except MismatchError as error:
                error.path.append(key)
                raise
        for key in required:
            if fields.get(key) is None:
                raise _constraint(None, "Member must not be null", key)
        if union and sum(part is not None for part in fields.values()) != 1:
            raise MismatchError(
                f"The {name} object at '{{path}}' must hold exactly one of: {', '.join(members)}."
            )

    def member_check(key: str) -> Check:
        if key not in members:
            raise MismatchError("The field '{path}' is not known. Remove it and try again.")
        return checks.setdefault(key, _shape_check(members[key]))

    return check


def _list(shape: Shape) -> Check:
    member = shape["member"]["shape"]
    low, high = shape.get("min", 0), shape.get("max", float("inf"))

    def check(value: object) -> None:
        _expect(value, list, "a list")
        items: list[object] = value  # type: ignore[assignment]  # just checked
        _length(value, len(items), low, high)
        inner = _shape_check(member)
        for index, item in enumerate(items):
            try:
                inner(item)
            except MismatchError as error:
                error.path.append(str(index))
                raise

    return check


def _map(shape: Shape) -> Check:
    low, high = shape.get("min", 0), shape.get("max", float("inf"))

    def check(value: object) -> None:
        _expect(value, dict, "an object")
        items: dict[str, object] = value  # type: ignore[assignment]  # just checked
        _length(value, len(items), low, high)
        for key, item in items.items():
            try:
                _shape_check(shape["key"]["shape"])(key)
                _shape_check(shape["value"]["shape"])(item)
            except MismatchError as error:
                error.path.append(key)
                raise

    return check


def _string(shape: Shape) -> Check:
    if "enum" in shape:
        return _enum(shape["enum"])
    low, high = shape.get("min", 0), shape.get("max", float("inf"))
    pattern = re.compile(shape["pattern"]) if "pattern" in shape else None
    if not low and high == float("inf") and pattern is None:
        return _plain_string

    def check(value: object) -> None:
        _expect(value, str, "a string")
        text = str(value)
        _length(value, len(text), low, high)
        if pattern is not None and not pattern.fullmatch(text):
            rule = f"Member must satisfy regular expression pattern: {pattern.pattern}"
            raise _constraint(value, rule)

    return check


def _plain_string(value: object) -> None:
    if type(value) is not str:
        _expect(value, str, "a string")


def _enum(values: list[str]) -> Check:
    allowed = frozenset(values)

    def check(value: object) -> None:
        if type(value) is not str or value not in allowed:
            _expect(value, str, "a string")
            raise _constraint(value, f"Member must satisfy enum value set: [{', '.join(values)}]")

    return check


def _number(shape: Shape) -> Check:
    low, high = shape.get("min", float("-inf")), shape.get("max", float("inf"))
    whole = shape["type"] in ("integer", "long")

    def check(value: object) -> None:
        if type(value) is not int and (whole or type(value) is not float):
            _expect(value, int, "an integer" if whole else "a number")
        if not low <= value:  # type: ignore[operator]  # a number by now
            raise _constraint(value, f"Member must have value greater than or equal to {low}")
        if not value <= high:  # type: ignore[operator]  # a number by now
            raise _constraint(value, f"Member must have value less than or equal to {high}")

    return check


def _boolean(value: object) -> None:
    _expect(value, bool, "a boolean")


def _blob(value: object) -> None:
    _expect(value, str, "a base64 string")
    try:
        binascii.a2b_base64(str(value), strict_mode=True)
    except ValueError:
        raise MismatchError("The value at '{path}' is not valid base64.") from None


def _length(value: object, length: int, low: float, high: float) -> None:
    if length < low:
        raise _constraint(value, f"Member must have length greater than or equal to {low}")
    if length > high:
        raise _constraint(value, f"Member must have length less than or equal to {high}")
