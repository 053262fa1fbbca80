"""Computes a simulated model's answer: content blocks and a stop reason."""

import json
import math
import re
from random import Random

from msgspec import Struct

from socratic_bench.emulator.catalogue import Traits
from socratic_bench.emulator.dialogue import CHARACTERS, Dialogue, JsonObject, hashed, read_context
from socratic_bench.emulator.models.agent import agent_answer
from socratic_bench.emulator.models.closing import closing_answer
from socratic_bench.emulator.models.execution import execution_answer
from socratic_bench.emulator.models.golden import (
    golden_arguments,
    golden_reply,
    golden_verdict,
    is_golden,
)
from socratic_bench.emulator.models.judge import Context, judge_reply
from socratic_bench.emulator.models.student import student_reply
from socratic_bench.emulator.models.tutor import tutor_reply
from socratic_bench.emulator.settings import Speaker

NAMES, MOST = ("form", "substance", "purity"), 10
_SIGNATURE = "RW11bGF0ZWQgdGhvdWdodA=="


class Reply(Struct, frozen=True):
    """Content blocks in the service's own shape."""

    content: tuple[JsonObject, ...]
    stop_reason: str = "end_turn"


def compose(dialogue: Dialogue, body: JsonObject, traits: Traits) -> Reply:
    """The reply of the model that a request names, in the role that the request shows."""
    tokens = _thinking(body).get("budget_tokens")
    executed = execution_answer(dialogue, tokens if isinstance(tokens, int) else 0)
    if (steps := agent_answer(dialogue)) is not None:
        reply = Reply(steps, "tool_use")
    elif executed:
        text, stop_reason = executed
        reply = Reply(({"text": text},), stop_reason)
    elif (golden := golden_reply(dialogue)) is not None:
        reply = Reply(({"text": golden},))
    else:
        reply = _role_reply(dialogue, _tool(dialogue, body))
    if traits.reasons or _thinking(body).get("type") in ("enabled", "adaptive"):
        latest = " ".join(dialogue.latest.split()[:12])
        text = f"I am asked to reply as {dialogue.role}. The last words I have are: {latest}"
        thought = {"reasoningContent": {"reasoningText": {"text": text, "signature": _SIGNATURE}}}
        return Reply((thought, *reply.content), reply.stop_reason)
    return reply


def spoken_by(speaker: Speaker, dialogue: Dialogue, body: JsonObject) -> Reply:
    """The reply of a model of the caller's own."""
    answer = speaker(body)
    if isinstance(answer, str):
        return Reply(({"text": answer},))
    return _tool_reply(dialogue, _tool(dialogue, body), answer)


def limited(reply: Reply, body: JsonObject, traits: Traits) -> Reply:
    """The reply cut where a stop sequence stands or the tokens run out."""
    config = body.get("inferenceConfig") or {}
    room = CHARACTERS * config.get("maxTokens", traits.max_tokens)
    content = []
    for block in reply.content:
        left, stop = _cut(block, config.get("stopSequences") or [], room)
        content.append(left)
        if stop:
            return Reply(tuple(content), stop)
        room -= len(left.get("text", ""))
    return reply


def _cut(block: JsonObject, sequences: list[str], room: int) -> tuple[JsonObject, str | None]:
    """What is left of a content block, and why it ends early, if it does."""
    if "text" in block:
        text: str = block["text"]
        if places := [at for at in map(text.find, sequences) if 0 <= at < room]:
            return {"text": text[: min(places)]}, "stop_sequence"
        return {"text": text[:room]}, "max_tokens" if len(text) > room else None
    is_cut = len(json.dumps(block)) > room * 2
    if is_cut and "toolUse" in block:  # an input that was cut off cannot be read
        block = {"toolUse": block["toolUse"] | {"input": {}}}
    return block, "max_tokens" if is_cut else None


def _role_reply(dialogue: Dialogue, tool: JsonObject | None) -> Reply:
    if dialogue.role == "judge":
        juror = juror_of(dialogue.base_id)
        if juror and juror.refuses:
            return Reply(({"text": REFUSAL},))
        verdict = _verdict(dialogue, tool)
        if juror and not dialogue.record:
            verdict = juror.alter(verdict, dialogue, _properties(tool))
        return _tool_reply(dialogue, tool, verdict)
    text = student_reply(dialogue) if dialogue.role == "student" else tutor_reply(dialogue)
    if tool:
        return _tool_reply(dialogue, tool, _filled(tool["inputSchema"].get("json"), text))
    return Reply(({"text": text},))


def _verdict(dialogue: Dialogue, tool: JsonObject | None) -> JsonObject:
    """By the rubric that the tool's schema shows, or the instructions where there is no tool."""
    if record := dialogue.record:
        return closing_answer(record)
    names = _properties(tool)
    names = names or golden_arguments(dialogue.system)
    if is_golden(names):
        return golden_verdict(read_context(dialogue.user_texts), dialogue.reply or "", names)
    verdict = judge_reply(Context(read_context(dialogue.user_texts)), dialogue.reply or "")
    if not ("events" in names if names else '"events"' in dialogue.system):
        verdict = {name: verdict[name] for name in (*NAMES, "rationale")}
    return _of_other_rubric(verdict, names)


def _properties(tool: JsonObject | None) -> JsonObject:
    """What the schema of a tool's input names; nothing without a tool."""
    schema = tool["inputSchema"].get("json") if tool else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _of_other_rubric(verdict: JsonObject, properties: JsonObject) -> JsonObject:
    """The verdict by other dimensions, each as far up its range as the sum; without events."""
    scales = {
        name: scale
        for name, scale in properties.items()
        if isinstance(scale, dict) and "maximum" in scale and name not in verdict
    }
    if not scales:
        return verdict
    share = sum(verdict[name] for name in NAMES) / MOST
    other: JsonObject = {"rationale": dict.fromkeys(scales, "The reply as a whole.")}
    if "events" in properties:
        other["events"] = dict.fromkeys(properties["events"].get("properties", ()))
    for name, scale in scales.items():
        low, high, step = scale.get("minimum", 0), scale["maximum"], scale.get("multipleOf", 1)
        other[name] = low + round(share * (high - low) / step) * step
    return other


def _tool_reply(dialogue: Dialogue, tool: JsonObject | None, arguments: object) -> Reply:
    """By a call of the tool, or in JSON where there is none."""
    if tool is None:
        return Reply(({"text": json.dumps(arguments)},))
    number = Random(dialogue.seed("tool")).getrandbits(88)
    use = {"toolUseId": f"tooluse_{number:022x}", "name": tool["name"], "input": arguments}
    return Reply(({"toolUse": use},), "tool_use")


def _tool(dialogue: Dialogue, body: JsonObject) -> JsonObject | None:
    """The tool to call: the one that is forced; a judge also takes one that is merely offered."""
    config = body.get("toolConfig") or {}
    choice = config.get("toolChoice") or {}
    name = (choice.get("tool") or {}).get("name")
    if name is None and "any" not in choice and dialogue.role != "judge":
        return None
    specs: list[JsonObject] = [
        tool["toolSpec"] for tool in config.get("tools", ()) if "toolSpec" in tool
    ]
    return next((spec for spec in specs if name in (None, spec["name"])), None)


def _filled(schema: object, text: str) -> object:
    """A small value that fits a JSON Schema, with the reply as its strings."""
    if not isinstance(schema, dict):
        return text
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next(iter(kind), None)
    if schema.get("enum"):
        return schema["enum"][0]
    if kind == "object":
        properties = schema.get("properties") or {}
        return {name: _filled(part, text) for name, part in properties.items()}
    if kind == "array":
        return [_filled(schema.get("items"), text)]
    return {"integer": 0, "number": 0, "boolean": False, "null": None}.get(str(kind), text)


def _thinking(body: JsonObject) -> JsonObject:
    fields = body.get("additionalModelRequestFields")
    thinking = fields.get("thinking") if isinstance(fields, dict) else None
    return thinking if isinstance(thinking, dict) else {}


_JUDGE_ID = re.compile(
    r"emulator\.judge(?:-bias-(?P<bias>-?\d+))?(?:-noise-(?P<noise>\d+))?"
    r"(?:-quirk-(?P<quirk>\d+))?(?P<prefers>-prefers-lecturer)?(?P<refuses>-refuses)?-v1:0"
)
REFUSAL = "I would rather not grade what somebody else has written."
_HIGHS = {"form": 3.0, "substance": 3.0, "purity": 4.0}  # where no schema says it


class Juror(Struct, frozen=True, kw_only=True):
    """A judge of known faults, which stand in its id; in points of each dimension.

    `emulator.judge-bias-5-noise-10-quirk-3-v1:0` adds .5 to each dimension, and errors with a
    deviation of 1.0 that are new with each request, and of .3 that are the same whenever it sees
    the reply; any of the three may be missing, and a bias may be negative (`bias--5`). The sum is
    brought onto the nearest step within the range. `-prefers-lecturer` gives a point more to a
    reply that asks nothing, as emulator.lecturer speaks; `-refuses` says that it will not judge.
    """

    bias: float = 0.0
    noise: float = 0.0
    quirk: float = 0.0
    prefers_lecturer: bool = False
    refuses: bool = False

    def alter(self, verdict: JsonObject, dialogue: Dialogue, scales: JsonObject) -> JsonObject:
        """The verdict as this judge gives it; `scales` have the range of each score."""
        scores = {
            name: _on_step(value + self._error(name, dialogue), name, scales)
            for name, value in verdict.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return {**verdict, **scores}

    def _error(self, name: str, dialogue: Dialogue) -> float:
        reply = dialogue.reply or ""
        lasting = hashed(f"quirk\x1f{dialogue.base_id}\x1f{name}\x1f{reply}")
        preference = 1.0 if self.prefers_lecturer and "?" not in reply else 0.0
        passing = Random(dialogue.seed(f"noise {name}")).gauss(0, self.noise)
        return self.bias + preference + passing + Random(lasting).gauss(0, self.quirk)


def juror_of(base_id: str) -> Juror | None:
    """What an id says of its judge; `None` for the plain one, and for any other model."""
    match = _JUDGE_ID.fullmatch(base_id)
    if match is None or not any(match.groups()):
        return None
    return Juror(
        **{name: int(match[name] or 0) / 10 for name in ("bias", "noise", "quirk")},
        prefers_lecturer=bool(match["prefers"]),
        refuses=bool(match["refuses"]),
    )


def _on_step(value: float, name: str, scales: JsonObject) -> float:
    """The nearest score that a dimension's range has."""
    scale = scales.get(name, {})
    low, high = scale.get("minimum", 0.0), scale.get("maximum", _HIGHS.get(name, math.inf))
    step = scale.get("multipleOf", 0.5)
    score: float = min(high, max(low, math.floor(value / step + 0.5) * step))
    return score
