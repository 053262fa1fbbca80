"""One call of a model in its role, within the budget, and what became of it."""

import random
from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct, field

from socratic_bench.catalogue.price_table import builtin_prices
from socratic_bench.documents.cost import attempt_usd, call_cost, served
from socratic_bench.errors import BenchError
from socratic_bench.models.budget import Budget
from socratic_bench.models.call import CalledModel
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.models.context import CallContext
from socratic_bench.models.events import AttemptFailed, CallEvent
from socratic_bench.models.spending import SpendingLimit
from socratic_bench.provider_ports import RefusedField
from socratic_bench.retrying import RetryPolicy
from socratic_bench.runs.doctor.targets import Target
from socratic_bench.runs.services import Services
from socratic_bench.types import Attempt, CallKey, Completion

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
            cost = call_cost(prices, self.completion.usage, served(self.completion, target.asked))
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
    own = cancel_token.alike()
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
