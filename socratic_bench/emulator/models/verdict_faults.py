"""What faults make of a judge's verdict."""

import json
from collections.abc import Callable

from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.models.reply import Reply

_PROSE = "The tutor does rather well here: a good question, though it could go deeper. Solid."


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


ALTERATIONS: dict[str, Callable[[Reply], Reply]] = {
    "prose_verdict": lambda _: Reply(({"text": _PROSE},)),
    "wrapped_verdict": _wrapped,
    "out_of_range": _verdict_with(lambda verdict: verdict | {"purity": 7}),
    "off_step": _verdict_with(lambda verdict: verdict | {"substance": 2.3}),
    "missing_dimension": _verdict_with(_without_one),
    "string_score": _verdict_with(lambda verdict: verdict | {"form": str(verdict.get("form"))}),
    "nan_score": _verdict_with(lambda verdict: verdict | {"form": float("nan")}),
}
