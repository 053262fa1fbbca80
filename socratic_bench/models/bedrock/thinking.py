"""How a model is asked to think: one flag, and a form of its own for each family of models."""

from socratic_bench.catalogue.models import ThinkingForm
from socratic_bench.types import Json

# Where thinking has levels, a budget chooses one, by the bounds that litellm uses, too
# (DEFAULT_REASONING_EFFORT_*_THINKING_BUDGET).
MEDIUM_TOKENS = 2048
HIGH_TOKENS = 4096


def thinking_fields(form: ThinkingForm, budget_tokens: int) -> dict[str, Json]:
    """What goes into `additionalModelRequestFields`."""
    level = _level(budget_tokens)
    match form:
        case "budget":
            return {"thinking": {"type": "enabled", "budget_tokens": budget_tokens}}
        case "adaptive":
            # Without a display, the thoughts come back empty.
            thinking: Json = {"type": "adaptive", "display": "summarized"}
            return {"thinking": thinking, "output_config": {"effort": level}}
        case "reasoning_effort":
            return {"reasoning_effort": level}
        case "reasoning":
            return {"reasoning": {"effort": level}}
        case "nova":
            # The highest level takes no bound on the tokens of a reply, and each request has one.
            effort = "medium" if level == "high" else level
            return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
        case "reasoning_config":
            # Lower levels are accepted, and do nothing.
            return {"reasoning_config": "high"}


def _level(budget_tokens: int) -> str:
    if budget_tokens < MEDIUM_TOKENS:
        return "low"
    return "medium" if budget_tokens < HIGH_TOKENS else "high"
