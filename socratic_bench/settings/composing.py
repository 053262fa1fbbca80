"""One configuration out of the core's settings and those of every benchmark."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import NODEFAULT, Struct, defstruct

from socratic_bench.errors import Problem
from socratic_bench.settings.core import MAX_TURNS, CoreConfig
from socratic_bench.settings.problems import problems_of
from socratic_bench.settings.reader import Reader

Part = TypeVar("Part", bound=Struct)


class WholeConfig(CoreConfig, frozen=True, kw_only=True):
    """What the configuration with every benchmark's settings is built on."""

    def problems(self, max_turns: int = MAX_TURNS) -> tuple[Problem, ...]:
        """Every mistake in the values; empty if the benchmark, which bounds its turns by
        `max_turns`, can be asked to prepare the run.
        """
        return problems_of(self, max_turns)


def composed(name: str, parts: Mapping[str, type[CoreConfig]]) -> type[WholeConfig]:
    """The class with the fields of all `parts`, which are named by their benchmarks.

    A field that several benchmarks declare has to be the same in each of them.
    """
    fields: dict[str, tuple[str, Any, Any]] = {}
    owners: dict[str, tuple[str, ...]] = {}
    readers: dict[str, Callable[[Reader], Any]] = {}
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
    return defstruct(  # type: ignore[return-value]
        name,
        fields.values(),
        bases=(WholeConfig,),
        namespace={"BENCHMARKS": (*parts,), "OWNERS": owners, "READERS": readers},
        module="socratic_bench.benchmarks",
        frozen=True,
        kw_only=True,
    )


def part_of(config: CoreConfig, part: type[Part]) -> Part:
    """What a benchmark may know of a configuration: the core's settings and its own."""
    return part(**{name: getattr(config, name) for name in part.__struct_fields__})
