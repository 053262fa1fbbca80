"""The dry run: what a run would take in calls, tokens, money and time, without calling a model.

The whole run is played with real requests, expected replies and a simulated clock.
"""

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct, field

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.tokens import PrefixCache
from socratic_bench.documents.dry_run import DryRunDocument, Expectation, Forecast, Sent
from socratic_bench.emulator.simulation import cache_minimum
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.judging.judge import Judge
from socratic_bench.judging.jury import Jury, jury_of
from socratic_bench.models.bedrock.account import count_tokens
from socratic_bench.models.bedrock.capabilities import ObservedCapabilities, Options
from socratic_bench.models.bedrock.session import configured_endpoint, is_aws
from socratic_bench.ports.benchmark import EpisodeResult, Length, PlayItem
from socratic_bench.ports.provider import Model
from socratic_bench.runs.context import utc_now
from socratic_bench.runs.dry_run_clock import (
    ASSUMED,
    EMBEDDED,
    OFFLINE_START_MS,
    START_MS,
    Emulation,
    EventQueue,
    emulation_at,
)
from socratic_bench.runs.dry_run_models import Emulated, Expected, SimulatedModel
from socratic_bench.runs.items import ItemContext, Items, TurnsSoFar
from socratic_bench.runs.judge_turns import GIVE_WAY_S, closing_question
from socratic_bench.runs.models import new_budget
from socratic_bench.runs.prepare import Plan
from socratic_bench.settings import BEDROCK, OFFLINE_REGION, models_of, provider_of
from socratic_bench.storage.stores import check_stores, open_bucket, open_folder
from socratic_bench.turns import Turn, Unscored
from socratic_bench.types import Json, Role

OTHERS: tuple[Length, ...] = ("short", "long")


# What a run is expected to take, and its simulated models by their ids.
Simulation = tuple[Expectation, dict[str, SimulatedModel]]


def dry_run(plan: Plan, call: Callable[[str], str] = str) -> dict[str, Json]:
    """The document of a dry run; `call` turns a setting's name into what messages call it. Raises
    `UsageError` if a store is sure to be unusable.
    """
    forecaster = Forecaster()
    forecaster.check_stores(plan.config)
    forecast = forecaster.forecast(plan)
    if refusal := forecast.expected["likely"].refusal:
        refusal.call_settings(call)
    document = DryRunDocument.of(
        plan.config, plan.benchmark, plan.episode, forecast, models=plan.models, prices=plan.prices
    )
    return document.printed


class Forecaster:
    """Estimates runs, one after the other.

    It asks only once which endpoint answers, and how many tokens a model's request has, unless that
    is not to be counted. Simulated prompt caches keep instructions from one run to the next.
    """

    def __init__(self, *, counts_tokens: bool = True) -> None:
        self._counts_tokens = counts_tokens
        self._emulations: dict[str, Emulation | None] = {}
        self._scales: dict[tuple[Hashable, str], float | None] = {}
        self._prefixes: dict[Hashable, set[int]] = {}
        self._n_counts = 0
        self._n_buckets = 0

    @property
    def sent(self) -> Sent:
        """The requests that estimating has taken so far."""
        return Sent(
            count_tokens=self._n_counts, emulator_pace=len(self._emulations), bucket=self._n_buckets
        )

    @property
    def n_prefixes(self) -> int:
        """How many prefixes of instructions are cached for later runs."""
        return sum(map(len, self._prefixes.values()))

    def check_stores(self, config: RunConfig) -> None:
        """Raises `UsageError` if a store of the run is sure to be unusable."""
        bucket = open_bucket(config)
        self._n_buckets += bucket is not None
        check_stores([store for store in (open_folder(config), bucket) if store])

    def forecast(self, plan: Plan) -> Forecast:
        """Estimate the calls, tokens, cost and duration of a run."""
        config, emulation = plan.config, self._emulation(plan.config)

        def simulate_length(length: Length) -> Simulation:
            learned: dict[Hashable, set[int]] = {}

            def prefixes(model: str) -> set[int]:
                """A copy of those in a model's cache; new ones join it once this run is over."""
                key = (length, config.region, model)
                return learned.setdefault(key, set(self._prefixes.get(key, ())))

            scales = self._scales_of(config)
            simulation = simulate(
                plan, length=length, emulation=emulation, scales=scales, prefixes=prefixes
            )
            if length != "likely" or not self._count(config, simulation[1]):
                self._prefixes |= learned
                return simulation
            return simulate_length(length)  # with the tokens that were counted

        likely = simulate_length("likely")
        # The replies and paces of an emulator are known.
        is_known = emulation and all(map(_is_bedrocks, models_of(config)))
        lengths = {length: likely if is_known else simulate_length(length) for length in OTHERS}
        scales = self._scales_of(config)
        return Forecast(
            expected={
                length: expectation
                for length, (expectation, _) in {"likely": likely, **lengths}.items()
            },
            counted=tuple(name for name in likely[1] if name in scales),
            emulated=emulation is not None,
            sent=self.sent,
        )

    def _emulation(self, config: RunConfig) -> Emulation | None:
        """The emulator that would answer; an endpoint that is not AWS's own may be one."""
        if config.offline:
            return EMBEDDED
        url = configured_endpoint(config.region or OFFLINE_REGION)
        if url is None or is_aws(url):
            return None
        if url not in self._emulations:
            self._emulations[url] = emulation_at(url)
        return self._emulations[url]

    def _scales_of(self, config: RunConfig) -> dict[str, float]:
        """By model, counted tokens divided by estimated ones."""
        place = (config.region, config.assume_role_arn)
        return {
            model: scale
            for (where, model), scale in self._scales.items()
            if where == place and scale is not None
        }

    def _count(self, config: RunConfig, models: Mapping[str, SimulatedModel]) -> bool:
        """Have the service count the largest request of each new model; returns whether it did."""
        if config.offline or not self._counts_tokens:
            return False
        place = (config.region, config.assume_role_arn)
        new = {
            name: model
            for name, model in models.items()
            if model.largest and (place, name) not in self._scales and _is_bedrocks(name)
        }
        if not new:
            return False
        counts, n_sent = count_tokens(
            {name: model.largest or {} for name, model in new.items()},
            region=config.region or OFFLINE_REGION,
            assume_role_arn=config.assume_role_arn,
        )
        self._n_counts += n_sent
        for name, model in new.items():
            tokens = counts.get(name)
            self._scales[place, name] = None if tokens is None else tokens / model.most_tokens
        return bool(counts)


def _is_bedrocks(model_id: str) -> bool:
    return provider_of(model_id) == BEDROCK


def simulate(
    plan: Plan,
    *,
    length: Length,
    emulation: Emulation | None,
    scales: dict[str, float],
    prefixes: Callable[[str], set[int]],
) -> Simulation:
    """Play the plan with replies of a length.

    Args:
        plan: the run.
        length: how long replies are expected to be.
        emulation: what is known of the emulator that would answer, if it is one.
        scales: counted tokens divided by estimated ones, by model.
        prefixes: what a model's prompt cache has of the instructions of other runs.
    """
    config, tested = plan.config, plan.benchmark.parts.tested
    models: dict[str, SimulatedModel] = {}
    event_queue = EventQueue(
        OFFLINE_START_MS if config.offline else START_MS,
        None if config.deadline_s is None else config.deadline_s * 1000,
    )
    # A request that does not fit waits for the next call to end.
    has_budget = config.max_cost_usd is not None
    cost_limit = new_budget(plan, None, event_queue.end_next) if has_budget else None

    def model(model_id: str) -> SimulatedModel:
        if model_id not in models:
            scale = scales.get(model_id, 1.0)
            is_bedrocks = _is_bedrocks(model_id)
            emulated = emulation if is_bedrocks else None
            reply_model = (
                Emulated(model_id, emulated) if emulated else Expected(plan, length, scale)
            )
            models[model_id] = SimulatedModel(
                model_id=model_id,
                reply_model=reply_model,
                scale=scale,
                options=Options.of(config),
                tested=tested,
                is_shaped=is_bedrocks,
                event_queue=event_queue,
                latency_models=emulated.latency_models if emulated else ASSUMED[length],
                cost_limit=cost_limit,
                cache_minimum=cache_minimum(model_id) if emulated else None,
                cache=PrefixCache(prefixes(model_id)),
                seen=ObservedCapabilities(model_id),
            )
        return models[model_id]

    judging = _simulated_judging(plan, event_queue, model)
    speakers = {role: model(model_id) for role, model_id in plan.speakers.items()}
    tested_model = speakers.get(tested) or model(config.model)
    context = _SimulatedContext(tested_model, speakers, model, plan, event_queue, judging)
    episode_result, refusal = _play_episode(plan, context, event_queue)
    calls = {
        role: [call for made in models.values() for call in made.calls[role]]
        for role in plan.models
    }
    expectation = Expectation(
        *(context.all_turns, calls, episode_result, event_queue.now_ms / 1000, refusal),
        lacks_closing=bool(judging and judging.lacks_closing),
        largest_usd=cost_limit.largest_usd if cost_limit else 0.0,
    )
    return expectation, models


class _SimulatedJudging(Struct):
    """Judges turns while the dialogue goes on, as a `TurnRecord` does.

    Each is judged a moment after it was played: several at once, but only one until the judge's
    prefix is in the prompt cache.
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
        """Have the last of these turns judged."""

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
        """Have the judge asked about the episode as a whole."""
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
        judge_input = self.plan.episode.judge_input(turns, index)
        outcome = self.judge.by(rubric).judge(judge_input, index).outcome
        if isinstance(outcome, Unscored) and "budget" in (outcome.reason, *outcome.causes):
            self.is_over_budget = True

    def _fill(self) -> None:
        is_warming = not self._n_done and any(model.warms for model in self.models)
        at_once = 1 if is_warming else self.plan.judges_at_once
        while self._waiting and self._n_busy < at_once:
            self._n_busy += 1
            self._asking.append((self.event_queue.n_ended, self._waiting.popleft()))

    def _done(self) -> None:
        self._n_busy -= 1
        self._n_done += 1
        self._fill()


class _SimulatedContext(Struct):
    """See `socratic_bench.ports.benchmark.EpisodeContext`."""

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

    @property
    def run_id(self) -> None:
        return None

    def watched(self, listener: Callable[[Any], None]) -> Model:
        del listener
        return self.tested

    def check(self) -> None: ...

    def store(self, name: str, body: bytes) -> None: ...

    def wait_since(self, moment: datetime, seconds: float) -> None:
        """The whole wait, since simulated calls end at moments of their own."""
        del moment
        self.event_queue.call(seconds * 1000, lambda: None)

    def publish(self, turn: Turn) -> None:
        self.turns[turn.index] = turn
        is_due = self.plan.rubric_of(turn.index) is not None and turn.unscorable is None
        if self.judging and is_due and not turn.replayed:
            self.judging.take(TurnsSoFar(self.turns, turn.index))

    def play_items(self, play: PlayItem) -> None:
        """Play items one after the other, each at the simulated time at which a place is free."""
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
            played.append(items.publishable(play(ItemContext(self, utc_now), index)))
        self.event_queue.beside()

    def _wait_for_fewer_than(self, n_busy: int) -> None:
        while self._n_busy >= n_busy:
            self.event_queue.end_next()
            self.event_queue.beside()


def _play_episode(
    plan: Plan, context: _SimulatedContext, event_queue: EventQueue
) -> tuple[EpisodeResult, ModelError | None]:
    """Play the episode. If budget or a model ends it, the turns until then are still judged."""
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


def _simulated_judging(
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
