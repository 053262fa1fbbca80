"""The models of one run, each with what surrounds its calls: replay, journal, counts, the end."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from socratic_bench.benchmarks import RunConfig
from socratic_bench.errors import ModelError
from socratic_bench.journal import Log
from socratic_bench.judging import Judge
from socratic_bench.ports import Model
from socratic_bench.runner.backend import ModelFactory, bedrock_models, call_context, lazy_models
from socratic_bench.runner.cancel_token import CancelToken
from socratic_bench.runner.models import (
    CancellableModel,
    CountedModel,
    GuardedModel,
    LiveEpisodeContext,
    LoggedModel,
    NotedCostLimit,
    ReplayModel,
    UsageTracker,
)
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.resume import AcquiredRun
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey

if TYPE_CHECKING:
    from socratic_bench.providers.bedrock.session import SdkSession
    from socratic_bench.runner.budget import Budget


class Actors(Struct, frozen=True, kw_only=True):
    """Connects the models that a run asks.

    `session` was opened beforehand, or tells why not; `None`: it is opened with the first model.
    """

    acquired: AcquiredRun
    log: Log
    usage_tracker: UsageTracker
    cancel_token: CancelToken
    pool: ThreadPoolExecutor
    session: "SdkSession | ModelError | None"
    now: Callable[[], datetime]
    notice: Callable[[str], None]
    on_call: Callable[[CallKey], None]

    @property
    def plan(self) -> Plan:
        return self.acquired.plan

    @property
    def config(self) -> RunConfig:
        return self.plan.config

    def models(self, stack: ExitStack) -> ModelFactory:
        """Connected at once, so that the first call need not wait; or not at all if none is due."""

        def connect() -> ModelFactory:
            cost_limit = NotedCostLimit(self.log, self.cancel_token.result_in_call, self._budget())
            context = call_context(self.cancel_token, self.notice, cost_limit, now=self.now)
            tested = self.plan.benchmark.parts.tested
            models = bedrock_models(
                self.config, self.cancel_token, context, self.session, tested=tested
            )
            return stack.enter_context(models)

        return lazy_models(connect) if self.acquired.is_complete else connect()

    def judge(self, model_of: ModelFactory) -> Judge | None:
        """Who scores the turns; `None` where nobody does."""
        if not (self.plan.episode.rubric and self.config.judge_model):
            return None
        model = GuardedModel(model_of(self.config.judge_model), self.cancel_token)
        return Judge(
            model=self._replaying(self._counted(model)),
            rubric=self.plan.episode.rubric,
            seed=self.config.seed or 0,
            now=self.now,
            seed_alone=self.acquired.replay_log.header.version == 1,
        )

    def context(
        self, model_of: ModelFactory, *, on_turn: Callable[[Turn], None]
    ) -> LiveEpisodeContext:
        """What an episode is played with."""

        def endable(model_id: str) -> Model:
            inner = CancellableModel(
                self._counted(model_of(model_id)), self.pool, self.cancel_token
            )
            return self._replaying(inner)

        models = {role: endable(model_id) for role, model_id in self.plan.speakers.items()}
        tested = models[self.plan.benchmark.parts.tested]
        return LiveEpisodeContext(tested=tested, models=models, on_turn=on_turn)

    def _counted(self, model: Model) -> CountedModel:
        return CountedModel(LoggedModel(model, self.log), self.usage_tracker, self.on_call)

    def _replaying(self, inner: Model) -> ReplayModel:
        return ReplayModel(inner, self.acquired.replay_log, self.usage_tracker)

    def _budget(self) -> "Budget | None":
        if self.config.max_cost_usd is None:
            return None
        from socratic_bench.pricing.table import builtin_prices
        from socratic_bench.runner.budget import Budget

        budget = Budget(
            self.config.max_cost_usd,
            table=self.plan.prices or builtin_prices(),
            region=self.config.region,
            wait=self.cancel_token.result,
        )
        replay_log = self.acquired.replay_log
        for role, model_id in self.plan.models.items():
            if model_id:
                budget.take_over(
                    model_id,
                    replay_log.completions(role),
                    replay_log.failed(role),
                    asked=self.plan.benchmark.parts.tier(role, self.config),
                )
        return budget
