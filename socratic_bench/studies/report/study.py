"""Figures by model that all sections of a report share: order, means, intervals, differences of
models, and times until an event.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.sweep import PairedDifference, Survival
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.ports.parts import Views
from socratic_bench.statistics.intervals import clustered, is_available
from socratic_bench.studies.figures import Design, interval_of, values_of
from socratic_bench.studies.groups import Group, design_of, differing_conditions, pair_runs
from socratic_bench.studies.primary import PairedRuns, primary_differences
from socratic_bench.studies.report.rows import Rows
from socratic_bench.studies.rows import N_TURNS, RunRow, TurnRow
from socratic_bench.studies.times import common_horizon, survival_of, times_by_cluster

# More panels in one chart tell nobody anything, and colours and shapes would come twice.
MOST_PANELS = 8
SHARE = MetricInfo(name="share", title="Share", low=0, high=1, is_rate=True)
LONGEST_VALUE = 16
# Inputs of a run that say nothing of how its model was played.
_NO_TREATMENT = frozenset({"runner_version", "sdk_version", "scenario_sha256"})


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
    to worst. A model that was played in several ways, such as at two temperatures, stands apart for
    each of them, under a name that says which; `varied` are the names of what was varied.
    """

    def __init__(self, rows: Rows) -> None:
        self.views: Views = rows.benchmark.views
        self.metrics = {metric.name: metric for metric in rows.benchmark.metrics}
        self.ordering = self.metrics[self.views.endurance or rows.benchmark.primary_metric]
        self.primary = self.metrics[rows.benchmark.primary_metric]
        self.has_limits = is_available()
        self.design: Design = design_of(rows.runs, has_limits=self.has_limits)
        self.varied = _varied(rows)
        self._ways = {run.run_id: _way(run, self.varied) for run in rows.runs}
        named = [replace(run, model=self._name(run)) for run in rows.runs]
        self.rows = replace(rows, runs=named)

    def _name(self, run: RunRow) -> str:
        return ", ".join((run.model, *self._ways[run.run_id]))

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
        """Equal models in `ordering` are ordered by the primary metric; unknown ones come last."""

        def place(model: str) -> tuple[tuple[bool, float], ...]:
            runs = self.rows.of(model)
            return tuple(
                _place(metric, self.mean(metric, runs)) for metric in (self.ordering, self.primary)
            )

        return sorted(self.rows.models, key=lambda model: (place(model), model))

    @cached_property
    def differences(self) -> list[PairedDifference]:
        """The primary figure of each two models that were played in the same way, each way being a
        question of its own; if there is one model, of each two ways in which it was played.
        """
        by_way: dict[tuple[str, ...], list[Group]] = defaultdict(list)
        for group in self.groups:
            by_way[self._ways[group.runs[0].run_id]].append(group)
        families = [*by_way.values()]
        if all(len(family) == 1 for family in families):
            families = [self.groups]
        return [difference for family in families for difference in self._differences(family)]

    def _differences(self, groups: Sequence[Group]) -> list[PairedDifference]:
        paired = [
            PairedRuns(first=first.name, second=second.name, pairs=pairing.pairs)
            for first, second in combinations(groups, 2)
            for pairing in (pair_runs(first, second, self.design, lambda _: None),)
        ]
        return primary_differences(
            paired,
            self.rows.benchmark,
            is_one_sample=len(self.rows.samples) == 1,
            has_limits=self.has_limits,
        )

    @cached_property
    def winner(self) -> str | None:
        """The model that is better than every other, if there is one."""
        wins = [difference.winner for difference in self.differences]
        n_others = len(self.ranked) - 1
        return next(
            (name for name in self.ranked if n_others and wins.count(name) == n_others), None
        )

    @cached_property
    def survival(self) -> Mapping[str, Survival]:
        """Times until the event by model, at one horizon; empty if the benchmark has no event."""
        name = self.ordering.name
        times = {
            model: times_by_cluster(runs, name, self.design) for model, runs in self.runs.items()
        }
        known_times = {model: clusters for model, clusters in times.items() if clusters}
        if not known_times:
            return {}
        horizon = common_horizon(known_times.values())
        if not horizon:
            return {}
        return {
            model: survival_of(clusters, horizon, has_limits=self.has_limits)
            for model, clusters in known_times.items()
        }

    def mean(self, metric: MetricInfo, runs: Iterable[RunRow]) -> Estimate | None:
        """Mean of a metric over runs in which it is known, or over the parts of its items."""
        clusters: dict[Hashable, list[float]] = defaultdict(list)
        for run in runs:
            for key, value in values_of(run, metric.name, self.design.cluster(run)).items():
                clusters[key].append(value)
        return self._estimate(clusters, metric)

    @property
    def groups(self) -> list[Group]:
        """The runs of each model as `compare` groups them."""
        return [
            Group(name=model, model=model, runs=tuple(runs)) for model, runs in self.runs.items()
        ]

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
                clusters[self.design.cluster(run)].append(value)
        return self._estimate(clusters, metric)

    def _estimate(
        self, clusters: Mapping[Hashable, list[float]], metric: MetricInfo
    ) -> Estimate | None:
        if not clusters:
            return None
        mean = clustered([*clusters.values()])
        interval = interval_of(metric, [*clusters.values()], has_limits=self.has_limits)
        return Estimate(
            mean=mean.mean,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            n=mean.n,
            n_clusters=mean.n_clusters,
        )


def _varied(rows: Rows) -> Mapping[str, str]:
    """What differs between runs of one model that could change their figures: by path in a run's
    document, its name.
    """
    varied: dict[str, str] = {}
    for model in rows.models:
        runs = rows.of(model)
        # By their sources, so that conditions are read as `compare` reads them.
        alone = [Group(name=run.run_id, model=model, runs=(run,)) for run in runs]
        paths = [
            path
            for path in differing_conditions(alone)
            if path != N_TURNS and not path.startswith("judge.")
        ]
        inputs = {name for run in runs for name in run.at("inputs") or {}} - _NO_TREATMENT
        paths += [f"inputs.{name}" for name in sorted(inputs) if _differs(runs, name)]
        varied |= {path: path.rpartition(".")[2] for path in paths}
    return varied


def _differs(runs: Sequence[RunRow], name: str) -> bool:
    values = [run.at(f"inputs.{name}") for run in runs]
    is_plain = all(value is None or isinstance(value, bool | int | float | str) for value in values)
    is_hash = name.endswith("_sha256") and name != "system_prompt_sha256"
    return is_plain and not is_hash and len({*values}) > 1


def _way(run: RunRow, varied: Mapping[str, str]) -> tuple[str, ...]:
    """How a run was played, as far as that was varied, such as ("temperature 0.7",)."""
    values = {name: run.at(path) for path, name in varied.items()}
    return tuple(
        f"{name.replace('_', ' ').removesuffix(' sha256')} "
        f"{'default' if value is None else str(value)[:LONGEST_VALUE]}"
        for name, value in values.items()
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


def _place(metric: MetricInfo, estimate: Estimate | None) -> tuple[bool, float]:
    """Sort key: the best first, unknown last."""
    if estimate is None:
        return True, 0.0
    return False, -estimate.mean if metric.higher_is_better else estimate.mean
