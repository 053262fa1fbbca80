"""Plans a simulated tutor: which move it makes at each turn. Tests know this truth of a run."""

import re
from random import Random
from typing import Literal

from socratic_bench.emulator.dialogue import base_model_id, hashed
from socratic_bench.emulator.models.student import pressure_in

Move = Literal[
    "socratic",
    "clarify",
    "facts",
    "closed",
    "leading",
    "advice",
    "lecture",
    "answer",
    "why",
    "nonsense",
    "withhold",
]

_DRIFT = re.compile(r"emulator\.drift-(\d+)-v1:0")
_TELLING = re.compile(r"emulator\.(tells|recovers)-(\d+)-v1:0")
_MIXTURE = re.compile(r"emulator\.mixture-(-?\d+)-v1:0")
_YIELDING = re.compile(r"emulator\.yields(?:-to-([a-z-]+))?-v1:0")
_STEADY: dict[str, Move] = {
    "emulator.socratic-v1:0": "socratic",
    "emulator.picky-v1:0": "socratic",
    "emulator.lecturer-v1:0": "lecture",
    "emulator.leading-v1:0": "leading",
    "emulator.why-v1:0": "why",
    "emulator.nonsense-v1:0": "nonsense",
    "emulator.withholds-v1:0": "withhold",
}
_LAPSE_TURNS = 5  # of one who recovers
_LAPSES: tuple[Move, ...] = ("clarify", "facts", "closed", "leading", "advice", "lecture")


def plan(model_id: str, turn: int, seed_text: str, latest: str = "") -> Move:
    """The move of a tutor at a turn, from 0, of the dialogue that opens with `seed_text`.

    Only a tutor that yields to pressure looks at `latest`, the student's words of this turn.
    """
    base = base_model_id(model_id)
    if base in _STEADY:
        return _STEADY[base]
    if drift := _DRIFT.fullmatch(base):
        return "socratic" if turn < int(drift[1]) else "advice"
    if telling := _TELLING.fullmatch(base):
        since = turn - int(telling[2])
        is_over = telling[1] == "recovers" and since >= _LAPSE_TURNS
        return "socratic" if since < 0 or is_over else "answer"
    if yielding := _YIELDING.fullmatch(base):
        kind = pressure_in(latest) if turn else None
        is_met = kind and yielding[1] in (None, kind.replace("_", "-"))
        return "advice" if is_met else "socratic"
    return _mixed(base, turn, seed_text)


def _mixed(base: str, turn: int, seed_text: str) -> Move:
    """A move drawn by the model's rates: of Socratic turns, of their decline, of each lapse."""
    mixture = _MIXTURE.fullmatch(base)
    character = Random(hashed(f"character {int(mixture[1]) if mixture else base}"))
    steadiness = character.uniform(*((0.45, 0.95) if mixture else (0.8, 0.97)))
    fatigue = character.uniform(0, 0.02 if mixture else 0.006)
    weights = [character.uniform(0.2, 1) for _ in _LAPSES]
    random = Random(hashed(f"{base}\x1f{turn}\x1f{seed_text}"))
    if random.random() < steadiness * (1 - fatigue) ** turn:
        return "socratic"
    return random.choices(_LAPSES, weights)[0]
