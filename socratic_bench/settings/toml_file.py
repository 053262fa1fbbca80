"""Reads TOML that users write: text that nobody has looked over yet."""

import re
import tomllib

# The parser's time grows with the square of a name's parts. No file that is read here needs more.
MOST_PARTS = 20
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DEEP_NAME = re.compile(
    r"(?:^[ \t]*+(?:\[{1,2}+[ \t]*+)?+|[{,][ \t]*+)"
    rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_PARTS}}}",
    re.MULTILINE,
)


class UnreadableTomlError(ValueError):
    """It cannot be read as TOML; the message says why, and mostly in which line."""


def parse_toml(content: bytes) -> dict[str, object]:
    """The table that the file is. Raises `UnreadableTomlError`."""
    text = _decoded(content)
    if deep := _DEEP_NAME.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise UnreadableTomlError(f"a name of more than {MOST_PARTS} parts (line {line})")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # ValueError: TOML's own error, and a number too long for Python to read.
        raise UnreadableTomlError(f"not valid TOML: {error}") from error


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableTomlError(f"not UTF-8 text (line {line})") from error
