"""Settings that the user asked for: a model that refuses one is an error that names the flag."""

from collections.abc import Iterator

from socratic_bench.bedrock.capabilities import capabilities_of, refused_field
from socratic_bench.config import RunConfig
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


def refused_setting(error: ModelError, request: Request, key: CallKey) -> ModelError | None:
    """The error that names the flag, if it was a setting of the user's that was refused."""
    field = refused_field(error.code, error.message)
    if field == METADATA:
        flag = "--request-metadata"
    elif field in FLAGS and key.role == "tutor" and field in _asked(request.config):
        flag = FLAGS[field]
    else:
        return None
    return ModelError(
        f"The model refuses {flag}. {error.message}",
        code="refused_setting",
        end_reason="refused_request",
        hint=f"Leave out {flag}, give it another value, or test a model that takes it.",
    )


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
