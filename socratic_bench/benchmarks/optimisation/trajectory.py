"""What an agent did, step by step, as it is stored and shown."""

import json
from collections.abc import Iterator, Sequence

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.agent import StepRecord
from socratic_bench.types import Completion, Json, Reasoning, ToolUse

SHOWN_CHARACTERS = 160


class ToolCall(Struct, frozen=True, kw_only=True):
    """A call of a tool; `result` is `None` for the one that ends the work."""

    tool: str
    arguments: Json
    result: str | None = None
    is_error: bool = False


class TrajectoryStep(Struct, frozen=True, kw_only=True):
    """One answer of the model, and what came of it."""

    step: int
    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    stop_reason: str
    input_tokens: int | None
    output_tokens: int | None
    latency_ms: float


def trajectory_of(
    calls: Sequence[Completion], records: Sequence[StepRecord]
) -> list[TrajectoryStep]:
    """The steps of the built-in agent; of others, their answers without results of tools."""
    return [
        TrajectoryStep(
            step=number,
            text=completion.message.text,
            reasoning="\n".join(
                block.text for block in completion.message.content if isinstance(block, Reasoning)
            ),
            calls=tuple(_tool_calls(completion, records[number - 1 : number])),
            stop_reason=completion.stop_reason,
            input_tokens=completion.usage.input_tokens if completion.usage else None,
            output_tokens=completion.usage.output_tokens if completion.usage else None,
            latency_ms=round(completion.latency_ms, 3),
        )
        for number, completion in enumerate(calls, start=1)
    ]


def _tool_calls(completion: Completion, records: Sequence[StepRecord]) -> Iterator[ToolCall]:
    results = {result.id: result for record in records for result in record.results}
    for block in completion.message.content:
        if isinstance(block, ToolUse):
            result = results.get(block.id)
            yield ToolCall(
                tool=block.name,
                arguments=block.arguments,
                result=result.text if result else None,
                is_error=bool(result and result.is_error),
            )


def summary_of(step: TrajectoryStep) -> str:
    """A step in a line or two."""
    lines = [f"{step.step}. {_cut(step.text)}" if step.text.strip() else f"{step.step}."]
    for call in step.calls:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        words = ", ".join(f"{name}={_cut(_plain(value))}" for name, value in arguments.items())
        lines.append(f"   {call.tool}({words})")
        if call.result is not None:
            mark = "!" if call.is_error else ">"
            lines.append(f"   {mark} {_cut(call.result)}")
    return "\n".join(lines)


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]} ..."
