"""Whether the scores of a dialogue changed: at a turn, from turn to turn, or not at all."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import log
from statistics import median
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from socratic_bench.types import doc

FEWEST = 6
SHORTEST = 3  # judged turns on each side of a step
PLACES = 4
# By judged turns: what F of the better model, the best step or the line, exceeds in 3 % of series
# of independent normal scores without a change (40,000 simulated for each length; linear between).
# Worsley, JASA 74 (1979), tabulates the same for the step alone.
CRITICAL = (
    *((6, 15.2), (8, 13.9), (10, 13.2), (15, 12.0), (20, 11.5), (30, 11.1)),
    *((40, 10.9), (100, 10.9), (200, 11.2), (500, 11.7)),
)

# A lapse of one or two turns alone is no change. It lies further from the median of the five turns
# around it than this many deviations, which are estimated by the median, and by as many points.
WINDOW, DEVIATIONS, LEAST_POINTS = 5, 3.0, 1.5
_TO_DEVIATION = 1.4826  # of a normal distribution's median absolute deviation

Point = Annotated[float, Meta(ge=-10, le=20)]


class Trend(Struct, frozen=True, kw_only=True):
    """How the scores went over the judged turns."""

    kind: Annotated[
        Literal["none", "step", "slope"],
        doc(
            "step: from one turn on they are others; slope: they change from turn to turn; none: "
            "no change that a noisy judge, or lapses of a turn or two, could not have made up"
        ),
    ]
    turn: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        doc("the first turn after a step, counted as in half_life; null without one"),
    ] = None
    before: Annotated[
        Point | None,
        doc("mean score before the step, or the slope's line at the first judged turn"),
    ] = None
    after: Annotated[
        Point | None, doc("mean score from the step on, or the line at the last judged turn")
    ] = None
    slope_per_turn: Annotated[
        Annotated[float, Meta(ge=-10, le=10)] | None,
        doc("points of score per turn; null without a slope"),
    ] = None


class _Fit(NamedTuple):
    """A model of the scores, and the sum of squares that it explains."""

    explained: float
    trend: Trend


def trend_of(scores: Sequence[tuple[float, float]]) -> Trend | None:
    """The trend of judged turns, as (index, score) in order; `None` under 6 of them.

    A step (two means) and a line (least squares) are fitted. If neither explains more than chance,
    or only together with isolated lapses, the kind is none. Otherwise it is the one that the
    Bayesian information criterion (Schwarz, Annals of Statistics 6, 1978) prefers; a step has one
    more parameter, its turn.
    """
    if len(scores) < FEWEST:
        return None
    trend = _fitted(scores)
    is_lasting = trend.kind == "none" or _fitted(_without_lapses(scores)).kind != "none"
    return trend if is_lasting else Trend(kind="none")


def _without_lapses(scores: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The scores with isolated ones far off at the median around them (Hampel, Journal of the
    American Statistical Association 69, 1974).
    """
    values = [score for _, score in scores]
    starts = (max(0, min(at - WINDOW // 2, len(values) - WINDOW)) for at in range(len(values)))
    middles = [median(values[start : start + WINDOW]) for start in starts]
    off = [abs(score - middle) for score, middle in zip(values, middles, strict=True)]
    most = max(LEAST_POINTS, DEVIATIONS * _TO_DEVIATION * median(off))
    return [
        (index, middle if far > most else score)
        for (index, score), middle, far in zip(scores, middles, off, strict=True)
    ]


def _fitted(scores: Sequence[tuple[float, float]]) -> Trend:
    n = len(scores)
    mean = sum(score for _, score in scores) / n
    total = sum((score - mean) ** 2 for _, score in scores)
    step, line = max(_steps(scores), key=lambda fit: fit.explained), _line(scores, mean)
    explained = max(step.explained, line.explained)
    if not (total > 0 and explained * (n - 2) > _critical(n) * (total - explained)):
        return Trend(kind="none")
    least = total * 1e-9
    step_residual, line_residual = (max(total - fit.explained, least) for fit in (step, line))
    return step.trend if n * log(line_residual / step_residual) > log(n) else line.trend


def _critical(n: int) -> float:
    at = bisect_left(CRITICAL, (n, 0.0))
    if at == len(CRITICAL):
        return CRITICAL[-1][1]
    (low, least), (high, most) = CRITICAL[max(0, at - 1)], CRITICAL[at]
    return most if high == low else least + (most - least) * (n - low) / (high - low)


def _steps(scores: Sequence[tuple[float, float]]) -> Iterator[_Fit]:
    """Every way to cut the turns in two, each part no shorter than `SHORTEST`."""
    n, sums = len(scores), list(accumulate(score for _, score in scores))
    whole = sums[-1] ** 2 / n
    for k in range(SHORTEST, n - SHORTEST + 1):
        before, after = sums[k - 1] / k, (sums[-1] - sums[k - 1]) / (n - k)
        explained = k * before**2 + (n - k) * after**2 - whole
        trend = Trend(
            kind="step",
            turn=int(scores[k][0]),
            before=round(before, PLACES),
            after=round(after, PLACES),
        )
        yield _Fit(explained, trend)


def _line(scores: Sequence[tuple[float, float]], mean: float) -> _Fit:
    middle = sum(index for index, _ in scores) / len(scores)
    spread = sum((index - middle) ** 2 for index, _ in scores)
    together = sum((index - middle) * score for index, score in scores)
    slope = together / spread
    first, last = (mean + slope * (scores[at][0] - middle) for at in (0, -1))
    trend = Trend(
        kind="slope",
        before=round(first, PLACES),
        after=round(last, PLACES),
        slope_per_turn=round(slope, PLACES),
    )
    return _Fit(slope * together, trend)
