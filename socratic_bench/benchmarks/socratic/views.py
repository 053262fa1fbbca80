"""What reports show of the Socratic benchmark, and in which turns a lapse could begin."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from socratic_bench.benchmarks.socratic.metrics_document import DIMENSIONS, EVENTS, UNPRESSED
from socratic_bench.benchmarks.socratic.trend import stretches
from socratic_bench.ports.parts import Caveat, Exposure, MetricGroup, OutcomeList, TurnKind, Views

LAPSE, RECOVERY = "lapse", "recovery"


class _Judged(Struct, frozen=True):
    """A judged turn: its place among those played, the kind of pressure, and its score's side."""

    place: int
    kind: str
    is_under: bool


def exposures(document: Mapping[str, Any]) -> dict[str, Exposure]:
    """The turns of a run in which a lapse could begin, and those in which the tutor could recover.

    A lapse is a row of at least `lapse_turns` judged turns under the half-life's threshold, as in
    `sustained_half_life`; a recovery is a row of as many at or over it. Each begins in its first
    turn. Turns count until the first lapse, and from its end until the first recovery. The last
    turns, after which too few are judged to show a whole row, are at risk of neither. Empty if
    nothing was judged.
    """
    thresholds = document.get("thresholds")
    judged = _judged(document, thresholds["half_life"]) if thresholds else []
    if not thresholds or not judged:
        return {}
    least = thresholds["lapse_turns"]
    lapse = _first_row(judged, 0, least, is_under=True)
    exposures_by_event = {LAPSE: _exposure(judged, 0, lapse, least)}
    if lapse is not None:
        begin = lapse + least
        back = _first_row(judged, begin, least, is_under=False)
        exposures_by_event[RECOVERY] = _exposure(judged, begin, back, least)
    return exposures_by_event


def _judged(document: Mapping[str, Any], threshold: float) -> list[_Judged]:
    played = [turn for turn in document["turns"] if not turn.get("replayed")]
    return [
        _Judged(place, turn.get("pressure") or UNPRESSED, turn["score"] < threshold)
        for place, turn in enumerate(played)
        if turn["score"] is not None
    ]


def _first_row(judged: Sequence[_Judged], begin: int, least: int, *, is_under: bool) -> int | None:
    """Where the first so many turns in a row begin that are all under the threshold, or not."""
    rows = stretches([*enumerate((turn.is_under for turn in judged[begin:]), begin)])
    return next((row.start for row in rows if row.is_under == is_under and row.n >= least), None)


def _exposure(judged: Sequence[_Judged], begin: int, event: int | None, least: int) -> Exposure:
    end = len(judged) - least if event is None else event
    at_risk = judged[begin : end + 1]
    return Exposure(
        turns=[turn.place for turn in at_risk],
        kinds=[turn.kind for turn in at_risk],
        is_event=event is not None,
    )


VIEWS = Views(
    endurance="sustained_half_life",
    endures="keeps asking instead of telling",
    breaks="lasting lapse",
    axes=("discipline", "help"),
    said="student",
    threshold="thresholds.half_life",
    fails_at=0,
    sample="scenario",
    prompt="opening",
    exposures=exposures,
    mean_scores={
        "overall_score": "overall_score",
        **{f"mean_{dimension}": dimension for dimension in DIMENSIONS},
    },
    kinds=(TurnKind(key="pressure", title="Pressure by the student", none="no pressure"),),
    groups=(
        MetricGroup(
            title="Mean by dimension", metrics=[f"mean_{dimension}" for dimension in DIMENSIONS]
        ),
        MetricGroup(
            title="Violations by dimension",
            metrics=[f"violation_rates.{dimension}" for dimension in DIMENSIONS],
        ),
        MetricGroup(
            title="Lapses and recovery",
            metrics=("lapse_rate", "n_lapses", "mean_lapse_turns", "recovery_rate", "half_life"),
        ),
    ),
    events=EVENTS,
    findings=(
        OutcomeList(
            key="insights",
            title="Insights",
            text="insight",
            outcome="outcome",
            outcomes=("reached", "told", "missed"),
        ),
    ),
    facts=(
        Caveat(title="Student", path="student.mode"),
        Caveat(title="Model that plays the student", path="student.model"),
        Caveat(title="Pressure", path="student.pressure"),
        Caveat(title="A lapse is a turn under", path="thresholds.half_life", unit="points"),
        Caveat(title="A lasting lapse is", path="thresholds.lapse_turns", unit="lapses in a row"),
        Caveat(title="Scripted filler", path="student.filler_turns", is_share=True),
    ),
)
