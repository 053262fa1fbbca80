"""Settings that the user asked for: a model that refuses one is an error that names the flag."""

from collections.abc import Iterator

from socratic_bench.bedrock.capabilities import capabilities_of, refused_field
from socratic_bench.config import RunConfig
from socratic_bench.config.settings import MIN_THINKING_TOKENS
from socratic_bench.errors import ModelError
from socratic_bench.types import CallKey, GenerateConfig, Request

# The tutor's, by the field of the request; metadata goes with every role's calls.
FLAGS = {
    "temperature": "--temperature",
    "top_p": "--top-p",
    "both_samplings": "--temperature together with --top-p",
    "max_tokens": "--max-tokens",
    "thinking": "--enable-thinking",
    "service_tier": "--service-tier",
    "latency_profile": "--latency-profile",
    "guardrail": "--guardrail",
}
METADATA = "request_metadata"
METADATA_FLAG = "--request-metadata"
# With these it is one of the others, or the user did not ask for them.
_ALWAYS_SENT = {"both_samplings", "max_tokens"}


def known_problems(config: RunConfig) -> Iterator[str]:
    """The settings of the model under test that it is known not to take, a sentence each."""
    can = capabilities_of(config.model)
    asked = _asked(
        GenerateConfig(
            max_tokens=config.max_tokens,
            temperature=config.temperature,
            top_p=config.top_p,
            thinking_budget_tokens=config.thinking_budget_tokens,
        )
    )
    for field in ("temperature", "top_p", "both_samplings", "thinking"):
        if field in asked and not getattr(can, field):
            yield f"{config.model} takes no {FLAGS[field]}: leave it out."


def setting_notices(config: RunConfig) -> Iterator[str]:
    """What becomes of a setting that the model under test takes in another form only."""
    form, budget = capabilities_of(config.model).thinking, config.thinking_budget_tokens
    if budget not in (None, MIN_THINKING_TOKENS) and form not in (None, "budget"):
        yield (
            f"{config.model} thinks by levels, not by a budget: --thinking-budget-tokens {budget} "
            "chooses the level."
        )


def explained(error: ModelError, request: Request, key: CallKey, *, metadata: bool) -> ModelError:
    """The error by the flag of a setting that was refused; the same error if it was none.

    Where the service does not tell what it refuses, the hint names the settings that it may be,
    `metadata` among them.
    """
    asked = _asked(request.config) if key.role == "tutor" else set()
    flag = _refused_flag(error, asked)
    if flag:
        return ModelError(
            f"The model refuses {flag}. {error.message}",
            code="refused_setting",
            end_reason="refused_request",
            hint=f"Leave out {flag}, give it another value, or test a model that takes it.",
        )
    optional = [name for field, name in FLAGS.items() if field in asked - _ALWAYS_SENT]
    optional += [METADATA_FLAG] if metadata else []
    if error.code == "invalid_request" and optional:
        error.hint = f"{error.hint} Of your settings it may be {' or '.join(optional)}."
    return error


def _refused_flag(error: ModelError, asked: set[str]) -> str | None:
    field = refused_field(error.code, error.message)
    if field == METADATA:
        return METADATA_FLAG
    return FLAGS[field] if field in FLAGS and field in asked else None


def _asked(config: GenerateConfig) -> set[str]:
    has = {
        "temperature": config.temperature is not None,
        "top_p": config.top_p is not None,
        "both_samplings": None not in (config.temperature, config.top_p),
        "max_tokens": True,
        "thinking": config.thinking_budget_tokens is not None,
        "service_tier": config.service_tier is not None,
        "latency_profile": config.latency_profile is not None,
        "guardrail": config.guardrail is not None,
    }
    return {field for field, is_asked in has.items() if is_asked}
