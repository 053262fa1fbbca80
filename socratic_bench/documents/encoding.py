"""One JSON document as bytes, from values that were cleaned of what JSON cannot carry."""

import re
from collections.abc import Callable

import orjson
from msgspec.msgpack import Encoder

from socratic_bench.redaction import known_secrets
from socratic_bench.types import Json, clean

_SAFE_INTEGER = 2**63
# A float in MessagePack whose exponent is all ones, as it is of NaN and infinities:
# https://github.com/msgpack/msgpack/blob/master/spec.md#float-format-family
_ODD_NUMBER = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")


def encode(value: Json, *, pretty: bool = False) -> bytes:
    """UTF-8 JSON without a newline at the end; compact unless `pretty`.

    Lone surrogates become U+FFFD, and known secrets a mask. Raises `ValueError` for NaN, infinities
    and integers over 64 bits: such a number is a defect of the code that made it, and must not
    become null.
    """
    option = orjson.OPT_INDENT_2 if pretty else 0
    written = _at_once(value, option) or orjson.dumps(_mapped(value, clean), option=option)
    secrets = known_secrets()
    if secrets.may_be_in(written.decode()):
        written = orjson.dumps(_mapped(orjson.loads(written), secrets.masked), option=option)
    return bytes(memoryview(written))  # what orjson gives holds 8 KB, however short it is


def _at_once(value: Json, option: int) -> bytes | None:
    """The document, as long as nothing in it has to be cleaned or refused, as is the rule."""
    try:
        written = orjson.dumps(value, option=option | orjson.OPT_STRICT_INTEGER)
    except TypeError:
        return None
    # NaN and infinities would be written as null.
    return None if b"null" in written and _may_have_odd(value) else written


def _may_have_odd(value: Json) -> bool:
    """Never wrong if it says no. Texts and numbers may hold such bytes, too."""
    try:
        return _ODD_NUMBER.search(_PACKING.encode(value)) is not None
    except TypeError:
        return True


def _packed(value: object) -> None:
    """JSON that was written before stands for itself, and holds none."""
    if not isinstance(value, orjson.Fragment):
        raise TypeError(type(value))


_PACKING = Encoder(enc_hook=_packed)


def _mapped(value: Json, change: Callable[[str], str]) -> Json:
    """The same with every text changed, names included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _mapped(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(item, change) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
        raise ValueError(f"{value} cannot stand in a JSON document")
    if isinstance(value, int) and abs(value) >= _SAFE_INTEGER:
        raise ValueError("an integer of over 64 bits cannot stand in a JSON document")
    return value
