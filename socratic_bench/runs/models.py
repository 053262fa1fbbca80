"""The models of one run: those of an episode's actors, and the judge's."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from socratic_bench.catalogue.prices import builtin_prices
from socratic_bench.concurrency import start_thread
from socratic_bench.journal import ReplayLog
from socratic_bench.models.budget import Budget
from socratic_bench.models.call import RETRY_WINDOW_S, CalledModel
from socratic_bench.models.context import CallContext
from socratic_bench.models.journaling import JournalListener
from socratic_bench.models.spending import SpendingLimit
from socratic_bench.ports.provider import Model
from socratic_bench.retrying import RetryPolicy
from socratic_bench.runs.context import RunScope
from socratic_bench.runs.items import LiveEpisodeContext
from socratic_bench.runs.prepare import Plan
from socratic_bench.turns import Turn

if TYPE_CHECKING:
    from socratic_bench.judging.jury import Jury
    from socratic_bench.models.budget import Budget


class Actors:
    """The models of a run, connected at once, so that the first call need not wait; or not at all
    if none is due.
    """

    def __init__(self, scope: RunScope) -> None:
        self._scope = scope
        self._acquired, self._log = scope.taken_up
        self._services = scope.services.calls(scope.config, scope.prepared, scope.cancel_token)
        self._context = self._call_context()
        if not self._acquired.is_complete:
            self._services.provider()

    def model(self, model_id: str) -> Model:
        return CalledModel(model_id, self._services, self._context)

    def jury(self) -> "Jury | None":
        """Who scores the turns; `None` where nobody does."""
        # Not needed before the first reply is there.
        from socratic_bench.judging.judge import Judge
        from socratic_bench.judging.jury import jury_of

        config, rubric = self._scope.config, self._scope.plan.rubric
        if not (rubric and config.jurors):
            return None
        replay_log = self._acquired.replay_log
        judge = partial(
            Judge,
            rubric=rubric,
            seed=config.seed or 0,
            now=self._scope.now,
            n_answered=replay_log.n_closing_answers,
        )
        return jury_of(
            config,
            judge,
            self.model,
            at_once=self._at_once,
            failure=replay_log.failure,
            notice=self._scope.notice,
        )

    def _at_once(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """All but the first in threads of their own."""
        first, *others = works
        submitted = [start_thread(work) for work in others]
        return [first(), *map(self._scope.cancel_token.result, submitted)]

    def context(self, on_turn: Callable[[Turn], None]) -> LiveEpisodeContext:
        """What an episode is played with."""
        scope, plan = self._scope, self._scope.plan
        models = {role: self.model(model_id) for role, model_id in plan.speakers.items()}
        return LiveEpisodeContext(
            tested=models[plan.benchmark.cast.tested],
            models=models,
            model_of=self.model,
            on_turn=on_turn,
            plan=plan,
            cancel_token=scope.cancel_token,
            now=scope.now,
        )

    def _call_context(self) -> CallContext:
        scope, config, budget = self._scope, self._scope.config, self._budget()
        journal = JournalListener(self._log, scope.cancel_token.result)
        listeners = (budget.on_call, journal.on_call) if budget else (journal.on_call,)
        return CallContext(
            now=scope.now,
            cancel_token=scope.cancel_token,
            retry_policy=RetryPolicy(max_attempts=config.max_attempts, window_s=RETRY_WINDOW_S),
            timeout_s=config.call_timeout_s,
            notice=scope.notice,
            listeners=(*listeners, scope.usage_tracker.on_call, scope.listener.on_call),
            replay_log=self._acquired.replay_log,
            cost_limit=budget,
            tested=scope.plan.benchmark.cast.tested,
            has_metadata=bool(config.request_metadata),
        )

    def _budget(self) -> "Budget | None":
        plan, limit = self._scope.plan, self._services.spending
        if plan.config.max_cost_usd is None and limit is None:
            return None

        budget = budget_of(plan, limit, self._scope.cancel_token.result)
        counted_usd = self._scope.services.counted_usd.pop(self._acquired.run_id, 0.0)
        budget.take_over(earlier_usd(budget, plan, self._acquired.replay_log) - counted_usd)
        return budget


# The budget of a run, and what its earlier processes have spent of it.


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
            replay_log.failed_attempts(role),
            asked=cast.tier(role, plan.config),
        )
        for role, model_id in plan.models.items()
    )
