"""One JSON document as bytes, from values that were cleaned of what JSON cannot carry."""

import orjson

from socratic_bench.secrecy import conceal, known_secrets
from socratic_bench.types import Json, clean

_SAFE_INTEGER = 2**63


def encode(value: Json, *, pretty: bool = False) -> bytes:
    """UTF-8 JSON without a newline at the end; compact unless `pretty`.

    Lone surrogates become U+FFFD, and known secrets a mask. Raises `ValueError` for NaN, infinities
    and integers over 64 bits: a null must come from None, so such a number is a defect where it was
    made.
    """
    cleaned = _cleaned(value, known_secrets())
    return orjson.dumps(cleaned, option=orjson.OPT_INDENT_2 if pretty else 0)


def _cleaned(value: Json, secrets: tuple[str, ...]) -> Json:
    if isinstance(value, str):
        return conceal(clean(value), secrets)
    if isinstance(value, dict):
        return {
            conceal(clean(name), secrets): _cleaned(item, secrets) for name, item in value.items()
        }
    if isinstance(value, list):
        return [_cleaned(item, secrets) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
        raise ValueError(f"{value} cannot stand in a JSON document")
    if isinstance(value, int) and abs(value) >= _SAFE_INTEGER:
        raise ValueError("an integer of over 64 bits cannot stand in a JSON document")
    return value
