"""What faults make of an answer: a reply altered, or an error of the service in its own words."""

import json
from collections.abc import Callable

from socratic_bench.emulator.checks import BLOCKING_GUARDRAIL, guardrail_of
from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.errors import ServiceError
from socratic_bench.emulator.faults import Fault
from socratic_bench.emulator.models.grammar import data_file
from socratic_bench.emulator.models.reply import Reply

HUGE = 10 * 1024 * 1024
_INTERVENTION = Fault(kind="guardrail")
_BLOCKED = "Sorry, the model cannot answer this question."
_PROSE = "The tutor does rather well here: a good question, though it could go deeper. Solid."
_THOUGHT: JsonObject = {
    "reasoningContent": {
        "reasoningText": {
            "text": "I keep thinking, and run out of room.",
            "signature": "RW11bGF0ZWQ=",
        }
    }
}


def altered(reply: Reply, fault: Fault | None) -> Reply:
    """The reply as the fault leaves it; the same one for faults of another sort."""
    alter = _ALTERATIONS.get(fault.kind) if fault else None
    return alter(reply) if alter else reply


def guarded(reply: Reply, body: JsonObject) -> Reply:
    blocks = guardrail_of(body).rpartition("/")[2].startswith(BLOCKING_GUARDRAIL)
    return altered(reply, _INTERVENTION) if blocks else reply


def _cut(reply: Reply) -> Reply:
    """As if the token limit struck halfway; a tool's input is then lost."""
    block = reply.content[-1]
    if "toolUse" in block:
        block = {"toolUse": block["toolUse"] | {"input": {}}}
    else:
        block = {"text": block["text"][: max(1, len(block["text"]) // 2)]}
    return Reply((*reply.content[:-1], block), "max_tokens")


def _text(text: str, stop_reason: str) -> Callable[[Reply], Reply]:
    return lambda _: Reply(({"text": text},), stop_reason)


def _verdict_with(change: Callable[[JsonObject], JsonObject]) -> Callable[[Reply], Reply]:
    """Change the verdict, whether it is given as a tool's input or as text."""

    def alter(reply: Reply) -> Reply:
        *before, block = reply.content
        if "toolUse" in block:
            use = block["toolUse"]
            changed = {"toolUse": use | {"input": change(dict(use["input"]))}}
        else:
            changed = {"text": json.dumps(change(json.loads(block["text"])))}
        return Reply((*before, changed), reply.stop_reason)

    return alter


def _wrapped(reply: Reply) -> Reply:
    """The verdict inside a code fence between words: text even where a tool was named."""
    block = reply.content[-1]
    text = json.dumps(block["toolUse"]["input"], indent=1) if "toolUse" in block else block["text"]
    return Reply(
        ({"text": f"Here is my verdict:\n```json\n{text}\n```\nLet me know if this helps."},)
    )


def _without_one(verdict: JsonObject) -> JsonObject:
    """Without a score, or what became of an insight."""
    missing = ("purity", "insight_1")
    return {name: value for name, value in verdict.items() if name not in missing}


_ALTERATIONS: dict[str, Callable[[Reply], Reply]] = {
    "empty_reply": _text("", "end_turn"),
    "filtered": lambda _: Reply((), "content_filtered"),
    "guardrail": _text(_BLOCKED, "guardrail_intervened"),
    "max_tokens": _cut,
    "context_stop": lambda reply: Reply(_cut(reply).content, "model_context_window_exceeded"),
    "reasoning_only": lambda _: Reply((_THOUGHT,), "max_tokens"),
    "malformed_output": lambda _: Reply((), "malformed_model_output"),
    "huge_reply": lambda _: Reply(({"text": "What follows? " * (HUGE // 14 + 1)},)),
    "prose_verdict": lambda _: Reply(({"text": _PROSE},)),
    "wrapped_verdict": _wrapped,
    "out_of_range": _verdict_with(lambda verdict: verdict | {"purity": 7}),
    "off_step": _verdict_with(lambda verdict: verdict | {"substance": 2.3}),
    "missing_dimension": _verdict_with(_without_one),
    "string_score": _verdict_with(lambda verdict: verdict | {"form": str(verdict.get("form"))}),
    "nan_score": _verdict_with(lambda verdict: verdict | {"form": float("nan")}),
}


def error_of(kind: str, model_id: str, retry_after_ms: float | None = None) -> ServiceError:
    """The service's error of a kind of fault, with its advice to wait."""
    row = data_file("fault_errors.toml")[kind]
    return ServiceError(
        row["status"],
        row["name"],
        row["message"].replace("{model_id}", model_id),
        retry_after_ms=retry_after_ms,
        details={"originalStatusCode": 500, "resourceName": model_id}
        if kind == "model_error"
        else None,
    )
