"""Reads plain values as types, from several threads, too.

msgspec looks into a type when it first reads one of its values, and keeps what it finds with the
type before it is complete: a thread that reads another value meanwhile ends the process with a
segmentation fault. So each type is read for the first time by one thread alone.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar, cast, overload

import msgspec
import msgspec.json

T = TypeVar("T")

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (str, "text"),
    (list, "a list"),
    (dict, "a table"),
)
_lock = threading.Lock()
_read: set[object] = set()


@overload
def convert(value: object, kind: type[T]) -> T: ...
@overload
def convert(value: object, kind: object) -> Any: ...  # noqa: ANN401 -- a union, or the like
def convert(value: object, kind: Any) -> Any:
    """See `msgspec.convert`. Raises `msgspec.ValidationError`."""
    return _alone_at_first(msgspec.convert, value, kind)  # noqa: TID251 -- here alone


def decode(body: bytes, kind: type[T]) -> T:
    """See `msgspec.json.decode`. Raises `ValueError`, such as `msgspec.DecodeError`."""
    return cast("T", _alone_at_first(msgspec.json.decode, body, kind))


def described(kind: object) -> Any:  # noqa: ANN401 -- one of msgspec's descriptions
    """See `msgspec.inspect.type_info`, which looks into types, too."""
    with _lock:
        return _described(kind)


@cache
def _described(kind: object) -> Any:  # noqa: ANN401
    from msgspec.inspect import type_info  # noqa: TID251

    return type_info(kind)


def kind_of(value: object) -> str:
    """What a value from a TOML file is, in words."""
    return next((word for kind, word in _KINDS if isinstance(value, kind)), "a date or time")


def _alone_at_first(read: Callable[..., Any], value: object, kind: object) -> Any:  # noqa: ANN401
    try:
        is_known = kind in _read
    except TypeError:  # words beside a type may have no hash
        is_known = False
    if is_known:
        return read(value, type=kind)
    with _lock:
        try:
            return read(value, type=kind)
        finally:
            with suppress(TypeError):
                _read.add(kind)
