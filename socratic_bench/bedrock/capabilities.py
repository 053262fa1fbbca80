"""Knows which request fields a model takes, from a data file; unknown models count as modern."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from socratic_bench.values import dataclass

_ARN_HEAD = re.compile(r"^arn:[^/]*/")
_PROFILE_PREFIX = re.compile(r"^(us|eu|apac|global|us-gov|jp|au|ca|sa|me|af)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model takes.

    Attributes:
        system: system prompts; otherwise the text opens the first user message.
        forced_tool: a tool choice that names a tool; otherwise JSON is asked for in words.
        streaming: ConverseStream; otherwise Converse is called.
        streamed_tools: tool calls in a stream; otherwise Converse is called for them.
        prompt_cache: cache points; otherwise there are none.
        cache_minimum: the fewest tokens of a prefix that is cached.
        temperature, top_p, both_samplings, thinking: settings of the user's own: sampling
            parameters, both of them in one request, and thinking with a budget.
    """

    system: bool = True
    forced_tool: bool = True
    streaming: bool = True
    streamed_tools: bool = True
    prompt_cache: bool = True
    cache_minimum: int = 1024
    temperature: bool = True
    top_p: bool = True
    both_samplings: bool = True
    thinking: bool = True

    def streams(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the answer to a request of these arguments is streamed."""
        return self.streaming and (self.streamed_tools or "toolConfig" not in arguments)

    def without(self, field: str) -> "Capabilities":
        """The same with `field` known to be refused."""
        return replace(self, **{field: False})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Words by which the service refuses a field, in errors of these codes (see `FAULTS`)."""

    field: str
    codes: tuple[str, ...]
    pattern: str


# What the program adds of its own accord, and can do without.
OWN_FIELDS = ("system", "forced_tool", "streaming", "streamed_tools", "prompt_cache")


def capabilities_of(model_id: str) -> Capabilities:
    """What the data file says of a model id, inference-profile id or ARN."""
    name = base_id(model_id)
    # Few patterns are of this model's vendor, and to compile all of them would hold a run up.
    vendor = re.escape(name.partition(".")[0])
    return next(
        (
            _capabilities(row)
            for row in _table().models
            if row["match"].startswith(vendor) and re.match(row["match"], name)
        ),
        Capabilities(),
    )


def base_id(model_id: str) -> str:
    """The model's own id: without the ARN around it and the profile's region before it."""
    return _PROFILE_PREFIX.sub("", _ARN_HEAD.sub("", model_id))


def refused_field(code: str, message: str) -> str | None:
    """The field that an error of the service refuses: a capability, or a setting of the user's."""
    return next(
        (
            refusal.field
            for refusal in _table().refusals
            if code in refusal.codes and re.search(refusal.pattern, message, re.IGNORECASE)
        ),
        None,
    )


def forgone_field(code: str, message: str, tried: Capabilities) -> str | None:
    """The field of the program's own that was `tried` and that an error of the service refuses."""
    refused = refused_field(code, message)
    return refused if refused in OWN_FIELDS and getattr(tried, refused) else None


@dataclass(frozen=True, slots=True)
class _Table:
    models: tuple[Mapping[str, Any], ...]
    refusals: tuple[Refusal, ...]


@cache
def _table() -> _Table:
    data = json.loads(Path(__file__).with_name("capabilities.json").read_bytes())
    return _Table(
        models=tuple(data["models"]),
        refusals=tuple(
            Refusal(row["field"], tuple(row.get("codes", ("invalid_request",))), row["says"])
            for row in data["refusals"]
        ),
    )


def _capabilities(row: Mapping[str, Any]) -> Capabilities:
    lacks = dict.fromkeys(row["lacks"], False)
    return replace(Capabilities(**lacks), cache_minimum=row.get("cache_minimum", 1024))
