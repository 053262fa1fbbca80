"""Types that every room shares: messages, requests, calls, answers. Unknown is `None`, never 0."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from socratic_bench.generation import GenerateConfig


def doc(description: str) -> Meta:
    """The meaning of a document's field, for its JSON Schema."""
    return Meta(description=description)


# The role of a call: an actor of the benchmark by its name, or the judge.
Role = str
JUDGE: Role = "judge"
# The model id by which Bedrock's OptimizePrompt is called: the request's `system` names the model
# that its prompt is for.
OPTIMIZER = "amazon.optimize-prompt"
# `CallKey.part` of a call about an episode as a whole; in a jury, a juror's id follows it.
CLOSING = "closing"

EndReason = Literal[
    "max_turns",
    "student_closed",
    "recorded",
    "content_filtered",
    "guardrail",
    "context_window",
    "empty_reply",
    "deadline",
    "budget",
    "batch_pending",
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

# Why a model stopped, for any provider.
StopReason = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "content_filtered",
    "guardrail_intervened",
    "refusal",
    "model_context_window_exceeded",
    "malformed_output",
    "malformed_tool_use",
    "other",
]

# Stop reasons of output that the service calls broken.
MALFORMED_STOPS = ("malformed_output", "malformed_model_output", "malformed_tool_use")

# Stop reasons of a model, a filter or a guardrail that gives no answer. The first and the
# last one may be of a request that was refused, for its content or its length, which counts as an
# answer to one of many items.
CONTEXT_WINDOW = "context_window"
REFUSED_STOPS = ("content_filtered", "guardrail_intervened", "refusal", CONTEXT_WINDOW)
# Stop reasons of an answer that was cut at a limit.
CUT_STOPS = ("max_tokens", "model_context_window_exceeded")

# The largest number of tokens or milliseconds that a run stores; no service counts more.
MOST = 10**12
Tokens = Annotated[int, Meta(ge=0, le=MOST)]
Milliseconds = Annotated[float, Meta(ge=0, le=MOST)]
Moment = Annotated[datetime, Meta(tz=True)]
Words = Annotated[str, doc("the text of the block")]
ToolCallId = Annotated[str, doc("the id that the model gave to its call of the tool")]
ProviderStopReason = Annotated[str | None, doc("why it ended, as the provider says")]
AskedModel = Annotated[str | None, doc("the model that was asked; null: not noted")]
# What a request that failed, or whose end is unknown, may be billed for.
InputAtMost = Annotated[
    Tokens | None, doc("the most input tokens it may have used; null: no known bound")
]
OutputAtMost = Annotated[
    Tokens | None, doc("the most output tokens it may have used; null: no known bound")
]

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def clean(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot encode, replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plural(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun, as in "1 turn" or "2 turns"; the plural adds an "s" by default."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"


def in_digits(number: float) -> str:
    """A number with at most six decimals and no exponent: 0.000001, and 3 for 3.0."""
    return f"{number:.6f}".rstrip("0").rstrip(".")


def is_text(text: str) -> bool:
    """Whether it has no lone surrogate, which stands for a byte that Python cannot decode."""
    return clean(text) == text


class Text(Struct, frozen=True):
    """Plain text of a message."""

    text: Words


ImageFormat = Literal["png", "jpeg", "gif", "webp"]


class Image(Struct, frozen=True):
    """A picture in a user message, in one of the formats that Converse takes."""

    format: Annotated[ImageFormat, doc("its format")]
    data: Annotated[bytes, doc("the file")]

    @property
    def data_url(self) -> str:
        return f"data:image/{self.format};base64,{b64encode(self.data).decode()}"


class Reasoning(Struct, frozen=True, omit_defaults=True):
    """A model's reasoning before its reply; no other role and no judge sees it.

    A model that calls tools gets its own reasoning back, which some services sign or encrypt.
    """

    text: Words
    signature: Annotated[str | None, doc("the service's signature of the text")] = None
    encrypted: Annotated[str | None, doc("reasoning that is not shown, in base64")] = None


class ToolUse(Struct, frozen=True):
    """A model's call of a tool."""

    id: ToolCallId
    name: Annotated[str, doc("name of the tool")]
    arguments: Annotated[Json, doc("the parsed JSON that the model gave")]


class ToolResult(Struct, frozen=True):
    """The result of a `ToolUse`, in a user message."""

    id: ToolCallId
    text: Words
    is_error: Annotated[bool, doc("whether the tool failed")] = False


Block = Text | Image | Reasoning | ToolUse | ToolResult


class Message(Struct, frozen=True):
    """One message of a conversation."""

    role: Annotated[Literal["user", "assistant"], doc("whose message it is")]
    content: Annotated[tuple[Block, ...], doc("its blocks, in order")]

    @property
    def text(self) -> str:
        """The joined text blocks, without reasoning and tool blocks."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @classmethod
    def user(cls, text: str) -> Message:
        return cls("user", (Text(text),))

    @classmethod
    def assistant(cls, text: str) -> Message:
        return cls("assistant", (Text(text),))


class Tool(Struct, frozen=True, kw_only=True):
    """A tool that a model calls; `input_schema` is a JSON Schema."""

    name: str
    description: str
    input_schema: Mapping[str, Json]


class Request(Struct, frozen=True, kw_only=True):
    """A request to a model, without anything that differs between runs of one seed.

    `is_cacheable_prefix`: the next request begins with all of this one except the later blocks of
    the last message, so caching it pays. `temperature_if_taken` is sent only to models that take
    one; the temperature in `config` is always sent. The model must call `tool`; `tools` it may
    call. A request has one of the two at most.
    """

    messages: tuple[Message, ...]
    config: GenerateConfig
    system: str | None = None
    tool: Tool | None = None
    tools: tuple[Tool, ...] = ()
    is_cacheable_prefix: bool = field(default=False, name="grows")  # digests have the older name
    temperature_if_taken: float | None = None


class CallKey(Struct, frozen=True, kw_only=True):
    """Names one call within a run: the role, the turn, and which of several calls for it."""

    role: Annotated[Role, doc("who was asked: an actor's name, or judge")]
    index: Annotated[int, Meta(ge=0, description="index of the turn, from 0")]
    part: Annotated[
        str, doc("tells several calls of a role for a turn apart, by a juror's id, say")
    ] = ""
    repeat: Annotated[int, Meta(ge=0, description="its place among tries; a sample has two")] = 0

    @property
    def is_closing(self) -> bool:
        return self.part.partition(" ")[0] == CLOSING


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one or more calls. `input_tokens` is all input; the cache kinds are parts of it."""

    input_tokens: Annotated[Tokens, doc("all input tokens, cached or not")] = 0
    output_tokens: Annotated[Tokens, doc("output tokens, reasoning included")] = 0
    cache_read_tokens: Annotated[Tokens, doc("input tokens read from the cache")] = 0
    cache_write_tokens: Annotated[Tokens, doc("input tokens written to it")] = 0

    @property
    def uncached(self) -> Usage:
        """The same tokens, none of them cached."""
        return Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens)

    def __add__(self, other: Usage) -> Usage:
        names = self.__struct_fields__
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in names})


class Attempt(Struct, frozen=True, kw_only=True):
    """One request on the wire."""

    started_at: Annotated[Moment, doc("when it was sent")]
    duration_ms: Annotated[Milliseconds, doc("milliseconds that the request took")]
    wait_ms: Annotated[Milliseconds, doc("milliseconds waited before it")]
    error: Annotated[str | None, doc("code of the failure; null if it was answered")]
    may_have_been_billed: Annotated[
        bool, doc("false only if it is sure that no model worked on the request")
    ]
    input_tokens_at_most: InputAtMost = None
    output_tokens_at_most: OutputAtMost = None
    model_id: AskedModel = None


class Completion(Struct, frozen=True, kw_only=True):
    """A model's answer to one call. Latencies are of the attempt that answered; what was waited is
    found in `attempts` alone.
    """

    message: Annotated[Message, doc("the reply")]
    stop_reason: Annotated[str, doc("a `StopReason`, or the service's word in older answers")]
    usage: Annotated[Usage | None, doc("its tokens; null if the service sent no counters")]
    latency_ms: Annotated[Milliseconds, doc("milliseconds from sending to the last byte")]
    service_latency_ms: Annotated[
        Milliseconds | None, doc("milliseconds as the service reports them")
    ]
    attempts: Annotated[tuple[Attempt, ...], doc("its requests; the last answered")]
    request_id: Annotated[str | None, doc("the service's id of the answer")]
    finished_at: Annotated[Moment, doc("when the answer was complete")]
    streamed: Annotated[bool, doc("whether it came as a stream")] = False
    ttft_ms: Annotated[
        Milliseconds | None,
        doc("milliseconds from sending to the first content; null if not streamed"),
    ] = None
    first_text_ms: Annotated[
        Milliseconds | None,
        doc("milliseconds from sending to the first text after any reasoning; null likewise"),
    ] = None
    served_model: Annotated[
        str | None, doc("the model that a prompt router chose, if the service says it")
    ] = None
    served_tier: Annotated[
        str | None, doc("the service tier that served it, if the service says it")
    ] = None
    served_latency_profile: Annotated[
        str | None, doc("the latency profile that served it, if the service says it")
    ] = None
    provider_stop_reason: ProviderStopReason = None
    model_id: AskedModel = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        doc("temperature that was asked for; null: the model's own"),
    ] = None

    @property
    def overhead_ms(self) -> float | None:
        """Milliseconds of network and client: the latency minus the service's own."""
        if self.service_latency_ms is None:
            return None
        return self.latency_ms - self.service_latency_ms

    @property
    def output_tokens_per_s(self) -> float | None:
        """Output tokens a second, from sending the request to the last byte."""
        if self.usage is None or self.latency_ms <= 0:
            return None
        return self.usage.output_tokens / self.latency_ms * 1000

    @property
    def wait_before_ms(self) -> float:
        """Milliseconds waited for the rate limit before the first attempt."""
        return self.attempts[0].wait_ms if self.attempts else 0.0

    @property
    def wait_between_ms(self) -> float:
        """Milliseconds waited between attempts."""
        return sum(attempt.wait_ms for attempt in self.attempts[1:])
