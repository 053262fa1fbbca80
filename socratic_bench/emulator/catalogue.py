"""The table of models: what each of them takes, and the words with which it refuses the rest."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from socratic_bench.emulator.dialogue import base_model_id
from socratic_bench.emulator.errors import ServiceError, invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """One model's limits. `base_id` is the foundation model's id; `name` only of listed models."""

    base_id: str
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

    def needs_profile(self) -> ServiceError:
        return on_demand(self.base_id)

    def gone(self) -> ServiceError:
        return ServiceError(
            404,
            "ResourceNotFoundException",
            "This model version has reached the end of its life. "
            "Please refer to the AWS documentation for more details.",
        )


def on_demand(model_id: str) -> ServiceError:
    return invalid(
        f"Invocation of model ID {model_id} with on-demand throughput isn\u2019t supported. "
        "Retry your request with the ID or ARN of an inference profile that contains this model."
    )


@lru_cache(maxsize=1024)
def traits_of(model_id: str) -> Traits:
    """The limits of a model by the longest prefix in the table; an unknown one takes all."""
    base, table = base_model_id(model_id), _table()
    known = max((key for key in table["models"] if base.startswith(key)), key=len, default="")
    inherited = table["models"].get("emulator.", {}) if base.startswith("emulator.") else {}
    return Traits(
        base_id=base, **{**table["defaults"], **inherited, **table["models"].get(known, {})}
    )


@cache
def listed_models() -> tuple[Traits, ...]:
    """The real models that the control plane names."""
    ids = [key for key, row in _table()["models"].items() if "name" in row]
    return tuple(traits_of(model_id) for model_id in ids)


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / "catalogue.toml").read_text("utf-8"))
