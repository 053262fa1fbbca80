"""What a model answers to a request: content blocks and the reason why it stopped."""

import json
from dataclasses import dataclass
from random import Random

from socratic_bench.emulator.dialogue import Dialogue, JsonObject
from socratic_bench.emulator.models import judge
from socratic_bench.emulator.models.student import student_reply
from socratic_bench.emulator.models.tutor import tutor_reply


@dataclass(frozen=True, slots=True)
class Reply:
    """Content blocks in the service's own shape."""

    content: tuple[JsonObject, ...]
    stop_reason: str = "end_turn"


def compose(dialogue: Dialogue, body: JsonObject) -> Reply:
    """The reply of the model that a request names, in the role that the request shows."""
    tool = forced_tool(body)
    if dialogue.role == "judge":
        answer = verdict(dialogue)
        return (
            tool_reply(dialogue, tool, answer) if tool else Reply(({"text": json.dumps(answer)},))
        )
    text = student_reply(dialogue) if dialogue.role == "student" else tutor_reply(dialogue)
    if tool:
        return tool_reply(dialogue, tool, fill(tool["inputSchema"].get("json") or {}, text))
    return Reply(({"text": text},))


def verdict(dialogue: Dialogue) -> JsonObject:
    scores = judge.score(dialogue.reply or "")
    names = ("form", "substance", "purity")
    return {
        "form": scores.form,
        "substance": scores.substance,
        "purity": scores.purity,
        "rationale": dict(zip(names, scores.reasons, strict=True)),
    }


def tool_reply(dialogue: Dialogue, tool: JsonObject, arguments: object) -> Reply:
    number = Random(dialogue.seed("tool")).getrandbits(88)
    use = {"toolUseId": f"tooluse_{number:022x}", "name": tool["name"], "input": arguments}
    return Reply(({"toolUse": use},), "tool_use")


def forced_tool(body: JsonObject) -> JsonObject | None:
    """The specification of the tool that the model is made to call."""
    config = body.get("toolConfig") or {}
    choice = config.get("toolChoice") or {}
    name = (choice.get("tool") or {}).get("name")
    if name is None and "any" not in choice:
        return None
    specs: list[JsonObject] = [tool["toolSpec"] for tool in config["tools"] if "toolSpec" in tool]
    return next((spec for spec in specs if name in (None, spec["name"])), None)


def fill(schema: JsonObject, text: str) -> object:
    """A small value that fits a JSON Schema, with the reply as its strings."""
    kind = schema.get("type")
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {name: fill(part, text) for name, part in (schema.get("properties") or {}).items()}
    if kind == "array":
        return [fill(schema.get("items") or {}, text)]
    simple: dict[object, object] = {"integer": 0, "number": 0, "boolean": False, "null": None}
    return simple.get(kind, text)
