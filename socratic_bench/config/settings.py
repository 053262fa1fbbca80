"""How the model under test is asked to generate: the shapes and rules known before any call."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from socratic_bench.config.reader import Reader
from socratic_bench.types import (
    LATENCY_PROFILES,
    SERVICE_TIERS,
    Guardrail,
    LatencyProfile,
    ServiceTier,
)

if TYPE_CHECKING:
    from socratic_bench.config.run_config import RunConfig

MAX_TOKENS_DEFAULT = 1024
MIN_THINKING_TOKENS = 1024
MAX_METADATA = 16

# The patterns are those of the service's own model.
_GUARDRAIL_ID = r"[a-z0-9]+|arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail/[a-z0-9]+"
_GUARDRAIL_VERSION = r"[1-9][0-9]{0,7}|DRAFT"
_METADATA_KEY = r"[a-zA-Z0-9\s:_@$#=/+,\-.]{1,256}"
_METADATA_VALUE = r"[a-zA-Z0-9\s:_@$#=/+,\-.]{0,256}"


def read_service_tier(reader: Reader) -> ServiceTier | None:
    word = _one_of(reader, "service-tier", SERVICE_TIERS)
    return next((tier for tier in SERVICE_TIERS if tier == word), None)


def read_latency_profile(reader: Reader) -> LatencyProfile | None:
    word = _one_of(reader, "latency-profile", LATENCY_PROFILES)
    return next((profile for profile in LATENCY_PROFILES if profile == word), None)


def read_thinking_budget(reader: Reader) -> int | None:
    """`None` without `--enable-thinking`."""
    budget = reader.integer("thinking-budget-tokens", default=MIN_THINKING_TOKENS)
    if reader.switch("enable-thinking"):
        return budget
    if reader.given("thinking-budget-tokens"):
        reader.problems.append("--thinking-budget-tokens needs --enable-thinking.")
    return None


def read_max_tokens(reader: Reader, thinking_budget_tokens: int | None) -> int:
    """Thinking counts against the bound, so that its budget comes on top of the default."""
    default = MAX_TOKENS_DEFAULT + max(0, thinking_budget_tokens or 0)
    return reader.integer("max-tokens", default=default)


def read_guardrail(reader: Reader) -> Guardrail | None:
    word = reader.word("guardrail")
    if word is None:
        return None
    identifier, _, version = word.rpartition(":")
    return Guardrail(identifier, version)


def read_metadata(reader: Reader) -> tuple[tuple[str, str], ...]:
    pairs = []
    for word in reader.words("request-metadata"):
        key, is_pair, value = word.partition("=")
        if is_pair:
            pairs.append((key, value))
        else:
            reader.problems.append(
                f"--request-metadata takes KEY=VALUE, such as team=physics, not {word!r}."
            )
    return tuple(pairs)


def setting_problems(config: "RunConfig") -> Iterator[str]:
    """What is wrong with the settings, whatever the model."""
    yield from _thinking_problems(config)
    yield from _metadata_problems(config)
    rail = config.guardrail
    if rail and not (
        re.fullmatch(_GUARDRAIL_ID, rail.id) and re.fullmatch(_GUARDRAIL_VERSION, rail.version)
    ):
        yield (
            f"--guardrail takes ID:VERSION, the id or ARN of a guardrail and a number or DRAFT, "
            f"not '{rail if rail.id else rail.version}'."
        )


def _one_of(reader: Reader, flag: str, choices: Sequence[str]) -> str | None:
    word = reader.word(flag)
    if word is not None and word not in choices:
        reader.problems.append(f"--{flag} is {word!r}, but must be one of {', '.join(choices)}.")
    return word


def _thinking_problems(config: "RunConfig") -> Iterator[str]:
    budget = config.thinking_budget_tokens
    if budget is None:
        return
    if budget < MIN_THINKING_TOKENS:
        yield f"--thinking-budget-tokens is {budget}, but must be at least {MIN_THINKING_TOKENS}."
    if budget >= config.max_tokens:
        yield (
            f"--thinking-budget-tokens is {budget}, but must be less than --max-tokens "
            f"({config.max_tokens}), which bounds thinking and reply together."
        )
    if config.temperature not in (None, 1) and _thinks_at_one_temperature(config.model):
        yield (
            f"--enable-thinking allows no --temperature but 1, not {config.temperature:g}: "
            "leave it out."
        )


def _thinks_at_one_temperature(model_id: str) -> bool:
    """Claude does, and so may a model that nobody knows."""
    from socratic_bench.models.table import family_of

    family = family_of(model_id)
    return family is None or family.thinking in ("budget", "adaptive")


def _metadata_problems(config: "RunConfig") -> Iterator[str]:
    pairs = config.request_metadata
    if len(pairs) > MAX_METADATA:
        yield f"--request-metadata is given {len(pairs)} times; a request takes {MAX_METADATA}."
    keys = [key for key, _ in pairs]
    for key in dict.fromkeys(key for key in keys if keys.count(key) > 1):
        yield f"--request-metadata names the key {key!r} more than once."
    for key, value in pairs:
        if not (re.fullmatch(_METADATA_KEY, key) and re.fullmatch(_METADATA_VALUE, value)):
            yield (
                f"--request-metadata {key!r}={value!r}: key (1 to 256) and value (up to 256) take "
                "letters a to z, digits, white space and : _ @ $ # = / + , - ."
            )
