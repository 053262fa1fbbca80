"""The table of settings: the `Setting` of each field of a class."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from os import PathLike, fspath
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct, to_builtins
from msgspec.structs import replace

from socratic_bench.catalogue.models import known_ids
from socratic_bench.concurrency import convert
from socratic_bench.errors import Problem
from socratic_bench.setting import Setting
from socratic_bench.types import in_digits

Kind = type[Struct]
PATHS = ("FILE", "DIR")  # what a word is called that names one
MODEL = "ID"  # what the id of a model is called


class Declared(Struct, frozen=True):
    """A field that is a setting of the class `home`.

    `annotation` is its type, `kinds` are those that it may have, `None`'s left out. `owners` are
    the benchmarks that have it, none for one of every run; `benchmarks` are all that there are.
    """

    name: str
    annotation: Any
    kinds: tuple[Any, ...]
    default: Any
    setting: Setting
    home: str
    owners: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()

    @property
    def flag(self) -> str | None:
        if not self.setting.text:
            return None
        return self.setting.flag or self.name.replace("_", "-")

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may be; empty if there are others."""
        return get_args(self.kinds[0]) if get_origin(self.kinds[0]) is Literal else ()

    def offered(self) -> Sequence[str]:
        """The words that people are told of: all, or those that it knows by name."""
        if self.setting.metavar == MODEL:
            return known_ids()
        named = self.benchmarks if "{benchmarks}" in self.setting.text else ()
        return self.choices or named or self.setting.offers()

    @property
    def is_switch(self) -> bool:
        return self.kinds == (bool,)

    @property
    def is_repeatable(self) -> bool:
        return any(get_origin(kind) is tuple for kind in self.kinds)

    @property
    def is_usually_one(self) -> bool:
        """Whether it takes several words where one is usual."""
        return self.is_repeatable and get_origin(self.kinds[0]) is not tuple

    @property
    def is_of_pairs(self) -> bool:
        """Whether each of many words is a key and a value."""
        return (
            get_origin(self.kinds[0]) is tuple and get_origin(get_args(self.kinds[0])[0]) is tuple
        )

    def filled(self, text: str) -> str:
        """A text of its setting, with the values for which words stand in it."""
        setting = self.setting
        *others, last = (self.offered() if "{choices}" in text else None) or ("",)
        return text.format(
            low=in_digits(setting.low or 0),
            high=setting.high if setting.high is None else in_digits(setting.high),
            default=setting.default_words.format(low=setting.low) or shown(self.default),
            choices=f"{', '.join(others)} or {last}",
            benchmarks=", ".join(self.benchmarks),
        )

    def up_to(self, high: float) -> "Declared":
        """The same with another bound."""
        return replace(self, setting=replace(self.setting, high=high))

    def typed(self, value: Any) -> Any:  # noqa: ANN401 -- any field's
        """The value in the type of its field, such as a tuple for a list.

        Raises `ValidationError` or `TypeError`.
        """
        if self.setting.metavar in PATHS and isinstance(value, PathLike):
            value = fspath(value)
        found = convert(value, self.annotation)
        # What is a value of a type already is taken as it is, whatever stands in its own fields.
        convert(to_builtins(found), self.annotation)
        return found

    def type_problem(self, value: Any, error: Exception) -> Problem:  # noqa: ANN401
        """What `typed` could not read."""
        if self.choices:
            return choice_problem(self, value)
        what, _, where = str(error).partition(" - at `$")
        wrong = f" ({where.rstrip('`')}: {what[:1].lower()}{what[1:]})" if where else ""
        called = getattr(self.annotation, "__name__", "")
        if get_args(self.annotation):
            called = re.sub(r"\w[\w.]*\.", "", str(self.annotation))
        text = f"{{{self.name}}} is {{value!r}}, but must be of type {{type}}{{wrong}}."
        return Problem.of(text, value=value, type=called, wrong=wrong)

    def problem(self, value: Any) -> Problem | None:  # noqa: ANN401 -- any field's
        """What is wrong with a value of its type as such, whatever the other settings are."""
        if value is None:
            return None
        mistake = self._out_of_bounds(value)
        return Problem.of(f"{{{self.name}}} is {mistake}.", value=value) if mistake else None

    def _out_of_bounds(self, value: Any) -> str | None:  # noqa: ANN401
        low, high = self.setting.low, self.setting.high
        if self.is_repeatable:
            is_over = high is not None and isinstance(value, tuple) and len(value) > high
            return f"given {len(value)} times; at most {high} are taken" if is_over else None
        if high is not None and not (low or 0) <= value <= high:
            return f"{{value}}, but must lie in {in_digits(low or 0)}..{in_digits(high)}"
        if low is not None and not value >= low:
            return f"{{value}}, but must be at least {low}"
        return None


def shown(default: object) -> str:
    """A default in words."""
    return f"{default:g}" if isinstance(default, float) else str(default)


def choice_problem(one: Declared, word: str) -> Problem:
    return Problem.of(
        f"{{{one.name}}} is {{word!r}}, but must be one of {', '.join(one.choices)}.", word=word
    )


@cache
def table(kind: Kind) -> Mapping[str, Declared]:
    """The settings of a class by name: its own first, then those of the class that it extends."""
    defaults = dict(zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True))
    return {one.name: one for one in _declared(kind, defaults)}


def _declared(kind: Kind, defaults: Mapping[str, Any]) -> Iterator[Declared]:
    for cls in kind.__mro__:
        for name, annotation in getattr(cls, "__annotations__", {}).items():
            found = getattr(annotation, "__metadata__", ())
            if name in defaults and found and isinstance(found[0], Setting):
                default = "" if defaults[name] is NODEFAULT else defaults[name]
                yield Declared(
                    name,
                    annotation.__origin__,
                    _kinds(annotation.__origin__),
                    default,
                    found[0],
                    cls.__name__,
                    getattr(kind, "OWNERS", {}).get(name, ()),
                    getattr(kind, "BENCHMARKS", ()),
                )


def _kinds(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 -- a type, or a form of types
    if get_origin(annotation) in (Union, UnionType):
        return tuple(kind for kind in get_args(annotation) if kind is not NoneType)
    return (annotation,)


def names(kind: Kind, holds: Callable[[Setting], object]) -> tuple[str, ...]:
    """The names of the fields whose setting meets a condition."""
    return tuple(name for name, one in table(kind).items() if holds(one.setting))


def foreign(kind: Kind, benchmark: str) -> Mapping[str, Sequence[str]]:
    """The fields that only other benchmarks have, with the names of these."""
    owners: Mapping[str, Sequence[str]] = getattr(kind, "OWNERS", {})
    if benchmark not in getattr(kind, "BENCHMARKS", ()):
        return {}
    return {name: names for name, names in owners.items() if benchmark not in names}


def fields_of(kind: Kind, flags: Iterable[str]) -> frozenset[str]:
    """The fields that flags set or steer; a flag may be no setting of this class."""
    given = frozenset(flags)
    return frozenset(
        one.name
        for one in table(kind).values()
        if one.flag in given or (one.setting.steered_by and one.setting.steered_by.name in given)
    )


def flag_names(kinds: Sequence[Kind]) -> Callable[[str], str]:
    """How a command calls settings: by the flag, or by the variable of one that has no flag."""
    declared = {one.name: one for kind in kinds for one in table(kind).values()}

    def call(name: str) -> str:
        one = declared.get(name)
        if one and not one.flag and one.setting.variables:
            return one.setting.variables[0]
        return f"--{(one and one.flag) or name.replace('_', '-')}"

    return call
