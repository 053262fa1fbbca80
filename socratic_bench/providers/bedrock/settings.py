"""What is known of a model's reaction to settings that somebody asked for."""

from collections.abc import Iterator

from socratic_bench.errors import Problem
from socratic_bench.generation import MIN_THINKING_TOKENS
from socratic_bench.providers.bedrock.capabilities import capabilities_of
from socratic_bench.settings import CoreConfig
from socratic_bench.settings.asked import asked_settings, setting_name


def known_problems(config: CoreConfig) -> Iterator[Problem]:
    """The settings of the model under test that it is known not to take, a sentence each."""
    can = capabilities_of(config.model)
    asked = asked_settings(config.generation)
    for field in ("temperature", "top_p", "both_samplings", "thinking"):
        if field in asked and not getattr(can, field):
            yield Problem.of(
                f"{{tested}} takes no {setting_name(field)}: leave it out.", tested=config.model
            )


def setting_notices(config: CoreConfig) -> Iterator[str]:
    """What becomes of a setting that the model under test takes in another form only."""
    form, budget = capabilities_of(config.model).thinking, config.thinking_budget_tokens
    if budget not in (None, MIN_THINKING_TOKENS) and form not in (None, "budget"):
        yield (
            f"{config.model} thinks by levels, not by a budget: --thinking-budget-tokens {budget} "
            "chooses the level."
        )
