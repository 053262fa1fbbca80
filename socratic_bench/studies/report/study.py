"""Figures by model that all sections of a report share: order, means, intervals, ties, and times
until an event.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from statistics import fmean

from msgspec import Struct

from socratic_bench.documents.sweep import Mean
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.ports.parts import Views
from socratic_bench.runs.gates import metric_at
from socratic_bench.statistics.bootstrap import Limits, Method, in_fixed_order, survival_limits
from socratic_bench.statistics.differences import ALPHA, sign_flip_p, subset_means
from socratic_bench.statistics.intervals import clustered
from socratic_bench.statistics.survival import Step, Time, curve, median, restricted_mean
from socratic_bench.studies.figures import (
    differences_by_cluster,
    interval_of,
    mean_of,
    values_of,
)
from socratic_bench.studies.groups import Group, design_of, pair_runs
from socratic_bench.studies.report.rows import Rows
from socratic_bench.studies.rows import RunRow, TurnRow
from socratic_bench.studies.times import common_horizon, times_by_cluster
from socratic_bench.types import plural

METHOD: Method = "t"
# More panels in one chart tell nobody anything, and colours and shapes would come twice.
MOST_PANELS = 8
SHARE = MetricInfo(name="share", title="Share", low=0, high=1, is_rate=True)
FEWEST_LATE = 2


class Estimate(Struct, frozen=True, kw_only=True):
    """A mean over `n` values in `n_clusters` clusters with its 95 % interval, `None` where there is
    none.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    n_clusters: int

    @property
    def chart_values(self) -> Mapping[str, float]:
        """Values for a chart; an unknown limit is drawn at the mean."""
        low, high = (self.mean if end is None else end for end in (self.low, self.high))
        return {"value": self.mean, "low": low, "high": high}


class Study:
    """Rows with their figures. `ranked` are the models, ordered by the metric `ordering` from best
    to worst.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.views: Views = rows.benchmark.views
        self.metrics = {metric.name: metric for metric in rows.benchmark.metrics}
        self.ordering = self.metrics[self.views.endurance or rows.benchmark.primary_metric]
        self.primary = self.metrics[rows.benchmark.primary_metric]
        self.design = design_of(rows.runs, METHOD)

    @property
    def panel_models(self) -> list[str]:
        """The best models, which have a panel in charts with one panel per model."""
        return self.ranked[:MOST_PANELS]

    @property
    def models_note(self) -> str:
        """The note on shown models in titles of such charts."""
        n = len(self.ranked)
        return f" (the {MOST_PANELS} best of {n} models)" if n > MOST_PANELS else ""

    @cached_property
    def runs(self) -> Mapping[str, Sequence[RunRow]]:
        """The runs of each model, in the order of `ranked`."""
        return {model: self.rows.of(model) for model in self.ranked}

    @cached_property
    def ranked(self) -> list[str]:
        """Ties in `ordering` are ordered by the primary metric; unknown values come last."""

        def place(model: str) -> tuple[tuple[bool, float], ...]:
            runs = self.rows.of(model)
            return tuple(
                _place(metric, self.mean(metric, runs)) for metric in (self.ordering, self.primary)
            )

        return sorted(self.rows.models, key=lambda model: (place(model), model))

    def mean(self, metric: MetricInfo, runs: Iterable[RunRow]) -> Estimate | None:
        """Mean of a metric over runs in which it is known, or over the parts of its items."""
        clusters: dict[Hashable, list[float]] = defaultdict(list)
        for run in runs:
            for key, value in values_of(run, metric.name, self.cluster_of(run)).items():
                clusters[key].append(value)
        return _estimate(clusters, metric)

    @cached_property
    def is_of_parts(self) -> bool:
        """Whether values of the primary metric are those of items."""
        return any(run.parts.get(self.primary.name) for run in self.rows.runs)

    @property
    def clusters(self) -> str:
        """What intervals are clustered by, as a plural noun."""
        cluster = self.views.prompt if len(self.rows.samples) == 1 else self.views.sample
        return f"{cluster}s"

    @property
    def groups(self) -> list[Group]:
        """The runs of each model as `compare` groups them."""
        return [
            Group(name=model, model=model, runs=tuple(runs)) for model, runs in self.runs.items()
        ]

    def whole(self, model: str) -> Mean:
        """The primary metric of a model's runs, as `compare` computes it."""
        return mean_of(self.rows.of(model), self.primary, self.design)

    def over_turns(
        self, runs: Iterable[RunRow], value: Callable[[TurnRow], float | None], metric: MetricInfo
    ) -> Estimate | None:
        """Mean of a value over the turns of these runs that were not replayed."""
        values = ((run, value(turn)) for run in runs for turn in run.turns if not turn.is_replayed)
        return self.estimate(values, metric)

    def estimate(
        self, values: Iterable[tuple[RunRow, float | None]], metric: MetricInfo
    ) -> Estimate | None:
        """Mean of the known values, clustered by sample; `None` if none is known."""
        clusters: dict[Hashable, list[float]] = defaultdict(list)
        for run, value in values:
            if value is not None:
                clusters[self.cluster_of(run)].append(value)
        return _estimate(clusters, metric)

    def cluster_of(self, run: RunRow) -> Hashable:
        """The cluster of a run: its sample, or its prompt if all have one sample."""
        return self.design.cluster(run)

    def p_values(self, metric: str) -> Mapping[tuple[str, str], float]:
        """p-values of the difference between each two models, over paired runs."""
        p_by_pair = {}
        for group, other in combinations(self.groups, 2):
            pairing = pair_runs(group, other, self.design)
            clusters = differences_by_cluster(pairing.pairs, metric)
            if clusters:
                p = sign_flip_p(subset_means([fmean(values) for values in clusters]))
                p_by_pair[group.name, other.name] = p
        return p_by_pair

    @cached_property
    def tiers(self) -> list[list[str]] | None:
        """Models in groups that cannot be told apart by the metric `ordering`, the best first. A
        new group begins where every model above differs significantly from every one below, so that
        each border is one claim. `None` if no pair can be tested.
        """
        p_values = self.p_values(self.ordering.name)
        if not p_values:
            return None
        tiers: list[list[str]] = [[]]
        for n, model in enumerate(self.ranked):
            pairs = product(self.ranked[:n], self.ranked[n:])
            if n and all(p_values.get(pair, 1.0) <= ALPHA for pair in pairs):
                tiers.append([])
            tiers[-1].append(model)
        return tiers


class Endurance(Struct, frozen=True, kw_only=True):
    """Times until the event over the runs of one model: `turns_held` is the restricted mean over
    the first `horizon` turns, `median` the turn by which half of the runs had it, `without` the
    share of runs without it. `n_late` runs without it end in low turns, which may be its beginning.
    """

    n: int
    n_events: int
    n_late: int
    horizon: float
    turns_held: Estimate
    median: float | None
    median_limits: Limits
    steps: Sequence[Step]
    times: Sequence[Time]
    without: Estimate


def short_runs_note(study: Study) -> str | None:
    """A note on runs that are too short to show an event that begins in their second half."""
    path = study.views.event_turns
    turns = [(run.n_turns, run.at(path) or 0) for run in study.rows.runs] if path else []
    short = [(n, least) for n, least in turns if n < 2 * least]
    if not short:
        return None
    n, least = min(short)
    return (
        f"{plural(len(short), 'run')} of {n} turns or so are short: a {study.views.breaks} takes "
        f"{least} turns in a row, so none that begins after turn {max(0, n - least)} can be seen. "
        f"Play at least {2 * least}."
    )


def score_metric(study: Study) -> MetricInfo:
    """A turn's score as a metric: with the bounds of the primary metric if all scores are within
    them, otherwise without bounds.
    """
    scores = [turn.score for _, turn in study.rows.turns() if turn.score is not None]
    low, high = study.primary.low, study.primary.high
    if low is None or high is None or not scores or min(scores) < low or max(scores) > high:
        low = high = None
    return MetricInfo(name="score", title="Score", low=low, high=high)


def endurances(study: Study) -> Mapping[str, Endurance]:
    """Times until the event by model, at the horizon that sweeps and comparisons have; empty if
    nothing is known of any turn.
    """
    metric = study.ordering
    if metric.censored_by is None:
        return {}
    clusters = {
        model: times_by_cluster(runs, metric.name, study.design)
        for model, runs in study.runs.items()
    }
    known_clusters = {
        model: model_clusters for model, model_clusters in clusters.items() if model_clusters
    }
    if not known_clusters:
        return {}
    horizon = common_horizon(known_clusters.values())
    if not horizon:
        return {}
    return {
        model: _endurance(study, study.runs[model], model_clusters, metric, horizon)
        for model, model_clusters in known_clusters.items()
    }


def _endurance(
    study: Study,
    runs: Sequence[RunRow],
    clusters: Sequence[Sequence[Time]],
    metric: MetricInfo,
    horizon: float,
) -> Endurance:
    times = [time for cluster in clusters for time in cluster]
    steps = curve(times)
    limits = survival_limits(in_fixed_order(clusters), horizon)

    run_times = [(run, time) for run in runs if (time := time_of(run, metric))]
    without = study.estimate(((run, float(not time.is_event)) for run, time in run_times), SHARE)
    if without is None:
        raise ValueError("no run has a time")
    return Endurance(
        n=len(times),
        n_events=sum(time.is_event for time in times),
        n_late=sum(_is_late(study, run, metric) for run in runs),
        horizon=horizon,
        turns_held=Estimate(
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


def _is_late(study: Study, run: RunRow, metric: MetricInfo) -> bool:
    """Whether a run without the event ends in low turns; a single one may be noise."""
    time, path = time_of(run, metric), study.views.threshold
    threshold = run.at(path) if path else None
    if time is None or time.is_event or threshold is None:
        return False
    scores = [turn.score for turn in run.turns if turn.score is not None and not turn.is_replayed]
    last = scores[-FEWEST_LATE:]
    return len(last) == FEWEST_LATE and all(score < threshold for score in last)


def time_of(run: RunRow, metric: MetricInfo) -> Time | None:
    """The turn of the event in a run, or the turn until which it was watched."""
    at = run.metrics[metric.name]
    if at is None or metric.censored_by is None:
        return None
    is_censored = metric_at(metric.censored_by, run.document["metrics"])
    return Time(at, is_event=not is_censored)


def _estimate(clusters: Mapping[Hashable, list[float]], metric: MetricInfo) -> Estimate | None:
    if not clusters:
        return None
    mean = clustered([*clusters.values()])
    interval = interval_of(metric, [*clusters.values()], METHOD)
    return Estimate(
        mean=mean.mean,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        n=mean.n,
        n_clusters=mean.n_clusters,
    )


def _place(metric: MetricInfo, estimate: Estimate | None) -> tuple[bool, float]:
    """Sort key: the best first, unknown last."""
    if estimate is None:
        return True, 0.0
    return False, -estimate.mean if metric.higher_is_better else estimate.mean
