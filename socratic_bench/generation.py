"""How a model is asked to generate: the fields of one call, which are settings of a run, too."""

from typing import Annotated, Literal, get_args

from msgspec import Struct

from socratic_bench.setting import Setting, Switch

ServiceTier = Literal["default", "priority", "flex"]
SERVICE_TIERS: tuple[ServiceTier, ...] = get_args(ServiceTier)

MIN_THINKING_TOKENS = 1024

_MODEL = "settings of the model under test"


class Guardrail(Struct, frozen=True):
    """A guardrail of Bedrock: its id or ARN, and its version, a number or `DRAFT`."""

    id: str
    version: str

    def __str__(self) -> str:
        return f"{self.id}:{self.version}"

    @classmethod
    def parse(cls, word: str) -> "Guardrail":
        """What stands before and behind the last colon, whatever it is."""
        identifier, _, version = word.rpartition(":")
        return cls(identifier, version)


class GenerateConfig(Struct, frozen=True, kw_only=True):
    """How a model is asked to generate. `None`: the field is not sent.

    `max_tokens` is always sent, since the service counts it against the quota up front and its own
    default can be the model's whole output limit. The fields are settings of a run, too, for the
    model under test.
    """

    max_tokens: Annotated[
        int,
        Setting(
            "dialogue",
            "N",
            "bound of one reply, thinking included (default {default})",
            "bound of one reply under test; thinking counts, so its budget is added to the default",
            after="top-p",
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
            "of the model under test, {low} to {high} (default: {default})",
            default_words="the model's own",
            after="system-prompt-file",
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
            "of the model under test, {low} to {high} (default: {default})",
            default_words="the model's own",
            low=0,
            high=1,
            identity="chosen",
            is_input=True,
        ),
    ] = None
    service_tier: Annotated[
        ServiceTier | None, Setting(_MODEL, "TIER", "{choices}", axis="service-tier", is_input=True)
    ] = None
    latency_profile: Annotated[
        Literal["standard", "optimized"] | None, Setting(_MODEL, "NAME", "{choices}", is_input=True)
    ] = None
    thinking_budget_tokens: Annotated[
        int | None,
        Setting(
            _MODEL,
            "N",
            "at most so much (default {low}, the least)",
            "tokens for thinking, at least {low} and less than `--max-tokens`; where a model has "
            "[levels](bedrock.md#thinking) instead, it chooses one",
            default_words="the least, {low}",
            low=MIN_THINKING_TOKENS,
            steered_by=Switch(
                "enable-thinking",
                None,
                "have it think before it replies",
                "have it think before it replies; its thoughts are kept in the turn's file, and no "
                "other model sees them",
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
            "a guardrail on its calls",
            "a guardrail on its calls: its id or ARN, and a number or `DRAFT`",
            parse=Guardrail.parse,
            identity="chosen",
            is_input=True,
        ),
    ] = None
