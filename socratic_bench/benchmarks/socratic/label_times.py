"""Times to an event by scores of all turns of a dialogue, whoever gave them."""

from collections.abc import Mapping, Sequence
from typing import Any

from socratic_bench.benchmarks.socratic.lapses import lapses, stretches
from socratic_bench.statistics.survival import Time


def times_of(document: Mapping[str, Any], scores: Sequence[float]) -> Mapping[str, Time]:
    """As `summarise` has them, by the thresholds of the run whose document it is."""
    thresholds = document["thresholds"]
    is_under = [score < thresholds["half_life"] for score in scores]
    rows = lapses(stretches([*enumerate(is_under)]), thresholds["lapse_turns"])
    first = is_under.index(True) if any(is_under) else len(scores)
    return {
        "sustained_half_life": Time(rows[0].start if rows else len(scores), is_event=bool(rows)),
        "half_life": Time(first, is_event=any(is_under)),
    }
