"""When a student pushes for answers, and how: a schedule by the seed, words from a data file.

With `high` pressure every eight turns hold each kind once and one turn without any; with `low` one
of every three turns is pushed, and the kinds come round in turn. Turn 0, the opening, is free.
A dialogue too short for this, with seven turns or more to push in, still has each kind once.
"""

import hashlib
import sys
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    PressureWords,
    Scenario,
    is_unspaced,
)
from socratic_bench.benchmarks.socratic.settings import Pressure
from socratic_bench.benchmarks.socratic.student.voices import draw, shuffled

Kind = Literal[
    "demand", "impatience", "flattery", "authority", "distress", "drop_questions", "false_agreement"
]
KINDS: tuple[Kind, ...] = get_args(Kind)

_FILE = Path(__file__).with_name("data") / "pressure.toml"
_LOW_BLOCK = 3
_HIGH_BLOCK = len(KINDS) + 1


class Push(Struct, frozen=True):
    """One turn's pressure. `round` counts how often its kind came before, from 0."""

    kind: Kind
    round: int


class Schedule(Struct, frozen=True, kw_only=True):
    """Which turns are pushed. Those before `start` are not the student's own: an opening, a replay.

    `n_turns` is how many the dialogue can have, `None` if unlimited. The tutor's replies do not
    matter, so that all tutors are pushed alike for one seed.
    """

    level: Pressure = "none"
    seed: int = 0
    start: int = 1
    n_turns: int | None = None

    def at(self, turn: int) -> Push | None:
        """What is pushed with the student's words that open this turn, counted from 0."""
        if self.level == "none" or turn < max(1, self.start):
            return None
        return self._low(turn - 1) if self.level == "low" else self._high(turn - 1)

    def absent_kinds(self) -> tuple[Kind, ...]:
        """Which kinds do not come before the end, if there is an end and any pressure."""
        if self.level == "none" or self.n_turns is None:
            return ()
        come = {push.kind for push in map(self.at, range(self.n_turns)) if push}
        return tuple(kind for kind in KINDS if kind not in come)

    def _low(self, position: int) -> Push | None:
        """The first seven blocks are as long as there is room for, at most three turns."""
        span = len(KINDS) * _LOW_BLOCK
        if len(KINDS) <= self._room < span:
            span = self._room
        if position < span:
            block = ((position + 1) * len(KINDS) - 1) // span
            first, end = block * span // len(KINDS), (block + 1) * span // len(KINDS)
        else:
            block = len(KINDS) + (position - span) // _LOW_BLOCK
            first = position - (position - span) % _LOW_BLOCK
            end = first + _LOW_BLOCK
        return self._nth(block) if position - first == self._pick(block, end - first) else None

    def _high(self, position: int) -> Push | None:
        block, place = divmod(position, _HIGH_BLOCK)
        free = self._pick(block, _HIGH_BLOCK)
        if self._room == len(KINDS):
            free = len(KINDS)
        if place == free:
            return None
        return self._nth(block * len(KINDS) + place - (place > free))

    @property
    def _room(self) -> int:
        """Turns that may be pushed in the whole dialogue, the opening's not among them."""
        return sys.maxsize if self.n_turns is None else self.n_turns - 1

    def _pick(self, block: int, size: int) -> int:
        return draw(self.seed, "pressure", self.level, block) % size

    def _nth(self, position: int) -> Push:
        """Rounds of all kinds, each round in an order of its own."""
        number, place = divmod(position, len(KINDS))
        order = _order(self.seed, number)
        if number and _order(self.seed, number - 1)[-1] == order[0]:
            # The same kind would come twice running.
            order = (order[1], order[0], *order[2:])
        return Push(order[place], number)


def pushed(scenario: Scenario, seed: int, push: Push, before: str | None = None) -> str:
    """The scripted student's words under pressure: behind what it would have said, or alone."""
    if scenario.pressure:
        return _in_its_language(scenario.pressure, scenario.id, seed, push, before)
    table = _data().get(f"{push.kind}_{scenario.age}") or _data()[push.kind]
    lists = [shuffled(table[part], seed, scenario.id, push.kind, part) for part in ("ask", "lead")]
    ask, lead = walk(push.round, [len(pieces) for pieces in lists])
    detail = scenario.details[push.round % len(scenario.details)]
    start, end = (
        text.format(topic=scenario.topic, detail=detail) for text in (lists[1][lead], lists[0][ask])
    )
    return f"{before or start} {end}"


def _in_its_language(
    words: PressureWords, scenario_id: str, seed: int, push: Push, before: str | None
) -> str:
    """A sentence of the scenario's own, or two of them where nothing else is said."""
    asks = shuffled(getattr(words, push.kind), seed, scenario_id, push.kind)
    ask, other = asks[push.round % len(asks)], asks[(push.round + 1) % len(asks)]
    start = before or (other if other != ask else "")
    return f"{start}{'' if is_unspaced(ask) else ' '}{ask}".strip()


def replaces(kind: Kind) -> bool:
    """Whether words of this kind stand in place of a reply instead of after it."""
    return kind == "false_agreement"


def stands_alone(push: Push, seed: int, turn: int, *, used_up: bool) -> bool:
    """Whether a push is all the student says: in place of a reply, or now and then at the end."""
    return replaces(push.kind) or (used_up and draw(seed, "push alone", turn) % 3 == 0)


def direction(kind: Kind) -> str:
    """What the model that plays the student is told for one reply."""
    data = _data()
    return f"{data['direction']['before']} {data[kind]['direction']} {data['direction']['after']}"


@cache
def pressure_sha256() -> str:
    return hashlib.sha256(_FILE.read_bytes()).hexdigest()


def walk(position: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """One index per list, each moving on, so that all combinations come once before any again."""
    indices = []
    product = 1
    for size in sizes:
        rounds, within = divmod(position, product)
        indices.append((rounds + within) % size)
        product *= size
    return tuple(indices)


@lru_cache(maxsize=1024)
def _order(seed: int, number: int) -> tuple[Kind, ...]:
    """All kinds as they come in one round, before a kind that would come twice running is moved."""
    words = shuffled(KINDS, seed, "pressure kinds", number)
    return tuple(kind for word in words for kind in KINDS if kind == word)


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
