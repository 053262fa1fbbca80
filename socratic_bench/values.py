"""`dataclass`, the standard one, made in a fifth of the time: a run's start-up makes some eighty.

For each frozen class the standard decorator compiles seven methods from text. Here nothing is
compiled, as all frozen classes share their methods: the constructor, comparison, hash,
representation, and the refusal to change. To type checkers, and for classes that are not frozen, it
is the standard one.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, FrozenInstanceError, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

if TYPE_CHECKING:
    from dataclasses import Field, dataclass
    from inspect import Signature
else:
    import dataclasses

    Class = TypeVar("Class", bound=type)

    def dataclass(*, frozen: bool = False, **options: bool) -> Callable[[Class], Class]:
        """See `dataclasses.dataclass`."""
        standard = dataclasses.dataclass(
            **options, **({"init": False, "eq": False, "repr": False} if frozen else {})
        )

        def made(cls: Class) -> Class:
            if not frozen:
                return standard(cls)
            for name, method in _SHARED.items():
                # What a class defines itself stays.
                if name not in cls.__dict__:
                    setattr(cls, name, method)
            # The standard decorator would inspect the constructor to write a docstring.
            cls.__doc__ = cls.__doc__ or cls.__name__
            return standard(cls)

        return made


__all__ = ["dataclass"]


class _Plan(NamedTuple):
    """What the methods need to know of a class.

    `names` are what the constructor takes, `positional` those that may go without a name;
    `compared` gives what instances are compared by.
    """

    names: frozenset[str]
    positional: tuple[str, ...]
    defaults: Mapping[str, object]
    factories: Mapping[str, Callable[[], object]]
    compared: Callable[[Any], object]
    finish: Callable[[Any], None] | None


@cache
def _plan(cls: Any) -> _Plan:  # noqa: ANN401 -- a class
    taken = [field for field in fields(cls) if field.init]
    compared = [field.name for field in fields(cls) if field.compare]
    return _Plan(
        names=frozenset(field.name for field in taken),
        positional=tuple(field.name for field in taken if not field.kw_only),
        defaults={f.name: f.default for f in taken if f.default is not MISSING},
        factories={f.name: f.default_factory for f in taken if f.default_factory is not MISSING},
        compared=attrgetter(*compared) if compared else lambda _value: (),
        finish=getattr(cls, "__post_init__", None),
    )


def _construct(self: Any, *values: object, **named: object) -> None:  # noqa: ANN401 -- any
    plan = _plan(self.__class__)
    given = {**plan.defaults, **named}
    if values:
        given.update(zip(plan.positional, values, strict=False))
    for name, make in plan.factories.items():
        if name not in given:
            given[name] = make()
    wrong = given.keys() != plan.names or len(values) > len(plan.positional)
    if wrong or (values and not named.keys().isdisjoint(plan.positional[: len(values)])):
        _refuse(self.__class__, plan, values, named)
    for name, value in given.items():
        object.__setattr__(self, name, value)
    if plan.finish:
        plan.finish(self)


def _refuse(
    cls: type, plan: _Plan, values: tuple[object, ...], named: Mapping[str, object]
) -> NoReturn:
    """Say what is wrong with the constructor's arguments."""
    by_place = plan.positional[: len(values)]
    optional = plan.defaults.keys() | plan.factories.keys()
    wrong = {
        "missing": plan.names - optional - set(by_place) - named.keys(),
        "unknown": named.keys() - plan.names,
        "given twice": named.keys() & set(by_place),
        "too many": set(map(repr, values[len(plan.positional) :])),
    }
    told = [f"{what}: {', '.join(sorted(names))}" for what, names in wrong.items() if names]
    raise TypeError(f"{cls.__name__}() cannot be made; {'; '.join(told)}")


def _set(self: Any, name: str, value: object) -> None:  # noqa: ANN401 -- any value
    """Only the constructor finds an attribute that is not there yet."""
    if name not in self.__dataclass_fields__ or hasattr(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: object, name: str) -> None:  # noqa: ARG001 -- the protocol's
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _equal(self: Any, other: object) -> Any:  # noqa: ANN401 -- as the protocol has it
    compared = _plan(self.__class__).compared
    if other.__class__ is not self.__class__:
        return NotImplemented
    return compared(self) == compared(other)


def _hash(self: Any) -> int:  # noqa: ANN401 -- any value
    return hash(_plan(self.__class__).compared(self))


@recursive_repr()
def _represent(self: Any) -> str:  # noqa: ANN401 -- any value
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


class _Signature:
    """What `help` and `inspect` show of the constructor, put together when they ask for it."""

    def __get__(self, _instance: object, cls: Any) -> "Signature":  # noqa: ANN401 -- a class
        from inspect import Parameter, Signature

        taken = [field for field in fields(cls) if field.init]
        parameters = [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
                default=_shown(field),
                annotation=field.type,
            )
            for field in sorted(taken, key=lambda field: bool(field.kw_only))
        ]
        return Signature(parameters)


def _shown(field: "Field[Any]") -> object:
    """A default as the standard signature has it, which is empty if there is none."""
    from inspect import Parameter

    if field.default_factory is not MISSING:
        return _Made()
    return Parameter.empty if field.default is MISSING else field.default


class _Made:
    def __repr__(self) -> str:
        return "<factory>"


_SHARED = {
    "__init__": _construct,
    "__signature__": _Signature(),
    "__setattr__": _set,
    "__delattr__": _delete,
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _represent,
}
