"""How far a survival curve can be trusted at each of its steps."""

from collections.abc import Sequence
from math import exp, fsum, log, sqrt

from socratic_bench.statistics.clusters import FEWEST, NO_ERROR
from socratic_bench.statistics.intervals import Interval
from socratic_bench.statistics.quantiles import t_point
from socratic_bench.statistics.survival import Step, Time


def errors(clusters: Sequence[Sequence[Time]]) -> tuple[float, ...]:
    """The standard error of each step of the curve over all times: the infinitesimal jackknife,
    summed by cluster, so that it is robust against any likeness of the times in one (Therneau and
    Grambsch 2000, Modeling Survival Data, section 2.3). It is Greenwood's (1926) where each cluster
    is a single time, and 0 where the curve has come to 0.
    """
    influences = [0.0] * len(clusters)
    found = []
    share = 1.0
    for at in sorted({one.at for times in clusters for one in times if one.is_event}):
        at_risk = [sum(one.at >= at for one in times) for times in clusters]
        events = [sum(one.at == at and one.is_event for one in times) for times in clusters]
        n, n_left = sum(at_risk), sum(at_risk) - sum(events)
        share *= n_left / n
        if n_left:
            for k, (mine, gone) in enumerate(zip(at_risk, events, strict=True)):
                influences[k] += (mine - gone) / n_left - mine / n
        found.append(share * sqrt(fsum(one**2 for one in influences)))
    return tuple(found)


def band(step: Step, error: float, n_clusters: int) -> Interval | None:
    """95 % limits of a step on the scale log(-log share), on which they stay between 0 and 1
    (Kalbfleisch and Prentice 2002, The Statistical Analysis of Failure Time Data, section 1.4),
    with Student's t in place of the normal point. `None` where there are none: for a single
    cluster, where the curve has come to 0, and where clusters do not differ.

    Raises `ImportError` without scipy.
    """
    if n_clusters < FEWEST or not 0 < step.share < 1 or error < NO_ERROR:
        return None
    reach = t_point(n_clusters - 1) * error / (step.share * -log(step.share))
    return Interval(step.share ** exp(reach), step.share ** exp(-reach))
