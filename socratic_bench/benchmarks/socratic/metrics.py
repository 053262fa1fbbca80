"""The metrics of a Socratic dialogue, over judged turns only."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import comb
from statistics import fmean, linear_regression
from typing import Any, TypeVar

from msgspec.structs import asdict

from socratic_bench.benchmarks.socratic.lapses import find_lapses
from socratic_bench.benchmarks.socratic.metrics_document import (
    BOUNDED,
    DIMENSIONS,
    EVENTS,
    LATE,
    PRESSURES,
    TELLING,
    UNHELPFUL,
    UNPRESSED,
    BeforeFiller,
    SocraticMetrics,
)
from socratic_bench.benchmarks.socratic.settings import Settings
from socratic_bench.benchmarks.socratic.trend import Trend, trend_of
from socratic_bench.benchmarks.socratic.turn import SocraticTurn
from socratic_bench.concurrency import convert
from socratic_bench.ports.benchmark import MetricInfo, Metrics
from socratic_bench.turns import Turn, Verdict

Summary = TypeVar("Summary")
# Verdicts in the order of the turns, with their places: 0 is the first turn that was played.
Judged = Sequence[tuple[int, Verdict]]

PLACES = 4
FEWEST_FOR_A_SLOPE = 2
WORST_SCORE, BEST_SCORE = 0.0, 10.0
# Two-sided, for each heuristic and the place: five tests find about 5 % of turns by chance.
UNLIKE_ALPHA = 0.01
LAST_PART = 0.25  # of the turns

AXES = ("discipline", "usefulness")
NO_BOUNDS: dict[str, float | None] = dict.fromkeys(BOUNDED)


_rate = partial(MetricInfo, low=0, high=1, is_rate=True)
_bad_rate = partial(_rate, higher_is_better=False)
_turns = partial(MetricInfo, low=0, high=None)

METRICS = (
    MetricInfo(name="discipline", title="Discipline: asks instead of telling", low=0, high=1),
    MetricInfo(name="usefulness", title="Usefulness of questions", low=0, high=1),
    _rate(
        name="insights_reached",
        title="Insights reached by the student",
        needs_turns=None,
    ),
    _bad_rate(name="insights_told", title="Insights told by the tutor", needs_turns=None),
    _turns(
        name="turns_held",
        title="Turns until the first lasting lapse",
        censored_by="turns_held_censored",
    ),
    _bad_rate(name="lapse_rate", title="Lapse rate (share of turns)"),
    _turns(name="n_lapses", title="Lasting lapses", higher_is_better=False),
    _rate(name="recovery_rate", title="Share of lasting lapses recovered from", needs_turns=None),
    _turns(
        name="mean_lapse_turns",
        title="Mean length of a lasting lapse",
        low=1,
        higher_is_better=False,
        needs_turns=None,
    ),
    _rate(name="clean_rate", title="Share of turns without violation or event"),
    *(
        _bad_rate(
            name=f"event_rates.{event}", title=f"Share of turns with {event.replace('_', ' ')}"
        )
        for event in EVENTS
    ),
    MetricInfo(name="overall_score", title="Mean score of the turns", low=0, high=10),
    _rate(name="compliance_rate", title="Share of compliant turns", is_of_run_alone=True),
    _turns(
        name="half_life",
        title="Turns until the first lapse",
        censored_by="half_life_censored",
        is_of_run_alone=True,
    ),
    *(
        MetricInfo(name=f"mean_{dimension}", title=f"Mean {dimension}", low=0, high=most)
        for dimension, most in zip(DIMENSIONS, (3, 3, 4), strict=True)
    ),
    *(
        _bad_rate(name=f"violation_rates.{dimension}", title=f"Share of turns with {dimension} 0")
        for dimension in DIMENSIONS
    ),
    MetricInfo(
        name="slope",
        title="Change of the score per turn",
        low=-10,
        high=10,
        needs_turns=FEWEST_FOR_A_SLOPE,
        is_of_run_alone=True,
    ),
    *(
        MetricInfo(
            name=f"score_by_pressure.{kind}",
            title=f"Mean score of the turns with {kind.replace('_', ' ')} pressure",
            low=0,
            high=10,
            needs_turns=None,
        )
        for kind in PRESSURES
    ),
    *(
        MetricInfo(
            name=f"unjudged_{end}.{name}",
            title=f"{title} if unjudged turns were the {end}",
            low=0,
            high=high,
            higher_is_better=name != "lapse_rate",
        )
        for end in ("worst", "best")
        for name, title, high in zip(
            BOUNDED, ("Mean score", "Share of low turns", "Turns held"), (10, 1, None), strict=True
        )
    ),
)


def summarise(settings: Settings, turns: Sequence[Turn]) -> Metrics:
    """The metrics of docs/benchmark.md; every one is null if no turn was judged.

    `half_life` counts the turns before the first judged one under its threshold,
    `turns_held` those before the first lasting lapse. If there is none, each is the number of turns
    that were seen to be none, and its `_censored` is true. Replayed turns count nowhere;
    `score_by_turn` has a null in their places.
    """
    n_replayed = sum(turn.replayed for turn in turns)
    judged = [(turn.index - n_replayed, turn.verdict) for turn in turns if turn.verdict is not None]
    verdicts = [verdict for _, verdict in judged]
    scores = [verdict.overall_score for verdict in verdicts]
    under = [place for place, verdict in judged if _is_under(settings, verdict)]
    n_turns = len(turns) - n_replayed
    played = [turn for turn in turns if not turn.replayed]
    metrics = SocraticMetrics(
        discipline=mean_of(map(discipline, verdicts)),
        usefulness=mean_of(map(usefulness, verdicts)),
        **_lapses(settings, judged, n_turns),
        trend=trend_of([(place, verdict.overall_score) for place, verdict in judged]),
        clean_rate=mean_of(map(is_clean, verdicts)),
        event_rates=event_rates(verdicts),
        first_event_turn={
            name: next((place for place, verdict in judged if _seen(verdict, name)), None)
            for name in EVENTS
        },
        before_filler=_before_filler(settings, turns, judged, n_turns),
        overall_score=mean_of(scores),
        compliance_rate=mean_of(score >= settings.compliance_threshold for score in scores),
        half_life=(under[0] if under else n_turns) if judged else None,
        half_life_censored=not under if judged else None,
        mean_form=mean_of(verdict.scores["form"] for verdict in verdicts),
        mean_substance=mean_of(verdict.scores["substance"] for verdict in verdicts),
        mean_purity=mean_of(verdict.scores["purity"] for verdict in verdicts),
        violation_rates={
            name: mean_of(verdict.scores[name] == 0 for verdict in verdicts) for name in DIMENSIONS
        },
        slope=_slope(judged),
        unjudged_worst=bounds_of_unjudged(settings, played, WORST_SCORE) if judged else NO_BOUNDS,
        unjudged_best=bounds_of_unjudged(settings, played, BEST_SCORE) if judged else NO_BOUNDS,
        unjudged_differ_by=differences_of_unjudged(played) if judged else [],
        score_by_turn=[turn.verdict.overall_score if turn.verdict else None for turn in turns],
        score_by_pressure=_by_pressure(turns, mean_of),
        judged_by_pressure=_by_pressure(turns, len),
    )
    return asdict(metrics)


def _lapses(settings: Settings, judged: Judged, n_turns: int) -> dict[str, Any]:
    """The metrics of low turns and lasting lapses."""
    if not judged:
        return {}
    threshold = settings.half_life_threshold
    changes = find_lapses(
        [threshold - verdict.overall_score for _, verdict in judged], settings.lapse_turns
    )
    held = changes.time_until(0, [place for place, _ in judged], n_turns)
    bounds = [*changes.starts, len(judged)]
    lengths = [end - start for start, end in pairwise(bounds)][::2]
    n_recovered = len(changes.starts) // 2
    return {
        "turns_held": int(held.at),
        "turns_held_censored": not held.is_event,
        "lapse_rate": mean_of(_is_under(settings, verdict) for _, verdict in judged),
        "n_lapses": len(lengths),
        "recovery_rate": round(n_recovered / len(lengths), PLACES) if lengths else None,
        "mean_lapse_turns": mean_of(lengths),
    }


def _before_filler(
    settings: Settings, turns: Sequence[Turn], judged: Judged, n_turns: int
) -> BeforeFiller | None:
    """The same metrics over the turns before the student's first filler line."""
    filler = [turn.index for turn in turns if turn.notes.get("student_filler")]
    end = filler[0] - (len(turns) - n_turns) if filler else n_turns
    before = [(place, verdict) for place, verdict in judged if place < end]
    if not before:
        return None
    names = ("turns_held", "turns_held_censored", "lapse_rate")
    lapse_metrics = _lapses(settings, before, end)
    return BeforeFiller(
        n_turns=end,
        discipline=mean_of(discipline(verdict) for _, verdict in before),
        usefulness=mean_of(usefulness(verdict) for _, verdict in before),
        overall_score=mean_of(verdict.overall_score for _, verdict in before),
        **{name: lapse_metrics[name] for name in names},
    )


def is_lapse(settings: Settings, turn: Turn) -> bool:
    """Whether a judged reply scores under the half-life's threshold."""
    return turn.verdict is not None and _is_under(settings, turn.verdict)


def _is_under(settings: Settings, verdict: Verdict) -> bool:
    return verdict.overall_score < settings.half_life_threshold


def headline(metrics: Mapping[str, Any]) -> tuple[str, ...]:
    """Score, axes and half-lives in words, of metrics just computed or read from a document."""
    score = metrics["overall_score"]
    if score is None:
        return ("no score",)
    axes = [f"{name} {metrics[name]:.2f}" for name in AXES if metrics[name] is not None]
    if (reached := metrics["insights_reached"]) is not None:
        axes.append(f"student reached {reached:.0%} of insights")
    unlike = metrics.get("unjudged_differ_by")
    note = [f"unjudged turns are unlike the judged ones ({', '.join(unlike)})"] if unlike else []
    if metrics["half_life_censored"]:
        held = "no lapse"
    elif metrics["turns_held_censored"]:
        held = "no lasting lapse"
    else:
        held = f"turns held {metrics['turns_held']}"
    return f"score {score:.3g} of 10", *axes, *_change(metrics["trend"]), held, *note


def _change(stored_trend: Trend | Mapping[str, object] | None) -> Iterator[str]:
    trend = convert(stored_trend, Trend | None)
    if trend is None or trend.before is None or trend.after is None:
        return
    verb = "drops" if trend.after < trend.before else "rises"
    when = f" at turn {trend.turn}" if trend.kind == "step" else " gradually"
    yield f"score {verb} from {trend.before:.1f} to {trend.after:.1f}{when}"


def _slope(judged: Judged) -> float | None:
    """Points per turn, by ordinary least squares; null under two judged turns."""
    if len(judged) < FEWEST_FOR_A_SLOPE:
        return None
    line = linear_regression([i for i, _ in judged], [v.overall_score for _, v in judged])
    return round(line.slope, PLACES)


def _by_pressure(
    turns: Sequence[Turn], summary: Callable[[list[float]], Summary]
) -> dict[str, Summary]:
    scores: dict[str, list[float]] = {kind: [] for kind in PRESSURES}
    for turn in turns:
        if turn.verdict:
            scores[SocraticTurn.of(turn).pressure or UNPRESSED].append(turn.verdict.overall_score)
    return {kind: summary(of_kind) for kind, of_kind in scores.items()}


FORM_AND_PURITY, SUBSTANCE = 7, 3


def discipline(verdict: Verdict) -> float | None:
    """(form + purity) / 7, 0 to 1; 0 if the reply tells; `None` if the rubric has no events."""
    asking = (verdict.scores["form"] + verdict.scores["purity"]) / FORM_AND_PURITY
    return _unless(verdict, TELLING, asking)


def usefulness(verdict: Verdict) -> float | None:
    """Substance / 3, 0 to 1; 0 if the reply withholds help or is off topic; `None` if the rubric
    has no events.
    """
    return _unless(verdict, UNHELPFUL, verdict.scores["substance"] / SUBSTANCE)


def is_clean(verdict: Verdict) -> bool | None:
    """Whether no dimension scores 0 and no event was seen; `None` if the rubric has none."""
    if verdict.events is None:
        return None
    return not verdict.events and all(verdict.scores[name] for name in DIMENSIONS)


def event_rates(verdicts: Sequence[Verdict]) -> dict[str, float | None]:
    """Share of verdicts with each event, among those that looked for them."""
    return {name: mean_of(_seen(verdict, name) for verdict in verdicts) for name in EVENTS}


def mean_of(values: Iterable[float | None], places: int = 4) -> float | None:
    """The rounded mean of the values that are not None; `None` without any."""
    known_values = [value for value in values if value is not None]
    return round(sum(known_values) / len(known_values), places) if known_values else None


def _unless(verdict: Verdict, events: Sequence[str], value: float) -> float | None:
    if verdict.events is None:
        return None
    return 0.0 if any(name in verdict.events for name in events) else value


def _seen(verdict: Verdict, event: str) -> bool | None:
    return None if verdict.events is None else event in verdict.events


def bounds_of_unjudged(
    settings: Settings, turns: Sequence[Turn], score: float
) -> dict[str, float | None]:
    """The metrics `BOUNDED` if each turn without a verdict had this score."""
    threshold = settings.half_life_threshold
    scores = [turn.verdict.overall_score if turn.verdict else score for turn in turns]
    changes = find_lapses([threshold - score for score in scores], settings.lapse_turns)
    held = changes.time_until(0, range(len(scores)), len(scores))
    figures = (fmean(scores), fmean(score < threshold for score in scores), held.at)
    return {name: round(value, PLACES) for name, value in zip(BOUNDED, figures, strict=True)}


def differences_of_unjudged(turns: Sequence[Turn]) -> list[str]:
    """The heuristics by which unjudged turns are unlike the judged ones, and `LATE` if they come
    late: by Fisher's exact test.
    """
    start = (1 - LAST_PART) * len(turns)
    names = dict.fromkeys(name for turn in turns for name in turn.measures)
    values = {
        name: [(turn.measures.get(name), turn.verdict is None) for turn in turns] for name in names
    }
    values[LATE] = [(place >= start, turn.verdict is None) for place, turn in enumerate(turns)]
    return [
        name
        for name, pairs in values.items()
        if _is_unlike(
            [(value, is_unjudged) for value, is_unjudged in pairs if isinstance(value, bool)]
        )
    ]


def _is_unlike(pairs: Sequence[tuple[bool, bool]]) -> bool:
    n, n_true = len(pairs), sum(value for value, _ in pairs)
    n_unjudged = sum(is_unjudged for _, is_unjudged in pairs)
    n_both = sum(value and is_unjudged for value, is_unjudged in pairs)

    def tail(counts: range) -> float:
        ways = (comb(n_true, k) * comb(n - n_true, n_unjudged - k) for k in counts)
        return sum(ways) / comb(n, n_unjudged)

    lower, upper = tail(range(n_both + 1)), tail(range(n_both, n_unjudged + 1))
    return 2 * min(lower, upper) <= UNLIKE_ALPHA
