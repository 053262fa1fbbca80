"""The table of settings: the `Setting` of each field of a class."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct
from msgspec.structs import replace

from socratic_bench.errors import Problem
from socratic_bench.setting import Setting

Kind = type[Struct]


class Declared(Struct, frozen=True):
    """A field that is a setting of the class `home`.

    `kinds` are the types that it may have, `None`'s left out.
    """

    name: str
    kinds: tuple[Any, ...]
    default: Any
    setting: Setting
    home: str

    @property
    def flag(self) -> str | None:
        if not self.setting.text:
            return None
        return self.setting.flag or self.name.replace("_", "-")

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may be; empty if there are others."""
        return get_args(self.kinds[0]) if get_origin(self.kinds[0]) is Literal else ()

    @property
    def offered(self) -> Sequence[str]:
        """The words that people are told of: all, or those that it knows by name."""
        return self.choices or self.setting.offers()

    @property
    def is_switch(self) -> bool:
        return self.kinds == (bool,)

    @property
    def is_repeatable(self) -> bool:
        return get_origin(self.kinds[0]) is tuple

    @property
    def is_of_pairs(self) -> bool:
        """Whether each of many words is a key and a value."""
        return self.is_repeatable and get_origin(get_args(self.kinds[0])[0]) is tuple

    def filled(self, text: str) -> str:
        """A text of its setting, with the values for which words stand in it."""
        setting = self.setting
        *others, last = self.offered or ("",)
        return text.format(
            low=setting.low,
            high=setting.high,
            default=setting.default_words.format(low=setting.low) or self.default,
            choices=f"{', '.join(others)} or {last}",
        )

    def up_to(self, high: float) -> "Declared":
        """The same with another bound."""
        return replace(self, setting=replace(self.setting, high=high))

    def problem(self, value: Any) -> Problem | None:  # noqa: ANN401 -- any field's
        """What is wrong with a value as such, whatever the other settings are."""
        if value is None:
            return None
        if self.choices:
            return None if value in self.choices else choice_problem(self, value)
        mistake = self._out_of_bounds(value)
        return Problem.of(f"{{{self.name}}} is {mistake}.", value=value) if mistake else None

    def _out_of_bounds(self, value: Any) -> str | None:  # noqa: ANN401
        low, high = self.setting.low, self.setting.high
        if self.is_repeatable:
            is_over = high is not None and len(value) > high
            return f"given {len(value)} times; at most {high} are taken" if is_over else None
        if high is not None and not (low or 0) <= value <= high:
            return f"{{value}}, but must lie in {low or 0}..{high}"
        if low is not None and not value >= low:
            return f"{{value}}, but must be at least {low}"
        return None


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
                kinds = _kinds(annotation.__origin__)
                yield Declared(name, kinds, default, found[0], cls.__name__)


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


def field_of(kind: Kind, flag: str) -> str | None:
    """The field that a flag sets or steers; `None` for a flag that is no setting of this class."""
    for one in table(kind).values():
        steering = one.setting.steered_by
        if flag == one.flag or (steering and flag == steering.name):
            return one.name
    return None


def flag_names(kinds: Sequence[Kind]) -> Callable[[str], str]:
    """How a command calls settings: by the flag, or by the variable of one that has no flag."""
    declared = {one.name: one for kind in kinds for one in table(kind).values()}

    def call(name: str) -> str:
        one = declared.get(name)
        if one and not one.flag and one.setting.variables:
            return one.setting.variables[0]
        return f"--{(one and one.flag) or name.replace('_', '-')}"

    return call
