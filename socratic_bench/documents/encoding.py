"""Documents as JSON: typed values to plain ones and to bytes, and stored bytes to typed values.

A field whose key begins with "*" is not a key of its own: its keys stand beside those of the other
fields. So a benchmark's keys are part of a document whose type does not know them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from math import isfinite
from typing import Any, TypeVar

import msgspec
import orjson
from msgspec import Struct
from msgspec.inspect import DictType, ListType, Metadata, StructType, UnionType

from socratic_bench.concurrency import convert, described
from socratic_bench.errors import UsageError
from socratic_bench.redaction import known_secrets
from socratic_bench.types import Json, clean

T = TypeVar("T")
_SAFE_INTEGER = 2**63
_LISTS = (list, tuple)
_PATH = " - at `$"
# Earlier names of metrics and keys, and today's; not where a text quotes them. `help` could
# be a dimension of a user's rubric, so only the key after `discipline` and gates are renamed.
_EARLIER_NAMES = (
    (re.compile(rb'"(?<!\\")sustained_half_life(?=["_.])'), rb'"turns_held'),
    (re.compile(rb'("discipline":[^,"{}]*,\s*)"help"(?=:)'), rb'\1"usefulness"'),
    (re.compile(rb'\["help"(?=,\s*-?[0-9])'), rb'["usefulness"'),
    (re.compile(rb'^\{"cell":', re.MULTILINE), rb'{"key":'),
)
_SPREAD_FIELD = re.compile(r"\.\*\w+")
_Change = Callable[[Any], Any]


def encode(value: Json, *, pretty: bool = False) -> bytes:
    """UTF-8 JSON without a newline at the end; compact unless `pretty`.

    Lone surrogates become U+FFFD, and known secrets a mask. Raises `ValueError` for NaN, infinities
    and integers over 64 bits, which JSON cannot carry.
    """
    option = orjson.OPT_INDENT_2 if pretty else 0
    _check_numbers(value)
    try:
        body = orjson.dumps(value, option=option | orjson.OPT_STRICT_INTEGER)
    except TypeError:  # such as a lone surrogate
        body = orjson.dumps(_with_texts(value, clean), option=option)
    secrets = known_secrets()
    if secrets.may_be_in(body.decode()):
        body = orjson.dumps(_with_texts(orjson.loads(body), secrets.masked), option=option)
    return bytes(memoryview(body))  # orjson's own object takes 8 KB, however short the text


def plain(value: object) -> Json:
    """A document, or a value in one, as plain JSON values; JSON that is written already stays."""
    unchanged = (datetime, orjson.Fragment)
    builtins = msgspec.to_builtins(value, builtin_types=unchanged, str_keys=True, enc_hook=_builtin)
    values: Json = _spread(builtins)
    return values


def plain_keys(document: Struct) -> dict[str, Any]:
    """The keys of a document, each with its plain value."""
    keys: Any = plain(document)
    return dict(keys)


def read(body: bytes, kind: type[T], name: str) -> T:
    """A stored file as a type of document. Unknown keys are ignored, and keys with a default may be
    missing. Raises `UsageError` with the file's `name` and the path of what is wrong.
    """
    return read_value(loaded(body, name), kind, name)


def loaded(body: bytes, name: str) -> Any:  # noqa: ANN401 -- any value of JSON
    """The plain values of a stored file. Raises `UsageError` with its `name`."""
    try:
        return orjson.loads(with_current_keys(body))
    except orjson.JSONDecodeError as error:
        raise UsageError([f"{name} is not a JSON document: {error}."]) from error


def with_current_keys(body: bytes) -> bytes:
    """A stored file with the keys of today; runs of earlier commits are still read."""
    if any(name in body for name in (b'"help"', b"sustained_half_life", b'{"cell":')):
        for earlier, current in _EARLIER_NAMES:
            body = earlier.sub(current, body)
    return body


def read_value(value: object, kind: type[T], name: str) -> T:
    """The plain values of the file `name` as a type of document; see `read`."""
    try:
        return typed(value, kind)
    except msgspec.ValidationError as error:
        raise UsageError([f"{name}: {reason(error)}"]) from error


def typed(value: object, kind: type[T]) -> T:
    """Plain values as a type of document. Raises `msgspec.ValidationError`."""
    any_kind: Any = kind
    gather = _gathering_of(any_kind)
    return convert(gather(value) if gather else value, kind)


def reason(error: Exception) -> str:
    """What is wrong and where, such as "turns[0].turn: Expected `int`, got `str`."."""
    message, _, _ = str(error).partition(_PATH)
    return f"{place(error) or 'the whole'}: {message}."


def place(error: Exception) -> str:
    """Where it is wrong, such as "turns[0].turn", from the end of msgspec's message."""
    _, _, path = str(error).partition(_PATH)
    return _SPREAD_FIELD.sub("", path.rstrip("`")).lstrip(".")


def _check_numbers(value: object) -> None:
    """Raise `ValueError` for a number that JSON cannot carry: a defect of the code that made it."""
    if value is None or isinstance(value, str):  # most are, of tens of thousands in a run
        return
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value} cannot stand in a JSON document")
    if isinstance(value, int) and abs(value) >= _SAFE_INTEGER:
        raise ValueError("an integer of over 64 bits cannot stand in a JSON document")
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, _LISTS):
        for item in value:
            _check_numbers(item)


def _with_texts(value: Json, change: Callable[[str], str]) -> Json:
    """The same value with every text changed, names of keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _with_texts(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(item, change) for item in value]
    return value


def _builtin(value: object) -> object:
    """The value as a type that JSON has."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, float):  # numpy's
        return float(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _spread(value: Any) -> Any:  # noqa: ANN401 -- any value of a document
    """The value with the keys of "*" fields beside the others, which they do not replace."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        keys: dict[str, Any] = {}
        for name, item in value.items():
            below = _spread(item)
            if name.startswith("*") and isinstance(below, dict):
                keys.update((key, inner) for key, inner in below.items() if key not in value)
            else:
                keys[name] = below
        return keys
    if isinstance(value, _LISTS):
        return [_spread(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


@cache
def _gathering_of(kind: object) -> _Change | None:
    """A function that undoes `_spread` in the values of a type; `None` if nothing is to be undone.
    Keys of a benchmark are left out: its own types read them from the same file.
    """
    return _gathering(described(kind))


def _gathering(info: Any) -> _Change | None:  # noqa: ANN401 -- one of msgspec's descriptions
    if isinstance(info, Metadata):
        return _gathering(info.type)
    if isinstance(info, UnionType):
        return _by_form(_first(info.types, StructType | DictType), _first(info.types, ListType))
    if isinstance(info, ListType) and (of_item := _gathering(info.item_type)):
        return _by_form(None, lambda items: [of_item(item) for item in items])
    if isinstance(info, DictType) and (of_value := _gathering(info.value_type)):
        return _by_form(lambda keys: {name: of_value(item) for name, item in keys.items()}, None)
    return _by_form(_gathering_fields(info), None) if isinstance(info, StructType) else None


def _first(infos: Iterable[Any], kinds: Any) -> _Change | None:  # noqa: ANN401 -- types of msgspec's
    return next((_gathering(info) for info in infos if isinstance(info, kinds)), None)


def _by_form(of_dict: _Change | None, of_list: _Change | None) -> _Change | None:
    """A value of another form than its type stays as it is, and is refused later."""
    if of_dict is None and of_list is None:
        return None

    def gather(value: Any) -> Any:  # noqa: ANN401 -- any value of a document
        if isinstance(value, dict) and of_dict:
            return of_dict(value)
        return of_list(value) if isinstance(value, list) and of_list else value

    return gather


def _gathering_fields(info: StructType) -> _Change | None:
    names = frozenset(field.encode_name for field in info.fields)
    below = {of.encode_name: change for of in info.fields if (change := _gathering(of.type))}
    spread = {
        name: _key_pattern(field.type)
        for field in info.fields
        if (name := field.encode_name).startswith("*") and not _is_part(field.type)
    }
    if not (spread or below):
        return None

    def gather(keys: dict[str, Any]) -> dict[str, Any]:
        gathered = {**keys}
        for name, pattern in spread.items():
            gathered[name] = {
                key: item for key, item in keys.items() if key not in names and pattern(key)
            }
        for name, change in below.items():
            if name in gathered:
                gathered[name] = change(gathered[name])
        return gathered

    return gather


def _key_pattern(info: Any) -> Callable[[str], object]:  # noqa: ANN401 -- a mapping's description
    """Which keys a mapping may have, if its type says so."""
    return re.compile(getattr(getattr(info, "key_type", None), "pattern", None) or "").search


def _is_part(info: Any) -> bool:  # noqa: ANN401 -- any of msgspec's descriptions
    """Whether it is the empty type in the place of a benchmark's own."""
    info = info.type if isinstance(info, Metadata) else info
    return isinstance(info, StructType) and not info.fields
