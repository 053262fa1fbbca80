"""The built-in agent: a loop of Converse calls with tools, within its limits, resumable by step.

After each step its results and the state of the work tree are recorded. A resumed agent gets its
answers from the run's journal and its results from the record, and goes on behind the last of them.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import wait
from functools import partial
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from socratic_bench.benchmarks.optimisation.conversation import Conversation, LineLog
from socratic_bench.benchmarks.optimisation.tools import FINISH, TOOLS, Toolbox
from socratic_bench.benchmarks.optimisation.work_clock import WorkClock
from socratic_bench.concurrency import start_thread
from socratic_bench.generation import GenerateConfig
from socratic_bench.types import (
    REFUSED_STOPS,
    Completion,
    Message,
    Request,
    Text,
    ToolResult,
    ToolUse,
    doc,
)

POLL_S = 0.1

StopReason = Literal[
    "finished",
    "max_steps",
    "timeout",
    "budget",
    "credentials_expired",
    "access_denied",
    "throttled",
    "model_error",
    "agent_crash",
    "setup_failed",
    "interrupted",
]
SYSTEM = (
    "You are an engineer who makes software faster. You work in a git repository with the tools "
    "that you are given. Look before you change, measure with the workloads, and keep the tests "
    "passing. When you are done, or cannot go further, call finish."
)
GO_ON = "Call a tool. When you are done, call finish."


class Limits(Struct, frozen=True, kw_only=True):
    """What one agent may use: steps, seconds at work, and tokens of input and output."""

    max_steps: int
    working_s: float
    max_tokens: int | None = None

    def reached(self, n_steps: int, n_tokens: int, worked_s: float) -> StopReason | None:
        """The limit that is reached, if any."""
        if n_steps >= self.max_steps:
            return "max_steps"
        if self.max_tokens is not None and n_tokens >= self.max_tokens:
            return "budget"
        return "timeout" if worked_s >= self.working_s else None


class Prediction(Struct, frozen=True, kw_only=True):
    """What the agent says of its own work."""

    expected_speedup: Annotated[
        Annotated[float, Meta(ge=0)] | None, doc("time before divided by time after; null: unsaid")
    ] = None
    cause: Annotated[str, doc("what was slow and what was changed")] = ""


class AgentResult(Struct, frozen=True, kw_only=True):
    """How an agent ended."""

    stop: StopReason
    message: str = ""
    n_steps: int = 0
    worked_s: float = 0.0
    prediction: Prediction = Prediction()


class StepRecord(Struct, frozen=True, kw_only=True):
    """What one step of the agent led to: the results of its tools, and the work tree behind it."""

    results: tuple[ToolResult, ...]
    worked_s: float
    tree: str


class Snapshots(Protocol):
    """Keeps states of the work tree, outside the agent's reach."""

    def snapshot(self) -> str:
        """Keep the tree as it is now; returns the state's id."""

    def restore(self, state: str) -> None:
        """Bring the tree back to a state."""


class BuiltInAgent(Struct, kw_only=True):
    """Plays one item: asks the model, performs its tool calls, and records each step. `base` is the
    state of the work tree before the first step.
    """

    conversation: Conversation
    toolbox: Toolbox
    snapshots: Snapshots
    base: str
    log: LineLog[StepRecord]
    clock: WorkClock
    limits: Limits
    is_simulated: bool = False
    done: list[StepRecord] = field(default_factory=list)
    recorded: deque[StepRecord] = field(default_factory=deque)
    is_restored: bool = False
    n_steps: int = 0

    def play(self, task: str, config: GenerateConfig) -> AgentResult:
        """Work on the task to the end. Raises what ends the run, or loses the item."""
        self.recorded.extend(self.log.read())
        messages = [Message.user(task)]
        while True:
            answer = self._ask(tuple(messages), config)
            if isinstance(answer, AgentResult):
                self._restore()
                return answer
            uses = [block for block in answer.content if isinstance(block, ToolUse)]
            record = self._recorded(uses) or self._perform(uses)
            self.done.append(record)
            messages += [_sendable(answer), _next_message(record.results)]

    @property
    def left_s(self) -> float:
        return self.limits.working_s - self.clock.worked_s

    def _ask(self, messages: tuple[Message, ...], config: GenerateConfig) -> Message | AgentResult:
        """The model's next answer, or how the work ended."""
        worked_s = self.clock.worked_s
        if stop := self.limits.reached(self.n_steps, self.conversation.n_tokens, worked_s):
            return self._result(stop)
        completion = self._complete(
            Request(
                messages=messages,
                system=SYSTEM,
                config=config,
                tools=TOOLS,
                is_cacheable_prefix=True,
            )
        )
        if completion is None:
            return self._result("timeout")
        self.n_steps += 1
        if completion.stop_reason in REFUSED_STOPS:
            message = f"The model gave no answer ({completion.stop_reason})."
            return self._result("model_error", message)
        for block in completion.message.content:
            if isinstance(block, ToolUse) and block.name == FINISH:
                return replace(self._result("finished"), prediction=prediction_of(block))
        return completion.message

    def _recorded(self, uses: Sequence[ToolUse]) -> StepRecord | None:
        """What an earlier process recorded of this step. Records of another answer, if the journal
        has lost its last entries, are dropped.
        """
        if not self.recorded:
            return None
        record = self.recorded.popleft()
        if [result.id for result in record.results] == [use.id for use in uses]:
            self.clock.set_worked(record.worked_s)
            return record
        self.recorded.clear()
        self.log.rewrite(self.done)
        return None

    def _perform(self, uses: Sequence[ToolUse]) -> StepRecord:
        self._restore()
        results = tuple(map(self.toolbox.perform, uses))
        tree = self.snapshots.snapshot()
        record = StepRecord(results=results, worked_s=self.clock.worked_s, tree=tree)
        self.log.add(record)
        return record

    def _restore(self) -> None:
        """Once in a process: an earlier one may have been killed while it changed the tree."""
        if not (self.is_restored or self.is_simulated):
            self.snapshots.restore(self.done[-1].tree if self.done else self.base)
            self.is_restored = True

    def _complete(self, request: Request) -> Completion | None:
        """The answer; `None` if the agent's time is over first."""
        complete = partial(self.conversation.complete, request)
        if self.is_simulated:  # a dry run has a clock of its own
            return complete()
        answering = start_thread(complete)
        while not wait([answering], POLL_S).done:
            if self.left_s <= 0:
                return None
        return answering.result()

    def _result(self, stop: StopReason, message: str = "") -> AgentResult:
        return AgentResult(
            stop=stop,
            message=message,
            n_steps=self.n_steps,
            worked_s=round(self.clock.worked_s, 3),
        )


def prediction_of(finish: ToolUse) -> Prediction:
    """What the call says; what it lacks, or says in another form, is unknown."""
    arguments = finish.arguments if isinstance(finish.arguments, dict) else {}
    speedup, cause = arguments.get("expected_speedup"), arguments.get("cause")
    is_number = isinstance(speedup, int | float) and not isinstance(speedup, bool)
    return Prediction(
        expected_speedup=float(speedup) if is_number and 0 <= speedup < float("inf") else None,  # type: ignore[arg-type,operator]
        cause=cause if isinstance(cause, str) else "",
    )


def _sendable(message: Message) -> Message:
    """An answer as it can be sent back: services refuse messages and texts without a word."""
    blocks = tuple(
        block
        for block in message.content
        if not (isinstance(block, Text) and not block.text.strip())
    )
    return Message("assistant", blocks or (Text("(no words)"),))


def _next_message(results: tuple[ToolResult, ...]) -> Message:
    return Message("user", results) if results else Message.user(GO_ON)
