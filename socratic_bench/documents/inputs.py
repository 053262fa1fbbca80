"""What the outcome of a run depends on beside models and seed, as its document tells it."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, defstruct, field

from socratic_bench.documents.scalars import Sha256, keys, part
from socratic_bench.ports.parts import Part
from socratic_bench.settings import CoreConfig, Kind, SettingField, table
from socratic_bench.types import Completion, doc
from socratic_bench.version import VERSION

if TYPE_CHECKING:
    from socratic_bench.documents.ended_run import EndedRun


class ModelUse(Struct, frozen=True, kw_only=True):
    """What was asked for, and what the service says of what served it."""

    asked: Annotated[str, doc("the id as it was given")]
    served: Annotated[
        list[str] | None, doc("ids that served, where the service says them (a prompt router does)")
    ]
    served_tiers: Annotated[list[str] | None, doc("tiers that served, where the service says them")]

    @classmethod
    def of(cls, asked: str | None, calls: Sequence[Completion]) -> "ModelUse | None":
        if asked is None:
            return None
        return cls(
            asked=asked,
            served=_words(call.served_model for call in calls),
            served_tiers=_words(call.served_tier for call in calls),
        )


def _input(one: SettingField) -> tuple[str, Any, Any]:
    """Name, type and default of a setting in documents, by its line in the table."""
    kind, setting = one.kinds[0], one.setting
    if one.is_repeatable:
        kind = dict[str, str] if one.is_of_pairs else list[str]
    elif isinstance(kind, type) and issubclass(kind, Struct):
        kind = str
    elif kind in (int, float):
        kind = Annotated[kind, Meta(ge=setting.low, le=setting.high)]
    words = f"false with --{one.flag}" if one.default is True else one.fill(setting.text)
    described = Meta(description=words.partition(" (default")[0])
    kind = Annotated[kind | None if one.default is None else kind, described]
    return one.name, kind, _plain(one, one.default)


def _plain(one: SettingField, value: Any) -> Any:  # noqa: ANN401 -- any setting's
    """The value of a setting as documents have it."""
    if one.is_repeatable:
        return dict(value) if one.is_of_pairs else list(value)
    return str(value) if isinstance(value, Struct) else value


def _shown(kind: Kind, benchmark: str | None) -> tuple[SettingField, ...]:
    """The inputs among the core's settings, which have no owner, or among those of a benchmark."""
    return tuple(
        one
        for one in table(kind).values()
        if one.setting.is_input and (benchmark in one.owners if benchmark else not one.owners)
    )


def _values(config: CoreConfig, shown: Sequence[SettingField]) -> dict[str, Any]:
    return {one.name: _plain(one, getattr(config, one.name)) for one in shown}


@cache
def own_inputs(kind: Kind, benchmark: str) -> type[Part]:
    """The type of what `inputs` have of the settings that are a benchmark's own."""
    fields = [*map(_input, _shown(kind, benchmark))]
    if not fields:
        return Part
    return defstruct("OwnInputs", fields, bases=(Part,), frozen=True, kw_only=True)  # type: ignore[return-value]


CORE = _shown(CoreConfig, None)
if TYPE_CHECKING:
    Settings = Struct
else:
    Settings = defstruct("Settings", map(_input, CORE), frozen=True, kw_only=True)


class Inputs(Settings, frozen=True, kw_only=True):
    """Settings, versions, and fingerprints of every text that the outcome depends on."""

    hashes: dict[Annotated[str, Meta(pattern="_sha256$")], Sha256] = field(
        name="*hashes", default_factory=dict
    )
    own: Annotated[Part, part("inputs")] = field(name="*own", default_factory=Part)
    models: Annotated[
        dict[str, Annotated[ModelUse | None, doc("its model; null: it had none")]],
        keys("roles"),
        doc("by role, what was asked for and what served"),
    ] = field(default_factory=dict)
    runner_version: Annotated[str, doc("version of this program")]
    sdk_version: Annotated[str, doc("version of the SDK, or other client, that sent the requests")]

    @classmethod
    def of(cls, result: "EndedRun") -> "Inputs":
        config, kind = result.config, type(result.config)
        own = own_inputs(kind, result.benchmark)
        return cls(
            hashes=dict(result.opening.hashes),
            own=own(**_values(config, _shown(kind, result.benchmark))),
            **_values(config, CORE),
            models={
                role: ModelUse.of(model, result.tallies[role].completions)
                for role, model in result.models.items()
            },
            runner_version=VERSION,
            sdk_version=result.sdk_version,
        )


def _words(said: Iterable[str | None]) -> list[str] | None:
    """What was said, each once; `None` if nothing was."""
    return sorted({word for word in said if word is not None}) or None
