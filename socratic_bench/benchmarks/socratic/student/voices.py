"""A student's own way of speaking: from its scenario, or one by age where that has none."""

import hashlib
import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.cues import GENERAL
from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario, Voice, is_english
from socratic_bench.benchmarks.socratic.scenarios.wording import is_unspaced
from socratic_bench.benchmarks.socratic.student.aspects import ASPECTS
from socratic_bench.benchmarks.socratic.student.kinds import KINDS
from socratic_bench.benchmarks.socratic.student.particulars import PARTICULARS
from socratic_bench.benchmarks.socratic.student.seeded import draw, shuffled
from socratic_bench.benchmarks.socratic.student.shared_words import COMMON
from socratic_bench.concurrency import convert

Kind = Literal["unsure", "polar", "told", "filler", "moved", "recall"]
_DATA = Path(__file__).with_name("data") / "voices.toml"
_LEADS_OF = 3  # one answer of so many begins with one


class _Voices(Struct, frozen=True):
    """By age; `echoes` has, by language and kind, what takes up a question of this kind."""

    child: Voice
    grown: Voice
    echoes: Mapping[str, Mapping[str, tuple[str, ...]]]
    unknown: tuple[str, ...]


def line(scenario: Scenario, seed: int, kinds: Sequence[Kind], said: str) -> tuple[str, bool]:
    """The line of these kinds that was said least, and whether it was said before.

    Of several that were said as often, the first of the first kind, in an order by the seed.
    """
    lines = [text for kind in kinds for text in _lines(scenario, seed, kind)]
    counts = [count(said, text) for text in lines]
    fewest = min(counts)
    return lines[counts.index(fewest)], bool(fewest)


def echoed(scenario: Scenario, seed: int, kinds: Collection[str], said: str) -> str:
    """A few words that take up what was asked, by its kind, with the seam behind them.

    Each of them comes once; empty where all were said, and in a language without any.
    """
    by_kind = _data().echoes.get(scenario.language.partition("-")[0].casefold(), {})
    echoes = (
        echo
        for kind in sorted(kinds)
        for echo in shuffled(by_kind.get(kind, ()), seed, scenario.id, "echo", kind)
    )
    return next((f"{echo}{seam(echo)}" for echo in echoes if echo not in said), "")


def unknown(scenario: Scenario, seed: int, thing: str, said: str) -> str:
    """That nothing is known about a thing, with the seam behind it; empty in other languages."""
    if not is_english(scenario):
        return ""
    lines = shuffled(_data().unknown, seed, scenario.id, "unknown")
    text = min(lines, key=lambda one: said.count(one.partition("{thing}")[0]))
    text = text.replace("{thing}", thing)
    return f"{text[:1].upper()}{text[1:]} "


def unknown_fact(scenario: Scenario, word: str, said: str) -> str:
    """That who, when or how many is not known, once, with the seam behind it; only in English."""
    text = f"{word} exactly, I don't know. "
    return text if is_english(scenario) and text not in said else ""


def with_lead(scenario: Scenario, seed: int, turn: int, text: str, last: str) -> str:
    """The words, now and then with a few before them, and not those of the last time.

    The first answer has them more often: so seeds next to each other differ from there on.
    """
    starts = (_words(text)[0], _words(last)[0])
    leads = [lead for lead in _leads(scenario) if not {*_words(lead)}.intersection(starts)]
    if turn == 1:
        drawn = (draw(scenario.id, "lead") + seed) % (len(leads) + 1)
    else:
        drawn = draw(seed, scenario.id, "lead", turn) % max(1, _LEADS_OF * len(leads))
    return f"{leads[drawn]}{seam(text)}{text}" if drawn < len(leads) else text


def count(said: str, text: str) -> int:
    """How often these words were said, alone or beside others; see `joined`."""
    edge = seam(text)
    return said.count(f"{edge}{text}{edge}")


def joined(words: Sequence[str]) -> str:
    """All that was said, to be looked through by `count`."""
    return " \n ".join(("", *words, ""))


def seam(text: str) -> str:
    """What stands between two sentences."""
    return "" if is_unspaced(text) else " "


def _of_age(scenario: Scenario) -> Voice:
    return _data().child if scenario.age == "child" else _data().grown


def _leads(scenario: Scenario) -> tuple[str, ...]:
    own = (scenario.voice or _of_age(scenario)).lead
    return own if own or not is_english(scenario) else _of_age(scenario).lead


def voices_sha256() -> str:
    """The fingerprint of the voices by age, of general questions and of common words."""
    files = (_DATA, KINDS, COMMON, ASPECTS, PARTICULARS)
    parts = (repr(GENERAL).encode(), *(one.read_bytes() for one in files))
    return hashlib.sha256(b"".join(parts)).hexdigest()


@lru_cache(maxsize=1024)
def _lines(scenario: Scenario, seed: int, kind: Kind) -> tuple[str, ...]:
    lines = _own_lines(scenario, kind)
    details = shuffled(scenario.details, seed, scenario.id, kind, "details")
    filled = (
        text.replace("{detail}", details[n % len(details)])
        .replace("{topic}", scenario.topic)
        .replace("{belief}", scenario.belief)
        for n, text in enumerate(shuffled(lines, seed, scenario.id, kind))
    )
    return tuple(text[:1].upper() + text[1:] for text in filled)


def _own_lines(scenario: Scenario, kind: Kind) -> tuple[str, ...]:
    """A scenario's own; where it has none, those by age, or others in its language.

    Lines for after an insight do not state the belief.
    """
    voice = scenario.voice or _of_age(scenario)
    lines: tuple[str, ...] = getattr(voice, kind)
    if not lines and is_english(scenario):
        lines = getattr(_of_age(scenario), kind)
    if not lines and kind == "moved":
        lines = tuple(one for one in voice.filler if "{belief}" not in one)
    return lines or voice.unsure


def _words(text: str) -> list[str]:
    return [word.strip(".,!?").casefold() for word in text.split()] or [""]


@cache
def _data() -> _Voices:
    return convert(tomllib.loads(_DATA.read_text(encoding="utf-8")), _Voices)
