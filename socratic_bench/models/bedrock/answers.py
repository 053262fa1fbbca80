"""Reads Converse's answers back into the vocabulary, whatever else they may hold."""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from socratic_bench.ports.provider import UnreadableAnswerError
from socratic_bench.types import Block, Message, Reasoning, StopReason, Text, ToolUse, Usage, clean

# The neutral words are Bedrock's own, but for these.
_NEUTRAL: dict[str, StopReason] = {word: word for word in get_args(StopReason)}
_NEUTRAL["malformed_model_output"] = "malformed_output"

# No call has more tokens or milliseconds; what is larger counts nothing and could break a document.
COUNT_MAX = 10**12


def read_message(response: Mapping[str, Any]) -> tuple[Message, str]:
    """The message and stop reason of a Converse response. Raises `UnreadableAnswerError`."""
    try:
        content = response["output"]["message"]["content"]
        stop_reason = response["stopReason"]
        blocks = _joined(block for part in content for block in _read_block(part))
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableAnswerError("the answer has no message") from error
    if not isinstance(stop_reason, str):
        raise UnreadableAnswerError("the answer has no stop reason")
    return Message("assistant", blocks), stop_reason


def neutral(stop_reason: str) -> StopReason:
    """The word for it that holds for all providers."""
    return _NEUTRAL.get(stop_reason, "other")


def _joined(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Texts that follow each other as one: what is masked in a text may begin in the one before."""
    found: list[Block] = []
    for block in blocks:
        last = found[-1] if found else None
        if isinstance(block, Text) and isinstance(last, Text):
            found[-1] = Text(last.text + block.text)
        else:
            found.append(block)
    return tuple(found)


def _read_block(part: Mapping[str, Any]) -> tuple[Block, ...]:
    if "text" in part:
        return (Text(clean(part["text"])),)
    if "toolUse" in part:
        use = part["toolUse"]
        return (ToolUse(use["toolUseId"], use["name"], use.get("input")),)
    if "reasoningContent" in part:
        reasoning = part["reasoningContent"].get("reasoningText", {})
        return (Reasoning(clean(reasoning.get("text", ""))),)
    return ()


def read_usage(response: Mapping[str, Any]) -> Usage | None:
    """The token counters, `None` if one of them is no count; input counts the cache's, too."""
    usage = response.get("usage")
    if not isinstance(usage, Mapping):
        return None
    counts: list[Any] = [usage.get("inputTokens"), usage.get("outputTokens")]
    counts += [usage.get(f"cache{kind}InputTokens", 0) for kind in ("Read", "Write")]
    if not all(type(count) is int and 0 <= count <= COUNT_MAX for count in counts):
        return None
    new, out, read, write = counts
    return Usage(
        input_tokens=new + read + write,
        output_tokens=out,
        cache_read_tokens=read,
        cache_write_tokens=write,
    )


def read_service_latency(response: Mapping[str, Any]) -> float | None:
    """Milliseconds that the service says it took, if it says so."""
    metrics = response.get("metrics")
    latency = metrics.get("latencyMs") if isinstance(metrics, Mapping) else None
    if isinstance(latency, int | float) and 0 <= latency <= COUNT_MAX:
        return float(latency)
    return None


def read_served(response: Mapping[str, Any], field: str, name: str) -> str | None:
    """What the service says of how it served the request, such as its tier."""
    served = response.get(field)
    word = served.get(name) if isinstance(served, Mapping) else None
    return clean(word) if isinstance(word, str) else None


def read_invoked_model(response: Mapping[str, Any]) -> str | None:
    """The model that a prompt router chose; of other ids the service does not say what served."""
    trace = response.get("trace")
    if not isinstance(trace, Mapping):
        return None
    return read_served(trace, "promptRouter", "invokedModelId")
