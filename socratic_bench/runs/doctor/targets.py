"""What is looked at: models, each in the role, region and tier in which it will be called."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.catalogue.rates import PricingTier
from socratic_bench.generation import MIN_THINKING_TOKENS, GenerateConfig
from socratic_bench.judging.request import verdict_request
from socratic_bench.ports import Benchmark, JudgeInput
from socratic_bench.runs.plan import Plan
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Dimension, Rubric
from socratic_bench.types import JUDGE, Message, Request, Role

if TYPE_CHECKING:
    from socratic_bench.catalogue.price_table import PriceTable

MAX_TOKENS = 16  # the least that every model takes
JUDGE_MAX_TOKENS = 128  # a verdict by the rubric below, whole
ASKED = "Say yes."
CODE = "0123456789abcdef"
# As short as a rubric can be, so that the call costs next to nothing.
RUBRIC = Rubric(
    id="trial",
    title="trial",
    instructions="Score the reply.",
    dimensions=(Dimension(name="form", low=0, high=1, step=1, levels={"1": "yes", "0": "no"}),),
    sha256="0" * 64,
    temperature=0.0,
)


class Target(Struct, frozen=True, kw_only=True):
    """A model in its role, as the run of a configuration calls it.

    Attributes:
        config: of the run: connection, region, and the settings of the model under test.
        model_id: who is asked.
        roles: the parts that it plays by one and the same request.
        tested: the role whom the settings of a call are for.
        request: the shortest that shows what the role's calls need.
        prices: the user's own; `None` leaves the built-in ones.
        target_rpm, target_tpm: requests and tokens that are to be sent in a minute; `None`: no
            bound was given.
    """

    config: CoreConfig
    model_id: str
    roles: tuple[Role, ...]
    tested: Role
    request: Request
    prices: "PriceTable | None" = None
    target_rpm: float | None = None
    target_tpm: float | None = None

    @property
    def role(self) -> Role:
        return self.roles[0]

    @property
    def asked(self) -> PricingTier:
        """The tier that the call is asked for in."""
        generation = self.request.config
        return PricingTier(generation.service_tier, generation.latency_profile)


def targets_of(plan: Plan) -> list[Target]:
    """The models of a run that is prepared, each in its role."""
    return [
        Target(
            config=plan.config,
            model_id=model_id,
            roles=(role,),
            tested=plan.benchmark.parts.tested,
            request=_request(plan.benchmark, role, plan.config),
            prices=plan.prices,
        )
        for role, asked in plan.asked_models.items()
        for model_id in asked
    ]


def distinct(targets: Sequence[Target]) -> list[Target]:
    """Each once, whatever the number of runs that need it; models under test come first."""
    found: list[Target] = []
    for target in targets:
        asked = _identity(target)
        same = next((n for n, one in enumerate(found) if _identity(one) == asked), None)
        if same is None:
            found.append(target)
        else:
            roles = dict.fromkeys((*found[same].roles, *target.roles))
            found[same] = replace(found[same], roles=tuple(roles))
    return sorted(found, key=lambda one: one.role != one.tested)


def _identity(target: Target) -> tuple[object, ...]:
    """Of a sampling it counts that there is one, and not which."""
    config, asked = target.config, target.request.config
    sampled = replace(
        asked,
        temperature=None if asked.temperature is None else 1.0,
        top_p=None if asked.top_p is None else 1.0,
    )
    return (
        *(target.model_id, replace(target.request, config=sampled)),
        *(target.target_rpm, target.target_tpm),
        *(config.provider, config.offline, config.region, config.assume_role_arn),
        *(config.stream, config.prompt_cache, config.request_metadata),
    )


def _request(benchmark: Benchmark, role: Role, config: CoreConfig) -> Request:
    """With a cache point, which a model that does not take it refuses; a judge's with its tool."""
    if role == JUDGE:
        shown = JudgeInput((("user", ASKED),), "Yes.")
        request = verdict_request(RUBRIC, shown, code=CODE)
        settings = GenerateConfig(max_tokens=JUDGE_MAX_TOKENS)
        return replace(request, config=settings, is_cacheable_prefix=True)
    is_tested = role == benchmark.parts.tested
    return Request(
        system=benchmark.trial_prompt(role),
        messages=(Message.user(ASKED),),
        config=_shortest(config) if is_tested else GenerateConfig(max_tokens=MAX_TOKENS),
        is_cacheable_prefix=True,
    )


def _shortest(config: CoreConfig) -> GenerateConfig:
    """The settings that were asked for, with as few tokens as they allow."""
    if config.thinking_budget_tokens is None:
        return replace(config.generation, max_tokens=MAX_TOKENS)
    return replace(
        config.generation,
        thinking_budget_tokens=MIN_THINKING_TOKENS,
        max_tokens=MIN_THINKING_TOKENS + MAX_TOKENS,
    )
