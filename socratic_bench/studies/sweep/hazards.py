"""How likely the benchmark's events are, turn by turn and by kind of turn, clustered by sample."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from socratic_bench.documents.document import FIGURE_PLACES
from socratic_bench.documents.sweep import CellRow, Hazard, Hazards, TurnHazard
from socratic_bench.ports.parts import Exposure
from socratic_bench.statistics.intervals import clustered, wilson_interval
from socratic_bench.studies.sweep.means import Means


class _AtRisk(Struct, frozen=True):
    """A turn in which an event could come."""

    sample: Hashable
    turn: int
    kind: str
    is_event: bool


def hazards(means: Means, rows: Sequence[CellRow]) -> dict[str, Hazards]:
    """Of each event that could come in any of the cells; nothing if a row does not tell of them."""
    if any(row.exposures is None for row in rows):
        return {}
    found: dict[str, list[tuple[Hashable, Exposure]]] = {}
    for row in rows:
        for name, one in (row.exposures or {}).items():
            if one.turns:
                found.setdefault(name, []).append((means.sample_of(row), one))
    return {name: _hazards(exposures, means) for name, exposures in found.items()}


def _hazards(exposures: Sequence[tuple[Hashable, Exposure]], means: Means) -> Hazards:
    at_risk = [one for sample, exposure in exposures for one in _turns(sample, exposure)]
    by_turn: dict[int, list[_AtRisk]] = {}
    by_kind: dict[str, list[_AtRisk]] = {}
    for one in at_risk:
        by_turn.setdefault(one.turn, []).append(one)
        by_kind.setdefault(one.kind, []).append(one)
    return Hazards(
        n=len(exposures),
        n_events=sum(one.is_event for one in at_risk),
        n_clusters=len({sample for sample, _ in exposures}),
        by_turn=[
            TurnHazard(turn=turn, **_hazard(some, means)) for turn, some in sorted(by_turn.items())
        ],
        by_kind={kind: Hazard(**_hazard(some, means)) for kind, some in sorted(by_kind.items())},
    )


def _turns(sample: Hashable, exposure: Exposure) -> Iterator[_AtRisk]:
    for turn, kind in zip(exposure.turns, exposure.kinds, strict=True):
        is_event = exposure.is_event and turn == exposure.turns[-1]
        yield _AtRisk(sample, turn, kind, is_event)


def _hazard(at_risk: Sequence[_AtRisk], means: Means) -> Mapping[str, Any]:
    clusters: dict[Hashable, list[float]] = {}
    for one in at_risk:
        clusters.setdefault(one.sample, []).append(float(one.is_event))
    found = clustered([*clusters.values()])
    interval = wilson_interval(found) if means.method else None
    return {
        "n_at_risk": found.n,
        "n_events": sum(one.is_event for one in at_risk),
        "hazard": round(found.mean, FIGURE_PLACES),
        "low": round(interval.low, FIGURE_PLACES) if interval else None,
        "high": round(interval.high, FIGURE_PLACES) if interval else None,
    }
