"""What the doctor calls: each model once, in the role, region and tier in which runs call it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.catalogue.prices import PriceTable, PricingTier, builtin_prices
from socratic_bench.documents.cost import attempt_usd, billed_tier, call_cost
from socratic_bench.errors import BenchError
from socratic_bench.generation import MIN_THINKING_TOKENS, GenerateConfig
from socratic_bench.judging.request import verdict_request
from socratic_bench.models.budget import Budget, SpendingLimit
from socratic_bench.models.call import CallContext, CalledModel
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.events import AttemptFailed, CallEvent
from socratic_bench.ports.benchmark import Benchmark, JudgeInput
from socratic_bench.ports.provider import RefusedField
from socratic_bench.retrying import RetryPolicy
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.services import Services
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Dimension, Rubric
from socratic_bench.types import JUDGE, Attempt, CallKey, Completion, Message, Request, Role

# A model that is not throttled answers so few tokens in a second or two.
MAX_ATTEMPTS = 3
CALL_TIMEOUT_S = 45.0
PATIENCE_S = 60.0
MAX_TOKENS = 16  # the least that every model takes
JUDGE_MAX_TOKENS = 128  # a verdict by the rubric below, whole
PROMPT = "Say yes."
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
        model_id: the model to call.
        roles: the roles in which it gets this request.
        tested: the role of the model under test.
        request: the shortest that shows what the role's calls need.
        prices: the user's own; `None` leaves the built-in ones.
        target_rpm, target_tpm: rate targets, in requests and tokens a minute; `None` without.
    """

    config: CoreConfig
    model_id: str
    roles: tuple[Role, ...]
    tested: Role
    request: Request
    prices: PriceTable | None = None
    target_rpm: float | None = None
    target_tpm: float | None = None

    @property
    def role(self) -> Role:
        return self.roles[0]

    @property
    def tier(self) -> PricingTier:
        """The service tier that is requested."""
        generation = self.request.config
        return PricingTier(generation.service_tier, generation.latency_profile)


class TargetCall(Struct, frozen=True, kw_only=True):
    """A target that was called: its answer, or the error by which the call failed.

    Attributes:
        capabilities: by name, whether the table of models has it, and whether the model was seen
            to take it.
        refused: what the provider says of fields that the model refused.
    """

    target: Target
    completion: Completion | None = None
    error: BenchError | None = None
    attempts: tuple[Attempt, ...] = ()
    capabilities: Mapping[str, tuple[bool, bool]] = field(default_factory=dict)
    refused: Mapping[str, RefusedField] = field(default_factory=dict)

    @property
    def cost_usd(self) -> float | None:
        """The most that its requests may have cost, in USD; `None` if that is not known."""
        table, target = self.target.prices or builtin_prices(), self.target
        prices = table.of(target.model_id, target.config.region)
        lost = [
            attempt
            for attempt in self.attempts
            if attempt.error is not None and attempt.may_have_been_billed
        ]
        usd = [attempt_usd(prices, attempt, target.tier) for attempt in lost]
        if self.completion:
            cost = call_cost(
                prices, self.completion.usage, billed_tier(self.completion, target.tier)
            )
            usd.append(cost.total_usd if cost else None)
        return None if None in usd else sum(cost or 0.0 for cost in usd)


def targets_of(plan: Plan) -> list[Target]:
    """The models of a prepared run, each in its role."""
    return [
        Target(
            config=plan.config,
            model_id=model_id,
            roles=(role,),
            tested=plan.benchmark.parts.tested,
            request=_request(plan.benchmark, role, plan.config),
            prices=plan.prices,
        )
        for role, model_ids in plan.requested_models.items()
        for model_id in model_ids
    ]


def distinct(targets: Sequence[Target]) -> list[Target]:
    """Merge targets that are called alike; models under test come first."""
    merged: list[Target] = []
    for target in targets:
        identity = _identity(target)
        place = next((n for n, target in enumerate(merged) if _identity(target) == identity), None)
        if place is None:
            merged.append(target)
        else:
            roles = dict.fromkeys((*merged[place].roles, *target.roles))
            merged[place] = replace(merged[place], roles=tuple(roles))
    return sorted(merged, key=lambda target: target.role != target.tested)


def call_target(
    target: Target,
    number: int,
    *,
    services: Services,
    cancel_token: CancelToken,
    now: Callable[[], datetime],
    limit: SpendingLimit | None,
) -> TargetCall:
    """Call a target. Errors of the call are in the result; only defects are raised."""
    token = cancel_token.sibling()
    token.start_deadline(PATIENCE_S)
    failed: list[Attempt] = []

    def on_call(event: CallEvent) -> None:
        if isinstance(event, AttemptFailed):
            failed.append(event.attempt)

    with cancel_token.parent_of(token):
        try:
            calls = services.calls(target.config, services.prepare(target.config), token)
            table, region = target.prices or builtin_prices(), target.config.region
            budget = Budget(limit, table=table, region=region, wait=token.result) if limit else None
            context = CallContext(
                now=now,
                cancel_token=token,
                retry_policy=RetryPolicy(
                    max_attempts=min(target.config.max_attempts, MAX_ATTEMPTS),
                    window_s=PATIENCE_S,
                ),
                timeout_s=min(target.config.call_timeout_s, CALL_TIMEOUT_S),
                notice=lambda _: None,  # the answer tells
                listeners=(*((budget.on_call,) if budget else ()), on_call),
                cost_limit=budget,
                tested=target.tested,
                has_metadata=bool(target.config.request_metadata),
            )
            model = CalledModel(target.model_id, calls, context)
            completion = model.complete(target.request, CallKey(role=target.role, index=number))
            return TargetCall(
                target=target,
                completion=completion,
                attempts=completion.attempts,
                capabilities=calls.provider(target.model_id).capabilities(target.model_id),
                refused=calls.provider(target.model_id).refused_fields(target.model_id),
            )
        except BenchError as error:
            return TargetCall(target=target, error=error, attempts=tuple(failed))


def _identity(target: Target) -> tuple[object, ...]:
    """What makes two targets one call. How a reply is sampled counts only as sampled or not."""
    config, generation = target.config, target.request.config
    sampled = replace(
        generation,
        temperature=None if generation.temperature is None else 1.0,
        top_p=None if generation.top_p is None else 1.0,
    )
    return (
        *(target.model_id, replace(target.request, config=sampled)),
        *(target.target_rpm, target.target_tpm),
        *(config.endpoints, config.offline, config.region, config.assume_role_arn),
        *(config.stream, config.prompt_cache, config.request_metadata),
    )


def _request(benchmark: Benchmark, role: Role, config: CoreConfig) -> Request:
    """The shortest request of a role: with a cache point, and a judge's with its tool."""
    if role == JUDGE:
        judge_input = JudgeInput((("user", PROMPT),), "Yes.")
        request = verdict_request(RUBRIC, judge_input, code=CODE)
        settings = GenerateConfig(max_tokens=JUDGE_MAX_TOKENS)
        return replace(request, config=settings, is_cacheable_prefix=True)
    generation = GenerateConfig(max_tokens=MAX_TOKENS)
    if role == benchmark.parts.tested:
        thinks = config.thinking_budget_tokens is not None
        generation = replace(
            config.generation,
            thinking_budget_tokens=MIN_THINKING_TOKENS if thinks else None,
            max_tokens=MAX_TOKENS + (MIN_THINKING_TOKENS if thinks else 0),
        )
    return Request(
        system=benchmark.trial_prompt(role),
        messages=(Message.user(PROMPT),),
        config=generation,
        is_cacheable_prefix=True,
    )
