"""Times until an event that some runs did not see: the curve, its median, its restricted mean."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

HALF = 0.5
# What is left of a product of fractions that is 1/2 but for rounding counts as 1/2.
ROUNDING = 1e-12


class Time(Struct, frozen=True):
    """When the event came, or, if it had not come, until when it was looked for."""

    at: float
    is_event: bool


class Step(Struct, frozen=True):
    """The share to which the event has not come once `at` is over."""

    at: float
    share: float


def curve(times: Sequence[Time]) -> tuple[Step, ...]:
    """A step for each time at which there were events: Kaplan and Meier 1958 (Journal of the
    American Statistical Association 53: 457). What is censored at a time was at risk then.
    """
    steps: list[Step] = []
    share = 1.0
    for at in sorted({one.at for one in times if one.is_event}):
        n_at_risk = sum(one.at >= at for one in times)
        n_events = sum(one.at == at for one in times if one.is_event)
        share *= 1 - n_events / n_at_risk
        steps.append(Step(at, share))
    return tuple(steps)


def median(steps: Sequence[Step]) -> float | None:
    """The first time by which the event has come to half; `None` if it has not."""
    return next((one.at for one in steps if one.share <= HALF + ROUNDING), None)


def restricted_mean(steps: Sequence[Step], horizon: float) -> float:
    """The mean time without the event, of the first `horizon`: the area below the curve (Royston
    and Parmar 2013, BMC Medical Research Methodology 13: 152).
    """
    corners = [Step(0.0, 1.0), *(one for one in steps if one.at < horizon)]
    ends = [*corners, Step(horizon, 0.0)]
    return sum(one.share * (after.at - one.at) for one, after in pairwise(ends))
