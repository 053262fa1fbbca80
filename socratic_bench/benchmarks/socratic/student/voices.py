"""A student's own way of speaking: from its scenario, or one by age where that has none."""

import hashlib
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    Scenario,
    Voice,
    is_english,
    is_unspaced,
)
from socratic_bench.concurrency import convert

VoiceKind = Literal["unsure", "polar", "told", "filler", "moved"]
_FILE = Path(__file__).with_name("data") / "voices.toml"
_LEADS_OF = 3  # one answer of so many begins with one


class _Voices(Struct, frozen=True):
    """The voices of scenarios without one, by age."""

    child: Voice
    grown: Voice


def voice_line(
    scenario: Scenario, seed: int, kinds: Sequence[VoiceKind], history: str
) -> tuple[str, bool]:
    """The line of these kinds that was said least often, and whether it was said before."""
    lines = [line for kind in kinds for line in _lines(scenario, seed, kind)]
    counts = [count(history, line) for line in lines]
    fewest = min(counts)
    return lines[counts.index(fewest)], bool(fewest)


def with_lead(scenario: Scenario, seed: int, turn: int, text: str, last: str) -> str:
    """The text, now and then, and more often at first, after a few words unlike the last's."""
    starts = (_words(text)[0], _words(last)[0])
    leads = [lead for lead in _leads(scenario) if not {*_words(lead)}.intersection(starts)]
    if turn == 1:
        position = (draw(scenario.id, "lead") + seed) % (len(leads) + 1)
    else:
        position = draw(seed, scenario.id, "lead", turn) % max(1, _LEADS_OF * len(leads))
    return f"{leads[position]}{_seam(text)}{text}" if position < len(leads) else text


def count(history: str, text: str) -> int:
    """How often a text was said, alone or beside others, in a history as `joined` makes it."""
    edge = _seam(text)
    return history.count(f"{edge}{text}{edge}")


def joined(texts: Sequence[str]) -> str:
    """The texts joined to a history that `count` can search."""
    return " \n ".join(("", *texts, ""))


def voices_sha256() -> str:
    return hashlib.sha256(_FILE.read_bytes()).hexdigest()


def draw(*reasons: object) -> int:
    """A large number made of the reasons: the same on every machine, spread evenly over reasons."""
    text = "\x1f".join(map(str, reasons))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()[:8])


def shuffled(items: Sequence[str], *reasons: object) -> tuple[str, ...]:
    """The items in an order that the reasons decide."""
    order = sorted(range(len(items)), key=lambda position: (draw(*reasons, position), position))
    return tuple(items[position] for position in order)


def _seam(text: str) -> str:
    """What stands between two sentences."""
    return "" if is_unspaced(text) else " "


def _by_age(scenario: Scenario) -> Voice:
    return _voices().child if scenario.age == "child" else _voices().grown


def _leads(scenario: Scenario) -> tuple[str, ...]:
    leads = (scenario.voice or _by_age(scenario)).lead
    return leads if leads or not is_english(scenario) else _by_age(scenario).lead


@lru_cache(maxsize=1024)
def _lines(scenario: Scenario, seed: int, kind: VoiceKind) -> tuple[str, ...]:
    lines = _patterns(scenario, kind)
    details = shuffled(scenario.details, seed, scenario.id, kind, "details")
    filled = (
        line.replace("{detail}", details[n % len(details)])
        .replace("{topic}", scenario.topic)
        .replace("{belief}", scenario.belief)
        for n, line in enumerate(shuffled(lines, seed, scenario.id, kind))
    )
    return tuple(line[:1].upper() + line[1:] for line in filled)


def _patterns(scenario: Scenario, kind: VoiceKind) -> tuple[str, ...]:
    """The scenario's own lines, or those by age; after an insight none states the belief."""
    voice = scenario.voice or _by_age(scenario)
    lines: tuple[str, ...] = getattr(voice, kind)
    if not lines and is_english(scenario):
        lines = getattr(_by_age(scenario), kind)
    if not lines and kind == "moved":
        lines = tuple(line for line in voice.filler if "{belief}" not in line)
    return lines or voice.unsure


def _words(text: str) -> list[str]:
    return [word.strip(".,!?").casefold() for word in text.split()] or [""]


@cache
def _voices() -> _Voices:
    return convert(tomllib.loads(_FILE.read_text(encoding="utf-8")), _Voices)
