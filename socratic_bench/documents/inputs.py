"""What the outcome of a run depends on besides models and seed: settings, texts and versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, Any

from msgspec import Meta, Struct, defstruct, field

from socratic_bench.documents.document import Sha256, keys, part
from socratic_bench.documents.ended_run import EndedRun
from socratic_bench.ports.parts import Part
from socratic_bench.settings import CoreConfig, Kind, SettingField, table
from socratic_bench.types import Completion, doc
from socratic_bench.version import VERSION


class ModelUse(Struct, frozen=True, kw_only=True):
    """The model id that was requested, and what the service says served it."""

    asked: Annotated[str, doc("the id as given")]
    served: Annotated[
        list[str] | None, doc("ids that served, if the service names them (a prompt router does)")
    ]
    served_tiers: Annotated[
        list[str] | None, doc("service tiers that served, if the service names them")
    ]

    @classmethod
    def of(cls, model_id: str | None, calls: Sequence[Completion]) -> ModelUse | None:
        if model_id is None:
            return None
        return cls(
            asked=model_id,
            served=_distinct(call.served_model for call in calls),
            served_tiers=_distinct(call.served_tier for call in calls),
        )


def _input_settings(kind: Kind, benchmark: str | None) -> tuple[SettingField, ...]:
    """The settings that are inputs: those of a benchmark, or of the core without one."""
    return tuple(
        setting
        for setting in table(kind).values()
        if setting.setting.is_input
        and (benchmark in setting.owners if benchmark else not setting.owners)
    )


def _field_of(declared: SettingField) -> tuple[str, Any, Any]:
    """Name, type and default of a setting's field."""
    kind, setting = declared.kinds[0], declared.setting
    if declared.is_repeatable:
        kind = dict[str, str] if declared.is_of_pairs else list[str]
    elif isinstance(kind, type) and issubclass(kind, Struct):
        kind = str
    elif kind in (int, float):
        kind = Annotated[kind, Meta(ge=setting.low, le=setting.high)]
    is_on = declared.default is True
    text = f"false with --{declared.flag}" if is_on else declared.fill(setting.text)
    description = Meta(description=text.partition(" (default")[0])
    kind = Annotated[kind | None if declared.default is None else kind, description]
    return declared.name, kind, _plain_value(declared, declared.default)


def _plain_value(declared: SettingField, value: Any) -> Any:  # noqa: ANN401 -- any setting's
    if declared.is_repeatable:
        return dict(value) if declared.is_of_pairs else list(value)
    return str(value) if isinstance(value, Struct) else value


def _values(config: CoreConfig, settings: Sequence[SettingField]) -> dict[str, Any]:
    return {s.name: _plain_value(s, getattr(config, s.name)) for s in settings}


@cache
def own_inputs(kind: Kind, benchmark: str) -> type[Part]:
    """The part of `inputs` that holds a benchmark's settings."""
    fields = [*map(_field_of, _input_settings(kind, benchmark))]
    if not fields:
        return Part
    return defstruct("OwnInputs", fields, bases=(Part,), frozen=True, kw_only=True)  # type: ignore[return-value]


_CORE = _input_settings(CoreConfig, None)
_CoreInputs: Any = defstruct("CoreInputs", map(_field_of, _CORE), frozen=True, kw_only=True)


class Inputs(Struct, frozen=True, kw_only=True):
    """Settings, versions, and the sha256 of every text that the outcome depends on."""

    core: _CoreInputs = field(name="*core")
    hashes: dict[Annotated[str, Meta(pattern="_sha256$")], Sha256] = field(
        name="*hashes", default_factory=dict
    )
    benchmark_keys: Annotated[Part, part("inputs")] = field(
        name="*benchmark_keys", default_factory=Part
    )
    models: Annotated[
        dict[str, Annotated[ModelUse | None, doc("its model; null: none")]],
        keys("roles"),
        doc("by role, the model that was requested and the one that served"),
    ] = field(default_factory=dict)
    runner_version: Annotated[str, doc("version of this program")]
    sdk_version: Annotated[str, doc("version of the SDK, or other client, that sent the requests")]

    @classmethod
    def of(cls, result: EndedRun) -> Inputs:
        config, kind = result.config, type(result.config)
        benchmark_inputs = own_inputs(kind, result.benchmark)
        return cls(
            core=_CoreInputs(**_values(config, _CORE)),
            hashes=dict(result.opening.hashes),
            benchmark_keys=benchmark_inputs(
                **_values(config, _input_settings(kind, result.benchmark))
            ),
            models={
                role: ModelUse.of(model, result.tallies[role].completions)
                for role, model in result.models.items()
            },
            runner_version=VERSION,
            sdk_version=result.sdk_version,
        )


def _distinct(words: Iterable[str | None]) -> list[str] | None:
    """Every different word, sorted; `None` if there is none."""
    return sorted({word for word in words if word is not None}) or None
