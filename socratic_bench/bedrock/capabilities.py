"""Knows which request fields a model takes, from a data file; unknown models count as modern."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from socratic_bench.values import dataclass

_ARN_HEAD = re.compile(r"^arn:[^/]*/")
_PROFILE_PREFIX = re.compile(r"^(us|eu|apac|global|us-gov|jp|au|ca|sa|me|af)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model takes. A field that it does not take is folded in elsewhere or left out.

    Attributes:
        system: system prompts; otherwise the text opens the first user message.
        forced_tool: a tool choice that names a tool; otherwise JSON is asked for in words.
        temperature, top_p: sampling parameters.
        both_samplings: temperature and top_p in one request; otherwise top_p is left out.
    """

    system: bool = True
    forced_tool: bool = True
    temperature: bool = True
    top_p: bool = True
    both_samplings: bool = True

    def without(self, field: str) -> "Capabilities":
        """The same with `field` known to be refused."""
        return replace(self, **{field: False})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Words by which the service refuses a field."""

    field: str
    pattern: re.Pattern[str]


def capabilities_of(model_id: str) -> Capabilities:
    """What the data file says of a model id, inference-profile id or ARN."""
    name = base_id(model_id)
    for pattern, lacks in _table().models:
        if pattern.match(name):
            return Capabilities(**dict.fromkeys(lacks, False))
    return Capabilities()


def base_id(model_id: str) -> str:
    """The model's own id: without the ARN around it and the profile's region before it."""
    return _PROFILE_PREFIX.sub("", _ARN_HEAD.sub("", model_id))


def refused_field(message: str) -> str | None:
    """The capability that an error message of the service denies, if it is one of ours."""
    return next((r.field for r in _table().refusals if r.pattern.search(message)), None)


@dataclass(frozen=True, slots=True)
class _Table:
    models: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]
    refusals: tuple[Refusal, ...]


@cache
def _table() -> _Table:
    data = json.loads(Path(__file__).with_name("capabilities.json").read_bytes())
    return _Table(
        models=tuple((re.compile(m["match"]), tuple(m["lacks"])) for m in data["models"]),
        refusals=tuple(
            Refusal(r["field"], re.compile(r["says"], re.IGNORECASE)) for r in data["refusals"]
        ),
    )
