"""Knows which request fields a model takes, and the words by which the service refuses one."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from socratic_bench.catalogue.models import ThinkingForm, family_of
from socratic_bench.types import doc


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


class Refusal(Struct, frozen=True):
    """Words by which the service refuses a field, in errors of these codes (see `ERROR_KINDS`)."""

    field: str
    codes: tuple[str, ...]
    pattern: str


# Fields that the program adds by itself and can leave out.
OWN_FIELDS = (
    *("system", "forced_tool", "streaming", "streamed_tools", "prompt_cache"),
    "temperature",  # of a request that wants one if it is taken; the user's is sent all the same
)


def capabilities_of(model_id: str) -> Capabilities:
    """What the table says of a model id, profile id or ARN; an unknown model takes everything."""
    family = family_of(model_id)
    if family is None:
        return Capabilities()
    lacks: dict[str, Any] = dict.fromkeys(family.lacks, False)
    return Capabilities(**lacks, thinking=family.thinking, cache_minimum=family.cache_minimum)


def refused_field(code: str, message: str) -> str | None:
    """The field that an error of the service refuses: a capability, or a setting of the user's."""
    return next(
        (
            refusal.field
            for refusal in _refusals()
            if code in refusal.codes and re.search(refusal.pattern, message, re.IGNORECASE)
        ),
        None,
    )


def dropped_field(code: str, message: str, tried: Capabilities) -> str | None:
    """The field of the program's own that was `tried` and that an error of the service refuses."""
    refused = refused_field(code, message)
    return refused if refused in OWN_FIELDS and getattr(tried, refused) else None


@cache
def _refusals() -> tuple[Refusal, ...]:
    rows = json.loads(Path(__file__).with_name("refusals.json").read_bytes())["refusals"]
    return tuple(
        Refusal(row["field"], tuple(row.get("codes", ("invalid_request",))), row["says"])
        for row in rows
    )
