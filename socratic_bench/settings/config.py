"""The configuration of a run with every benchmark's settings, and its form as stored JSON."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, get_args, get_origin

from msgspec import NODEFAULT, Struct, defstruct
from msgspec.structs import astuple, replace

from socratic_bench.errors import Problem, UsageError
from socratic_bench.settings.core import MAX_TURNS, CoreConfig
from socratic_bench.settings.files import absolute
from socratic_bench.settings.problems import problems_of
from socratic_bench.settings.reader import Reader
from socratic_bench.settings.table import convert_values, fields_of, names_where, table

Part = TypeVar("Part", bound=Struct)
Config = TypeVar("Config", bound=CoreConfig)


class WholeConfig(CoreConfig, frozen=True, kw_only=True):
    """Base of the class that `compose` makes."""

    def problems(self, max_turns: int = MAX_TURNS) -> tuple[Problem, ...]:
        """Every mistake in the values; empty if a benchmark with at most `max_turns` turns can
        prepare the run.
        """
        return problems_of(self, max_turns)


def compose(name: str, parts: Mapping[str, type[CoreConfig]]) -> type[WholeConfig]:
    """The class with the settings of all benchmarks; `parts` has the settings of each by its name.

    Raises `TypeError` if a benchmark declares a setting of every run, or two benchmarks declare the
    same setting differently.
    """
    fields: dict[str, tuple[str, Any, Any]] = {}
    owners: dict[str, tuple[str, ...]] = {}
    readers: dict[str, Callable[[Reader], Any]] = {}
    removed: dict[str, Mapping[Any, str]] = {}
    for benchmark, part in parts.items():
        defaults = dict(zip(part.__struct_fields__, part.__struct_defaults__, strict=True))
        for field in part.__struct_fields__:
            if field in CoreConfig.__struct_fields__:
                if part is not CoreConfig and field in part.__annotations__:
                    raise TypeError(f"{benchmark} declares {field} anew, which every run has")
                continue
            declared = (field, part.__annotations__[field], defaults[field])
            if fields.setdefault(field, declared) != declared or declared[2] is NODEFAULT:
                raise TypeError(f"{benchmark} and {owners.get(field)} differ in {field}")
            owners[field] = (*owners.get(field, ()), benchmark)
        readers |= part.READERS
        removed |= part.REMOVED
    return defstruct(  # type: ignore[return-value]
        name,
        fields.values(),
        bases=(WholeConfig,),
        namespace={
            "BENCHMARKS": (*parts,),
            "OWNERS": owners,
            "READERS": readers,
            "REMOVED": removed,
        },
        module="socratic_bench.benchmarks",
        frozen=True,
        kw_only=True,
    )


def part_of(config: CoreConfig, part: type[Part]) -> Part:
    """The settings of every run and those of one benchmark, whose class is `part`."""
    return part(**{name: getattr(config, name) for name in part.__struct_fields__})


def to_stored(config: CoreConfig) -> dict[str, Any]:
    """Plain values by setting, for a journal: paths are absolute.

    The stores and the models that may be tested are left out: a resuming command gives them anew.
    """
    afresh = names_where(type(config), lambda setting: setting.is_afresh)
    files = names_where(type(config), lambda setting: setting.is_file)
    values = {name: getattr(config, name) for name in table(type(config)) if name not in afresh}
    paths = {name: absolute(values[name]) for name in files if values[name] is not None}
    return {name: to_plain(value) for name, value in (values | paths).items()}


def to_plain(value: Any) -> Any:  # noqa: ANN401 -- any value of a configuration
    """A value as plain JSON: a struct becomes a list of its fields."""
    if isinstance(value, Struct):
        return list(astuple(value))
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def from_stored(kind: type[Config], stored: Mapping[str, Any]) -> Config:
    """The configuration that `to_stored` made `stored` of; unknown settings are ignored.

    Raises `UsageError` for a value that `REMOVED` names, and `TypeError` or `ValueError` for
    anything that `to_stored` did not make.
    """
    for name, reasons in kind.REMOVED.items():
        if isinstance(value := stored.get(name), str) and value in reasons:
            raise UsageError([reasons[value]])
    afresh = names_where(kind, lambda setting: setting.is_afresh)
    names = [name for name in table(kind) if name in stored and name not in afresh]
    values = {name: _from_plain(table(kind)[name].kinds[0], stored[name]) for name in names}
    config, mistyped = convert_values(kind(**values))
    if mistyped:
        raise ValueError(mistyped)
    return config


def _from_plain(kind: Any, value: Any) -> Any:  # noqa: ANN401 -- a type, and a value of it
    if value is None:
        return None
    if isinstance(value, list) and kind is str:  # several words where one is usual
        return tuple(value)
    if get_origin(kind) is tuple:
        return tuple(_from_plain(get_args(kind)[0], item) for item in value)
    return kind(*value) if isinstance(kind, type) and issubclass(kind, Struct) else value


def continued(stored: Config, requested: Config, flags: Iterable[str]) -> Config:
    """The stored configuration of a run for the command that resumes it.

    Stores and allowed models are those of `requested`, and so is every setting that `flags` give.
    """
    kind = type(stored)
    # Objects in the same bucket stay encrypted with the same key.
    key = requested.s3_kms_key_id or (stored.s3_kms_key_id if requested.s3_bucket else None)
    names = {*fields_of(kind, flags), *names_where(kind, lambda setting: setting.is_afresh)}
    changes = {name: getattr(requested, name) for name in names}
    return replace(stored, **{**changes, "s3_kms_key_id": key})
