"""Sentences put together from a file of pieces, so that none comes twice in a dialogue.

A reply has a start, a middle and an end. Each list is shuffled by the seed, and turn after turn a
walk steps through starts, middles and the scenario's details at once, in such a way that no
combination returns before all others have had their turn. Ends are drawn on top.
"""

import hashlib
import math
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from socratic_bench.benchmarks.socratic.scenarios.scenario import Age, Scenario
from socratic_bench.benchmarks.socratic.student.seeded import draw, shuffled, walk

Reaction = Literal["answered_open", "answered_closed", "took_advice", "heard_lecture", "prompted"]
_PIECES = Path(__file__).with_name("data") / "phrases.toml"


def sentence(scenario: Scenario, seed: int, kind: Reaction, turn: int, *, said: str) -> str:
    """A reply of this kind that was not `said` before, neither alone nor beside other words."""
    lists = _lists(scenario, seed, kind)
    sizes = [len(pieces) for pieces in lists]
    end = _end(scenario, seed, kind, turn)
    text = ""
    for step in range(math.prod(sizes)):
        text = f"{_compose(scenario, lists, walk(turn + step, sizes))} {end}".strip()
        if f" {text} " not in said:
            break
    return text


def reaction(scenario: Scenario, seed: int, kind: Reaction, turn: int) -> str:
    """Only the start of such a reply: a word of reaction to put before something else."""
    starts = _lists(scenario, seed, kind)[2]
    return starts[turn % len(starts)]


def _compose(scenario: Scenario, lists: Sequence[Sequence[str]], indices: Sequence[int]) -> str:
    middles, details, starts = lists
    middle, detail, start = indices
    terms = {
        "belief": scenario.belief,
        "because": scenario.because,
        "topic": scenario.topic,
        "detail": details[detail],
        "other": details[(detail + 1) % len(details)],
    }
    filled = {name: " ".join(text.split()).rstrip(".!?") for name, text in terms.items()}
    return f"{starts[start]} {middles[middle]}".strip().format_map(filled)


def _end(scenario: Scenario, seed: int, kind: Reaction, turn: int) -> str:
    """Now and then a last sentence in the tone of the student's resistance."""
    ends = _pieces(kind, scenario.age).get(scenario.resistance, [])
    if not ends or draw(seed, scenario.id, kind, "end", turn) % 5 > 1:
        return ""
    return ends[turn % len(ends)]


@lru_cache(maxsize=64)
def _lists(scenario: Scenario, seed: int, kind: Reaction) -> tuple[tuple[str, ...], ...]:
    """Middles, details, starts. The longest list stands first: it is the last to repeat."""
    pieces = _pieces(kind, scenario.age)
    lists = {"middle": pieces["middle"], "details": scenario.details, "start": pieces["start"]}
    return tuple(shuffled(texts, seed, scenario.id, kind, name) for name, texts in lists.items())


def _pieces(kind: Reaction, age: Age) -> dict[str, list[str]]:
    pieces = _all_pieces()
    return pieces.get(f"{kind}_{age}") or pieces[kind]


@cache
def phrases_sha256() -> str:
    """The fingerprint of the file of pieces, to tell apart runs with other pieces."""
    return hashlib.sha256(_PIECES.read_bytes()).hexdigest()


@cache
def _all_pieces() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(_PIECES.read_text(encoding="utf-8"))
