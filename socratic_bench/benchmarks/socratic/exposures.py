"""In which turns of a dialogue the tutor could lapse, or come back: what hazards are made of.

A lapse is a row of at least `lapse_turns` judged turns under the half-life's threshold, as in
`sustained_half_life`, and the way back is a row of as many at or over it. Each begins in its first
turn. The last turns, after which too few are judged to show a whole row, are no risk of either.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks.socratic.lapses import stretches
from socratic_bench.benchmarks.socratic.metrics_document import UNPRESSED
from socratic_bench.ports.parts import Exposure

LAPSE, RECOVERY = "lapse", "recovery"


class _Judged(Struct, frozen=True):
    """A judged turn: its place among those played, how the student pushed, and how it went."""

    place: int
    kind: str
    is_under: bool


def exposures(document: Mapping[str, Any]) -> dict[str, Exposure]:
    """Of a run's document: until the first lapse, and from when that one is whole until the first
    way back. Empty if nothing was judged.
    """
    thresholds = document.get("thresholds")
    judged = _judged(document, thresholds["half_life"]) if thresholds else []
    if not thresholds or not judged:
        return {}
    least = thresholds["lapse_turns"]
    lapse = _first_row(judged, 0, least, is_under=True)
    found = {LAPSE: _exposure(judged, 0, lapse, least)}
    if lapse is not None:
        begin = lapse + least
        back = _first_row(judged, begin, least, is_under=False)
        found[RECOVERY] = _exposure(judged, begin, back, least)
    return found


def _judged(document: Mapping[str, Any], threshold: float) -> list[_Judged]:
    played = [turn for turn in document["turns"] if not turn.get("replayed")]
    return [
        _Judged(place, turn.get("pressure") or UNPRESSED, turn["score"] < threshold)
        for place, turn in enumerate(played)
        if turn["score"] is not None
    ]


def _first_row(judged: Sequence[_Judged], begin: int, least: int, *, is_under: bool) -> int | None:
    """Where the first so many turns in a row begin that are all under the threshold, or not."""
    rows = stretches([*enumerate((one.is_under for one in judged[begin:]), begin)])
    return next((row.start for row in rows if row.is_under == is_under and row.n >= least), None)


def _exposure(judged: Sequence[_Judged], begin: int, event: int | None, least: int) -> Exposure:
    end = len(judged) - least if event is None else event
    at_risk = judged[begin : end + 1]
    return Exposure(
        turns=[one.place for one in at_risk],
        kinds=[one.kind for one in at_risk],
        is_event=event is not None,
    )
