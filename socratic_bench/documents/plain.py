"""Typed documents as plain JSON values, and back."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.converting import convert
from socratic_bench.errors import UsageError
from socratic_bench.types import Json

T = TypeVar("T")
_PLAIN = frozenset((str, int, float, bool))
_WRITTEN_AS_THEY_ARE = (datetime, orjson.Fragment)
_AT = " - at `$"


def plain(value: object) -> Json:
    """A document, or a value in one, as plain JSON values.

    A field whose name in documents begins with "*" is replaced by its own keys, except those that
    other fields have already.
    """
    if value is None or value.__class__ in _PLAIN:  # most are, so it is asked first
        return value  # type: ignore[return-value]
    if isinstance(value, Struct):
        return plain_keys(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    known: Json = value  # type: ignore[assignment]
    return known


def plain_keys(document: Struct) -> dict[str, Json]:
    """The keys of a document, each with its plain value; see `plain`."""
    tag, fields, is_simple = _fields_of(type(document))
    if is_simple:
        values = asdict(document)
        for name, value in values.items():
            if value is not None and value.__class__ not in _PLAIN:
                values[name] = plain(value)
        return {**tag, **values} if tag else values
    found: dict[str, Json] = {**tag}
    for name, key, is_spread in fields:
        value = getattr(document, name)
        if value is not None and value.__class__ not in _PLAIN:
            value = plain(value)
        if is_spread and isinstance(value, dict):
            keys = document.__struct_encode_fields__
            found.update((one, below) for one, below in value.items() if one not in keys)
        else:
            found[key] = value
    return found


def entry_keys(entry: Struct) -> dict[str, Any]:
    """The same of a document without such names, made more quickly. Times of day, and JSON that was
    written before, stay what they are: `encode` writes them as it should.
    """
    found: dict[str, Any] = msgspec.to_builtins(entry, builtin_types=_WRITTEN_AS_THEY_ARE)
    return found


@cache
def _fields_of(kind: type[Struct]) -> tuple[dict[str, Json], list[tuple[str, str, bool]], bool]:
    """The tag of a type, and of each field its name, its key, and whether that is none; and whether
    all keys are as the fields are called.
    """
    config = kind.__struct_config__
    tag: dict[str, Json] = {config.tag_field: config.tag} if config.tag_field else {}
    names = [*zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)]
    is_simple = all(name == key for name, key in names)
    return tag, [(name, key, key.startswith("*")) for name, key in names], is_simple


def read(body: bytes, kind: type[T], name: str) -> T:
    """The document in a file that was stored. Raises `UsageError` with `name` and path.

    Keys that are not known are left out, and keys with a default may be missing: it may be of
    another version. What a benchmark adds is read from the same file as its own type.
    """
    try:
        return typed(orjson.loads(body), kind)
    except orjson.JSONDecodeError as error:
        raise UsageError([f"{name} is no JSON document: {error}."]) from error
    except msgspec.ValidationError as error:
        raise UsageError([f"{name}: {reason(error)}"]) from error


def typed(found: object, kind: type[T]) -> T:
    """Plain values as a type of document. Raises `msgspec.ValidationError`."""
    from msgspec.inspect import type_info

    return convert(_nested(found, type_info(kind)), kind)


def reason(error: Exception) -> str:
    """What is wrong where, such as "turns[0].turn: Expected `int`, got `str`."."""
    what, _, _ = str(error).partition(_AT)
    return f"{place(error) or 'the whole'}: {what}."


def place(error: Exception) -> str:
    """Where it is wrong, such as "turns[0].turn": msgspec tells the path at the end of its message
    alone.
    """
    _, _, path = str(error).partition(_AT)
    return path.rstrip("`").lstrip(".")


def _nested(found: object, info: Any) -> object:  # noqa: ANN401 -- any of msgspec's descriptions
    """With the keys that stand in the place of a field put back below it."""
    from msgspec.inspect import DictType, ListType, Metadata, StructType, UnionType

    if isinstance(info, Metadata):
        return _nested(found, info.type)
    if isinstance(info, UnionType):
        kinds = StructType | DictType if isinstance(found, dict) else ListType
        return next((_nested(found, one) for one in info.types if isinstance(one, kinds)), found)
    if isinstance(info, ListType) and isinstance(found, list):
        return [_nested(item, info.item_type) for item in found]
    if isinstance(info, DictType) and isinstance(found, dict):
        return {name: _nested(item, info.value_type) for name, item in found.items()}
    return _fields(found, info) if isinstance(info, StructType) else found


def _fields(found: object, info: Any) -> object:  # noqa: ANN401 -- msgspec's StructType
    if not isinstance(found, dict):
        return found
    known = {field.encode_name: field.type for field in info.fields}
    beside = {name: value for name, value in found.items() if name not in known}
    return {
        **found,
        **{name: _nested(found[name], kind) for name, kind in known.items() if name in found},
        **{
            name: _nested(_named(beside, kind), kind)
            for name, kind in known.items()
            if name.startswith("*")
        },
    }


def _named(found: Mapping[str, object], info: Any) -> Mapping[str, object]:  # noqa: ANN401
    """Those keys whose names a mapping takes, if it says which."""
    pattern = getattr(getattr(info, "key_type", None), "pattern", None)
    return {name: found[name] for name in found if re.search(pattern or "", name)}
