"""`dataclass`, the standard one, made in a third of the time: a run's start-up makes some ninety.

For each frozen class the standard decorator compiles six methods from text. Here it compiles the
constructor alone, and the rest are shared by all classes: comparison, hash, representation, and the
refusal to change. To type checkers, and for classes that are not frozen, it is the standard one.
"""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses

    Class = TypeVar("Class", bound=type)

    def dataclass(*, frozen: bool = False, **options: bool) -> Callable[[Class], Class]:
        """See `dataclasses.dataclass`."""
        standard = dataclasses.dataclass(
            **options, **({"eq": False, "repr": False} if frozen else {})
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


def _set(self: Any, name: str, value: object) -> None:  # noqa: ANN401 -- any value
    """Only the constructor finds an attribute that is not there yet."""
    if name not in self.__dataclass_fields__ or hasattr(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: object, name: str) -> None:  # noqa: ARG001 -- the protocol's
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _equal(self: Any, other: object) -> Any:  # noqa: ANN401 -- as the protocol has it
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _compared(self) == _compared(other)


def _hash(self: Any) -> int:  # noqa: ANN401 -- any value
    return hash(_compared(self))


def _compared(value: Any) -> tuple[object, ...]:  # noqa: ANN401 -- any value
    return tuple(getattr(value, field.name) for field in fields(value) if field.compare)


@recursive_repr()
def _represent(self: Any) -> str:  # noqa: ANN401 -- any value
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


_SHARED = {
    "__setattr__": _set,
    "__delattr__": _delete,
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _represent,
}
