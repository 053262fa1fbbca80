"""What earlier processes of a run have spent."""

from typing import TYPE_CHECKING

from socratic_bench.journal import ReplayLog
from socratic_bench.runner.plan import Plan

if TYPE_CHECKING:
    from socratic_bench.calling.budget import Budget


def earlier_usd(budget: "Budget", plan: Plan, replay_log: ReplayLog) -> float:
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
