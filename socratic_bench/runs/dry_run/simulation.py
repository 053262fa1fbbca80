"""Plays a whole run without calling anybody: real requests, expected replies, its own clock."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from socratic_bench.catalogue.caching import PrefixCache
from socratic_bench.documents.dry_run import Expectation
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.judging.judge import Judge
from socratic_bench.judging.jury import Jury, jury_of
from socratic_bench.models.bedrock.observed import ObservedCapabilities, Options
from socratic_bench.ports import EpisodeResult, Length, Model, PlayItem
from socratic_bench.runs.budgets import budget_of
from socratic_bench.runs.clock import utc_now
from socratic_bench.runs.closing_judging import closing_question
from socratic_bench.runs.dry_run.event_queue import EventQueue
from socratic_bench.runs.dry_run.latency_models import (
    ASSUMED,
    OFFLINE_START_MS,
    START_MS,
    Emulation,
)
from socratic_bench.runs.dry_run.models import SimulatedModel, Sizes
from socratic_bench.runs.dry_run.reply_models import Emulated, Expected
from socratic_bench.runs.items import ItemContext, Items, TurnsSoFar
from socratic_bench.runs.plan import Plan
from socratic_bench.runs.record import GIVE_WAY_S
from socratic_bench.turns import Turn, Unscored
from socratic_bench.types import Role


class Simulation(Struct, frozen=True):
    """A run as it is expected, and its models by their ids."""

    expectation: Expectation
    models: dict[str, SimulatedModel]


def simulate(
    plan: Plan,
    *,
    length: Length,
    emulation: Emulation | None,
    scales: dict[str, float],
    sizes: Sizes | None,
    prefixes: Callable[[str], set[int]],
) -> Simulation:
    """Play the plan with replies of a length; `scales` are counted tokens divided by estimated
    ones, `prefixes` what a model's cache has kept of the instructions of other runs.
    """
    config, tested = plan.config, plan.benchmark.parts.tested
    models: dict[str, SimulatedModel] = {}
    event_queue = EventQueue(
        OFFLINE_START_MS if config.offline else START_MS,
        None if config.deadline_s is None else config.deadline_s * 1000,
    )
    # A request that does not fit waits for the next call to end.
    has_budget = config.max_cost_usd is not None
    cost_limit = budget_of(plan, None, event_queue.end_next) if has_budget else None

    def model(model_id: str) -> SimulatedModel:
        if model_id not in models:
            scale = scales.get(model_id, 1.0)
            reply_model = (
                Emulated(model_id, emulation) if emulation else Expected(plan, length, scale)
            )
            models[model_id] = SimulatedModel(
                model_id=model_id,
                reply_model=reply_model,
                scale=scale,
                options=Options.of(config),
                tested=tested,
                sizes=sizes,
                event_queue=event_queue,
                latency_models=emulation.latency_models if emulation else ASSUMED[length],
                cost_limit=cost_limit,
                cache_minimum=_emulated_minimum(model_id) if emulation else None,
                cache=PrefixCache(prefixes(model_id)),
                seen=ObservedCapabilities(model_id),
            )
        return models[model_id]

    judging = _judging(plan, event_queue, model)
    speakers = {role: model(model_id) for role, model_id in plan.speakers.items()}
    context = _SimulatedContext(speakers[tested], speakers, model, plan, event_queue, judging)
    episode_result, refusal = _played(plan, context, event_queue)
    calls = {
        role: [call for made in models.values() for call in made.calls[role]]
        for role in plan.models
    }
    expectation = Expectation(
        context.all_turns,
        calls,
        episode_result,
        event_queue.now_ms / 1000,
        refusal,
        lacks_closing=bool(judging and judging.lacks_closing),
    )
    return Simulation(expectation, models)


class _SimulatedJudging(Struct):
    """Judges turns while the dialogue goes on, as a `Record` does: each a moment after it was
    played, several at once, but only one until the judge's prefix is in the cache.
    """

    judge: Jury
    models: Sequence[SimulatedModel]
    plan: Plan
    event_queue: EventQueue
    is_over_budget: bool = False
    lacks_closing: bool = False
    _waiting: deque[Sequence[Turn]] = field(default_factory=deque)
    _asking: deque[tuple[int, Sequence[Turn]]] = field(default_factory=deque)
    _n_busy: int = 0
    _n_done: int = 0

    def take(self, turns: Sequence[Turn]) -> None:
        """Have the last of the turns judged."""

        def entered() -> None:
            self._waiting.append(turns)
            self._fill()

        self.event_queue.later(GIVE_WAY_S * 1000, entered)

    def judge_next(self) -> None:
        """Start the verdicts that are due. The dialogue's next request goes first."""
        self._fill()
        n_ended = self.event_queue.n_ended
        while self._asking and self._asking[0][0] <= n_ended:
            _, turns = self._asking.popleft()
            with self.event_queue.aside(self._done):
                self._judge(turns, len(turns) - 1)

    def conclude(self, turns: Sequence[Turn], episode_result: EpisodeResult) -> None:
        """Have the judge asked about the episode as a whole, as `ClosingJudging` does."""
        question = closing_question(self.plan, turns, episode_result)
        if question is None:
            return
        if self.plan.config.max_cost_usd is not None:
            self.event_queue.finish()
        with self.event_queue.aside(lambda: None):
            concluded = self.judge.conclude(question)
        outcome = concluded.outcome
        self.lacks_closing = isinstance(outcome, Unscored) and outcome.reason == "budget"

    def _judge(self, turns: Sequence[Turn], index: int) -> None:
        rubric = self.plan.rubric_of(index)
        assert rubric is not None  # noqa: S101 -- only what has one is taken
        shown = self.plan.episode.judge_input(turns, index)
        outcome = self.judge.by(rubric).judge(shown, index).outcome
        if isinstance(outcome, Unscored) and "budget" in (outcome.reason, *outcome.causes):
            self.is_over_budget = True

    def _fill(self) -> None:
        is_warming = any(model.warms for model in self.models) and not self._n_done
        at_once = 1 if is_warming else self.plan.judges_at_once
        while self._waiting and self._n_busy < at_once:
            self._n_busy += 1
            self._asking.append((self.event_queue.n_ended, self._waiting.popleft()))

    def _done(self) -> None:
        self._n_busy -= 1
        self._n_done += 1
        self._fill()


class _SimulatedContext(Struct):
    """See `socratic_bench.ports.EpisodeContext`."""

    tested: Model
    models: Mapping[Role, Model]
    model_of: Callable[[str], Model]
    plan: Plan
    event_queue: EventQueue
    judging: _SimulatedJudging | None
    turns: dict[int, Turn] = field(default_factory=dict)
    _n_busy: int = 0

    @property
    def all_turns(self) -> list[Turn]:
        return [turn for _, turn in sorted(self.turns.items())]

    def model(self, actor: Role, model_id: str | None = None) -> Model | None:
        return self.model_of(model_id) if model_id else self.models.get(actor)

    def publish(self, turn: Turn) -> None:
        self.turns[turn.index] = turn
        is_due = self.plan.rubric_of(turn.index) is not None and turn.unscorable is None
        if self.judging and is_due and not turn.replayed:
            self.judging.take(TurnsSoFar(self.turns, turn.index))

    def play_items(self, play: PlayItem) -> None:
        """One after the other, each at the time at which one of those before it has ended."""
        items = Items(self.plan.episode.opening.n_items or 0, is_judged=self.judging is not None)
        while (index := items.take()) is not None:
            self._play_one(items, play, index)
            self._wait_for_fewer_than(self.plan.config.max_concurrency)
        self._wait_for_fewer_than(1)
        items.finish()

    def _play_one(self, items: Items, play: PlayItem, index: int) -> None:
        played: list[Turn] = []

        def ended() -> None:
            self._n_busy -= 1
            for turn in played:
                self.publish(turn)

        self._n_busy += 1
        with self.event_queue.aside(ended), items.playing(index):
            played.append(items.played(play(ItemContext(self, utc_now), index)))
        self.event_queue.beside()

    def _wait_for_fewer_than(self, n_busy: int) -> None:
        while self._n_busy >= n_busy:
            self.event_queue.end_next()
            self.event_queue.beside()


def _played(
    plan: Plan, context: _SimulatedContext, event_queue: EventQueue
) -> tuple[EpisodeResult, ModelError | None]:
    """If budget or a model ends the dialogue, the turns played so far are still judged."""
    refusal = None
    try:
        try:
            episode_result = plan.episode.play(context)
        except ModelError as broken:
            episode_result, refusal = EpisodeResult(end_reason=broken.end_reason), broken
        except Stopped as stopped:
            if stopped.end_reason != "budget":
                raise
            episode_result = EpisodeResult(end_reason="budget")
        event_queue.cut_delays()
        if context.judging:
            context.judging.conclude(context.all_turns, episode_result)
        event_queue.finish()
    except Stopped as stopped:
        judges = stopped.__cause__ if isinstance(stopped.__cause__, ModelError) else None
        return EpisodeResult(end_reason=stopped.end_reason), judges
    if context.judging and context.judging.is_over_budget:
        return EpisodeResult(end_reason="budget"), None
    return episode_result, refusal


def _emulated_minimum(model_id: str) -> int:
    from socratic_bench.emulator.simulation import cache_minimum

    return cache_minimum(model_id)


def _judging(
    plan: Plan, event_queue: EventQueue, model: Callable[[str], SimulatedModel]
) -> _SimulatedJudging | None:
    rubric, jurors = plan.rubric, plan.config.jurors
    if rubric is None or not jurors:
        return None
    judge = partial(Judge, rubric=rubric, seed=plan.config.seed or 0, now=utc_now)
    jury = jury_of(plan.config, judge, model, at_once=event_queue.at_once)
    judging = _SimulatedJudging(jury, [*map(model, jurors)], plan, event_queue)
    event_queue.beside = judging.judge_next
    return judging
