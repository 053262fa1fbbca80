"""Plays a whole run without calling anybody: real requests, expected replies."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Protocol

from socratic_bench.bedrock.answers import read_message
from socratic_bench.bedrock.capabilities import (
    OWN_FIELDS,
    Capabilities,
    capabilities_of,
    refused_field,
)
from socratic_bench.bedrock.sizes import CHARACTERS, request_parts, text_tokens
from socratic_bench.bedrock.wire import Wire, converse_arguments
from socratic_bench.errors import Stopped
from socratic_bench.judging import Judge
from socratic_bench.judging.expectation import expected_verdict
from socratic_bench.ports import Episode, Finale, Length, Model, Purse
from socratic_bench.pricing.caching import PrefixCache
from socratic_bench.pricing.table import builtin_prices
from socratic_bench.runner.backend import utc_now
from socratic_bench.runner.budget import Budget
from socratic_bench.runner.plan import Plan
from socratic_bench.types import (
    ROLES,
    CallKey,
    Completion,
    Message,
    Request,
    Role,
    ToolUse,
    Turn,
    Usage,
)
from socratic_bench.values import dataclass

# Of a thinking budget, what a reply takes.
THINKING_SHARE = {"short": 0.1, "likely": 0.4, "long": 1.0}


@dataclass(frozen=True, slots=True)
class Said:
    """A reply that is expected: what goes into the history, and what is billed for."""

    message: Message
    stop_reason: str
    output_tokens: int


class Speaker(Protocol):
    """Foretells a model's reply to a request."""

    def refuses(self, arguments: Wire) -> str | None:
        """The words with which the model refuses a field, if that is known."""
        ...

    def reply(self, arguments: Wire, request: Request, key: CallKey) -> Said: ...


@dataclass(frozen=True, slots=True)
class Emulated:
    """The emulator's models: what they say follows from the request, so it is known."""

    model_id: str

    def refuses(self, arguments: Wire) -> str | None:
        from socratic_bench.emulator.rehearsal import refusal

        return refusal(self.model_id, arguments)

    def reply(self, arguments: Wire, request: Request, key: CallKey) -> Said:  # noqa: ARG002 -- port
        from socratic_bench.emulator.rehearsal import answer

        response, output_tokens = answer(self.model_id, arguments)
        message, stop_reason = read_message(response)
        return Said(message, stop_reason, output_tokens)


@dataclass(frozen=True, slots=True)
class Expected:
    """Any other model: what the benchmark expects of tutor and student, and a usual verdict."""

    plan: Plan
    length: Length
    scale: float

    def refuses(self, arguments: Wire) -> str | None:  # noqa: ARG002 -- nobody knows
        return None

    def reply(self, arguments: Wire, request: Request, key: CallKey) -> Said:
        if key.role == "judge":
            return self._verdict(arguments)
        most = request.config.max_tokens
        text = self.plan.episode.expected_reply(key.role, self.length)[: most * CHARACTERS]
        thought = (request.config.thinking_budget_tokens or 0) * THINKING_SHARE[self.length]
        tokens = round(text_tokens(text) * self.scale + thought)
        return Said(Message.assistant(text), "end_turn", min(most, max(1, tokens)))

    def _verdict(self, arguments: Wire) -> Said:
        rubric = self.plan.episode.rubric
        assert rubric is not None  # noqa: S101 -- judges have one
        verdict = expected_verdict(rubric, self.length)
        tokens = round(text_tokens(json.dumps(verdict)) * self.scale)
        tools = arguments.get("toolConfig", {}).get("tools", ())
        if not tools:
            return Said(Message.assistant(json.dumps(verdict)), "end_turn", tokens)
        use = ToolUse("expected", tools[0]["toolSpec"]["name"], verdict)
        return Said(Message("assistant", (use,)), "tool_use", tokens)


@dataclass(slots=True)
class RehearsedModel:
    """See `socratic_bench.ports.Model`; `largest` is its largest request, of
    `most_tokens` estimated input tokens. `then` is done after each call of the dialogue.
    """

    model_id: str
    speaker: Speaker
    scale: float
    prompt_cache: bool
    purse: Purse | None = None
    then: Callable[[], None] = lambda: None
    cache_minimum: int | None = None
    largest: Wire | None = None
    most_tokens: int = 0
    calls: dict[Role, list[Completion]] = field(
        default_factory=lambda: {role: [] for role in ROLES}
    )
    n_refused: Counter[Role] = field(default_factory=Counter)
    _cache: PrefixCache = field(default_factory=PrefixCache)
    _can: Capabilities = field(init=False)

    def __post_init__(self) -> None:
        can = capabilities_of(self.model_id)
        self._can = can if self.prompt_cache else can.without("prompt_cache")

    def complete(self, request: Request, key: CallKey) -> Completion:
        admission = self.purse.admit(self.model_id, request, key) if self.purse else None
        arguments = self._accepted(request, key)
        parts = request_parts(arguments, scale=self.scale)
        tokens = sum(part.tokens for part in parts)
        if tokens > self.most_tokens:
            self.most_tokens, self.largest = tokens, arguments
        minimum = self.cache_minimum or self._can.cache_minimum
        read, write = self._cache.use(parts, minimum)
        said = self.speaker.reply(arguments, request, key)
        completion = Completion(
            message=said.message,
            stop_reason=said.stop_reason,
            usage=Usage(
                input_tokens=tokens,
                output_tokens=said.output_tokens,
                cache_read_tokens=read,
                cache_write_tokens=write,
            ),
            latency_ms=0.0,
            service_latency_ms=None,
            attempts=(),
            request_id=None,
            finished_at=utc_now(),
            served_tier=request.config.service_tier,
        )
        self.calls[key.role].append(completion)
        if admission:
            admission.answered(completion)
        if key.role != "judge":
            self.then()
        return completion

    def _accepted(self, request: Request, key: CallKey) -> Wire:
        """The request in the shape that the model takes, as far as its refusals are known.

        Raises `Stopped` where nothing can be left out of what is refused: so would the run end.
        """
        while True:
            arguments = converse_arguments(self.model_id, request, self._can)
            message = self.speaker.refuses(arguments)
            if message is None:
                return arguments
            self.n_refused[key.role] += 1
            refused = refused_field("invalid_request", message)
            if refused not in OWN_FIELDS or not getattr(self._can, refused):
                raise Stopped(message, end_reason="refused_request")
            self._can = self._can.without(refused)


@dataclass(slots=True)
class _Stage:
    """See `socratic_bench.ports.Stage`.

    A turn is judged after the dialogue's next call, which goes out first in a real run, too.
    """

    tutor: Model
    student: Model | None
    episode: Episode
    judge: Judge | None
    turns: list[Turn] = field(default_factory=list)
    _unjudged: list[Turn] = field(default_factory=list)

    def publish(self, turn: Turn) -> None:
        self.turns.append(turn)
        if self.judge and turn.unjudgeable is None and not turn.replayed:
            self._unjudged.append(turn)

    def judge_rest(self) -> None:
        """A verdict that does not fit into the budget is left out."""
        while self.judge and self._unjudged:
            turn = self._unjudged.pop(0)
            try:
                judged = self.judge.judge(self.episode.exhibit(self.turns, turn.index), turn.index)
            except Stopped as stopped:
                if stopped.end_reason != "budget":
                    raise
                continue
            self.turns[turn.index] = replace(turn, judged=judged)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A run as it is expected: its turns, the calls of each role, and how it ends."""

    turns: Sequence[Turn]
    calls: dict[Role, list[Completion]]
    finale: Finale
    models: dict[str, RehearsedModel]

    @property
    def n_refused(self) -> Counter[Role]:
        """Requests that were refused, and sent again without what was refused."""
        return sum((model.n_refused for model in self.models.values()), Counter())


def rehearse(plan: Plan, *, length: Length, emulated: bool, scales: dict[str, float]) -> Rehearsal:
    """Play the plan with replies of a length; `scales` are counted over estimated tokens."""
    models: dict[str, RehearsedModel] = {}
    purse = _purse(plan)

    def model(model_id: str) -> RehearsedModel:
        if model_id not in models:
            is_emulated = emulated or model_id.startswith("emulator.")
            scale = scales.get(model_id, 1.0)
            speaker = Emulated(model_id) if is_emulated else Expected(plan, length, scale)
            models[model_id] = RehearsedModel(
                model_id,
                speaker,
                scale,
                prompt_cache=plan.config.prompt_cache,
                purse=purse,
                then=lambda: stage.judge_rest(),  # noqa: PLW0108 -- there is none yet
                cache_minimum=_emulated_minimum(model_id) if is_emulated else None,
            )
        return models[model_id]

    student = plan.config.student_model
    stage = _Stage(
        model(plan.config.model),
        model(student) if student else None,
        plan.episode,
        _judge(plan, model),
    )
    try:
        finale = _played(plan.episode, stage)
        stage.judge_rest()
    except Stopped as stopped:
        finale = Finale(end_reason=stopped.end_reason)
    calls = {
        role: [call for made in models.values() for call in made.calls[role]] for role in ROLES
    }
    return Rehearsal(stage.turns, calls, finale, models)


def _played(episode: Episode, stage: _Stage) -> Finale:
    """Where the budget ends the dialogue, verdicts on what was played are still asked for."""
    try:
        return episode.play(stage)
    except Stopped as stopped:
        if stopped.end_reason != "budget":
            raise
        return Finale(end_reason="budget")


def _emulated_minimum(model_id: str) -> int:
    from socratic_bench.emulator.rehearsal import cache_minimum

    return cache_minimum(model_id)


def _judge(plan: Plan, model: Callable[[str], RehearsedModel]) -> Judge | None:
    rubric, judge_model = plan.episode.rubric, plan.config.judge_model
    if rubric is None or judge_model is None:
        return None
    seed = plan.config.seed or 0
    return Judge(model=model(judge_model), rubric=rubric, seed=seed, now=utc_now)


def _purse(plan: Plan) -> Purse | None:
    """The run's own. Here calls come one by one, so that none has to wait for another."""
    if plan.config.max_cost_usd is None:
        return None
    return Budget(
        plan.config.max_cost_usd,
        table=plan.prices or builtin_prices(),
        region=plan.config.region,
        wait=lambda _: None,
    )
