"""What is looked at: models, each in the role, region and tier in which it will be called."""

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.catalogue.prices import PricingTier, builtin_prices
from socratic_bench.documents.cost import attempt_usd, billed_tier, call_cost
from socratic_bench.errors import BenchError
from socratic_bench.generation import MIN_THINKING_TOKENS, GenerateConfig
from socratic_bench.judging.request import verdict_request
from socratic_bench.models.budget import Budget, SpendingLimit
from socratic_bench.models.call import CalledModel
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.context import CallContext
from socratic_bench.models.events import AttemptFailed, CallEvent
from socratic_bench.ports.benchmark import Benchmark, JudgeInput
from socratic_bench.ports.provider import RefusedField
from socratic_bench.retrying import RetryPolicy
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.services import Services
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Dimension, Rubric
from socratic_bench.types import JUDGE, Attempt, CallKey, Completion, Message, Request, Role

if TYPE_CHECKING:
    from socratic_bench.catalogue.prices import PriceTable


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
        for role, asked in plan.requested_models.items()
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


# One call of a model in its role, within the budget, and what became of it.

# A model that is not throttled answers so few tokens in a second or two.
MAX_ATTEMPTS = 3
CALL_TIMEOUT_S = 45.0
PATIENCE_S = 60.0


class CalledTarget(Struct, frozen=True, kw_only=True):
    """A target that was called: its answer, or the error by which the call failed.

    `capabilities`: by name, whether the table has it, and whether the model takes it as seen so
    far. `refused` is what the provider says of the difference.
    """

    target: Target
    completion: Completion | None = None
    error: BenchError | None = None
    attempts: tuple[Attempt, ...] = ()
    capabilities: Mapping[str, tuple[bool, bool]] = field(default_factory=dict)
    refused: Mapping[str, RefusedField] = field(default_factory=dict)

    @property
    def cost_usd(self) -> float | None:
        """What its requests cost, those that failed at most; `None` if that is not known."""
        table, target = self.target.prices or builtin_prices(), self.target
        prices = table.of(target.model_id, target.config.region)
        lost = [one for one in self.attempts if one.error is not None and one.may_have_been_billed]
        usd = [attempt_usd(prices, one, target.asked) for one in lost]
        if self.completion:
            cost = call_cost(
                prices, self.completion.usage, billed_tier(self.completion, target.asked)
            )
            usd.append(cost.total_usd if cost else None)
        return None if None in usd else sum(one or 0.0 for one in usd)


def ask(
    target: Target,
    number: int,
    *,
    services: Services,
    cancel_token: CancelToken,
    now: Callable[[], datetime],
    limit: SpendingLimit | None,
) -> CalledTarget:
    """Call the model; whatever comes of it is told by the result. A defect is raised."""
    own = cancel_token.sibling()
    own.start_deadline(PATIENCE_S)
    failed: list[Attempt] = []

    def on_call(event: CallEvent) -> None:
        if isinstance(event, AttemptFailed):
            failed.append(event.attempt)

    with cancel_token.parent_of(own):
        try:
            calls = services.calls(target.config, services.prepare(target.config), own)
            budget = _budget(target, limit, own) if limit else None
            context = CallContext(
                now=now,
                cancel_token=own,
                retry_policy=_policy(target),
                timeout_s=min(target.config.call_timeout_s, CALL_TIMEOUT_S),
                notice=lambda _: None,  # the answer tells
                listeners=(*((budget.on_call,) if budget else ()), on_call),
                cost_limit=budget,
                tested=target.tested,
                has_metadata=bool(target.config.request_metadata),
            )
            model = CalledModel(target.model_id, calls, context)
            completion = model.complete(target.request, CallKey(role=target.role, index=number))
            return CalledTarget(
                target=target,
                completion=completion,
                attempts=completion.attempts,
                capabilities=calls.provider().capabilities(target.model_id),
                refused=calls.provider().refused_fields(target.model_id),
            )
        except BenchError as error:
            return CalledTarget(target=target, error=error, attempts=tuple(failed))


def _budget(target: Target, limit: SpendingLimit, token: CancelToken) -> Budget:
    table, region = target.prices or builtin_prices(), target.config.region
    return Budget(limit, table=table, region=region, wait=token.result)


def _policy(target: Target) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=min(target.config.max_attempts, MAX_ATTEMPTS),
        window_s=PATIENCE_S,
        uniform=random.Random().uniform,
    )
