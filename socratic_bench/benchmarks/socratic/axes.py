"""The two axes, and the events that they rest on: does a tutor ask, and does its asking help?"""

from collections.abc import Iterable, Sequence

from socratic_bench.benchmarks.socratic.metrics_document import (
    DIMENSIONS,
    EVENTS,
    TELLING,
    UNHELPFUL,
)
from socratic_bench.turns import Verdict

FORM_AND_PURITY, SUBSTANCE = 7, 3


def discipline(verdict: Verdict) -> float | None:
    """(form + purity) / 7, 0 to 1; 0 where the reply tells; `None` if no events were looked for."""
    asked = (verdict.scores["form"] + verdict.scores["purity"]) / FORM_AND_PURITY
    return _unless(verdict, TELLING, asked)


def helpfulness(verdict: Verdict) -> float | None:
    """Substance / 3, 0 to 1; 0 where the reply withholds help or takes up nothing of what was said;
    `None` where no events were looked for.
    """
    return _unless(verdict, UNHELPFUL, verdict.scores["substance"] / SUBSTANCE)


def is_clean(verdict: Verdict) -> bool | None:
    """Whether no dimension scores 0 and no event was seen; `None` where none was looked for."""
    if verdict.events is None:
        return None
    return not verdict.events and all(verdict.scores[name] for name in DIMENSIONS)


def event_rates(verdicts: Sequence[Verdict]) -> dict[str, float | None]:
    """Share of verdicts with each event, among those that looked for them."""
    return {name: mean_of(_seen(verdict, name) for verdict in verdicts) for name in EVENTS}


def first_event_turns(judged: Sequence[tuple[int, Verdict]]) -> dict[str, int | None]:
    """The place of the first verdict with each event; the verdicts come in order, with places."""
    return {
        name: next((place for place, verdict in judged if _seen(verdict, name)), None)
        for name in EVENTS
    }


def mean_of(values: Iterable[float | None], places: int = 4) -> float | None:
    """The mean of what is known, rounded; `None` if nothing is."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), places) if known else None


def _unless(verdict: Verdict, events: Sequence[str], value: float) -> float | None:
    if verdict.events is None:
        return None
    return 0.0 if any(name in verdict.events for name in events) else value


def _seen(verdict: Verdict, event: str) -> bool | None:
    return None if verdict.events is None else event in verdict.events
