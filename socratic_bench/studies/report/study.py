"""What a report is made of: runs and failed cells, and the figures by model that all its sections
share: order, means, intervals, differences of models, and times until an event.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from socratic_bench.concurrency import convert
from socratic_bench.documents.judge import Juror, silent_jurors
from socratic_bench.documents.judge_status import JudgeStatus, StoredCalibration
from socratic_bench.documents.sweep import CellRow, PairedDifference, Survival
from socratic_bench.errors import Mistakes
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.ports.parts import TaskView, Views
from socratic_bench.statistics.intervals import clustered, is_available
from socratic_bench.storage.stores import Region
from socratic_bench.studies.calibrate.readings import judge_of
from socratic_bench.studies.figures import (
    Design,
    interval_of,
    rank,
    survival_by_group,
    survival_of,
    values_of,
)
from socratic_bench.studies.groups import Group, design_of, differing_conditions, pair_runs
from socratic_bench.studies.primary import PairedRuns, primary_differences
from socratic_bench.studies.reading import read_runs
from socratic_bench.studies.rows import N_TURNS, RunRow, TurnRow


class Rows(Struct, frozen=True, kw_only=True):
    """All runs of a report, in the order of their ids, and the cells that failed."""

    benchmark: Benchmark
    runs: Sequence[RunRow]
    failed: Sequence[CellRow] = ()

    @property
    def models(self) -> list[str]:
        """The models of the runs, each once."""
        return [*dict.fromkeys(run.model for run in self.runs)]

    @property
    def samples(self) -> list[str]:
        """The names of what was played, in their order."""
        return sorted({run.sample_name for run in self.runs})

    def of(self, model: str) -> list[RunRow]:
        """The runs of a model."""
        return [run for run in self.runs if run.model == model]

    def turns(self) -> Iterator[tuple[RunRow, TurnRow]]:
        """Every turn that was played, with its run."""
        for run in self.runs:
            for turn in run.turns:
                if not turn.is_replayed:
                    yield run, turn


def read_rows(
    arguments: Sequence[str],
    region: Region,
    judging: str | None = None,
    calibrations: Sequence[StoredCalibration] = (),
) -> Rows:
    """The runs that arguments name, each once. With a `judging`, its verdicts replace the first
    ones; with `calibrations`, these replace what runs say about the calibration of their judges.
    Raises `UsageError` with every mistake, and `ArtifactError` for a store.
    """
    mistakes = Mistakes()
    stored = read_runs(arguments, region, mistakes, judging=judging, has_files=True)
    if mistakes.sentences or not stored.benchmark:
        raise mistakes.error()
    runs = sorted(stored.runs, key=lambda run: run.run_id)
    return Rows(
        benchmark=stored.benchmark,
        runs=[_with_calibration(run, calibrations) if calibrations else run for run in runs],
        failed=[cell.row for cell in stored.failed],
    )


def _with_calibration(run: RunRow, calibrations: Sequence[StoredCalibration]) -> RunRow:
    judge = judge_of(run)
    if judge is None:
        return run
    entry = run.document["judge"]
    silent = silent_jurors(convert(entry.get("jurors") or [], list[Juror]))
    status = to_builtins(JudgeStatus.of(replace(judge, silent=silent), calibrations))
    return replace(run, document={**run.document, "judge": {**entry, "calibration": status}})


# More panels in one chart tell nobody anything, and colours and shapes would come twice.
MOST_PANELS = 8
SHARE = MetricInfo(name="share", title="Share", low=0, high=1, is_rate=True)
LONGEST_VALUE = 16
# Inputs of a run that say nothing of how its model was played.
_NO_TREATMENT = frozenset({"runner_version", "sdk_version", "scenario_sha256"})


class Estimate(Struct, frozen=True, kw_only=True):
    """A mean over `n` values with its 95 % interval, `None` where there is none."""

    mean: float
    low: float | None
    high: float | None
    n: int = 0

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
        named = [
            replace(run, model=", ".join((run.model, *self._ways[run.run_id]))) for run in rows.runs
        ]
        self.rows = replace(rows, runs=named)

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
    def runs_by_variant(self) -> Mapping[str, Sequence[RunRow]]:
        """The runs of each model with their turns, and what these cost: of one whose runs ask in
        several ways, each way by itself. Other keys of their documents are of the whole run.
        """
        view = self.views.tasks
        if view is None:
            return self.runs
        by_name: dict[str, Sequence[RunRow]] = {}
        for model, runs in self.runs.items():
            variants = dict.fromkeys(str(t.own[view.variant]) for run in runs for t in run.turns)
            if len(variants) < 2:  # noqa: PLR2004
                by_name[model] = runs
                continue
            for variant in variants:
                name = f"{model}, {view.variant} {variant}"
                by_name[name] = [_of_variant(run, view, variant) for run in runs]
        return by_name

    @cached_property
    def ranked(self) -> list[str]:
        """Equal models in `ordering` are ordered by the primary metric; unknown ones come last."""

        def place(model: str) -> tuple[tuple[bool, float], ...]:
            means = (self.mean(of, self.rows.of(model)) for of in (self.ordering, self.primary))
            ordering, primary = (mean.mean if mean else None for mean in means)
            return rank(ordering, self.ordering), rank(primary, self.primary)

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
        best = (name for name in self.ranked if n_others and wins.count(name) == n_others)
        return next(best, None)

    @cached_property
    def survival(self) -> Mapping[str, Survival]:
        """Times until the event by model, at one horizon; empty if the benchmark has no event."""
        return {model: self._times[model] for model in self.ranked if model in self._times}

    @cached_property
    def _times(self) -> Mapping[str, Survival]:
        runs = {model: self.rows.of(model) for model in self.rows.models}
        survival = survival_by_group(runs, self.ordering.name, self.design, survival_of)
        return survival if any(times.horizon for times in survival.values()) else {}

    def mean(self, metric: MetricInfo, runs: Iterable[RunRow]) -> Estimate | None:
        """Mean of a metric over runs in which it is known, or over the parts of its items."""
        cluster = self.design.cluster
        values = (
            entry for run in runs for entry in values_of(run, metric.name, cluster(run)).items()
        )
        return self.estimate_clusters(values, metric)

    @property
    def groups(self) -> list[Group]:
        """The runs of each model as `compare` groups them."""
        return [Group(name=name, model=name, runs=tuple(runs)) for name, runs in self.runs.items()]

    def estimate(
        self, values: Iterable[tuple[RunRow, float | None]], metric: MetricInfo
    ) -> Estimate | None:
        """Mean of the known values, clustered by sample; `None` if none is known."""
        cluster = self.design.cluster
        known_values = ((cluster(run), value) for run, value in values if value is not None)
        return self.estimate_clusters(known_values, metric)

    def pass_rate(self, runs: Iterable[RunRow], task: str | None = None) -> Estimate | None:
        """The share of turns that passed, in one task or in all, clustered by item."""
        view = self.views.tasks
        passes: list[tuple[Hashable, float]] = [
            (
                (self.design.cluster(run), turn.own[view.item]),
                float(turn.own[view.result] == view.passed),
            )
            for run in runs
            for turn in run.turns
            if view
            and task in (None, turn.own[view.task])
            and turn.own[view.result] in view.results
        ]
        return self.estimate_clusters(passes, SHARE)

    def estimate_clusters(
        self, values: Iterable[tuple[Hashable, float]], metric: MetricInfo
    ) -> Estimate | None:
        """Mean of values, each of which comes with its cluster; `None` without any."""
        by_cluster: dict[Hashable, list[float]] = defaultdict(list)
        for key, value in values:
            by_cluster[key].append(value)
        if not by_cluster:
            return None
        clusters = [*by_cluster.values()]
        mean = clustered(clusters)
        interval = interval_of(metric, clusters, has_limits=self.has_limits)
        low, high = (interval.low, interval.high) if interval else (None, None)
        return Estimate(mean=mean.mean, low=low, high=high, n=mean.n)


def _of_variant(run: RunRow, view: TaskView, variant: str) -> RunRow:
    costs = [entry for entry in run.at(view.costs) or () if entry[view.variant] == variant]
    turns = tuple(turn for turn in run.turns if turn.own[view.variant] == variant)
    return replace(run, turns=turns, document={**run.document, view.costs: costs})


def _varied(rows: Rows) -> Mapping[str, str]:
    """What differs between runs of a model and may change figures: names by path in documents."""
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
        for name in sorted(inputs):
            values = [run.at(f"inputs.{name}") for run in runs]
            is_plain = all(isinstance(value, bool | int | float | str | None) for value in values)
            is_hash = name.endswith("_sha256") and name != "system_prompt_sha256"
            if is_plain and not is_hash and len({*values}) > 1:
                paths.append(f"inputs.{name}")
        varied |= {path: path.rpartition(".")[2] for path in paths}
    return varied


def _way(run: RunRow, varied: Mapping[str, str]) -> tuple[str, ...]:
    """How a run was played, as far as that was varied, such as ("temperature 0.7",)."""
    values = {name: run.at(path) for path, name in varied.items()}
    return tuple(
        f"{name.replace('_', ' ').removesuffix(' sha256')} "
        f"{'default' if value is None else str(value)[:LONGEST_VALUE]}"
        for name, value in values.items()
    )
