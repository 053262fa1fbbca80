"""Judges of known faults: what each makes of the plain judge's verdict stands in its id.

`emulator.judge-bias-5-noise-10-quirk-3-v1:0` adds .5 to each dimension, and errors with a deviation
of 1.0 that are new with each request, and of .3 that are the same whenever it sees the reply; any
of the three may be missing, and a bias may be negative (`bias--5`). The sum is brought onto the
nearest step within the range. `-prefers-lecturer` gives a point more in each dimension to a reply
that asks nothing, as emulator.lecturer speaks; `-refuses` says that it will not judge.
"""

import math
import re
from collections.abc import Iterator, Mapping
from random import Random

from msgspec import Struct

from socratic_bench.emulator.dialogue import Dialogue, JsonObject, hashed

_ID = re.compile(
    r"emulator\.judge(?:-bias-(?P<bias>-?\d+))?(?:-noise-(?P<noise>\d+))?"
    r"(?:-quirk-(?P<quirk>\d+))?(?P<prefers>-prefers-lecturer)?(?P<refuses>-refuses)?-v1:0"
)
REFUSAL = "I would rather not grade what somebody else has written."
_TENTH = 10
_STEP = 0.5
_RANGES = {"form": (0.0, 3.0), "substance": (0.0, 3.0), "purity": (0.0, 4.0)}


class Juror(Struct, frozen=True, kw_only=True):
    """What an id says; points of each dimension, before steps and range."""

    bias: float = 0.0
    noise: float = 0.0
    quirk: float = 0.0
    prefers_lecturer: bool = False
    refuses: bool = False

    def told(self, verdict: JsonObject, dialogue: Dialogue, schema: object) -> JsonObject:
        """The verdict as this judge gives it; `schema` says the range of each score."""
        scores = {
            name: _on_step(value + self._error(name, dialogue), *_range(name, schema))
            for name, value in verdict.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return {**verdict, **scores}

    def _error(self, name: str, dialogue: Dialogue) -> float:
        reply = dialogue.reply or ""
        lasting = hashed(f"quirk\x1f{dialogue.base_id}\x1f{name}\x1f{reply}")
        own = 1.0 if self.prefers_lecturer and "?" not in reply else 0.0
        passing = Random(dialogue.seed(f"noise {name}")).gauss(0, self.noise)
        return self.bias + own + passing + Random(lasting).gauss(0, self.quirk)


def juror_of(base_id: str) -> Juror | None:
    """What an id says of its judge; `None` for the plain one, and for any other model."""
    found = _ID.fullmatch(base_id)
    if found is None or not any(found.groups()):
        return None
    return Juror(
        **{name: int(found[name] or 0) / _TENTH for name in ("bias", "noise", "quirk")},
        prefers_lecturer=bool(found["prefers"]),
        refuses=bool(found["refuses"]),
    )


def _range(name: str, schema: object) -> Iterator[float]:
    """Lowest and highest score, and the step between scores."""
    low, high = _RANGES.get(name, (-math.inf, math.inf))
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    told = properties.get(name) if isinstance(properties, Mapping) else None
    said = told if isinstance(told, Mapping) else {}
    yield said.get("minimum", low)
    yield said.get("maximum", high)
    yield said.get("multipleOf", _STEP)


def _on_step(value: float, low: float, high: float, step: float) -> float:
    return min(high, max(low, math.floor(value / step + 0.5) * step))
