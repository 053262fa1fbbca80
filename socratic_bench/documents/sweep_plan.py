"""A sweep's plan as a type, made of the tables of settings; `sweeps/plan_file.py` reads one."""

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


class ModelPlan(Struct, frozen=True, kw_only=True):
    """A model of a sweep, and what holds for it alone."""

    id: Annotated[str, Meta(min_length=1, description=table(CoreConfig)["model"].setting.text)]
    region: Annotated[str | None, doc("AWS region of its calls")] = None
    service_tier: Annotated[ServiceTier | None, doc("service tier of its calls")] = None
    prices: Annotated[PricesOfModel | None, doc("its prices, as a row of a file of prices")] = None
    target_rpm: Annotated[PerMinute | None, doc("requests a minute at most")] = None
    target_tpm: Annotated[PerMinute | None, doc("tokens a minute at most")] = None


class PlanKey(Struct, frozen=True, kw_only=True):
    """A key of a plan: a flag of the sweep, with underscores.

    `setting` is the one that it gives, or steers by a `switch`; `is_axis` says that it may give
    several values, one run each.
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
        """Whether it takes a list, too."""
        return self.is_axis or (self.setting.is_repeatable and not self.switch)

    @property
    def kind(self) -> type:
        """What one value of it is: `bool`, `int`, `float`, or `str` for all else."""
        if self.switch:
            return str if self.switch.metavar else bool
        kind = self.setting.kinds[0]
        return kind if kind in (bool, int, float) else str

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may be; empty if there are others."""
        return self.switch.choices if self.switch else self.setting.choices

    @property
    def takes_numbers(self) -> bool:
        """Whether a number may stand for the word that it is written as."""
        parse = self.setting.setting.parse
        return self.setting.is_repeatable and parse is not None and parse("1") is not None


def key_name(word: str) -> str:
    """A key may be written with hyphens, as the flag is."""
    return word.replace("-", "_")


def plan_keys(kinds: Sequence[Kind], benchmark: str = "") -> Mapping[str, PlanKey]:
    """The keys that give settings of these classes, by their names; the models are apart.

    Those that only other benchmarks have are left out if a `benchmark` is named.
    """
    settings = [
        one
        for kind in kinds
        for name, one in table(kind).items()
        if name not in settings_of_other_benchmarks(kind, benchmark)
    ]
    keys = [*_axes(settings), *(key for one in settings for key in _keys(one))]
    return {key.name: key for key in keys if key.name != MODELS}


def _axes(settings: Sequence[SettingField]) -> Iterator[PlanKey]:
    for one in settings:
        if one.setting.axis:
            yield PlanKey(flag=one.setting.axis, setting=one, is_axis=True)


def _keys(one: SettingField) -> Iterator[PlanKey]:
    if one.flag and not one.setting.axis:
        yield PlanKey(flag=one.flag, setting=one)
    if switch := one.setting.steered_by:
        yield PlanKey(flag=switch.name, setting=one, switch=switch)


@cache
def plan_type(kinds: tuple[Kind, ...], benchmark: str) -> type[Struct]:
    """The type of a plan for a benchmark, whose settings and those of the sweep `kinds` have."""
    models = Annotated[
        list[str | ModelPlan],
        Meta(min_length=1, description="the models under test: ids, or tables [[models]]"),
    ]
    keys = plan_keys(kinds, benchmark)
    fields: list[tuple[str, Any, Any]] = [
        ("kind", Literal["sweep_plan"], "sweep_plan"),
        ("schema_version", Annotated[Literal[1], doc("of the form of plans")], 1),
        *((name, _type(key) | UnsetType, UNSET) for name, key in sorted(keys.items())),
    ]
    hyphened = [(f"{n}_", _as_flag(key), UNSET) for n, key in sorted(keys.items()) if "_" in n]
    return defstruct(
        "SweepPlan",
        [*fields, (MODELS, models), *hyphened],
        namespace={"__doc__": "A sweep, for `socratic-runner sweep PLAN.toml`."},
        rename={f"{name}_": key.flag for name, key in keys.items()},
        frozen=True,
        kw_only=True,
    )


def _type(key: PlanKey) -> Any:  # noqa: ANN401 -- a type, or a form of types
    setting = key.setting.setting
    one: Any = Literal[key.choices] if key.choices else key.kind
    if key.kind in (int, float) and (setting.low, setting.high) != (None, None):
        one = Annotated[one, Meta(ge=setting.low, le=setting.high)]
    one = str | PerMinute if key.takes_numbers else one
    many = one | list[one] if key.is_many else one
    return Annotated[many, doc(_meaning(key))]


def _as_flag(key: PlanKey) -> Any:  # noqa: ANN401
    return Annotated[_type(key), doc(f"the same as {key.name}")] | UnsetType


def _meaning(key: PlanKey) -> str:
    switch, one = key.switch, key.setting
    text = switch.text if switch else one.fill(one.setting.text)
    default = switch.default_words if switch else ""
    text = text.format(default=default) if switch else text
    return f"{text}; a list plays each" if key.is_axis else text


# A line of a file of prompts, as a type; `sweeps/prompts.py` tells every mistake in one.

LONGEST_ID = 100


class PromptLine(Struct, frozen=True, kw_only=True):
    """A line of a file of prompts in JSONL: the opening words of a run."""

    prompt: Annotated[
        str, Meta(min_length=1, max_length=MAX_TEXT_BYTES, description="the opening words")
    ]
    id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)] | None,
        doc("a name of its own; no two lines have the same"),
    ] = None
