"""The simulated judge: reads a tutor's reply by rules of its own and scores it by the rubric.

It knows only the text, and shares no code with the tutors that it judges.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from socratic_bench.emulator.dialogue import Dialogue, JsonObject, hashed

# Quotations are another speaker's words: a question mark in one asks nothing.
QUOTED = re.compile(r"[\"“][^\"“”\n]{1,90}[\"”]")
CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
BETWEEN = re.compile(r"(?<=[.!?])[\"”')\]*_]*\s+|\n+")

PROBES = ("meaning", "assumption", "evidence", "consequence", "alternative")
_LONG_STATEMENT = 40
_BRIEF_REFLECTION = 8
_SHORT_QUESTION = 8
_TELLING = 2


class _Reading(Struct, frozen=True):
    """A reply taken apart into sentences in lower case, without quotations and code."""

    questions: tuple[str, ...]
    statements: tuple[str, ...]
    ends_with_question: bool


def verdict(reply: str) -> JsonObject:
    """The arguments of the judge's tool call."""
    reading = _read(reply)
    scores = {
        "form": _form(reading),
        "substance": _substance(reading),
        "purity": _purity(reading),
    }
    return {
        **{name: score for name, (score, _) in scores.items()},
        "rationale": {name: why for name, (_, why) in scores.items()},
    }


def _read(reply: str) -> _Reading:
    text = QUOTED.sub("X", CODE.sub(" X. ", reply.replace("\u2019", "'")))
    sentences = [part.strip(" *_#>-\t\"”')]").lower() for part in BETWEEN.split(text)]
    sentences = [part for part in sentences if any(map(str.isalpha, part))]
    return _Reading(
        tuple(part for part in sentences if part.endswith("?")),
        tuple(part for part in sentences if not part.endswith("?")),
        bool(sentences) and sentences[-1].endswith("?"),
    )


@cache
def patterns() -> Mapping[str, re.Pattern[str]]:
    rows = _lists()
    named = {**rows["probes"], **rows["second"], **rows}
    return {name: re.compile("|".join(row)) for name, row in named.items() if isinstance(row, list)}


@cache
def word_list(name: str) -> frozenset[str]:
    """A list of plain words."""
    return frozenset(_lists()["words"][name].split())


@cache
def _lists() -> Mapping[str, Any]:
    return tomllib.loads((Path(__file__).parent / "judge_words.toml").read_text("utf-8"))


def has(name: str, text: str) -> bool:
    return bool(patterns()[name].search(text))


def is_closed(question: str) -> bool:
    """Whether it asks for yes or no: it begins with an auxiliary and has no open question later."""
    return has("yes_no", question) and not has("opens_up", question)


def is_open_question(sentence: str) -> bool:
    """Whether it asks a question that yes or no would not answer."""
    question = sentence.strip(" *_#>-\t\"'\u201d)]").lower()
    return question.endswith("?") and not is_closed(question)


def _form(reading: _Reading) -> tuple[float, str]:
    if not reading.questions:
        return 0.0, "The reply asks nothing."
    if all(map(is_closed, reading.questions)):
        return (0.5 if reading.statements else 1.0), "Only a closed question is asked."
    if any(has("prescribes", part) or has("hints", part) for part in reading.statements):
        return (1.5 if reading.ends_with_question else 1.0), "A question is embedded in advice."
    if not reading.ends_with_question:
        return 1.0, "A question is asked, but the reply goes on after it."
    return _form_of_asking(reading)


def _form_of_asking(reading: _Reading) -> tuple[float, str]:
    """The form of a reply that advises nothing and ends with its question."""
    extra = len(reading.questions) - 1
    words = sum(len(part.split()) for part in reading.statements)
    if extra > 1 or words > _LONG_STATEMENT:
        return 1.0, "Several questions, or a question after a long statement."
    if extra:
        return 2.0, "There is one question more than needed."
    if words > _BRIEF_REFLECTION:
        return 2.0, "One question after a statement."
    if words:
        return 2.5, "One question after a brief reflection."
    return 3.0, "Exactly one question and nothing else."


def _substance(reading: _Reading) -> tuple[float, str]:
    """That of the deepest question."""
    if not reading.questions:
        return (0.5 if len(reading.statements) > _TELLING else 0.0), "Nothing is probed."
    return max(_depth(question) for question in reading.questions)


def _depth(question: str) -> tuple[float, str]:
    if has("small_talk", question):
        return 0.5, "The question only keeps the conversation going."
    kinds = [name for name in PROBES if has(name, question)]
    if is_closed(question):
        return (1.0 if kinds else 0.5), "A yes or no settles the question."
    if kinds:
        deep = len(kinds) > 1 or len(question.split()) > _SHORT_QUESTION
        return (3.0 if deep else 2.5), f"It probes: {', '.join(kinds)}."
    return _surface(question)


def _surface(question: str) -> tuple[float, str]:
    if has("basic_fact", question):
        return 1.0, "It asks for a basic fact."
    if has("clarifies", question):
        return 2.0, "It asks for clarification."
    return 1.5, "It stays at the surface."


def _purity(reading: _Reading) -> tuple[float, str]:
    asserts = sum(has("asserts", part) for part in reading.statements)
    only_tells = bool(reading.statements) and not reading.questions
    if any(has("prescribes", part) for part in reading.statements) or (asserts and only_tells):
        return 0.0, "It prescribes a solution or states the answer."
    if asserts >= _TELLING or only_tells:
        return 0.5, "It tells rather than asks."
    if any(has("hints", part) for part in reading.statements):
        return 1.0, "It hints at what to do."
    if asserts:
        return 1.5, "A claim stands before the question."
    return _purity_of_asking(" ".join(reading.questions))


def _purity_of_asking(questions: str) -> tuple[float, str]:
    loaded = len(patterns()["loaded"].findall(questions))
    if leading := has("leads", questions) + has("presupposes", questions):
        return max(0.0, 2.0 - 0.5 * loaded - 0.5 * leading), "The question leads to an answer."
    if loaded:
        return max(1.0, 2.0 - 0.5 * loaded), "Loaded words suggest an answer."
    if has("presupposes_slightly", questions):
        return 3.5, "The question presupposes a little."
    return (4.0, "No answer is embedded.") if questions else (0.0, "There is no reply to read.")


_JUDGE_ID = re.compile(
    r"emulator\.judge(?:-bias-(?P<bias>-?\d+))?(?:-noise-(?P<noise>\d+))?"
    r"(?:-quirk-(?P<quirk>\d+))?(?P<prefers>-prefers-lecturer)?(?P<refuses>-refuses)?-v1:0"
)
REFUSAL = "I would rather not grade what somebody else has written."
_TENTH = 10
_STEP = 0.5
_RANGES = {"form": (0.0, 3.0), "substance": (0.0, 3.0), "purity": (0.0, 4.0)}


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

    def alter(self, verdict: JsonObject, dialogue: Dialogue, schema: object) -> JsonObject:
        """The verdict as this judge gives it; `schema` says the range of each score."""
        scores = {
            name: _on_step(value + self._error(name, dialogue), *_score_range(name, schema))
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
        **{name: int(match[name] or 0) / _TENTH for name in ("bias", "noise", "quirk")},
        prefers_lecturer=bool(match["prefers"]),
        refuses=bool(match["refuses"]),
    )


def _score_range(name: str, schema: object) -> Iterator[float]:
    """Lowest and highest score, and the step between scores."""
    low, high = _RANGES.get(name, (-math.inf, math.inf))
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    scale = properties.get(name) if isinstance(properties, Mapping) else None
    bounds = scale if isinstance(scale, Mapping) else {}
    yield bounds.get("minimum", low)
    yield bounds.get("maximum", high)
    yield bounds.get("multipleOf", _STEP)


def _on_step(value: float, low: float, high: float, step: float) -> float:
    return min(high, max(low, math.floor(value / step + 0.5) * step))
