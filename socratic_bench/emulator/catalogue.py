"""The table of models: what each of them takes, and the words with which it refuses the rest."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from socratic_bench.emulator.dialogue import base_model_id
from socratic_bench.emulator.errors import ServiceError, invalid
from socratic_bench.emulator.models import is_embedded

OWN = "emulator."
_ARN = re.compile(
    r"arn:aws[a-z-]*:bedrock:[a-z0-9-]*:\d*:(foundation-model|inference-profile)/([^/]+)"
)


class Traits(Struct, frozen=True, kw_only=True):
    """One model's limits; `is_known`: whether there is one by the id, profile or ARN asked for."""

    base_id: str
    is_known: bool
    context_window: int
    max_tokens: int
    system: bool
    tools: bool
    tool_choice: bool
    sampling: Literal["both", "either", "none", "no_temperature"]
    prefill: bool
    json_schema: bool
    cache: bool
    cache_minimum: int
    thinking: bool
    adaptive_thinking: bool
    reasons: bool
    count_tokens: bool
    profile_only: bool
    end_of_life: bool
    streaming: bool
    streamed_tools: bool
    tiers: bool
    latency_optimized: bool
    name: str | None = None


def unknown_model() -> ServiceError:
    return invalid("The provided model identifier is invalid.")


@lru_cache(maxsize=1024)
def traits_of(model_id: str) -> Traits:
    """The limits of a model by the longest prefix in the table; an unknown one takes all."""
    base, table = base_model_id(model_id), _table()
    family = max((key for key in table["models"] if base.startswith(key)), key=len, default="")
    inherited = table["models"].get(OWN, {}) if base.startswith(OWN) else {}
    row = {**table["defaults"], **inherited, **table["models"].get(family, {})}
    row["context_window"] = table["context_windows"].get(base, row["context_window"])
    return Traits(base_id=base, is_known=_is_known(model_id, base), **row)


def _is_known(model_id: str, base: str) -> bool:
    """Whether an id, a profile's id, or an ARN of either names a model that there is."""
    arn = _ARN.fullmatch(model_id)
    name = arn[2] if arn else model_id
    is_profile = name != base
    if "/" in name or (arn and is_profile != (arn[1] == "inference-profile")):
        return False
    if base.startswith(OWN):
        return not is_profile and is_embedded(base)
    return base in _table()["context_windows"]


@cache
def listed_models() -> tuple[Traits, ...]:
    return tuple(map(traits_of, _table()["context_windows"]))


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / "catalogue.toml").read_text("utf-8"))
