"""Typed documents as plain JSON values, and back."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import asdict

from socratic_bench.concurrency import convert, described
from socratic_bench.errors import UsageError
from socratic_bench.types import Json

T = TypeVar("T")
_Nest = Callable[[Any], Any]
_PLAIN = frozenset((str, int, float, bool))
_WRITTEN_AS_THEY_ARE = (datetime, orjson.Fragment)
_AT = " - at `$"
_NO_KEY = re.compile(r"\.\*\w+")


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
    return read_value(loaded(body, name), kind, name)


def loaded(body: bytes, name: str) -> Any:  # noqa: ANN401 -- any value of JSON
    """The plain values of a file that was stored. Raises `UsageError` with its `name`."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UsageError([f"{name} is no JSON document: {error}."]) from error


def read_value(found: object, kind: type[T], name: str) -> T:
    """See `read`, of a file that is loaded."""
    try:
        return typed(found, kind)
    except msgspec.ValidationError as error:
        raise UsageError([f"{name}: {reason(error)}"]) from error


def typed(found: object, kind: type[T]) -> T:
    """Plain values as a type of document. Raises `msgspec.ValidationError`."""
    known: Any = kind
    nesting = _nesting_of(known)
    return convert(nesting(found) if nesting else found, kind)


def reason(error: Exception) -> str:
    """What is wrong where, such as "turns[0].turn: Expected `int`, got `str`."."""
    what, _, _ = str(error).partition(_AT)
    return f"{place(error) or 'the whole'}: {what}."


def place(error: Exception) -> str:
    """Where it is wrong, such as "turns[0].turn": msgspec tells the path at the end of its message
    alone, with fields in it that have no key of their own.
    """
    _, _, path = str(error).partition(_AT)
    return _NO_KEY.sub("", path.rstrip("`")).lstrip(".")


@cache
def _nesting_of(kind: object) -> _Nest | None:
    """What puts the keys that stand in the place of a field back below it; `None` if there is no
    such field.
    """
    return _nesting(described(kind))


def _nesting(info: Any) -> _Nest | None:  # noqa: ANN401 -- any of msgspec's descriptions
    from msgspec.inspect import DictType, ListType, Metadata, StructType, UnionType

    if isinstance(info, Metadata):
        return _nesting(info.type)
    if isinstance(info, UnionType):
        of_dict = _first(info.types, StructType | DictType)
        of_list = _first(info.types, ListType)
        return _by_form(of_dict, of_list)
    if isinstance(info, ListType) and (item := _nesting(info.item_type)):
        return _by_form(None, lambda found: [item(one) for one in found])
    if isinstance(info, DictType) and (value := _nesting(info.value_type)):
        return _by_form(lambda found: {name: value(one) for name, one in found.items()}, None)
    return _by_form(_fields(info), None) if isinstance(info, StructType) else None


def _first(infos: Iterable[Any], kinds: Any) -> _Nest | None:  # noqa: ANN401 -- types of msgspec's
    return next((_nesting(one) for one in infos if isinstance(one, kinds)), None)


def _by_form(of_dict: _Nest | None, of_list: _Nest | None) -> _Nest | None:
    """What has another form than its type stays as it is, and is refused later."""
    if of_dict is None and of_list is None:
        return None

    def nest(found: Any) -> Any:  # noqa: ANN401 -- any value of a document
        below = of_dict if isinstance(found, dict) else of_list if isinstance(found, list) else None
        return found if below is None else below(found)

    return nest


def _fields(info: Any) -> _Nest | None:  # noqa: ANN401 -- msgspec's StructType
    known = frozenset(one.encode_name for one in info.fields)
    nestings = [(one.encode_name, _nesting(one.type)) for one in info.fields]
    below = [(name, nesting) for name, nesting in nestings if nesting]
    spread = [one for one in info.fields if one.encode_name.startswith("*")]
    # A part is empty here: a benchmark's own types read what is in it.
    named = [(one.encode_name, _names(one.type)) for one in spread if not _is_empty(one.type)]
    if not (named or below):
        return None

    def nest(found: dict[str, Any]) -> dict[str, Any]:
        made = {**found}
        for name, is_its in named:
            made[name] = {key: found[key] for key in found if key not in known and is_its(key)}
        for name, nesting in below:
            if name in made:
                made[name] = nesting(made[name])
        return made

    return nest


def _names(info: Any) -> Callable[[str], object]:  # noqa: ANN401 -- a mapping's description
    """Which keys a mapping takes, if it says so by their names."""
    return re.compile(getattr(getattr(info, "key_type", None), "pattern", None) or "").search


def _is_empty(info: Any) -> bool:  # noqa: ANN401 -- any of msgspec's descriptions
    from msgspec.inspect import Metadata, StructType

    info = info.type if isinstance(info, Metadata) else info
    return isinstance(info, StructType) and not info.fields
