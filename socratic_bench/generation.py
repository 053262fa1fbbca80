"""How a model generates a reply: the settings of one call, which are settings of a run, too."""

from typing import Annotated, Literal, get_args

from msgspec import Struct

from socratic_bench.setting import Setting, Switch

ServiceTier = Literal["default", "priority", "flex"]
SERVICE_TIERS: tuple[ServiceTier, ...] = get_args(ServiceTier)

MIN_THINKING_TOKENS = 1024

_MODEL = "settings of the model under test"


class Guardrail(Struct, frozen=True):
    """A guardrail of Bedrock: its id or ARN, and its version, which is a number or `DRAFT`."""

    id: str
    version: str

    def __str__(self) -> str:
        return f"{self.id}:{self.version}"

    @classmethod
    def parse(cls, word: str) -> "Guardrail":
        """Split a word at its last colon; nothing is checked."""
        identifier, _, version = word.rpartition(":")
        return cls(identifier, version)


class GenerateConfig(Struct, frozen=True, kw_only=True):
    """The settings of one call. `None`: the field is not sent.

    `max_tokens` is always sent, since the service counts it against the quota up front and its own
    default can be the model's whole output limit.
    """

    max_tokens: Annotated[
        int,
        Setting(
            "dialogue",
            "N",
            "output tokens per reply, reasoning included (default {default})",
            "maximum output tokens per reply of the tested model; a reasoning budget is added to "
            "the default",
            low=1,
            high=1_000_000,
            identity="always",
            is_input=True,
        ),
    ] = 1024
    temperature: Annotated[
        float | None,
        Setting(
            "dialogue",
            "T",
            "temperature, {low} to {high} (default: {default})",
            default_words="the model's own",
            low=0,
            high=1,
            identity="always",
            axis="temperatures",
            is_input=True,
        ),
    ] = None
    top_p: Annotated[
        float | None,
        Setting(
            "dialogue",
            "P",
            "top-p, {low} to {high} (default: {default})",
            default_words="the model's own",
            low=0,
            high=1,
            identity="chosen",
            is_input=True,
        ),
    ] = None
    service_tier: Annotated[
        ServiceTier | None,
        Setting(_MODEL, "TIER", "service tier: {choices}", axis="service-tier", is_input=True),
    ] = None
    latency_profile: Annotated[
        Literal["standard", "optimized"] | None,
        Setting(_MODEL, "NAME", "latency profile: {choices}", is_input=True),
    ] = None
    thinking_budget_tokens: Annotated[
        int | None,
        Setting(
            _MODEL,
            "N",
            "reasoning tokens per reply (minimum and default {low})",
            "reasoning tokens per reply, at least {low} and less than `--max-tokens`; for models "
            "with levels of effort, the level that fits",
            default_words="{low}",
            low=MIN_THINKING_TOKENS,
            steered_by=Switch(
                "enable-thinking",
                None,
                "enable reasoning (extended thinking)",
                "enable reasoning (extended thinking); it is stored in the turn's file, and no "
                "other model sees it",
            ),
            identity="chosen",
            is_input=True,
        ),
    ] = None
    guardrail: Annotated[
        Guardrail | None,
        Setting(
            _MODEL,
            "ID:VERSION",
            "Bedrock guardrail for the model under test",
            "Bedrock guardrail for the model under test: id or ARN, and a number or `DRAFT`",
            parse=Guardrail.parse,
            identity="chosen",
            is_input=True,
        ),
    ] = None


# Names that stand for several settings, or for a switch, with their texts in a `Problem`.
_TEXTS = {
    "thinking": "{enable_thinking}",
    "both_samplings": "{temperature} together with {top_p}",
}


def setting_text(name: str) -> str:
    """The text in a `Problem` of a name that `chosen_settings` returns."""
    return _TEXTS.get(name, f"{{{name}}}")


def chosen_settings(config: GenerateConfig) -> list[str]:
    """The settings that differ from their default, and so are sent; `max_tokens` always is.

    A thinking budget is called "thinking"; temperature and `top_p` together are "both_samplings",
    too.
    """
    default = GenerateConfig()
    fields = [name for name in GenerateConfig.__struct_fields__ if name != "max_tokens"]
    names = [name for name in fields if getattr(config, name) != getattr(default, name)]
    names = ["thinking" if name == "thinking_budget_tokens" else name for name in names]
    return [*names, *(["both_samplings"] if {"temperature", "top_p"} <= {*names} else [])]
