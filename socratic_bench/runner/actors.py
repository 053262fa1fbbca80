"""The models of one run: those of an episode's actors, and the judge's."""

import random
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from socratic_bench.benchmarks import RunConfig
from socratic_bench.calling.call import RETRY_WINDOW_S, CalledModel
from socratic_bench.calling.cancel_token import CancelToken
from socratic_bench.calling.context import CallContext
from socratic_bench.calling.events import CallListener
from socratic_bench.calling.journaling import JournalListener
from socratic_bench.calling.usage import UsageTracker
from socratic_bench.journal import Log
from socratic_bench.judging import Judge
from socratic_bench.ports import Model
from socratic_bench.retrying import RetryPolicy
from socratic_bench.runner.items import LiveEpisodeContext
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.resume import AcquiredRun
from socratic_bench.services import Prepared, Services
from socratic_bench.turns import Turn

if TYPE_CHECKING:
    from socratic_bench.calling.budget import Budget

ModelFactory = Callable[[str], Model]


class Actors(Struct, frozen=True, kw_only=True):
    """Connects the models that a run asks.

    `prepared` is what the provider has read beforehand, or why it could not.
    """

    acquired: AcquiredRun
    log: Log
    usage_tracker: UsageTracker
    cancel_token: CancelToken
    services: Services
    prepared: Prepared
    now: Callable[[], datetime]
    notice: Callable[[str], None]
    on_call: CallListener

    @property
    def plan(self) -> Plan:
        return self.acquired.plan

    @property
    def config(self) -> RunConfig:
        return self.plan.config

    def models(self) -> ModelFactory:
        """Connected at once, so that the first call need not wait; or not at all if none is due."""
        services = self.services.calls(self.config, self.prepared, self.cancel_token)
        context = self._context()
        if not self.acquired.is_complete:
            services.provider()
        return lambda model_id: CalledModel(model_id, services, context)

    def judge(self, model_of: ModelFactory) -> Judge | None:
        """Who scores the turns; `None` where nobody does."""
        rubric = self.plan.rubric
        if not (rubric and self.config.judge_model):
            return None
        return Judge(
            model=model_of(self.config.judge_model),
            rubric=rubric,
            seed=self.config.seed or 0,
            now=self.now,
            seed_alone=self.acquired.replay_log.header.version == 1,
            n_answered=self.acquired.replay_log.n_closing,
        )

    def context(
        self, model_of: ModelFactory, *, on_turn: Callable[[Turn], None]
    ) -> LiveEpisodeContext:
        """What an episode is played with."""
        models = {role: model_of(model_id) for role, model_id in self.plan.speakers.items()}
        tested = models[self.plan.benchmark.parts.tested]
        return LiveEpisodeContext(
            tested=tested,
            models=models,
            model_of=model_of,
            on_turn=on_turn,
            sample=self.plan.episode.opening,
            is_judged=bool(self.plan.rubric and self.config.judge_model),
            at_once=self.config.max_concurrency,
            cancel_token=self.cancel_token,
            now=self.now,
        )

    def _context(self) -> CallContext:
        budget = self._budget()
        journal = JournalListener(self.log, self.cancel_token.result)
        listeners = (budget.hear, journal.hear) if budget else (journal.hear,)
        return CallContext(
            now=self.now,
            cancel_token=self.cancel_token,
            retry_policy=RetryPolicy(
                max_attempts=self.config.max_attempts,
                window_s=RETRY_WINDOW_S,
                uniform=random.Random().uniform,
            ),
            timeout_s=self.config.call_timeout_s,
            notice=self.notice,
            listeners=(*listeners, self.usage_tracker.hear, self.on_call),
            replay_log=self.acquired.replay_log,
            cost_limit=budget,
            tested=self.plan.benchmark.parts.tested,
            has_metadata=bool(self.config.request_metadata),
        )

    def _budget(self) -> "Budget | None":
        if self.config.max_cost_usd is None:
            return None
        from socratic_bench.calling.budget import Budget
        from socratic_bench.pricing.table import builtin_prices

        budget = Budget(
            self.config.max_cost_usd,
            table=self.plan.prices or builtin_prices(),
            region=self.config.region,
            wait=self.cancel_token.result,
        )
        replay_log = self.acquired.replay_log
        for role, model_id in self.plan.models.items():
            budget.take_over(
                model_id,
                replay_log.completions(role),
                replay_log.failed(role),
                asked=self.plan.benchmark.parts.tier(role, self.config),
            )
        return budget
