"""The frozen vocabulary that every room shares: messages, calls, verdicts, turns.

Unknown is always `None`; a zero is a measured zero.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from socratic_bench.generation import GenerateConfig

# Who is called: an actor of the benchmark by its name, or the judge.
Role = str
JUDGE: Role = "judge"

EndReason = Literal[
    "max_turns",
    "student_closed",
    "content_filtered",
    "guardrail",
    "context_window",
    "empty_reply",
    "deadline",
    "budget",
    "unavailable",
    "artifacts",
    "credentials",
    "access",
    "unknown_model",
    "refused_request",
    "interrupted",
    "usage",
    "internal",
]

# Why a model stopped, whatever its provider calls it.
StopReason = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "content_filtered",
    "guardrail_intervened",
    "model_context_window_exceeded",
    "malformed_output",
    "malformed_tool_use",
    "other",
]

# Stop reasons by which the service says that a model's output is broken, whatever is left of it.
MALFORMED_STOPS = ("malformed_output", "malformed_model_output", "malformed_tool_use")

# What a run may write of a call, to which a run is held that is read: no service counts more tokens
# or milliseconds.
MOST = 10**12
Tokens = Annotated[int, Meta(ge=0, le=MOST)]
Milliseconds = Annotated[float, Meta(ge=0, le=MOST)]
Moment = Annotated[datetime, Meta(tz=True)]

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def clean(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD, since no UTF-8 or JSON can carry them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def counted(number: int, one: str, more: str = "") -> str:
    """A number with what it counts: 1 turn, 2 turns; `more` where an s does not do."""
    return f"{number} {one if number == 1 else more or f'{one}s'}"


def is_text(text: str) -> bool:
    """Whether it holds no lone surrogate, as which Python has bytes that it cannot decode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Text(Struct, frozen=True):
    """Plain text of a message."""

    text: str


class Reasoning(Struct, frozen=True):
    """What a model thought before it spoke: never shown to another role, never judged."""

    text: str


class ToolUse(Struct, frozen=True):
    """A model's call of a tool. `arguments` is the parsed JSON that the model gave."""

    id: str
    name: str
    arguments: Json


class ToolResult(Struct, frozen=True):
    """An answer to a `ToolUse`, sent back by the user's side."""

    id: str
    text: str
    is_error: bool = False


Block = Text | Reasoning | ToolUse | ToolResult


class Message(Struct, frozen=True):
    """One message of a conversation, in content blocks."""

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]

    @property
    def text(self) -> str:
        """The text blocks, joined; reasoning and tool blocks left out."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @classmethod
    def user(cls, text: str) -> "Message":
        return cls("user", (Text(text),))

    @classmethod
    def assistant(cls, text: str) -> "Message":
        return cls("assistant", (Text(text),))


class Tool(Struct, frozen=True, kw_only=True):
    """A tool that the model is made to call; `input_schema` is a JSON Schema object."""

    name: str
    description: str
    input_schema: Mapping[str, Json]


class Request(Struct, frozen=True, kw_only=True):
    """What is asked of a model. Free of anything that differs between runs of one seed.

    `grows`: it is one of a series in which each request begins with all of the one before, so that
    a model may well keep what it made of it.
    """

    messages: tuple[Message, ...]
    config: GenerateConfig
    system: str | None = None
    tool: Tool | None = None
    grows: bool = False


class CallKey(Struct, frozen=True, kw_only=True):
    """Names one call within a run: who was asked, for which turn, and which try of it (0 first).

    `part` tells apart several calls that one role gets for one turn, such as a juror's id.
    """

    role: Role
    index: int
    part: str = ""
    repeat: int = 0


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one or more calls. `input_tokens` is all input; the cache kinds are parts of it."""

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cache_read_tokens: Tokens = 0
    cache_write_tokens: Tokens = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )


class Attempt(Struct, frozen=True, kw_only=True):
    """One request on the wire to a model; `model_id` is `None` in those of earlier versions.

    `wait_ms` was slept before it; `error` is `None` if it answered.

    `may_have_been_billed` is false only if it is sure that no model worked on the request. If it is
    true, the two bounds say for how many tokens at most; `None` is no known bound.
    """

    started_at: Moment
    duration_ms: Milliseconds
    wait_ms: Milliseconds
    error: str | None
    may_have_been_billed: bool
    input_tokens_at_most: Tokens | None = None
    output_tokens_at_most: Tokens | None = None
    model_id: str | None = None


class Completion(Struct, frozen=True, kw_only=True):
    """A model's answer to one call.

    All times are of the attempt that answered, from its sending: `ttft_ms` to the first content of
    a stream (`None` if the answer was not streamed), `latency_ms` to the last byte;
    `service_latency_ms` is what the service reports. What was waited before and between attempts
    stands in `attempts` alone. `usage` is `None` if the service sent no counters. `stop_reason` is
    a `StopReason`, or the service's word in answers of earlier versions; its own words stand in
    `provider_stop_reason`, `served_model` (which it says where a prompt router chose),
    `served_tier` and `served_latency_profile`, `None` if it does not say them. `model_id` is
    that of the model that was asked, `None` in answers of earlier versions.
    """

    message: Message
    stop_reason: str
    usage: Usage | None
    latency_ms: Milliseconds
    service_latency_ms: Milliseconds | None
    attempts: tuple[Attempt, ...]
    request_id: str | None
    finished_at: Moment
    streamed: bool = False
    ttft_ms: Milliseconds | None = None
    served_model: str | None = None
    served_tier: str | None = None
    served_latency_profile: str | None = None
    provider_stop_reason: str | None = None
    model_id: str | None = None

    @property
    def overhead_ms(self) -> float | None:
        """What network and client took: the latency seen from here less the service's own."""
        if self.service_latency_ms is None:
            return None
        return self.latency_ms - self.service_latency_ms

    @property
    def output_tokens_per_s(self) -> float | None:
        """Output tokens over the whole time from sending to the last byte, streamed or not."""
        if self.usage is None or self.latency_ms <= 0:
            return None
        return self.usage.output_tokens / self.latency_ms * 1000

    @property
    def wait_before_ms(self) -> float:
        """What was waited before the first attempt, to keep the run's pace."""
        return self.attempts[0].wait_ms if self.attempts else 0.0

    @property
    def wait_between_ms(self) -> float:
        """What was waited between attempts."""
        return sum(attempt.wait_ms for attempt in self.attempts[1:])
