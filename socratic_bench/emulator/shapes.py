"""Shapes of a service model, each compiled once into a small function that checks a JSON value."""

import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from socratic_bench.emulator.errors import ServiceError, invalid

_SHOWN = 100

Shape = Mapping[str, Any]
Check = Callable[[object], None]


class MismatchError(Exception):
    """Where and why a value breaks its shape. The path is built while the error propagates, so that
    a valid value costs nothing.
    """

    def __init__(self, before: str, after: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(before)
        self.before = before
        self.after = after
        self.path = list(path)

    def as_service_error(self) -> ServiceError:
        return invalid(f"{self.before} '{'.'.join(reversed(self.path)) or 'body'}' {self.after}")


class Shapes:
    """The shapes of one service. They may contain themselves, so members are looked up later."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = shapes
        self._checks: dict[str, Check] = {}

    def check(self, name: str) -> Check:
        known = self._checks.get(name)
        if known is None:
            known = self._checks[name] = self._compiled(name)
        return known

    def _compiled(self, name: str) -> Check:
        shape = self._shapes[name]
        if shape.get("document"):
            return _anything
        match shape["type"]:
            case "structure":
                return _Structure(self, name, shape)
            case "list":
                return self._list(shape)
            case "map":
                return self._map(shape)
            case kind:
                compiled = _SIMPLE.get(kind)
                return compiled(shape) if compiled else _anything

    def _list(self, shape: Shape) -> Check:
        member, fits = shape["member"]["shape"], _length(shape)

        def check(value: object) -> None:
            if type(value) is not list:
                raise _wrong("a list")
            fits(value)
            inner = self.check(member)
            for index, item in enumerate(value):
                try:
                    inner(item)
                except MismatchError as error:
                    error.path.append(str(index))
                    raise

        return check

    def _map(self, shape: Shape) -> Check:
        fits = _length(shape)

        def check(value: object) -> None:
            if type(value) is not dict:
                raise _wrong("an object")
            fits(value)
            for key, item in value.items():
                try:
                    self.check(shape["key"]["shape"])(key)
                    self.check(shape["value"]["shape"])(item)
                except MismatchError as error:
                    error.path.append(key)
                    raise

        return check


class _Structure:
    """Members by name, some of them required; of a union exactly one. A null counts as absent."""

    __slots__ = ("_checks", "_members", "_name", "_required", "_shapes", "_union")

    def __init__(self, shapes: Shapes, name: str, shape: Shape) -> None:
        self._shapes = shapes
        self._name = name
        # Members with a location travel in the path or the headers.
        self._members = {
            key: member["shape"]
            for key, member in shape["members"].items()
            if "location" not in member
        }
        self._required = [key for key in shape.get("required", ()) if key in self._members]
        self._union = bool(shape.get("union"))
        self._checks: dict[str, Check] = {}

    def __call__(self, value: object) -> None:
        if type(value) is not dict:
            raise _wrong("an object")
        for key, part in value.items():
            if part is not None:
                try:
                    (self._checks.get(key) or self._member(key))(part)
                except MismatchError as error:
                    error.path.append(key)
                    raise
        for key in self._required:
            if value.get(key) is None:
                raise _breaks(None, "Member must not be null", key)
        if self._union and (len(value) != 1 or None in value.values()):
            self._check_union(value)

    def _member(self, key: str) -> Check:
        if key not in self._members:
            raise MismatchError("The field", "is not known. Remove it and try again.")
        return self._checks.setdefault(key, self._shapes.check(self._members[key]))

    def _check_union(self, value: dict[str, object]) -> None:
        if sum(part is not None for part in value.values()) != 1:
            names = ", ".join(self._members)
            raise MismatchError(
                f"The {self._name} object at", f"must hold exactly one of: {names}."
            )


def _anything(value: object) -> None:
    del value


def _wrong(word: str) -> MismatchError:
    return MismatchError("The value at", f"is not {word}. Send {word} and try again.")


def _breaks(value: object, rule: str, *path: str) -> MismatchError:
    shown = "null" if value is None else f"'{str(value)[:_SHOWN]}'"
    before = f"1 validation error detected: Value {shown} at"
    return MismatchError(before, f"failed to satisfy constraint: {rule}", path)


def _length(shape: Shape) -> Callable[[list[object] | dict[str, object] | str], None]:
    low, high = shape.get("min", 0), shape.get("max", float("inf"))

    def check(value: list[object] | dict[str, object] | str) -> None:
        if len(value) < low:
            raise _breaks(value, f"Member must have length greater than or equal to {low}")
        if len(value) > high:
            raise _breaks(value, f"Member must have length less than or equal to {high}")

    return check


def _string(shape: Shape) -> Check:
    rules = tuple(_string_rules(shape))

    def check(value: object) -> None:
        if type(value) is not str:
            raise _wrong("a string")
        for rule in rules:
            rule(value)

    return check


def _string_rules(shape: Shape) -> Iterator[Callable[[str], None]]:
    """Only what the shape asks for: most strings may be anything."""
    if "enum" in shape:
        yield _one_of(shape["enum"])
    if shape.get("min") or "max" in shape:
        yield _length(shape)
    if "pattern" in shape:
        yield _matching(re.compile(shape["pattern"]))


def _one_of(values: list[str]) -> Callable[[str], None]:
    allowed = frozenset(values)

    def check(value: str) -> None:
        if value not in allowed:
            raise _breaks(value, f"Member must satisfy enum value set: [{', '.join(values)}]")

    return check


def _matching(pattern: re.Pattern[str]) -> Callable[[str], None]:
    def check(value: str) -> None:
        if not pattern.fullmatch(value):
            rule = f"Member must satisfy regular expression pattern: {pattern.pattern}"
            raise _breaks(value, rule)

    return check


def _number(shape: Shape) -> Check:
    low, high = shape.get("min", float("-inf")), shape.get("max", float("inf"))
    kinds = (int,) if shape["type"] in ("integer", "long") else (int, float)

    def check(value: object) -> None:
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise _wrong("a number" if float in kinds else "an integer")
        # Put so that NaN, which compares with nothing, fails too.
        if not value >= low:
            raise _breaks(value, f"Member must have value greater than or equal to {low}")
        if not value <= high:
            raise _breaks(value, f"Member must have value less than or equal to {high}")

    return check


def _boolean(shape: Shape) -> Check:
    del shape

    def check(value: object) -> None:
        if type(value) is not bool:
            raise _wrong("a boolean")

    return check


def _blob(shape: Shape) -> Check:
    fits = _length(shape)

    def check(value: object) -> None:
        if type(value) is not str:
            raise _wrong("a base64 string")
        fits(value)
        try:
            binascii.a2b_base64(value, strict_mode=True)
        except ValueError:
            raise _wrong("a base64 string") from None

    return check


_SIMPLE: dict[str, Callable[[Shape], Check]] = {
    "string": _string,
    "integer": _number,
    "long": _number,
    "float": _number,
    "double": _number,
    "boolean": _boolean,
    "blob": _blob,
}
