"""A configuration as plain JSON, so that a run can go on without its flags being given again."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar, get_args, get_origin

from msgspec import Struct
from msgspec.structs import astuple, replace

from socratic_bench.settings.core import CoreConfig
from socratic_bench.settings.files import absolute
from socratic_bench.settings.problems import typed
from socratic_bench.settings.table import Kind, fields_of, names, table

Config = TypeVar("Config", bound=CoreConfig)


def to_stored(config: CoreConfig) -> dict[str, Any]:
    """Field name -> plain value; paths absolute, since another process may have another working
    folder.

    Without the stores and the models that may be tested, which a resuming command gives anew.
    """
    afresh = names(type(config), lambda setting: setting.is_afresh)
    files = names(type(config), lambda setting: setting.is_file)
    kept = {name: getattr(config, name) for name in table(type(config)) if name not in afresh}
    whole = {name: absolute(kept[name]) for name in files if kept[name] is not None}
    return {name: to_plain(value) for name, value in (kept | whole).items()}


def to_plain(value: Any) -> Any:  # noqa: ANN401 -- any value of a configuration
    """A value as plain JSON: a struct becomes a list of its fields."""
    if isinstance(value, Struct):
        return list(astuple(value))
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def from_stored(kind: type[Config], stored: Mapping[str, Any]) -> Config:
    """The reverse; fields that this version does not know are left out.

    Raises `TypeError` or `ValueError` for anything that `to_stored` did not make.
    """
    afresh = names(kind, lambda setting: setting.is_afresh)
    said = {**_before(kind), **stored}
    known = {name: said[name] for name in table(kind) if name in said and name not in afresh}
    read = {n: _from_plain(table(kind)[n].kinds[0], value) for n, value in known.items()}
    config, mistyped = typed(kind(**read))
    if mistyped:
        raise ValueError(mistyped)
    return config


def before(config: Config, but: Collection[str] = ()) -> Config:
    """The configuration as it was meant before there were settings that have changed what runs do
    by default; those that are named, or are not at their default, stay.
    """
    kind = type(config)
    earlier = {
        name: value
        for name, value in _before(kind).items()
        if name not in but and getattr(config, name) == table(kind)[name].default
    }
    return replace(config, **earlier)


def editions(config: Config, stored: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Of settings that name what changed since, what a stored run had and what this one has."""
    earlier = _before(type(config))
    return {name: (stored.get(name, had), getattr(config, name)) for name, had in earlier.items()}


def _before(kind: Kind) -> dict[str, Any]:
    """What runs had that were stored before there was such a setting, by its name."""
    all_ = {name: one.setting.before for name, one in table(kind).items()}
    return {name: value for name, value in all_.items() if value is not None}


def _from_plain(kind: Any, value: Any) -> Any:  # noqa: ANN401 -- a type, and a value of it
    if value is None:
        return None
    if isinstance(value, list) and kind is str:  # several where one is usual
        return tuple(value)
    if get_origin(kind) is tuple:
        return tuple(_from_plain(get_args(kind)[0], item) for item in value)
    return kind(*value) if isinstance(kind, type) and issubclass(kind, Struct) else value


def continued(stored: Config, asked: Config, flags: Iterable[str]) -> Config:
    """The stored configuration with what the given `flags` say, and the places of `asked`."""
    kind = type(stored)
    said = fields_of(kind, flags)
    # Objects in the same bucket stay encrypted with the same key.
    key = asked.s3_kms_key_id or (stored.s3_kms_key_id if asked.s3_bucket else None)
    told = {*said, *names(kind, lambda setting: setting.is_afresh)}
    afresh = {name: getattr(asked, name) for name in told}
    return replace(stored, **{**afresh, "s3_kms_key_id": key})
