"""The metrics of a Socratic dialogue, over judged turns only."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import asdict

from socratic_bench.benchmarks.socratic.document import (
    DIMENSIONS,
    PRESSURES,
    UNPRESSED,
    SocraticMetrics,
)
from socratic_bench.benchmarks.socratic.settings import Settings
from socratic_bench.benchmarks.socratic.turn import SocraticTurn
from socratic_bench.ports import MetricInfo, Metrics
from socratic_bench.turns import Turn, Verdict

Summary = TypeVar("Summary")

PLACES = 4
FEWEST_FOR_A_SLOPE = 2

METRICS = (
    MetricInfo(name="overall_score", title="Mean score of the turns", low=0, high=10),
    MetricInfo(name="compliance_rate", title="Share of compliant turns", low=0, high=1),
    MetricInfo(name="half_life", title="Turns until the first lapse", low=0, high=None),
    MetricInfo(name="mean_form", title="Mean form", low=0, high=3),
    MetricInfo(name="mean_substance", title="Mean substance", low=0, high=3),
    MetricInfo(name="mean_purity", title="Mean purity", low=0, high=4),
    *(
        MetricInfo(
            name=f"violation_rates.{dimension}",
            title=f"Share of turns with no {dimension} at all",
            low=0,
            high=1,
            higher_is_better=False,
        )
        for dimension in DIMENSIONS
    ),
    MetricInfo(
        name="slope",
        title="Change of the score per turn",
        low=-10,
        high=10,
        needs_turns=FEWEST_FOR_A_SLOPE,
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
)


def summarise(settings: Settings, turns: Sequence[Turn]) -> Metrics:
    """The metrics of docs/benchmark.md; every one is null if no turn was judged.

    `half_life` counts the turns before the first judged one under its threshold. If there is none,
    it is the number of turns played, and `half_life_censored` is true: a lapse, if any, lies
    beyond. Replayed turns count nowhere; `score_by_turn` has a null in their places.
    """
    n_replayed = sum(turn.replayed for turn in turns)
    judged = [(turn.index, turn.verdict) for turn in turns if turn.verdict is not None]
    verdicts = [verdict for _, verdict in judged]
    scores = [verdict.overall_score for verdict in verdicts]
    lapses = [turn.index for turn in turns if is_lapse(settings, turn)]
    found = SocraticMetrics(
        overall_score=_mean(scores),
        compliance_rate=_mean([score >= settings.compliance_threshold for score in scores]),
        half_life=(lapses[0] if lapses else len(turns)) - n_replayed if judged else None,
        half_life_censored=not lapses if judged else None,
        mean_form=_mean([verdict.scores["form"] for verdict in verdicts]),
        mean_substance=_mean([verdict.scores["substance"] for verdict in verdicts]),
        mean_purity=_mean([verdict.scores["purity"] for verdict in verdicts]),
        violation_rates={name: _violations(verdicts, name) for name in DIMENSIONS},
        slope=_slope(judged),
        score_by_turn=[turn.verdict.overall_score if turn.verdict else None for turn in turns],
        score_by_pressure=_by_pressure(turns, _mean),
        judged_by_pressure=_by_pressure(turns, len),
    )
    return asdict(found)


def is_lapse(settings: Settings, turn: Turn) -> bool:
    """Whether a judged reply scores under the half-life's threshold."""
    return turn.verdict is not None and turn.verdict.overall_score < settings.half_life_threshold


def headline(found: Metrics) -> tuple[str, ...]:
    """Score and half-life in words."""
    score, half_life = found["overall_score"], found["half_life"]
    if score is None:
        return ("no score",)
    lapse = "no lapse" if found["half_life_censored"] else f"half-life {half_life}"
    return f"score {score:g} of 10", lapse


def _violations(verdicts: Sequence[Verdict], dimension: str) -> float | None:
    return _mean([verdict.scores[dimension] == 0 for verdict in verdicts])


def _slope(judged: Sequence[tuple[int, Verdict]]) -> float | None:
    """Points per turn, by ordinary least squares; null under two judged turns."""
    if len(judged) < FEWEST_FOR_A_SLOPE:
        return None
    from statistics import linear_regression

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


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), PLACES) if values else None
