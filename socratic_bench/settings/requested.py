"""Which settings of a call somebody asked for, and how each is named."""

from socratic_bench.generation import GenerateConfig

# What is refused, where that is not one field of the configuration alone.
_SEVERAL = {
    "thinking": "{enable_thinking}",
    "both_samplings": "{temperature} together with {top_p}",
}


def setting_name(field: str) -> str:
    """As a `Problem` has it."""
    return _SEVERAL.get(field, f"{{{field}}}")


def asked_settings(config: GenerateConfig) -> list[str]:
    """What is sent because somebody set it; `max_tokens` always is."""
    unset = GenerateConfig()
    fields = [name for name in GenerateConfig.__struct_fields__ if name != "max_tokens"]
    asked = [name for name in fields if getattr(config, name) != getattr(unset, name)]
    asked = ["thinking" if name == "thinking_budget_tokens" else name for name in asked]
    return [*asked, *(["both_samplings"] if {"temperature", "top_p"} <= {*asked} else [])]
