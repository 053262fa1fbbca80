"""What a model is expected to reply: an emulator's is known, any other's is assumed."""

import json
from typing import Protocol

from msgspec import Struct

from socratic_bench.models.bedrock.answers import read_message
from socratic_bench.models.bedrock.observed import ShapedRequest
from socratic_bench.models.bedrock.sizes import CHARACTERS, text_tokens
from socratic_bench.models.bedrock.wire import Wire
from socratic_bench.ports import Length
from socratic_bench.provider_ports import ErrorKind
from socratic_bench.runs.dry_run.latency_models import Emulation
from socratic_bench.runs.plan import Plan
from socratic_bench.turns import Rubric
from socratic_bench.types import JUDGE, CallKey, Json, Message, Request, ToolUse

# The share of a thinking budget that a reply uses.
THINKING_SHARE = {"short": 0.1, "likely": 0.4, "long": 1.0}


class ExpectedReply(Struct, frozen=True):
    """A reply that is expected: what goes into the history, and what is billed for."""

    message: Message
    stop_reason: str
    output_tokens: int


class ReplyModel(Protocol):
    """Predicts a model's reply to a request."""

    def refuses(self, shaped: ShapedRequest) -> ErrorKind | None:
        """How the model refuses the request, if that is known."""
        ...

    def reply(self, arguments: Wire, request: Request, key: CallKey) -> ExpectedReply: ...


class Emulated(Struct, frozen=True):
    """The emulator's models: what they say follows from the request, so it is known."""

    model_id: str
    emulation: Emulation

    def refuses(self, shaped: ShapedRequest) -> ErrorKind | None:
        from socratic_bench.emulator.simulation import refusal

        error = refusal(
            self.model_id,
            shaped.arguments,
            streamed=shaped.is_streamed,
            any_model=self.emulation.any_model,
            context_window_tokens=self.emulation.context_window_tokens,
        )
        if error is None:
            return None
        from socratic_bench.models.bedrock.error_kinds import answered_kind

        return answered_kind(error.name, error.message, error.status, model_id=self.model_id)

    def reply(self, arguments: Wire, request: Request, key: CallKey) -> ExpectedReply:  # noqa: ARG002 -- port
        from socratic_bench.emulator.simulation import answer

        response, output_tokens = answer(self.model_id, arguments)
        message, stop_reason = read_message(response)
        return ExpectedReply(message, stop_reason, output_tokens)


class Expected(Struct, frozen=True):
    """Any other model: what the benchmark expects of it, and a usual verdict."""

    plan: Plan
    length: Length
    scale: float

    def refuses(self, shaped: ShapedRequest) -> ErrorKind | None:  # noqa: ARG002 -- nobody knows
        return None

    def reply(self, arguments: Wire, request: Request, key: CallKey) -> ExpectedReply:
        if key.role == JUDGE:
            return self._verdict(arguments, request, key)
        most = request.config.max_tokens
        text = self.plan.episode.expected_reply(key.role, self.length)[: most * CHARACTERS]
        thought = (request.config.thinking_budget_tokens or 0) * THINKING_SHARE[self.length]
        tokens = round(text_tokens(text) * self.scale + thought)
        return ExpectedReply(Message.assistant(text), "end_turn", min(most, max(1, tokens)))

    def _verdict(self, arguments: Wire, request: Request, key: CallKey) -> ExpectedReply:
        reason, rubric = self.plan.episode.expected_reply(JUDGE, self.length), None
        if key.is_closing and request.tool:
            verdict = _expected_arguments(dict(request.tool.input_schema), reason)
        else:
            rubric = self.plan.rubric_of(key.index)
            assert rubric is not None  # noqa: S101 -- judges have one
            verdict = expected_verdict(rubric, reason)
        tokens = round(text_tokens(json.dumps(verdict)) * self.scale)
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
    """Arguments that fit a tool's schema: the first word of a choice, the least of numbers, and the
    text in the place of any other words.
    """
    if not isinstance(schema, dict):
        return text
    properties, words = schema.get("properties"), schema.get("enum")
    if isinstance(properties, dict):
        return {name: _expected_arguments(one, text) for name, one in properties.items()}
    if isinstance(words, list) and words:
        return words[0]
    return schema.get("minimum", 0) if schema.get("type") in ("integer", "number") else text
