"""The table of models in models.json, which tools/models.py makes: what each family takes."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta, Struct
from msgspec.structs import replace

from socratic_bench.types import doc

# How a request asks for thinking, see `socratic_bench.models.bedrock.request`.
ThinkingForm = Literal[
    "budget", "adaptive", "reasoning_effort", "reasoning", "nova", "reasoning_config"
]


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a model takes."""

    system: Annotated[
        bool, doc("system prompts; otherwise the text opens the first user message")
    ] = True
    tools: Annotated[bool, doc("tools of any kind")] = True
    forced_tool: Annotated[
        bool, doc("a tool choice that names a tool; otherwise JSON is asked for in words")
    ] = True
    streaming: Annotated[bool, doc("ConverseStream; otherwise Converse")] = True
    streamed_tools: Annotated[
        bool, doc("tool calls in a stream; otherwise Converse is called for them")
    ] = True
    prompt_cache: Annotated[bool, doc("cache points")] = True
    cache_minimum: Annotated[
        int, Meta(ge=0, description="the fewest tokens of a prefix that is cached")
    ] = 1024
    temperature: Annotated[bool, doc("a temperature of the user's own")] = True
    top_p: Annotated[bool, doc("a top_p of the user's own")] = True
    both_samplings: Annotated[bool, doc("both of them in one request")] = True
    thinking: Annotated[
        ThinkingForm | None, doc("how the model is asked to think; null if it cannot be asked")
    ] = "budget"

    def streams(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the answer to a request of these arguments is streamed."""
        return self.streaming and (self.streamed_tools or "toolConfig" not in arguments)

    def without(self, field: str) -> "Capabilities":
        """The same with `field` known to be refused."""
        return replace(self, **{field: False})


class Family(Struct, frozen=True, kw_only=True):
    """Models whose ids begin alike.

    Attributes:
        lacks: fields of a request that they refuse, by their names in `Capabilities`.
        no_images: how the ids of those begin that take no images.
        thinking: how a request asks for thinking; `None` if it cannot.
        cache_minimum: the fewest tokens of a prefix that is cached.
    """

    name: str
    lacks: frozenset[str]
    no_images: tuple[str, ...]
    thinking: ThinkingForm | None
    cache_minimum: int


def family_of(model_id: str) -> Family | None:
    """The family of a model id, profile id or ARN, by the longest matching beginning."""
    name = base_id(model_id)
    starts = ((start, row) for row in _table()["families"] for start in row["starts"])
    matches = [(len(start), row) for start, row in starts if name.startswith(start)]
    if not matches:
        return None
    row = max(matches, key=lambda match: match[0])[1]
    return Family(
        name=row["family"],
        lacks=frozenset(row["lacks"]),
        no_images=tuple(row["no_images"]),
        thinking=row["thinking"],
        cache_minimum=row["cache_minimum"],
    )


def capabilities_of(model_id: str) -> Capabilities:
    """What a model id, profile id or ARN takes by the table; an unknown model takes everything."""
    family = family_of(model_id)
    if family is None:
        return Capabilities()
    lacks: dict[str, Any] = dict.fromkeys(family.lacks, False)
    return Capabilities(**lacks, thinking=family.thinking, cache_minimum=family.cache_minimum)


def takes_images(model_id: str) -> bool:
    """Whether a model sees images, by the table; an unknown model does."""
    family = family_of(model_id)
    return family is None or not base_id(model_id).startswith(family.no_images)


def line_of(model_id: str) -> str | None:
    """The model's line, such as claude or nova; `None` for an unknown model."""
    family = family_of(model_id)
    match = re.match(r"\w+", family.name) if family else None
    return match[0].casefold() if match else None


def price_rows() -> Mapping[str, Any]:
    """The prices of all models by id, in the form of a price file."""
    return {
        model_id: prices
        for row in _table()["families"]
        for model_id, prices in row.get("prices", {}).items()
    }


def known_ids() -> tuple[str, ...]:
    """The ids of all models with prices, without rows for one region or for many models."""
    return tuple(name for name in price_rows() if name[-1] != "*" and "/" not in name)


def price_source() -> Mapping[str, str]:
    """Name, version and date of the prices' source."""
    source: Mapping[str, str] = _table()["prices"]
    return source


@cache
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = orjson.loads(Path(__file__).with_name("models.json").read_bytes())
    return table


# What an inference profile's id has before the model's own: one region, or several.
PROFILE_PREFIXES = frozenset(
    ("af", "apac", "au", "ca", "eu", "global", "il", "in", "jp", "me", "mx", "sa", "us", "us-gov")
)


def base_id(model_id: str) -> str:
    """The model's own id, without an ARN around it and a profile's region before it."""
    name = model_id.partition("/")[2] if model_id.startswith("arn:") else model_id
    prefix, _, own_id = name.partition(".")
    return own_id if prefix in PROFILE_PREFIXES else name
