"""How long models go without an event that ends what is asked of them."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from msgspec import Struct

from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.runs.gates import metric_at
from socratic_bench.statistics.bootstrap import Limits, in_fixed_order, survival_limits
from socratic_bench.statistics.survival import Step, Time, curve, median, restricted_mean
from socratic_bench.studies.report.rows import RunRow
from socratic_bench.studies.report.study import SHARE, Estimate, Study

FEWEST_LATE = 2


class Endurance(Struct, frozen=True, kw_only=True):
    """Times until the event over the runs of one model: `held` is the mean of the first `horizon`
    turns, `median` when it had come to half, and `without` the share of runs that never saw it.
    `n_late` of these end in turns that fall short, which may be how it begins.
    """

    n: int
    n_events: int
    n_late: int
    horizon: float
    held: Estimate
    median: float | None
    median_limits: Limits
    steps: Sequence[Step]
    times: Sequence[Time]
    without: Estimate


def endurances(study: Study) -> Mapping[str, Endurance]:
    """By model, at one horizon: the longest that runs of every model were."""
    metric = study.ordering
    if metric.censored_by is None:
        return {}
    clusters = {model: _clusters(study, runs, metric) for model, runs in study.runs.items()}
    known = {model: found for model, found in clusters.items() if found}
    if not known:
        return {}
    longest = [max(run.stored.keys.n_turns for run in study.runs[model]) for model in known]
    horizon = float(max(1, min(longest)))
    return {
        model: _endurance(study, study.runs[model], some, metric, horizon)
        for model, some in known.items()
    }


def _clusters(study: Study, runs: Sequence[RunRow], metric: MetricInfo) -> list[list[Time]]:
    found: dict[Hashable, list[Time]] = defaultdict(list)
    for run in runs:
        time = time_of(run, metric)
        if time is not None:
            found[study.cluster_of(run)].append(time)
    return [*found.values()]


def time_of(run: RunRow, metric: MetricInfo) -> Time | None:
    """When the event came in a run, or until when it was looked for."""
    at = run.metrics[metric.name]
    if at is None or metric.censored_by is None:
        return None
    is_censored = metric_at(metric.censored_by, run.document["metrics"])
    return Time(at, is_event=not is_censored)


def _is_late(study: Study, run: RunRow, metric: MetricInfo) -> bool:
    """Whether a run without the event ends in turns that fall short; one alone may be noise."""
    time, path = time_of(run, metric), study.views.threshold
    threshold = run.at(path) if path else None
    if time is None or time.is_event or threshold is None:
        return False
    scores = [one.score for one in run.turns if one.score is not None and not one.is_replayed]
    last = scores[-FEWEST_LATE:]
    return len(last) == FEWEST_LATE and all(one < threshold for one in last)


def _endurance(
    study: Study,
    runs: Sequence[RunRow],
    clusters: Sequence[Sequence[Time]],
    metric: MetricInfo,
    horizon: float,
) -> Endurance:
    times = [one for some in clusters for one in some]
    steps = curve(times)
    limits = survival_limits(in_fixed_order(clusters), horizon)

    known = [(run, time) for run in runs if (time := time_of(run, metric))]
    without = study.estimate(((run, float(not time.is_event)) for run, time in known), SHARE)
    if without is None:
        raise ValueError("no run has a time")
    return Endurance(
        n=len(times),
        n_events=sum(one.is_event for one in times),
        n_late=sum(_is_late(study, run, metric) for run in runs),
        horizon=horizon,
        held=Estimate(
            mean=restricted_mean(steps, horizon),
            low=limits.restricted_mean.low,
            high=limits.restricted_mean.high,
            n=len(times),
            n_clusters=len(clusters),
        ),
        median=median(steps),
        median_limits=limits.median,
        steps=steps,
        times=times,
        without=without,
    )
