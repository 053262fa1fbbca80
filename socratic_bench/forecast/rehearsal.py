"""Plays a whole run without calling anybody: real requests, expected replies, its own clock."""

from collections import deque
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from socratic_bench.bedrock.surroundings import Options
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.forecast.agenda import Agenda
from socratic_bench.forecast.models import RehearsedModel
from socratic_bench.forecast.paces import ASSUMED, OFFLINE_START_MS, START_MS, Emulation
from socratic_bench.forecast.speakers import Emulated, Expected
from socratic_bench.judging import Judge
from socratic_bench.ports import Episode, Finale, Length, Model, Purse
from socratic_bench.pricing.table import builtin_prices
from socratic_bench.runner.budget import Budget
from socratic_bench.runner.clock import utc_now
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.record import GIVE_WAY_S, JUDGES_AT_ONCE
from socratic_bench.types import ROLES, Completion, Role, Turn, Unjudged


class Rehearsal(Struct, frozen=True):
    """A run as it is expected: its turns, the answered calls of each role, and how it ends.

    `refusal`: what is known to be refused for good, and ends it.
    """

    turns: Sequence[Turn]
    calls: dict[Role, list[Completion]]
    finale: Finale
    models: dict[str, RehearsedModel]
    duration_s: float
    refusal: ModelError | None


def rehearse(
    plan: Plan, *, length: Length, emulation: Emulation | None, scales: dict[str, float]
) -> Rehearsal:
    """Play the plan with replies of a length; `scales` are counted over estimated tokens."""
    config = plan.config
    models: dict[str, RehearsedModel] = {}
    agenda = Agenda(
        OFFLINE_START_MS if config.offline else START_MS,
        None if config.deadline_s is None else config.deadline_s * 1000,
    )
    purse = _purse(plan, agenda)

    def model(model_id: str) -> RehearsedModel:
        if model_id not in models:
            scale = scales.get(model_id, 1.0)
            speaker = Emulated(model_id, emulation) if emulation else Expected(plan, length, scale)
            models[model_id] = RehearsedModel(
                model_id,
                speaker,
                scale,
                Options(
                    stream=config.stream,
                    prompt_cache=config.prompt_cache,
                    metadata=config.request_metadata,
                ),
                agenda=agenda,
                paces=emulation.paces if emulation else ASSUMED[length],
                purse=purse,
                cache_minimum=_emulated_minimum(model_id) if emulation else None,
            )
        return models[model_id]

    student_model = plan.models.get("student")
    student = model(student_model) if student_model else None
    bench = _bench(plan, agenda, model)
    stage = _Stage(model(config.model), student, bench)
    finale, refusal = _played(plan.episode, stage, agenda)
    calls = {
        role: [call for made in models.values() for call in made.calls[role]] for role in ROLES
    }
    return Rehearsal(stage.turns, calls, finale, models, agenda.now_ms / 1000, refusal)


class _Bench(Struct):
    """Judges turns beside the dialogue, as a `Record` does: each a moment after it was played, so
    many at once, but one alone until the judge's prefix is in the cache.
    """

    judge: Judge
    model: RehearsedModel
    episode: Episode
    agenda: Agenda
    is_over_budget: bool = False
    _waiting: deque[Sequence[Turn]] = field(default_factory=deque)
    _asking: deque[tuple[int, Sequence[Turn]]] = field(default_factory=deque)
    _n_busy: int = 0
    _n_done: int = 0

    def take(self, turns: Sequence[Turn]) -> None:
        """Have the last of the turns judged."""

        def entered() -> None:
            self._waiting.append(turns)
            self._fill()

        self.agenda.later(GIVE_WAY_S * 1000, entered)

    def judge_next(self) -> None:
        """Ask for the verdicts whose turn it is by now, but for those that came up only after the
        dialogue's call under way had ended: its next request is before them in the line.
        """
        self._fill()
        n_ended = self.agenda.n_ended
        while self._asking and self._asking[0][0] <= n_ended:
            _, turns = self._asking.popleft()
            with self.agenda.aside(self._done):
                self._judge(turns, len(turns) - 1)

    def _judge(self, turns: Sequence[Turn], index: int) -> None:
        judged = self.judge.judge(self.episode.exhibit(turns, index), index)
        if isinstance(judged.outcome, Unjudged) and judged.outcome.reason == "budget":
            self.is_over_budget = True

    def _fill(self) -> None:
        at_once = 1 if self.model.warms and not self._n_done else JUDGES_AT_ONCE
        while self._waiting and self._n_busy < at_once:
            self._n_busy += 1
            self._asking.append((self.agenda.n_ended, self._waiting.popleft()))

    def _done(self) -> None:
        self._n_busy -= 1
        self._n_done += 1
        self._fill()


class _Stage(Struct):
    """See `socratic_bench.ports.Stage`."""

    tutor: Model
    student: Model | None
    bench: _Bench | None
    turns: list[Turn] = field(default_factory=list)

    def publish(self, turn: Turn) -> None:
        self.turns.append(turn)
        if self.bench and turn.unjudgeable is None and not turn.replayed:
            self.bench.take(tuple(self.turns))


def _played(episode: Episode, stage: _Stage, agenda: Agenda) -> tuple[Finale, ModelError | None]:
    """Where budget or tutor end the dialogue, verdicts on what was played are still asked for."""
    refusal = None
    try:
        try:
            finale = episode.play(stage)
        except ModelError as broken:
            finale, refusal = Finale(end_reason=broken.end_reason), broken
        except Stopped as stopped:
            if stopped.end_reason != "budget":
                raise
            finale = Finale(end_reason="budget")
        agenda.finish()
    except Stopped as stopped:
        judges = stopped.__cause__ if isinstance(stopped.__cause__, ModelError) else None
        return Finale(end_reason=stopped.end_reason), judges
    if stage.bench and stage.bench.is_over_budget:
        return Finale(end_reason="budget"), None
    return finale, refusal


def _emulated_minimum(model_id: str) -> int:
    from socratic_bench.emulator.rehearsal import cache_minimum

    return cache_minimum(model_id)


def _bench(plan: Plan, agenda: Agenda, model: Callable[[str], RehearsedModel]) -> _Bench | None:
    rubric, judge_model = plan.episode.rubric, plan.config.judge_model
    if rubric is None or judge_model is None:
        return None
    asked = model(judge_model)
    judge = Judge(model=asked, rubric=rubric, seed=plan.config.seed or 0, now=utc_now)
    bench = _Bench(judge, asked, plan.episode, agenda)
    agenda.beside = bench.judge_next
    return bench


def _purse(plan: Plan, agenda: Agenda) -> Purse | None:
    """The run's own; what does not fit waits for what ends next."""
    if plan.config.max_cost_usd is None:
        return None
    return Budget(
        plan.config.max_cost_usd,
        table=plan.prices or builtin_prices(),
        region=plan.config.region,
        wait=agenda.end_next,
    )
