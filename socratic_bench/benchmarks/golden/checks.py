"""Rules that need no judge: what a reply must be, contain, match, or have as its number."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import orjson
from msgspec import Meta, Struct

from socratic_bench.types import doc

CheckType = Literal["exact", "contains", "not_contains", "regex", "number", "json_schema"]
TYPES: tuple[CheckType, ...] = get_args(CheckType)
INSTALL_HINT = "pip install 'socratic-runner[golden]' has what reads it."
LIMIT_S = 1.0  # for a regular expression, and for a schema
_PACKAGES = {"regex": "regex", "json_schema": "jsonschema"}
# Signs between thousands: a comma or a space, also those that do not break or are thin.
_BETWEEN = ", \u00a0\u2009\u202f"
# A minus after a word, a number or a bracket is a hyphen, a range or a subtraction.
_NUMBER = re.compile(
    r"(?:(?<![\w)\]%])-)?"
    rf"(?:(?:[1-9]\d{{0,2}}(?P<between>[{_BETWEEN}])\d{{3}}(?:(?P=between)\d{{3}})*(?!\d)|\d+)"
    r"(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)"
)
_AS_WRITTEN = str.maketrans({"\u2212": "-"})  # the minus of typography
_IN_NUMBER = str.maketrans(dict.fromkeys(_BETWEEN))
_SCHEMA_PROCESS = Path(__file__).with_name("schema_process.py")
_FENCED = re.compile(r"```[^\n`]*\n(.*?)\n?[ \t]*```", re.DOTALL)


class Check(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule; `value` is text, for `number` a number, for `json_schema` a schema. A number may
    differ by `tolerance`.
    """

    type: CheckType
    value: Any
    tolerance: Annotated[float, Meta(ge=0)] = 1e-9


class CheckResult(Struct, frozen=True, kw_only=True):
    """Whether a reply keeps a rule."""

    type: Annotated[CheckType, doc("kind of the rule")]
    is_met: Annotated[bool, doc("whether the reply keeps it")]
    why: Annotated[str | None, doc("what is wrong; null if it is kept")] = None


def mistakes_of(check: Check) -> Iterator[str]:
    """What is wrong with a rule itself."""
    if check.type == "number":
        if isinstance(check.value, bool) or not isinstance(check.value, int | float):
            yield "value must be a number."
    elif check.type == "json_schema":
        yield from _schema_mistakes(check.value)
    elif not isinstance(check.value, str):
        yield "value must be text."
    elif check.type == "regex":
        yield from _regex_mistakes(check.value)
    elif not check.value.strip():
        yield "value is empty."


def _regex_mistakes(pattern: str) -> Iterator[str]:
    try:
        import regex  # type: ignore[import-untyped]
    except ImportError:
        yield f"the package {_PACKAGES['regex']} is not installed: {INSTALL_HINT}"
        return
    try:
        regex.compile(pattern)
    except regex.error as error:
        yield f"value is not a regular expression: {error}."


def _schema_mistakes(schema: object) -> Iterator[str]:
    try:
        from jsonschema import Draft202012Validator, SchemaError
    except ImportError:
        yield f"the package {_PACKAGES['json_schema']} is not installed: {INSTALL_HINT}"
        return
    if not isinstance(schema, dict):
        yield "value must be an object, a JSON Schema."
        return
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield f"value is not a valid JSON Schema: {error.message[:200]}."
    except RecursionError:
        yield "value is nested too deep."


def apply(check: Check, reply: str) -> CheckResult:
    """Whether the reply keeps the rule. Case and white space around a text count as nothing."""
    why = _fault(check, reply)
    return CheckResult(type=check.type, is_met=why is None, why=why)


def _fault(check: Check, reply: str) -> str | None:
    match check.type:
        case "exact":
            return None if _folded(reply) == _folded(check.value) else "it is another text"
        case "contains":
            return None if _folded(check.value) in _folded(reply) else "it is not in it"
        case "not_contains":
            return "it is in it" if _folded(check.value) in _folded(reply) else None
        case "number":
            return _number_fault(check, reply)
        case "regex":
            return _regex_fault(check.value, reply)
        case "json_schema":
            return _schema_fault(check.value, reply)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _number_fault(check: Check, reply: str) -> str | None:
    """The last number of a reply is its result. Where a plain space parts groups of digits they may
    be one number or several: the last one may be either.
    """
    numbers = [match[0] for match in _NUMBER.finditer(reply.translate(_AS_WRITTEN))]
    if not numbers:
        return "it has no number"
    readings = {
        float(text.translate(_IN_NUMBER)) for text in (numbers[-1], numbers[-1].split(" ")[-1])
    }
    is_met = any(
        math.isclose(reading, check.value, rel_tol=1e-9, abs_tol=check.tolerance)
        for reading in readings
    )
    words = " or ".join(f"{reading:g}" for reading in sorted(readings, reverse=True))
    return None if is_met else f"its last number is {words}"


def _regex_fault(pattern: str, reply: str) -> str | None:
    import regex

    try:
        return None if regex.search(pattern, reply, timeout=LIMIT_S) else "nothing in it matches"
    except TimeoutError:
        return f"the expression took longer than {LIMIT_S:g} s"


def _schema_fault(schema: dict[str, Any], reply: str) -> str | None:
    """Of the reply or, if it is fenced, of what stands in its fence."""
    fenced = _FENCED.search(reply)
    text = fenced[1] if fenced else reply
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return "it is not valid JSON"
    done = subprocess.run(  # noqa: S603 -- ourselves
        [sys.executable, "-P", str(_SCHEMA_PROCESS), str(LIMIT_S)],
        input=orjson.dumps({"schema": schema, "text": text}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the run, and decides no check
        check=False,
    )
    if done.returncode == -signal.SIGPROF:
        return f"the schema took longer than {LIMIT_S:g} s"
    if done.returncode:
        return f"the schema could not be applied: its process ended with {done.returncode}"
    return done.stdout.decode() or None
