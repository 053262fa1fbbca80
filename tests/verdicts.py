"""Judges' answers by the thousand, good, odd and broken; and what may be read out of one."""

import json
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from socratic_bench.judging.verdict import STOPS, Unreadable, read_verdict
from socratic_bench.turns import Verdict
from socratic_bench.types import Block, Completion, Reasoning, Text, ToolUse
from tests.fakes import DIMENSIONS, RUBRIC, completion

WORDS = (
    "score",
    "10/10",
    "form: 3",
    "{",
    "}",
    '"form": 3',
    "```",
    "```json",
    "\n",
    "null",
    "é",
    "\0",
)
SPOILERS = (
    *(-0.5, 4.5, 7, 10, 2.3, 0.25, 1e308, 10**400, float("nan"), float("inf"), -0.0, 1e-9),
    *("3", "three", "", "3/3", "NaN", True, False, None, [3], {"score": 3}, [], {}),
)
DRAFT = json.dumps(dict.fromkeys(DIMENSIONS, 1))
THOUGHTS = (
    *(f"<thinking>{DRAFT}</thinking>", f"<think>{DRAFT} {{...}}</think>", f"{DRAFT}</reasoning>"),
    *(f"<think>{DRAFT}, ", f'<analysis lang="en">{{"form": {DRAFT}</analysis>\n'),
)
# A number as JSON spells it, after a name in quotes: read apart from the program's own way.
_SAID = re.compile(r'"(form|substance|purity)"\s*:\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=\s*[,}])')


@dataclass(frozen=True)
class Answer:
    """One answer of a judge. `truth` holds its scores where nothing is wrong with it."""

    completion: Completion
    truth: Mapping[str, float] | None


def answers(seed: int, count: int) -> Iterator[Answer]:
    """So many answers, always the same ones for a seed."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _answer(chance)


def read(answer: Answer) -> Verdict | Unreadable:
    return read_verdict(answer.completion, RUBRIC, judge_model="judge")


def assert_true(answer: Answer) -> None:
    """It is read for what it says, or not at all."""
    found = read(answer)
    if answer.truth is not None:
        assert isinstance(found, Verdict), (answer, found)
        assert dict(found.scores) == dict(answer.truth)
    if isinstance(found, Unreadable):
        assert found.reason
        assert found.problem
        return
    assert answer.completion.stop_reason not in STOPS
    said = _said(answer.completion)
    for dimension in RUBRIC.dimensions:
        score = found.scores[dimension.name]
        assert score in said[dimension.name], (answer, found)
        assert dimension.low <= score <= dimension.high
        assert (score * 2).is_integer()


def _said(reply: Completion) -> dict[str, set[float]]:
    """The numbers that stand behind each dimension's name, anywhere in the answer."""
    uses = [block.arguments for block in reply.message.content if isinstance(block, ToolUse)]
    text = "\n".join([*(json.dumps(use) for use in uses), reply.message.text])
    found: dict[str, set[float]] = {name: set() for name in DIMENSIONS}
    for name, number in _SAID.findall(text):
        found[name].add(float(number))
    return found


def _answer(chance: random.Random) -> Answer:
    truth = {d.name: chance.randint(0, int(d.high * 2)) / 2 for d in RUBRIC.dimensions}
    verdict: dict[str, Any] = {
        **{
            name: int(v) if v.is_integer() and chance.random() < 0.5 else v
            for name, v in truth.items()
        },
        "rationale": {name: _words(chance) for name in DIMENSIONS},
    }
    spoiled = chance.random() < 0.5
    if spoiled:
        _spoil(verdict, chance)
    content, whole = _content(verdict, chance)
    stop_reason = chance.choice((*STOPS, "odd")) if chance.random() < 0.1 else "end_turn"
    fine = not spoiled and whole and stop_reason not in STOPS
    return Answer(completion(content, stop_reason=stop_reason), truth if fine else None)


def _spoil(verdict: dict[str, Any], chance: random.Random) -> None:
    name = chance.choice(DIMENSIONS)
    match chance.randrange(6):
        case 0:
            del verdict[name]
        case 1:
            verdict["rationale"] = chance.choice(SPOILERS)
        case 2:
            verdict[name] = {"score": verdict[name]}
        case 3:
            verdict[name.upper()] = verdict.pop(name)
        case _:
            verdict[name] = chance.choice(SPOILERS)


def _content(verdict: dict[str, Any], chance: random.Random) -> tuple[tuple[Block, ...], bool]:
    """The blocks of an answer, and whether they hold the verdict as it is."""
    thought = (Reasoning(json.dumps(dict.fromkeys(DIMENSIONS, 3))),) * chance.randrange(2)
    if chance.random() < 0.4:
        use = ToolUse("use-1", "record_verdict", verdict)
        prose = Text(_words(chance))
        return chance.choice([(*thought, use), (*thought, prose, use), (use, prose)]), True
    text = json.dumps(verdict, indent=chance.choice((None, None, 1)))
    if chance.random() < 0.7:
        return (*thought, Text(chance.choice(DAMAGES)(text, chance))), False
    fenced = f"Here it is:\n```json\n{text}\n```\nThat is all."
    drafted = f"{chance.choice(THOUGHTS)}{text}"
    return (*thought, Text(chance.choice((text, fenced, drafted)))), True


def _cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text))]


def _beheaded(text: str, chance: random.Random) -> str:
    return text[chance.randrange(1, len(text)) :]


def _interrupted(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text))
    return text[:at] + chance.choice(WORDS) + text[at:]


def _followed(text: str, chance: random.Random) -> str:
    return text + json.dumps({**dict.fromkeys(DIMENSIONS, 0.5), "form": chance.randrange(4)})


def _doubled(text: str, chance: random.Random) -> str:
    return text.replace('"form":', f'"form": {chance.randrange(4)}, "form":', 1)


def _deep(text: str, chance: random.Random) -> str:
    return "[" * chance.randrange(1, 3000) + text


def _amid_words(text: str, chance: random.Random) -> str:
    return _words(chance) + text + _words(chance)


DAMAGES = (_cut, _beheaded, _interrupted, _followed, _doubled, _deep, _amid_words)


def _words(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(6)))
