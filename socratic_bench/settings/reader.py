"""Reads settings, flag first, then variable, then default, and notes what cannot be read."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.errors import Problem
from socratic_bench.settings.table import PATHS, Declared, Kind, choice_problem, table
from socratic_bench.types import is_text

_PLAIN_INTEGER = r"\s*[+-]?[0-9]+\s*"

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
    """Reads the settings of a class from `Sources`; `problems` collects what is wrong with them."""

    def __init__(self, kind: Kind, sources: Sources) -> None:
        self.sources = sources
        self.problems: list[Problem] = []
        self._table = table(kind)

    def given(self, flag: str) -> bool:
        return flag in self.sources.flags

    def word(self, flag: str) -> str | None:
        """The word of a flag that has no field of its own."""
        value = self.sources.flags.get(flag)
        if isinstance(value, str) and not value.strip():
            self.note(f"{{{flag.replace('-', '_')}}} is empty.")
            return None
        return value if isinstance(value, str) else None

    def flagged(self, name: str) -> Iterator[str]:
        """The names of the given flags that say something of the field: its own, or that of the one
        which steers it.
        """
        one = self._table[name]
        if self.given(one.flag or ""):
            yield name
        if (steering := one.setting.steered_by) and self.given(steering.name):
            yield steering.name.replace("-", "_")

    def note(self, text: str, **values: object) -> None:
        """A mistake; see `Problem`."""
        self.problems.append(Problem.of(text, **values))

    def read(self, name: str) -> Any:  # noqa: ANN401 -- any field's
        """The field's value; the default of one that is not given, or cannot be read."""
        one = self._table[name]
        if one.is_switch:
            return self.given(one.flag or "") is not one.default
        if one.is_repeatable:
            found = [self._parsed(one, word, f"{{{name}}}") for word in self._words(one)]
            return tuple(value for value in found if value is not None)
        called, word = self._find(one)
        value = None if word is None else self._parsed(one, word, called)
        return one.default if value is None else value

    def default(self, name: str) -> Any:  # noqa: ANN401 -- any field's
        """What the field is where nothing is given."""
        return self._table[name].default

    def _words(self, one: Declared) -> Sequence[str]:
        value = self.sources.flags.get(one.flag or "", ())
        if isinstance(value, bool):
            return ()
        return (value,) if isinstance(value, str) else value

    def _find(self, one: Declared) -> tuple[str, str | None]:
        """The flag or variable that gives the setting, and its word."""
        value = self.sources.flags.get(one.flag or "")
        if isinstance(value, str):
            return f"{{{one.name}}}", value
        for variable in one.setting.variables:
            if self.sources.environ.get(variable):
                return variable, self.sources.environ[variable]
        return "", None

    def _parsed(self, one: Declared, word: str, called: str) -> Any:  # noqa: ANN401
        """The value that a word stands for; `None`, and a note, if it stands for none."""
        (kind, *_), parse = one.kinds, one.setting.parse
        is_blank = not (word if one.is_repeatable else word.strip())
        if is_blank and called.startswith("{"):
            self.note(f"{called} is empty.")
        elif one.choices:
            if word in one.choices:
                return word
            self.problems.append(choice_problem(one, word))
        elif kind in _NUMBERS:
            number = _NUMBERS[kind](word)
            if number is None:
                self.note(f"{called} is {{word!r}}, which is no {_WORDS[kind]}.", word=word)
            return number
        elif parse is None:
            return self._place(word, called) if one.setting.metavar in PATHS else word
        else:
            value = parse(word)
            if value is None:
                self.note(f"{called} takes {one.setting.form}, not {{word!r}}.", word=word)
            return value
        return None

    def _place(self, word: str, called: str) -> str:
        if is_text(word) and not is_text(_absolute(word)):
            self.note(f"{called} lies in a folder whose name is no UTF-8 text.")
        return word


def _absolute(word: str) -> str:
    """The absolute path, as documents and journals have it; the word itself if the working folder
    is gone.
    """
    try:
        return str(Path(word).absolute())
    except OSError:
        return word


def parse_integer(word: str) -> int | None:
    """The whole number that `word` spells in plain digits, with or without a sign, else `None`."""
    # Python itself also reads the digits of other scripts, and underscores between them.
    try:
        return int(word) if re.fullmatch(_PLAIN_INTEGER, word) else None
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


_NUMBERS: Mapping[Any, Callable[[str], float | None]] = {int: parse_integer, float: parse_number}
_WORDS = {int: "whole number", float: "number"}
