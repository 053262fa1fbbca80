"""The files that people write for a sweep, as types: its plan, and a line of prompts."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from socratic_bench.catalogue.price_file import PricesOfModel
from socratic_bench.generation import ServiceTier
from socratic_bench.setting import Switch
from socratic_bench.settings import (
    MAX_TEXT_BYTES,
    CoreConfig,
    Kind,
    SettingField,
    settings_of_other_benchmarks,
    table,
)
from socratic_bench.types import doc

PerMinute = Annotated[int, Meta(ge=1)]
MODELS = "models"
ENDPOINTS = "endpoints"
LONGEST_ID = 100


class ModelPlan(Struct, frozen=True, kw_only=True):
    """A model of a sweep, with its own settings."""

    id: Annotated[str, Meta(min_length=1, description=table(CoreConfig)["model"].setting.text)]
    region: Annotated[str | None, doc("AWS region of its calls")] = None
    service_tier: Annotated[ServiceTier | None, doc("service tier of its calls")] = None
    prices: Annotated[PricesOfModel | None, doc("its prices, like a row of a price file")] = None
    target_rpm: Annotated[PerMinute | None, doc("limit of requests per minute")] = None
    target_tpm: Annotated[PerMinute | None, doc("limit of tokens per minute")] = None


class EndpointPlan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endpoint that speaks OpenAI's protocol, for the models `NAME/ID`."""

    base_url: Annotated[str, doc("its http(s) address, to which /chat/completions is added")]
    key_variable: Annotated[str, doc("the variable that has its key; empty: it needs none")] = ""
    prices: Annotated[
        dict[str, PricesOfModel], doc("prices of its models by id, like rows of a price file")
    ] = {}


class PlanKey(Struct, frozen=True, kw_only=True):
    """A key of a plan: a flag of the sweep, with underscores.

    Attributes:
        setting: the setting that it sets, directly or by a switch.
        is_axis: whether it may have several values, each for runs of its own.
    """

    flag: str
    setting: SettingField
    switch: Switch | None = None
    is_axis: bool = False

    @property
    def name(self) -> str:
        return key_name(self.flag)

    @property
    def is_many(self) -> bool:
        """Whether its value may be a list."""
        return self.is_axis or (self.setting.is_repeatable and not self.switch)

    @property
    def kind(self) -> type:
        """The type of one value: `bool`, `int`, `float`, or `str` for all others."""
        if self.switch:
            return str if self.switch.metavar else bool
        kind = self.setting.kinds[0]
        return kind if kind in (bool, int, float) else str

    @property
    def choices(self) -> tuple[str, ...]:
        """All words that it may be; empty if any other is allowed."""
        return self.switch.choices if self.switch else self.setting.choices

    @property
    def takes_numbers(self) -> bool:
        """Whether a number is allowed in place of a word."""
        parse = self.setting.setting.parse
        return self.setting.is_repeatable and parse is not None and parse("1") is not None


def key_name(word: str) -> str:
    """The key of a flag, which may be written with hyphens."""
    return word.replace("-", "_")


def plan_keys(
    kinds: Sequence[Kind], benchmark: str = "", *, has_axes: bool = True
) -> Mapping[str, PlanKey]:
    """The keys of a plan by name, without the models, for the settings of these classes.

    With a `benchmark`, settings of other benchmarks are left out. Without axes, they are the keys
    of a run.
    """
    settings = [
        setting
        for kind in kinds
        for name, setting in table(kind).items()
        if name not in settings_of_other_benchmarks(kind, benchmark)
    ]
    axes = [
        PlanKey(flag=setting.setting.axis, setting=setting, is_axis=True)
        for setting in settings
        if has_axes and setting.setting.axis
    ]
    keys = [*axes, *(key for field in settings for key in _keys(field, has_axes=has_axes))]
    return {key.name: key for key in keys if key.name != MODELS}


def _keys(setting: SettingField, *, has_axes: bool) -> Iterator[PlanKey]:
    if setting.flag and not (has_axes and setting.setting.axis):
        yield PlanKey(flag=setting.flag, setting=setting)
    if switch := setting.setting.steered_by:
        yield PlanKey(flag=switch.name, setting=setting, switch=switch)


@cache
def plan_type(kinds: tuple[Kind, ...], benchmark: str) -> type[Struct]:
    """The type of a plan for a benchmark; `kinds` are the settings of a run and of a sweep."""
    models = Annotated[
        list[str | ModelPlan],
        Meta(min_length=1, description="the models under test: ids, or tables [[models]]"),
    ]
    endpoints = Annotated[
        dict[str, EndpointPlan] | UnsetType, doc("endpoints of OpenAI's protocol, by name")
    ]
    keys = plan_keys(kinds, benchmark)
    fields: list[tuple[str, Any, Any]] = [
        ("kind", Literal["sweep_plan"], "sweep_plan"),
        ("schema_version", Annotated[Literal[1], doc("version of the plan format")], 1),
        *((name, _type(key) | UnsetType, UNSET) for name, key in sorted(keys.items())),
    ]
    hyphened = [
        (f"{n}_", Annotated[_type(key), doc(f"the same as {n}")] | UnsetType, UNSET)
        for n, key in sorted(keys.items())
        if "_" in n
    ]
    return defstruct(
        "SweepPlan",
        [*fields, (MODELS, models), (ENDPOINTS, endpoints, UNSET), *hyphened],
        namespace={"__doc__": "Config file of a sweep (socratic-runner sweep CONFIG.toml)."},
        rename={f"{name}_": key.flag for name, key in keys.items()},
        frozen=True,
        kw_only=True,
    )


def _type(key: PlanKey) -> Any:  # noqa: ANN401 -- a type, or a form of types
    setting = key.setting.setting
    kind: Any = Literal[key.choices] if key.choices else key.kind
    if key.kind in (int, float) and (setting.low, setting.high) != (None, None):
        kind = Annotated[kind, Meta(ge=setting.low, le=setting.high)]
    kind = str | PerMinute if key.takes_numbers else kind
    kind = kind | list[kind] if key.is_many else kind
    return Annotated[kind, doc(description(key))]


def description(key: PlanKey) -> str:
    """What a key sets, in a line."""
    switch, setting = key.switch, key.setting
    text = switch.text if switch else setting.fill(setting.setting.text)
    default = switch.default_words if switch else ""
    text = text.format(default=default) if switch else text
    return f"{text}; a list runs each value" if key.is_axis else text


class PromptLine(Struct, frozen=True, kw_only=True):
    """A line of a file of prompts in JSONL: the first message of runs."""

    prompt: Annotated[
        str, Meta(min_length=1, max_length=MAX_TEXT_BYTES, description="the first message")
    ]
    id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)] | None,
        doc("a name, different on each line"),
    ] = None
