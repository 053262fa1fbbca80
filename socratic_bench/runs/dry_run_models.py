"""The models of a dry run: they send nothing, and reply as is expected of the real ones."""

import json
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.catalogue.models import Capabilities
from socratic_bench.catalogue.tokens import PrefixCache, PromptBlock
from socratic_bench.emulator.simulation import answer, refusal
from socratic_bench.models.bedrock.capabilities import (
    ObservedCapabilities,
    Options,
    ShapedRequest,
    dropped_field,
)
from socratic_bench.models.bedrock.converse import read_message
from socratic_bench.models.bedrock.errors import error_kind_of_answer
from socratic_bench.models.bedrock.request import (
    CHARACTERS_PER_TOKEN,
    Wire,
    caches_system,
    estimated_tokens,
    request_parts,
)
from socratic_bench.models.budget import Budget, Reservation
from socratic_bench.models.call import explained
from socratic_bench.models.chat_format import message_blocks
from socratic_bench.ports.benchmark import Length
from socratic_bench.ports.provider import ErrorKind
from socratic_bench.runs.context import utc_now
from socratic_bench.runs.dry_run_clock import Emulation, EventQueue, LatencyModels
from socratic_bench.runs.prepare import Plan
from socratic_bench.turns import Rubric
from socratic_bench.types import (
    JUDGE,
    CallKey,
    Completion,
    Json,
    Message,
    Request,
    Role,
    ToolUse,
    Usage,
)

# The share of a thinking budget that a reply uses.
THINKING_SHARE = {"short": 0.1, "likely": 0.4, "long": 1.0}


class ExpectedReply(Struct, frozen=True):
    """An expected reply: the message, and the tokens that are billed."""

    message: Message
    stop_reason: str
    output_tokens: int


class Emulated(Struct, frozen=True):
    """A model of the emulator: whether it refuses a request and what it replies follows from the
    request, and so is known.
    """

    model_id: str
    emulation: Emulation

    def refuses(self, shaped: ShapedRequest) -> ErrorKind | None:
        error = refusal(
            self.model_id,
            shaped.arguments,
            streamed=shaped.is_streamed,
            any_model=self.emulation.any_model,
            context_window_tokens=self.emulation.context_window_tokens,
        )
        if error is None:
            return None
        return error_kind_of_answer(error.name, error.message, error.status, model_id=self.model_id)

    def reply(self, arguments: Wire, request: Request, key: CallKey) -> ExpectedReply:  # noqa: ARG002 -- port
        response, output_tokens = answer(self.model_id, arguments)
        message, stop_reason = read_message(response)
        return ExpectedReply(message, stop_reason, output_tokens)


class Expected(Struct, frozen=True):
    """Any other model: it replies as the benchmark expects, or with a usual verdict."""

    plan: Plan
    length: Length
    scale: float

    def reply(self, arguments: Wire, request: Request, key: CallKey) -> ExpectedReply:
        if key.role == JUDGE:
            return self._verdict(arguments, request, key)
        most = request.config.max_tokens
        text = self.plan.episode.expected_reply(key.role, self.length)[
            : most * CHARACTERS_PER_TOKEN
        ]
        thought = (request.config.thinking_budget_tokens or 0) * THINKING_SHARE[self.length]
        tokens = round(estimated_tokens(text) * self.scale + thought)
        return ExpectedReply(Message.assistant(text), "end_turn", min(most, max(1, tokens)))

    def _verdict(self, arguments: Wire, request: Request, key: CallKey) -> ExpectedReply:
        reason, rubric = self.plan.episode.expected_reply(JUDGE, self.length), None
        if key.is_closing and request.tool:
            verdict = _expected_arguments(dict(request.tool.input_schema), reason)
        else:
            rubric = self.plan.rubric_of(key.index)
            assert rubric is not None  # noqa: S101 -- judges have one
            verdict = expected_verdict(rubric, reason)
        tokens = round(estimated_tokens(json.dumps(verdict)) * self.scale)
        tools = arguments.get("toolConfig", {}).get("tools", ())
        if not tools:
            return ExpectedReply(Message.assistant(json.dumps(verdict)), "end_turn", tokens)
        use = ToolUse("expected", tools[0]["toolSpec"]["name"], verdict)
        return ExpectedReply(Message("assistant", (use,)), "tool_use", tokens)


def expected_verdict(rubric: Rubric, reason: str) -> dict[str, Json]:
    """The arguments of a judge's tool call: full scores, no event, and the same reason for each
    score, from which it quotes as much again.
    """
    reasons: dict[str, Json] = {d.name: reason for d in rubric.dimensions}
    return {
        **({"quotes": reasons} if rubric.has_quotes else {}),
        **({"events": {event.name: None for event in rubric.events}} if rubric.events else {}),
        "rationale": reasons,
        **{d.name: d.high for d in rubric.dimensions},
    }


def _expected_arguments(schema: Json, text: str) -> Json:
    """Arguments that fit a tool's schema: the first word of a choice, the least of numbers, an
    empty list, and the text in the place of any other words.
    """
    if not isinstance(schema, dict):
        return text
    properties, words = schema.get("properties"), schema.get("enum")
    if isinstance(properties, dict):
        return {
            name: _expected_arguments(subschema, text) for name, subschema in properties.items()
        }
    if isinstance(words, list) and words:
        return words[0]
    if schema.get("type") == "array":
        return []
    return schema.get("minimum", 0) if schema.get("type") in ("integer", "number") else text


class SimulatedModel(Struct, kw_only=True):
    """See `socratic_bench.ports.provider.Model`. Each call advances the event queue.

    `is_shaped`: requests to it are Converse's. `largest` is its largest request, of `most_tokens`
    estimated input tokens. `warms`: the first request writes the shared cache prefix, and the
    others wait for it.
    """

    model_id: str
    reply_model: Emulated | Expected
    scale: float
    options: Options
    event_queue: EventQueue
    latency_models: LatencyModels
    tested: Role
    is_shaped: bool
    cost_limit: Budget | None
    cache_minimum: int | None
    cache: PrefixCache
    seen: ObservedCapabilities
    largest: Wire | None = None
    most_tokens: int = 0
    warms: bool = False
    calls: dict[Role, list[Completion]] = field(default_factory=lambda: defaultdict(list))

    def complete(self, request: Request, key: CallKey) -> Completion:
        with self.event_queue.lock:
            return self._complete(request, key)

    def _complete(self, request: Request, key: CallKey) -> Completion:
        shaped, reservation = self._accepted(request, key)
        if key.role == JUDGE:
            self.warms = caches_system(request, self._can)
        reply = self.reply_model.reply(shaped.arguments, request, key)
        completion = Completion(
            message=reply.message,
            stop_reason=reply.stop_reason,
            usage=self._usage(request, shaped.arguments, reply.output_tokens),
            latency_ms=0.0,
            service_latency_ms=None,
            attempts=(),
            request_id=None,
            finished_at=utc_now(),
            served_tier=request.config.service_tier,
            streamed=shaped.is_streamed,
            model_id=self.model_id,
        )

        call_ms = self.latency_models.of(key.role).call_ms(completion)
        completion = replace(completion, latency_ms=call_ms)

        def ended() -> None:
            self.calls[key.role].append(completion)
            if reservation:
                reservation.settle_answer(completion)

        self.event_queue.call(call_ms, ended)
        return completion

    def _usage(self, request: Request, arguments: Wire, output_tokens: int) -> Usage:
        parts: Sequence[PromptBlock] = message_blocks(request)
        if self.is_shaped:
            parts = request_parts(arguments, scale=self.scale)
        tokens = sum(part.tokens for part in parts)
        if tokens > self.most_tokens:
            self.most_tokens, self.largest = tokens, arguments
        read, write = self.cache.use(parts, self.cache_minimum or self._can.cache_minimum)
        return Usage(
            input_tokens=tokens,
            output_tokens=output_tokens,
            cache_read_tokens=read,
            cache_write_tokens=write,
        )

    def _accepted(self, request: Request, key: CallKey) -> tuple[ShapedRequest, Reservation | None]:
        """The request in the shape that the model takes, and what is reserved for it.

        Each refusal takes as long as the first byte of an answer; later requests know of it. Raises
        `ModelError` where nothing can be left out of what is refused.
        """
        refused: list[str] = []
        while True:
            limit = self.cost_limit
            reservation = limit.reserve(self.model_id, request, key) if limit else None
            shaped = self.seen.shaped(request, self.options, refused)
            model = self.reply_model
            kind = model.refuses(shaped) if isinstance(model, Emulated) else None
            if kind is None:
                return shaped, reservation
            dropped = dropped_field(kind.code, kind.message, shaped.capabilities)
            if dropped:
                refused.append(dropped)
            learn = partial(self._learn, request, tuple(refused), reservation)
            self.event_queue.call(self.latency_models.of(key.role).first_token_ms, learn)
            if not dropped:
                raise explained(
                    kind.error,
                    kind.refused,
                    request,
                    is_tested=key.role == self.tested,
                    metadata=bool(self.options.metadata),
                )

    def _learn(
        self, request: Request, refused: Sequence[str], reservation: Reservation | None
    ) -> None:
        if reservation:  # what is refused costs nothing
            reservation.settle(0.0)
        self.seen.learn(refused)
        self.warms = self.warms and caches_system(request, self._can)

    @property
    def _can(self) -> Capabilities:
        return self.options.limited(self.seen.now)
