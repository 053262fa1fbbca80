"""Settings that the user asked for: a model that refuses one is an error that names it."""

from collections.abc import Iterator

from socratic_bench.errors import ModelError, Problem
from socratic_bench.generation import MIN_THINKING_TOKENS, GenerateConfig
from socratic_bench.providers.bedrock.capabilities import capabilities_of, refused_field
from socratic_bench.settings import CoreConfig
from socratic_bench.types import Request

# What is refused, where that is not one field of the configuration alone.
SEVERAL = {"thinking": "{enable_thinking}", "both_samplings": "{temperature} together with {top_p}"}
METADATA = "request_metadata"


def known_problems(config: CoreConfig) -> Iterator[Problem]:
    """The settings of the model under test that it is known not to take, a sentence each."""
    can = capabilities_of(config.model)
    asked = _asked(config)
    for field in ("temperature", "top_p", "both_samplings", "thinking"):
        if field in asked and not getattr(can, field):
            yield Problem.of(
                f"{{tested}} takes no {_name(field)}: leave it out.", tested=config.model
            )


def setting_notices(config: CoreConfig) -> Iterator[str]:
    """What becomes of a setting that the model under test takes in another form only."""
    form, budget = capabilities_of(config.model).thinking, config.thinking_budget_tokens
    if budget not in (None, MIN_THINKING_TOKENS) and form not in (None, "budget"):
        yield (
            f"{config.model} thinks by levels, not by a budget: --thinking-budget-tokens {budget} "
            "chooses the level."
        )


def explained(
    error: ModelError, request: Request, *, is_tested: bool, metadata: bool
) -> ModelError:
    """The error by the setting that was refused; the same error if it was none.

    Where the service does not tell what it refuses, the hint names the settings that it may be,
    `metadata` among them. `is_tested`: the request is to the model under test, whom settings of the
    user's are for.
    """
    asked = _asked(request.config) if is_tested else []
    field = refused_field(error.code, error.message)
    if field and (field in (METADATA, *asked) or (is_tested and field == "max_tokens")):
        name = _name(field)
        return ModelError(
            Problem.of(f"The model refuses {name}. {{why}}", why=error.message),
            code="refused_setting",
            end_reason="refused_request",
            hint=Problem.of(
                f"Leave out {name}, give it another value, or test a model that takes it."
            ),
        )
    # With both samplings it is one of the others.
    optional = [_name(name) for name in asked if name != "both_samplings"]
    optional += [_name(METADATA)] if metadata else []
    if error.code == "invalid_request" and optional:
        may_be = " or ".join(optional)
        error.hints = (*error.hints, Problem.of(f"Of your settings it may be {may_be}."))
    return error


def _name(field: str) -> str:
    return SEVERAL.get(field, f"{{{field}}}")


def _asked(config: GenerateConfig) -> list[str]:
    """What is sent because somebody set it; `max_tokens` always is."""
    unset = GenerateConfig()
    fields = [name for name in GenerateConfig.__struct_fields__ if name != "max_tokens"]
    asked = [name for name in fields if getattr(config, name) != getattr(unset, name)]
    asked = ["thinking" if name == "thinking_budget_tokens" else name for name in asked]
    return [*asked, *(["both_samplings"] if {"temperature", "top_p"} <= {*asked} else [])]
