"""The models of one run, within its budget: those of the episode's actors, and the jury."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from copy import copy
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.catalogue.prices import builtin_prices
from socratic_bench.concurrency import start_thread
from socratic_bench.errors import ModelError
from socratic_bench.journal.replay import ReplayLog
from socratic_bench.judging.judge import Judge
from socratic_bench.judging.jury import Jury, jury_of
from socratic_bench.models.batch import BatchService
from socratic_bench.models.budget import Budget, SpendingLimit
from socratic_bench.models.call import RETRY_WINDOW_S, CallContext, CalledModel
from socratic_bench.models.events import JournalListener
from socratic_bench.ports.benchmark import PlayItem
from socratic_bench.ports.provider import Model
from socratic_bench.retrying import RetryPolicy
from socratic_bench.runs.items import ItemContext, Items
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.resume import StartedRun
from socratic_bench.runs.stores import RunStores
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey, Completion, Request, Role


class RunModels:
    """The models of a run, with which its episode is played: see `EpisodeContext`. Making it
    connects to their providers, unless no call is due. Each finished turn is given to `publish`.
    """

    def __init__(
        self, started: StartedRun, stores: RunStores, publish: Callable[[Turn], None]
    ) -> None:
        self._run = started.context
        self._stores = stores
        self._replay_log = started.replay_log
        self._publish = publish
        context = started.context
        self._services = context.services.calls(
            context.config, started.connection, context.cancel_token
        )
        # What batch jobs have answered, by model and key.
        self.batch_answers: dict[tuple[str, CallKey], Completion] = {}
        self._remembered: dict[tuple[str, CallKey], Completion | ModelError] | None = None
        self.budget = _run_budget(started)
        self._call_context = replace(
            _call_context(started, self.budget),
            batch_answer=lambda model_id, key, _: self.batch_answers.get((model_id, key)),
        )
        if not started.is_complete:
            for model_id in chain.from_iterable(context.plan.requested_models.values()):
                self._services.provider(model_id)

    @property
    def tested(self) -> Model:
        plan = self._run.plan
        return self._called(plan.speakers[plan.benchmark.cast.tested])

    def model(self, actor: Role, model_id: str | None = None) -> Model | None:
        model_id = model_id or self._run.plan.speakers.get(actor)
        return self._called(model_id) if model_id else None

    @property
    def run_id(self) -> str | None:
        return self._run.run_id

    def watched(self, listener: Callable[[Any], None]) -> Model:
        listeners = (*self._call_context.listeners, listener)
        model_id = self._run.plan.speakers[self._run.plan.benchmark.cast.tested]
        context = replace(self._call_context, listeners=listeners)
        model = CalledModel(model_id, self._services, context)
        return model if self._remembered is None else _RememberingModel(model, self._remembered)

    def check(self) -> None:
        self._run.cancel_token.check()

    def store(self, name: str, body: bytes) -> None:
        self._stores.send_file(f"{self._run.keys.raw}{name}", body)

    def wait_since(self, moment: datetime, seconds: float) -> None:
        remaining_s = seconds - (self._run.clock() - moment).total_seconds()
        if remaining_s > 0:
            self._run.cancel_token.sleep(remaining_s)

    def publish(self, turn: Turn) -> None:
        self._publish(turn)

    def play_items(self, play: PlayItem) -> None:
        """See `EpisodeContext`: at most `max_concurrency` items at once, each in a thread."""
        config, plan = self._run.config, self._run.plan
        n_items = plan.episode.opening.n_items or 0
        items = Items(n_items, is_judged=bool(plan.rubric and config.jurors))
        context = ItemContext(self, self._run.clock)

        def play_some() -> None:
            while (index := items.take()) is not None:
                with items.playing(index):
                    self.publish(items.publishable(play(context, index)))

        try:
            n_players = min(config.max_concurrency, n_items)
            for player in [start_thread(play_some) for _ in range(n_players)]:
                self._run.cancel_token.result(player)
        except BaseException as ended:
            items.end(ended)
            raise
        items.finish()

    def batch_service(self, model_id: str) -> BatchService:
        """The batch inference of a model's provider."""
        provider = self._services.provider(model_id)
        service: BatchService | None = provider.batches()
        assert service is not None  # noqa: S101 -- a setting that asks for another's is refused
        return service

    def remembering(self, publish: Callable[[Turn], None]) -> "RunModels":
        """The same models, which publish elsewhere: what they answer, these will answer again
        without a call.
        """
        self._remembered = {}
        other = copy(self)
        other._publish = publish  # noqa: SLF001 -- its own
        return other

    def jury(self, model: Callable[[str], Model] | None = None) -> Jury | None:
        """Who scores the turns; `None` if nobody does. `model` takes the place of a judge's."""
        config, rubric = self._run.config, self._run.plan.rubric
        if not (rubric and config.jurors):
            return None
        judge = partial(
            Judge,
            rubric=rubric,
            seed=config.seed or 0,
            now=self._run.clock,
            # A judging that is repeated keeps its closing verdict, usable or not.
            n_answered=(lambda _: 0)
            if self._run.plan.is_rejudged
            else self._replay_log.n_closing_answers,
        )
        return jury_of(
            config,
            judge,
            model or self._called,
            at_once=self._at_once,
            failure=self._replay_log.failure,
            notice=self._run.notices.add,
        )

    def _called(self, model_id: str) -> Model:
        model = CalledModel(model_id, self._services, self._call_context)
        return model if self._remembered is None else _RememberingModel(model, self._remembered)

    def _at_once(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """The results of all works; all but the first have threads of their own."""
        first, *further = works
        futures = [start_thread(work) for work in further]
        return [first(), *map(self._run.cancel_token.result, futures)]


class _RememberingModel(Struct, frozen=True):
    """Answers a call, or fails, as it did before."""

    inner: Model
    outcomes: dict[tuple[str, CallKey], Completion | ModelError]

    @property
    def model_id(self) -> str:
        return self.inner.model_id

    def complete(self, request: Request, key: CallKey) -> Completion:
        place = (self.model_id, key)
        if place not in self.outcomes:
            try:
                self.outcomes[place] = self.inner.complete(request, key)
            except ModelError as error:
                self.outcomes[place] = error
        outcome = self.outcomes[place]
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome


def new_budget(
    plan: Plan, limit: SpendingLimit | None, wait: Callable[["Future[None]"], None]
) -> Budget:
    """The budget of a run, by the prices of its plan. It spends from `limit`, which several runs
    may share; without one, the run's own bound holds.
    """
    return Budget(
        limit or SpendingLimit(plan.config.max_cost_usd or 0.0),
        table=plan.prices or builtin_prices(),
        region=plan.config.region,
        wait=wait,
        shorter=plan.benchmark.shorter,
        order=plan.order,
    )


def earlier_usd(budget: Budget, plan: Plan, replay_log: ReplayLog) -> float:
    """The most, in USD, that the calls in a journal may have cost, by the budget's prices."""
    cast = plan.benchmark.cast
    return sum(
        budget.earlier_usd(
            model_id,
            replay_log.completions(role),
            replay_log.failed_attempts(role),
            tier=cast.tier(role, plan.config),
        )
        for role, model_id in plan.models.items()
    )


def _call_context(started: StartedRun, budget: Budget | None) -> CallContext:
    context, config = started.context, started.context.config
    journal = JournalListener(started.log, context.clock, context.cancel_token.result)
    listeners = (budget.on_call, journal.on_call) if budget else (journal.on_call,)
    return CallContext(
        now=context.clock,
        cancel_token=context.cancel_token,
        retry_policy=RetryPolicy(max_attempts=config.max_attempts, window_s=RETRY_WINDOW_S),
        timeout_s=config.call_timeout_s,
        notice=context.notices.add,
        listeners=(*listeners, context.usage_tracker.on_call, context.listener.on_call),
        replay_log=started.replay_log,
        cost_limit=budget,
        tested=context.plan.benchmark.cast.tested,
        has_metadata=bool(config.request_metadata),
    )


def _run_budget(started: StartedRun) -> Budget | None:
    """The budget, from which earlier processes of the run have spent; `None` without a bound."""
    context, plan = started.context, started.context.plan
    shared_limit = context.services.spending
    if plan.config.max_cost_usd is None and shared_limit is None:
        return None
    budget = new_budget(plan, shared_limit, context.cancel_token.result)
    if not (shared_limit and shared_limit.process):
        budget.limit.add(earlier_usd(budget, plan, started.replay_log))
    return budget
