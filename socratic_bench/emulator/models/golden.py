"""Models and a judge for prompts with golden answers: they know the items that the package ships,
and those of a data set of the user's own.

By a model's id its answers are right, half right, wrong, of another form, or refusals. The judge
knows which of them an answer is; of any other it compares the words with those of the golden one.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.emulator.dialogue import Dialogue, JsonObject

_FILE = Path(__file__).parents[2] / "benchmarks" / "golden" / "data" / "items.jsonl"
_MODEL = re.compile(r"emulator\.(right|half-right|wrong|refuses|off-format)-v1:0")
_CRITERION = re.compile(r"criterion_(\d+)")
_SCALE = re.compile(r"^(\w+): (-?\d+) to (-?\d+) in steps of", re.MULTILINE)
_EVENT = re.compile(r"^  (\w+): ", re.MULTILINE)
_WORDS = re.compile(r"\w+")
REFUSAL = "I'm sorry, but I can't help with that."
UNKNOWN = "I do not know this task."
# What OptimizePrompt puts around a prompt. Models that are half right are right about such ones.
OPTIMISED = "Task:\n{}\n\nAnswer completely, in the form that the task asks for."
# By kind of answer: correctness, completeness, relevance, format, coherence, instructions; then the
# place of any other dimension within its range.
_SCORES: Mapping[str, tuple[Sequence[int], float]] = {
    "right": ((5, 5, 5, 5, 5, 5), 1.0),
    "half-right": ((4, 2, 5, 5, 5, 4), 0.5),
    "wrong": ((1, 2, 4, 5, 4, 4), 0.0),
    "off-format": ((4, 4, 4, 1, 3, 2), 0.0),
    "refuses": ((1, 1, 1, 1, 1, 1), 0.0),
}
_NAMES = (
    *("correctness", "completeness", "relevance"),
    *("format", "coherence", "following_instructions"),
)
_QUOTED_CHARACTERS = 160


class KnownItem(Struct, frozen=True):
    """Answers to a prompt by their kind, "" for any; and the weights of its criteria."""

    answers: Mapping[str, str]
    weights: Sequence[float]


_learned: dict[str, KnownItem] = {}


def learn(rows: Iterable[Mapping[str, Any]]) -> None:
    """Let the models of this process know rows of a data set with `emulator_answer`."""
    _learned.update(_read_row(row) for row in rows if "emulator_answer" in row)


def golden_reply(dialogue: Dialogue) -> str | None:
    """The reply of one of these models; `None` for any other model."""
    model = _MODEL.fullmatch(dialogue.base_id)
    if model is None:
        return None
    kind, prompt = model[1], dialogue.latest.strip()
    if kind == "refuses":
        return REFUSAL
    before, after = OPTIMISED.split("{}")
    if prompt.startswith(before) and prompt.endswith(after):
        prompt = prompt.removeprefix(before).removesuffix(after)
        kind = "right" if kind == "half-right" else kind
    item = _find(prompt)
    return item.answers.get(kind, item.answers.get("", UNKNOWN)) if item else UNKNOWN


def optimised_prompt(target: str, prompt: str) -> str | None:
    """What OptimizePrompt makes of a prompt; `None` for a model that it does not support."""
    return None if "refuses" in target else OPTIMISED.format(prompt)


def golden_arguments(system: str) -> JsonObject:
    """The arguments that a judge without a tool is asked for; empty for another rubric."""
    scales = {
        name: {"minimum": int(low), "maximum": int(high)}
        for name, low, high in _SCALE.findall(system)
    }
    events = dict.fromkeys(_EVENT.findall(system.partition("\nevents, each")[2]))
    arguments = {**scales, "events": {"properties": events}}
    return arguments if is_golden(arguments) else {}


def is_golden(properties: JsonObject) -> bool:
    """Whether these arguments of a judge's tool are those of answers beside golden ones."""
    return all(name in properties for name in (*_NAMES, "events"))


def golden_verdict(
    context: Sequence[tuple[str, str]], reply: str, properties: JsonObject
) -> JsonObject:
    """The arguments of the judge's tool call."""
    lines = dict(context)
    item = _find(lines.get("prompt", "").strip())
    kind = _kind_of(reply.strip(), item, lines.get("golden_answer"))
    scores, share = _SCORES[kind]
    verdict: JsonObject = dict(zip(_NAMES, scores, strict=True))
    for name, scale in properties.items():
        if isinstance(scale, dict) and "maximum" in scale and name not in verdict:
            low, high = scale["minimum"], scale["maximum"]
            verdict[name] = low + round(share * (high - low))
    is_long = len(reply) > _QUOTED_CHARACTERS
    quote = reply[:_QUOTED_CHARACTERS].rpartition(" ")[0] if is_long else reply
    names = [*properties["events"].get("properties", ())]
    met = {*_met(kind, item.weights if item else (), names)}
    return {
        "quotes": dict.fromkeys(verdict, quote),
        "events": {name: quote if name in met else None for name in names},
        "rationale": dict.fromkeys(verdict, f"The answer is {kind.replace('-', ' ')}."),
        **verdict,
    }


def _met(kind: str, weights: Sequence[float], names: Sequence[str]) -> Iterable[str]:
    """The events that the judge sees in an answer of a kind."""
    if kind == "refuses":
        yield "declined"
    numbers = [int(match[1]) for name in names if (match := _CRITERION.fullmatch(name))]
    is_good = {n: n > len(weights) or weights[n - 1] > 0 for n in numbers}
    good = [n for n in numbers if is_good[n]]
    true = {"right": good, "off-format": good, "half-right": good[:1]}
    faults = [n for n in numbers if not is_good[n]] if kind == "wrong" else []
    yield from (f"criterion_{n}" for n in (*true.get(kind, ()), *faults))


def _kind_of(reply: str, item: KnownItem | None, golden: str | None) -> str:
    if reply == REFUSAL:
        return "refuses"
    for kind, answer in item.answers.items() if item else ():
        if kind and reply == answer.strip():
            return kind
    if golden is None:
        return "right"
    wanted, given = ({*_WORDS.findall(text.casefold())} for text in (golden, reply))
    share = len(wanted & given) / len(wanted) if wanted else 1.0
    return "right" if share > 0.8 else "half-right" if share > 0.3 else "wrong"  # noqa: PLR2004


def _find(prompt: str) -> KnownItem | None:
    return _learned.get(prompt) or _shipped().get(prompt)


@cache
def _shipped() -> Mapping[str, KnownItem]:
    return dict(map(_read_row, map(json.loads, _FILE.read_text("utf-8").splitlines())))


def _read_row(row: Mapping[str, Any]) -> tuple[str, KnownItem]:
    answers = row["emulator_answer"]
    answers = {"": answers} if isinstance(answers, str) else answers
    golden = row.get("golden_answer")
    answers = {**({"right": golden} if golden and "" not in answers else {}), **answers}
    weights = [criterion.get("weight", 1) for criterion in row.get("criteria") or ()]
    return row["prompt"].strip(), KnownItem(answers, weights)
