"""The table of settings: one `SettingField` a setting, made from the fields of a class.

`table` gives the settings of a class by name, `listed` those of several classes in the order in
which help and documents list them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from os import PathLike, fspath
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct, ValidationError, to_builtins
from msgspec.structs import replace

from socratic_bench.catalogue.models import known_ids
from socratic_bench.concurrency import convert
from socratic_bench.errors import Problem
from socratic_bench.setting import GROUPS, Setting
from socratic_bench.types import in_digits

Kind = type[Struct]
Values = TypeVar("Values", bound=Struct)
PATHS = ("FILE", "DIR")  # metavars of settings that name a path
MODEL_ID = "ID"  # metavar of settings that name a model
BEDROCK_PREFIX = "bedrock/"  # may stand before an id, as `openai/` does before others


class SettingField(Struct, frozen=True):
    """A field that is a setting.

    Attributes:
        annotation: its type, without the `Setting`.
        home: the name of the class that declares it.
        owners: the benchmarks that have it; empty for a setting of every run.
        benchmarks: all benchmarks.
    """

    name: str
    annotation: Any
    default: Any
    setting: Setting
    home: str
    owners: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()

    @property
    def flag(self) -> str | None:
        """Its flag without dashes; `None` if it has none."""
        if not self.setting.text:
            return None
        return self.setting.flag or self.name.replace("_", "-")

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types that it may have, `None` left out."""
        if get_origin(self.annotation) in (Union, UnionType):
            return tuple(kind for kind in get_args(self.annotation) if kind is not NoneType)
        return (self.annotation,)

    @property
    def choices(self) -> tuple[str, ...]:
        """The only words that it takes; empty if it takes any."""
        return get_args(self.kinds[0]) if get_origin(self.kinds[0]) is Literal else ()

    @property
    def is_switch(self) -> bool:
        """Whether its flag takes no word."""
        return self.kinds == (bool,)

    @property
    def is_repeatable(self) -> bool:
        """Whether its flag may be given several times."""
        return any(get_origin(kind) is tuple for kind in self.kinds)

    @property
    def is_usually_one(self) -> bool:
        """Whether it is repeatable, and a single word is not kept as a tuple."""
        return self.is_repeatable and get_origin(self.kinds[0]) is not tuple

    @property
    def is_of_pairs(self) -> bool:
        """Whether it is repeatable and each of its words is a key and a value."""
        kind = self.kinds[0]
        return get_origin(kind) is tuple and get_origin(get_args(kind)[0]) is tuple

    def offers(self) -> Sequence[str]:
        """Words that help and completion offer: all choices, or the values that are known."""
        if self.setting.metavar == MODEL_ID:
            return known_ids()
        names = self.benchmarks if "{benchmarks}" in self.setting.text else ()
        return self.choices or names or self.setting.offers()

    def fill(self, text: str) -> str:
        """A text of its setting, with bounds, choices and default put in."""
        setting = self.setting
        *choices, last = (self.offers() if "{choices}" in text else None) or ("",)
        return text.format(
            low=in_digits(setting.low or 0),
            high=setting.high if setting.high is None else in_digits(setting.high),
            default=setting.default_words.format(low=setting.low) or _format(self.default),
            choices=f"{', '.join(choices)} or {last}",
            benchmarks=", ".join(
                f"{name} (default)" if name == self.default else name for name in self.benchmarks
            ),
        )

    def choice_problem(self, word: object) -> Problem:
        """The mistake of a word that is none of its choices."""
        choices = ", ".join(self.choices)
        return Problem.of(
            f"{{{self.name}}} is {{word!r}}, but must be one of {choices}.", word=word
        )

    def bounds_problem(self, value: Any) -> Problem | None:  # noqa: ANN401 -- any field's
        """The mistake of a value of the right type that is out of bounds; `None` if it is not."""
        if value is None:
            return None
        mistake = self._mistake_of_bounds(value)
        return Problem.of(f"{{{self.name}}} is {mistake}.", value=value) if mistake else None

    def _mistake_of_bounds(self, value: Any) -> str | None:  # noqa: ANN401
        low, high = self.setting.low, self.setting.high
        if self.is_repeatable:
            is_over = high is not None and isinstance(value, tuple) and len(value) > high
            return f"given {len(value)} times; at most {high} are taken" if is_over else None
        if high is not None and not (low or 0) <= value <= high:
            return f"{{value}}, but must lie in {in_digits(low or 0)}..{in_digits(high)}"
        if low is not None and not value >= low:
            return f"{{value}}, but must be at least {low}"
        return None


@cache
def table(kind: Kind) -> Mapping[str, SettingField]:
    """The settings of a class by name: its own first, then those of the classes that it extends."""
    return {field.name: field for field in _fields(kind)}


def _fields(kind: Kind) -> Iterator[SettingField]:
    defaults = dict(zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True))
    for home in kind.__mro__:
        for name, annotation in getattr(home, "__annotations__", {}).items():
            metadata = getattr(annotation, "__metadata__", ())
            if name in defaults and metadata and isinstance(metadata[0], Setting):
                yield SettingField(
                    name,
                    annotation.__origin__,
                    "" if defaults[name] is NODEFAULT else defaults[name],
                    metadata[0],
                    home.__name__,
                    getattr(kind, "OWNERS", {}).get(name, ()),
                    getattr(kind, "BENCHMARKS", ()),
                )


def names_where(kind: Kind, condition: Callable[[Setting], object]) -> tuple[str, ...]:
    return tuple(name for name, field in table(kind).items() if condition(field.setting))


def settings_of_other_benchmarks(kind: Kind, benchmark: str) -> Mapping[str, Sequence[str]]:
    """The settings that `benchmark` lacks, each with the benchmarks that have it."""
    owners: Mapping[str, Sequence[str]] = getattr(kind, "OWNERS", {})
    if benchmark not in getattr(kind, "BENCHMARKS", ()):
        return {}
    return {name: names for name, names in owners.items() if benchmark not in names}


def fields_of(kind: Kind, flags: Iterable[str]) -> frozenset[str]:
    """The names of the settings that these flags give or steer; other flags are ignored."""
    given = frozenset(flags)
    return frozenset(
        field.name
        for field in table(kind).values()
        if field.flag in given
        or (field.setting.steered_by and field.setting.steered_by.name in given)
    )


def flag_names(kinds: Sequence[Kind]) -> Callable[[str], str]:
    """A function from a setting's name to what users call it: its flag, or else its variable."""
    fields = {name: field for kind in kinds for name, field in table(kind).items()}

    def call(name: str) -> str:
        field = fields.get(name)
        if field and not field.flag and field.setting.variables:
            return field.setting.variables[0]
        return f"--{(field and field.flag) or name.replace('_', '-')}"

    return call


def convert_values(config: Values) -> tuple[Values, tuple[Problem, ...]]:
    """The configuration with each value in its field's type, such as a tuple for a list.

    A value that cannot be converted is reported, and replaced by the field's default, so that all
    else can be checked in the same go.
    """
    converted: dict[str, Any] = {}
    problems: list[Problem] = []
    for field in table(type(config)).values():
        value = getattr(config, field.name)
        if value is field.default:
            continue
        try:
            new = _convert_value(field, value)
        except (ValidationError, TypeError, UnicodeEncodeError) as error:  # half of a character
            new = field.default
            problems.append(_type_problem(field, value, error))
        if field.setting.metavar == MODEL_ID:
            new = _without_provider(new)
        if new != value:  # a whole number stays one in a field of numbers
            converted[field.name] = new
    return replace(config, **converted) if converted else config, tuple(problems)


def _without_provider(ids: Any) -> Any:  # noqa: ANN401 -- one id, several, or none
    """Model ids as Bedrock has them: its name before them says no more."""
    if isinstance(ids, tuple):
        return tuple(map(_without_provider, ids))
    return ids.removeprefix(BEDROCK_PREFIX) if isinstance(ids, str) else ids


def _convert_value(field: SettingField, value: Any) -> Any:  # noqa: ANN401 -- any field's
    if field.setting.metavar in PATHS and isinstance(value, PathLike):
        value = fspath(value)
    converted = convert(value, field.annotation)
    # `convert` takes a struct as it is, whatever stands in the struct's own fields.
    convert(to_builtins(converted), field.annotation)
    return converted


def _type_problem(field: SettingField, value: object, error: Exception) -> Problem:
    if field.choices:
        return field.choice_problem(value)
    what, _, where = str(error).partition(" - at `$")
    detail = f" ({where.rstrip('`')}: {what[:1].lower()}{what[1:]})" if where else ""
    type_name = getattr(field.annotation, "__name__", "")
    if get_args(field.annotation):
        type_name = re.sub(r"\w[\w.]*\.", "", str(field.annotation))
    text = f"{{{field.name}}} is {{value!r}}, but must be of type {{type}}{{detail}}."
    return Problem.of(text, value=value, type=type_name, detail=detail)


class Entry(Struct, frozen=True, kw_only=True):
    """A flag or a variable as help and documents list it.

    Attributes:
        flag: without dashes; `None` for a variable without a flag.
        offers: words that completion offers for it.
        form: "switch" takes no word, "word" takes one, "many" takes several.
        owners: the benchmarks that have it; empty for a setting of every run.
    """

    group: str
    flag: str | None
    short: str = ""
    offers: Callable[[], Sequence[str]] = tuple
    metavar: str | None
    form: str
    text: str
    variables: tuple[str, ...]
    default: str
    meaning: str
    owners: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its variables, its flag and its letter, as users write them."""
        flag = (f"--{self.flag}",) if self.flag else ()
        short = (f"-{self.short}",) if self.short else ()
        return (*self.variables, *flag, *short)


def listed(kinds: Sequence[Kind]) -> tuple[Entry, ...]:
    """Every setting of these classes, group by group, groups of benchmarks last.

    In a group, settings of every run come first, each class in the order of its fields. Raises
    `ValueError` if two settings share a name.
    """
    fields = [field for kind in kinds for field in table(kind).values()]
    fields.sort(key=lambda field: bool(field.owners))
    entries = [entry for field in fields for entry in _entries(field)]
    benchmarks = {entry.group for entry in entries if entry.group in entry.owners}
    order = (*GROUPS, *sorted(benchmarks))
    entries.sort(key=lambda entry: order.index(entry.group))
    # Of a sweep's settings names may be those of its runs.
    counts = Counter(name for entry in entries if entry.group != "sweep" for name in entry.names)
    if shared := [name for name, count in counts.items() if count > 1]:
        raise ValueError(f"Several settings are called {', '.join(shared)}.")
    return tuple(entries)


def _entries(field: SettingField) -> tuple[Entry, ...]:
    setting, switch = field.setting, field.setting.steered_by
    if not field.flag and not setting.variables:
        return ()
    own = Entry(
        group=setting.group,
        flag=field.flag,
        short=setting.short,
        offers=field.offers,
        metavar=setting.metavar,
        form="many" if field.is_repeatable else "switch" if field.is_switch else "word",
        text=field.fill(setting.text),
        variables=setting.variables,
        default=_default(field),
        meaning=_meaning(field),
        owners=field.owners,
    )
    if not switch:
        return (own,)
    steering = Entry(
        group=setting.group,
        flag=switch.name,
        offers=lambda: switch.choices,
        metavar=switch.metavar,
        form="word" if switch.metavar else "switch",
        text=switch.text.format(default=switch.default_words),
        variables=(),
        default=f"`{switch.default_words}`" if switch.metavar else switch.default_words,
        meaning=switch.meaning or _without_default(switch.text),
        owners=field.owners,
    )
    return own, steering


def _meaning(field: SettingField) -> str:
    setting = field.setting
    text = setting.meaning or _without_default(setting.text)
    is_bounded = setting.high is not None and "{high}" not in text
    return field.fill(f"{text}; {{low}} to {{high}}" if is_bounded else text)


def _without_default(text: str) -> str:
    """The text without the default, which has a column of its own in the documents' tables."""
    return text.partition(" (default")[0]


def _default(field: SettingField) -> str:
    if field.setting.default_words:
        return field.fill(field.setting.default_words)
    if field.is_switch:
        return "off"
    if field.default in (None, "", ()):
        return "none"
    return f"`{field.default}`" if isinstance(field.default, str) else _format(field.default)


def _format(default: object) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)
