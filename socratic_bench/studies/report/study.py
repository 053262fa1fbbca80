"""The rows of a report with what all of its sections need: figures by model, in one order."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product

from msgspec import Struct

from socratic_bench.documents.sweep import Mean
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.ports.parts import Views
from socratic_bench.runs.gates import metric_at
from socratic_bench.statistics.bootstrap import Limits, Method, in_fixed_order, survival_limits
from socratic_bench.statistics.differences import ALPHA, paired_p
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

METHOD: Method = "t"
# More panels in one chart tell nobody anything, and colours and shapes would come twice.
MOST_PANELS = 8
SHARE = MetricInfo(name="share", title="Share", low=0, high=1, is_rate=True)
# How long models go without an event that ends what is asked of them.

FEWEST_LATE = 2


class Estimate(Struct, frozen=True, kw_only=True):
    """A mean over `n` values in `n_clusters` samples with its 95 % interval, `None` where it has
    none.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    n_clusters: int

    @property
    def drawn(self) -> Mapping[str, float]:
        """Its place in a chart; an interval that is not known is drawn as none."""
        low, high = (self.mean if end is None else end for end in (self.low, self.high))
        return {"value": self.mean, "low": low, "high": high}


class Study:
    """See the module. `ranked` are the models, the best first by the metric `ordering`."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.views: Views = rows.benchmark.views
        self.metrics = {one.name: one for one in rows.benchmark.metrics}
        self.ordering = self.metrics[self.views.endurance or rows.benchmark.primary_metric]
        self.primary = self.metrics[rows.benchmark.primary_metric]
        self._design = design_of(rows.runs, METHOD)

    @property
    def drawn(self) -> list[str]:
        """The models that have a panel in charts with one for each: the best."""
        return self.ranked[:MOST_PANELS]

    @property
    def drawn_words(self) -> str:
        """What the titles of such charts add."""
        n = len(self.ranked)
        return f" (the {MOST_PANELS} best of {n} models)" if n > MOST_PANELS else ""

    @cached_property
    def runs(self) -> Mapping[str, Sequence[RunRow]]:
        """The runs of each model, in the order of `ranked`."""
        return {model: self.rows.of(model) for model in self.ranked}

    @cached_property
    def ranked(self) -> list[str]:
        """By the primary metric where they are equal in the other; what is unknown comes last."""

        def place(model: str) -> tuple[tuple[bool, float], ...]:
            runs = self.rows.of(model)
            return tuple(_place(one, self.mean(one, runs)) for one in (self.ordering, self.primary))

        return sorted(self.rows.models, key=lambda model: (place(model), model))

    def mean(self, metric: MetricInfo, runs: Iterable[RunRow]) -> Estimate | None:
        """A metric over runs in which it is known, or over what their items are of."""
        clusters: dict[Hashable, list[float]] = defaultdict(list)
        for run in runs:
            for key, value in values_of(run, metric.name, self.cluster_of(run)).items():
                clusters[key].append(value)
        return _estimate(clusters, metric)

    @cached_property
    def is_of_parts(self) -> bool:
        """Whether values of the primary metric are of items, which are right or wrong."""
        return any(run.parts.get(self.primary.name) for run in self.rows.runs)

    @property
    def clusters(self) -> str:
        """What intervals hold for others of."""
        cluster = self.views.prompt if len(self.rows.samples) == 1 else self.views.sample
        return f"{cluster}s"

    @property
    def groups(self) -> list[Group]:
        """The runs of each model as `compare` has them."""
        return [
            Group(name=model, model=model, runs=tuple(runs)) for model, runs in self.runs.items()
        ]

    def whole(self, model: str) -> Mean:
        """The primary metric of a model's runs, as `compare` has it."""
        return mean_of(self.rows.of(model), self.primary, self._design)

    def over_turns(
        self, runs: Iterable[RunRow], value: Callable[[TurnRow], float | None], metric: MetricInfo
    ) -> Estimate | None:
        """Any value of the turns that were played in these runs."""
        found = ((run, value(turn)) for run in runs for turn in run.turns if not turn.is_replayed)
        return self.estimate(found, metric)

    def estimate(
        self, values: Iterable[tuple[RunRow, float | None]], metric: MetricInfo
    ) -> Estimate | None:
        """The mean of the known values, clustered by sample; `None` if none is known."""
        clusters: dict[Hashable, list[float]] = defaultdict(list)
        for run, value in values:
            if value is not None:
                clusters[self.cluster_of(run)].append(value)
        return _estimate(clusters, metric)

    def cluster_of(self, run: RunRow) -> Hashable:
        """What a run counts to in intervals: its sample, or its prompt where all play one."""
        return self._design.cluster(run)

    def p_values(self, metric: str) -> Mapping[tuple[str, str], float]:
        """Of the difference of each two models in pairs of runs, by what the pair's runs say."""
        known = {}
        for one, other in combinations(self.groups, 2):
            pairing = pair_runs(one, other, self._design)
            clusters = differences_by_cluster(pairing.pairs, metric)
            p = paired_p(clustered(clusters)) if clusters else None
            if p is not None:
                known[one.name, other.name] = p
        return known

    @cached_property
    def tiers(self) -> list[list[str]] | None:
        """The models in groups that cannot be told apart by the metric `ordering`, the best first:
        two groups are parted where every model above differs from every one below by more than
        chance, so that each border is one claim. `None` if no pair tells.
        """
        p_values = self.p_values(self.ordering.name)
        if not p_values:
            return None
        found: list[list[str]] = [[]]
        for n, model in enumerate(self.ranked):
            both = product(self.ranked[:n], self.ranked[n:])
            if n and all(p_values.get(pair, 1.0) <= ALPHA for pair in both):
                found.append([])
            found[-1].append(model)
        return found


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


def _estimate(clusters: Mapping[Hashable, list[float]], metric: MetricInfo) -> Estimate | None:
    if not clusters:
        return None
    found = clustered([*clusters.values()])
    interval = interval_of(metric, [*clusters.values()], METHOD)
    return Estimate(
        mean=found.mean,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        n=found.n,
        n_clusters=found.n_clusters,
    )


def _place(metric: MetricInfo, found: Estimate | None) -> tuple[bool, float]:
    """Sorts the best first."""
    if found is None:
        return True, 0.0
    return False, -found.mean if metric.higher_is_better else found.mean


def score_metric(study: Study) -> MetricInfo:
    """What is known of a turn's score: the bounds of the primary metric, where that is a mean of
    scores, or none.
    """
    scores = [turn.score for _, turn in study.rows.turns() if turn.score is not None]
    low, high = study.primary.low, study.primary.high
    if low is None or high is None or not scores or min(scores) < low or max(scores) > high:
        low = high = None
    return MetricInfo(name="score", title="Score", low=low, high=high)


def endurances(study: Study) -> Mapping[str, Endurance]:
    """By model, at one horizon: the longest that runs of every model were."""
    metric = study.ordering
    if metric.censored_by is None:
        return {}
    clusters = {model: _clusters(study, runs, metric) for model, runs in study.runs.items()}
    known = {model: found for model, found in clusters.items() if found}
    if not known:
        return {}
    longest = [max(run.n_turns for run in study.runs[model]) for model in known]
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
