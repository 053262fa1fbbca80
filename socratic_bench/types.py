"""The frozen vocabulary that every room shares: messages, calls, verdicts, turns.

Unknown is always `None`; a zero is a measured zero.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

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
    """One request on the wire. `wait_ms` was slept before it; `error` is `None` if it answered.

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


class Completion(Struct, frozen=True, kw_only=True):
    """A model's answer to one call.

    All times are of the attempt that answered, from its sending: `ttft_ms` to the first content of
    a stream (`None` if the answer was not streamed), `latency_ms` to the last byte;
    `service_latency_ms` is what the service reports. What was waited before and between attempts
    stands in `attempts` alone. `usage` is `None` if the service sent no counters. `stop_reason` is
    its word, as are `served_model` (which it says where a prompt router chose), `served_tier` and
    `served_latency_profile`, `None` if it does not say them.
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


class Verdict(Struct, frozen=True, kw_only=True):
    """A judge's scores of one reply, by the rubric's dimensions, with its reasons."""

    scores: Mapping[str, float]
    rationale: Mapping[str, str | None]
    judge_model: str | None

    @property
    def overall_score(self) -> float:
        return sum(self.scores.values())


class Unscored(Struct, frozen=True, kw_only=True):
    """Why a turn has no verdict: `reason` is a word for machines, `message` is for people.

    `hint` says what to do about a judge that could not be reached.
    """

    reason: str
    message: str
    raw_reply: str | None = None
    hint: str | None = None


class Judged(Struct, frozen=True, kw_only=True):
    """The outcome of judging one turn and what it took: one call, or two after a repair."""

    outcome: Verdict | Unscored
    calls: tuple[Completion, ...]
    finished_at: datetime


class Dimension(Struct, frozen=True, kw_only=True):
    """One sub-score of a rubric: `low`..`high` in steps of `step`, with its levels in words."""

    name: str
    low: float
    high: float
    step: float
    levels: Mapping[str, str]


class ScoredReply(Struct, frozen=True, kw_only=True):
    """A reply as a rubric would have it scored: what it answers, `scores` by dimension, and `why`
    in a few words.
    """

    prompt: str
    reply: str
    scores: Mapping[str, float]
    why: str


class Rubric(Struct, frozen=True, kw_only=True):
    """How a judge scores one reply. `sha256` is of the file that it was read from.

    `speakers` are those whose words a judge sees: who is answered first, whose reply is scored
    last. Raises `ValueError` for a dimension by whose name verdict or example have something else.
    """

    id: str
    title: str
    instructions: str
    dimensions: tuple[Dimension, ...]
    sha256: str
    examples: tuple[ScoredReply, ...] = ()
    speakers: tuple[str, str] = ("user", "model")

    def __post_init__(self) -> None:
        taken = {"rationale", "reply", "why", self.speakers[0]}
        if found := taken & {dimension.name for dimension in self.dimensions}:
            raise ValueError(f"No dimension can be called {' or '.join(sorted(found))}.")


Measure = bool | int | float | str | None


class Turn(Struct, frozen=True, kw_only=True):
    """One exchange: what was said to the model under test (`prompt`) and its `reply`.

    `others` are the calls of the benchmark's other actors that led to `prompt`, by their names.
    `measures` holds the benchmark's deterministic readings of the reply, empty until they are made,
    `notes` what else it wants kept with the turn, `summary` how people are told of it where no
    judge scores it. A benchmark that knows more of a turn extends this class. `judged` is `None`
    until the judge has spoken, and without a judge. `injection_suspected`: the reply looks as if it
    spoke to the judge; `None` without a rubric. A `replayed` turn was read from a record: no model
    was called for it, nobody judges it, and its reply's figures mean nothing. `set_aside` are the
    answers for which others were asked, by the role that gave them.
    """

    index: int
    prompt: str
    reply: Completion
    others: Mapping[Role, Completion] = field(default_factory=dict)
    notes: Mapping[str, Measure] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    summary: str = ""
    unscorable: Unscored | None = None
    judged: Judged | None = None
    injection_suspected: bool | None = None
    replayed: bool = False
    set_aside: tuple[tuple[Role, Completion], ...] = ()

    def calls(self, role: Role, *, tested: Role) -> tuple[Completion, ...]:
        """Every call of a role that was answered for this turn, those set aside first; `tested` is
        the one that the reply is of.
        """
        aside = tuple(call for whose, call in self.set_aside if whose == role)
        if role == JUDGE:
            return self.judged.calls if self.judged else ()
        last = self.reply if role == tested else self.others.get(role)
        return aside if last is None else (*aside, last)

    @property
    def outcome(self) -> Verdict | Unscored | None:
        """The verdict, or why there is none; `None` where nobody was asked."""
        return self.unscorable or (self.judged.outcome if self.judged else None)

    @property
    def verdict(self) -> Verdict | None:
        outcome = self.outcome
        return outcome if isinstance(outcome, Verdict) else None
