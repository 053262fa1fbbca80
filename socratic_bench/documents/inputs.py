"""What the outcome of a run depends on beside models and seed, as its document tells it."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import Meta, Struct, field

from socratic_bench.documents.result import RunResult
from socratic_bench.documents.scalars import Sha256, Share, keys
from socratic_bench.types import ROLES, Completion, LatencyProfile, ServiceTier
from socratic_bench.version import VERSION


class ModelUse(Struct, frozen=True, kw_only=True):
    """What was asked for, and what the service says of what served it."""

    asked: Annotated[str, Meta(description="the id as it was given")]
    served: Annotated[
        list[str] | None,
        Meta(description="ids that served, where the service says them (a prompt router does)"),
    ]
    served_tiers: Annotated[
        list[str] | None, Meta(description="tiers that served, where the service says them")
    ]

    @classmethod
    def of(cls, asked: str | None, calls: Sequence[Completion]) -> "ModelUse | None":
        if asked is None:
            return None
        return cls(
            asked=asked,
            served=_words(call.served_model for call in calls),
            served_tiers=_words(call.served_tier for call in calls),
        )


class Inputs(Struct, frozen=True, kw_only=True):
    """Settings, versions, and fingerprints of every text that the outcome depends on."""

    hashes: dict[str, Sha256] = field(name="*hashes", default_factory=dict)
    region: Annotated[str | None, Meta(description="AWS region")]
    temperature: Annotated[Share | None, Meta(description="the tutor's; null: the model's own")]
    top_p: Annotated[Share | None, Meta(description="the tutor's; null: the model's own")] = None
    max_tokens: Annotated[int, Meta(ge=1, description="bound of one reply")]
    thinking_budget_tokens: Annotated[
        Annotated[int, Meta(ge=1024)] | None,
        Meta(description="the tutor's; null: no thinking asked for"),
    ] = None
    service_tier: Annotated[ServiceTier | None, Meta(description="asked for")] = None
    latency_profile: Annotated[LatencyProfile | None, Meta(description="asked for")] = None
    guardrail: Annotated[str | None, Meta(description="id or ARN, a colon and the version")] = None
    request_metadata: Annotated[dict[str, str], Meta(description="sent with every request")] = (
        field(default_factory=dict)
    )
    stream: Annotated[bool, Meta(description="false with --no-stream")] = True
    prompt_cache: Annotated[bool, Meta(description="false with --no-prompt-cache")] = True
    models: Annotated[
        dict[
            str,
            Annotated[ModelUse | None, Meta(description="null: no such model took part")],
        ],
        keys("actors"),
        Meta(description="by role, what was asked for and what served"),
    ] = field(default_factory=dict)
    runner_version: Annotated[str, Meta(description="this program's")]
    sdk_version: Annotated[str, Meta(description="that of the AWS SDK which sent the requests")]

    @classmethod
    def of(cls, result: RunResult) -> "Inputs":
        from socratic_bench.bedrock.sdk import sdk_version

        config, models = result.config, result.models
        return cls(
            hashes=dict(result.opening.hashes),
            region=config.region,
            temperature=config.temperature,
            top_p=config.top_p,
            max_tokens=config.max_tokens,
            thinking_budget_tokens=config.thinking_budget_tokens,
            service_tier=config.service_tier,
            latency_profile=config.latency_profile,
            guardrail=str(config.guardrail) if config.guardrail else None,
            request_metadata=dict(config.request_metadata),
            stream=config.stream,
            prompt_cache=config.prompt_cache,
            models={
                role: ModelUse.of(models[role], result.tallies[role].completions) for role in ROLES
            },
            runner_version=VERSION,
            sdk_version=sdk_version(),
        )


def _words(said: Iterable[str | None]) -> list[str] | None:
    """What was said, each once; `None` if nothing was."""
    return sorted({word for word in said if word is not None}) or None
