"""The budget of a run, and what its earlier processes have spent of it."""

from collections.abc import Callable
from concurrent.futures import Future

from socratic_bench.catalogue.price_table import builtin_prices
from socratic_bench.journal import ReplayLog
from socratic_bench.models.budget import Budget
from socratic_bench.models.spending import SpendingLimit
from socratic_bench.runs.plan import Plan


def budget_of(
    plan: Plan, limit: SpendingLimit | None, wait: Callable[["Future[None]"], None]
) -> Budget:
    """By the prices of the plan; what is spent from `limit` or, without one, is the run's own."""
    return Budget(
        limit or SpendingLimit(plan.config.max_cost_usd or 0.0),
        table=plan.prices or builtin_prices(),
        region=plan.config.region,
        wait=wait,
        shorter=plan.benchmark.shorter,
    )


def earlier_usd(budget: Budget, plan: Plan, replay_log: ReplayLog) -> float:
    """USD at most for all that its journal tells, by the prices of the budget."""
    cast = plan.benchmark.cast
    return sum(
        budget.earlier_usd(
            model_id,
            replay_log.completions(role),
            replay_log.failed(role),
            asked=cast.tier(role, plan.config),
        )
        for role, model_id in plan.models.items()
    )
