"""Looks settings up, flag first, then variable, and notes what cannot be read."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite

from msgspec import Struct

_PLAIN_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")

Flags = Mapping[str, str | Sequence[str] | bool]


class Sources(Struct, frozen=True, kw_only=True):
    """Where a configuration comes from.

    `flags` maps long flag names without dashes ("max-tokens") to their word, to the words of a
    repeatable flag, or to True; flags that were not given are missing. `read_stdin` gives so many
    bytes at most, or raises `OSError`.
    """

    flags: Flags
    environ: Mapping[str, str]
    read_stdin: Callable[[int], bytes]
    profile_region: Callable[[], str | None]
    profile_problem: Callable[[], str | None] = lambda: None
    offline_models: Callable[[], tuple[str, ...]]


class Reader:
    """Reads single settings from `Sources`; `problems` collects what is wrong with them."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.problems: list[str] = []

    def switch(self, flag: str) -> bool:
        return bool(self.sources.flags.get(flag))

    def given(self, flag: str) -> bool:
        return flag in self.sources.flags

    def words(self, flag: str) -> tuple[str, ...]:
        """All words of a repeatable flag, in order."""
        value = self.sources.flags.get(flag, ())
        return () if isinstance(value, str | bool) else tuple(value)

    def word(self, flag: str, *variables: str) -> str | None:
        """The flag's word, else the first variable that is set and not empty, else `None`."""
        name, value = self._find(flag, variables)
        if value is not None and name.startswith("--") and not value.strip():
            self.problems.append(f"{name} is empty.")
            return None
        return value

    def integer(self, flag: str, *variables: str, default: int) -> int:
        name, value = self._find(flag, variables)
        if value is None:
            return default
        number = parse_integer(value)
        if number is None:
            self.problems.append(f"{name} is {value!r}, which is no whole number.")
            return default
        return number

    def number(self, flag: str, default: float) -> float:
        value = self.optional_number(flag)
        return default if value is None else value

    def optional_number(self, flag: str) -> float | None:
        name, value = self._find(flag, ())
        if value is None:
            return None
        number = parse_number(value)
        if number is None:
            self.problems.append(f"{name} is {value!r}, which is no number.")
        return number

    def _find(self, flag: str, variables: Sequence[str]) -> tuple[str, str | None]:
        value = self.sources.flags.get(flag)
        if isinstance(value, str):
            return f"--{flag}", value
        for variable in variables:
            if self.sources.environ.get(variable):
                return variable, self.sources.environ[variable]
        return f"--{flag}", None


def parse_integer(word: str) -> int | None:
    """The whole number that `word` spells in plain digits, with or without a sign, else `None`."""
    # Python itself also reads the digits of other scripts, and underscores between them.
    try:
        return int(word) if _PLAIN_INTEGER.fullmatch(word) else None
    except ValueError:  # more digits than Python reads
        return None


def parse_number(word: str) -> float | None:
    """The finite number that `word` spells in plain digits, else `None`."""
    if not word.isascii() or "_" in word:
        return None
    try:
        number = float(word)
    except ValueError:
        return None
    return number if isfinite(number) else None
