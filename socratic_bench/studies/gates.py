"""Gates over several runs: bounds of figures, and how far one may fall behind a baseline.

The gates of a single run are in `runs.gates`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents.comparison import (
    ComparedPair,
    Difference,
    DropGate,
    FailedContender,
    FigureDifference,
    SurvivalDifference,
)
from socratic_bench.documents.sweep import FigureGate, Mean, Survival
from socratic_bench.errors import Problem
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.runs import Plan
from socratic_bench.runs.gates import gate_problem, unknown_metric
from socratic_bench.settings import Gate
from socratic_bench.statistics.intervals import FEWEST
from socratic_bench.statistics.survival import FEWEST_OF_TIMES

LOW = ".low"
LIMITS = {"under": LOW, "over": ".high"}  # the limit that is nearer to the bound
OF_TIMES = ("median", "restricted_mean")
NO_EXTRA = (
    "limits of intervals need scipy, which is not installed. Install the extra "
    'stats (pip install ".[stats]"), or bound {metric} itself.'
)
NO_TIME = "{metric} is not a time until an event. {times} have a {figure}."
TOO_FEW = "limits of intervals need {least} samples at least, not {n}."


class FigureBound(Struct, frozen=True, kw_only=True):
    """A gate on a figure over all runs of a model, or on the nearer limit of its interval."""

    gate: Gate
    metric: str
    figure: Literal["mean", "median", "restricted_mean"]
    is_of_limit: bool

    @classmethod
    def of(cls, gate: Gate) -> "FigureBound":
        """METRIC, METRIC.median, METRIC.restricted_mean, and .low (or .high) of each."""
        path = gate.metric.removesuffix(LIMITS[gate.side])
        figure = next((figure for figure in OF_TIMES if path.endswith(f".{figure}")), "mean")
        return cls(
            gate=gate,
            metric=path.removesuffix(f".{figure}"),
            figure=figure,  # type: ignore[arg-type] # one of these three
            is_of_limit=path != gate.metric,
        )

    def problem(self, text: str, **values: object) -> Problem:
        """A mistake that begins with the gate."""
        start = f"{{{self.gate.setting}}} {{word}}: "
        return Problem.of(start + text, word=self.gate.metric, metric=self.metric, **values)


def metrics_of_many(benchmark: Benchmark) -> dict[str, MetricInfo]:
    """The metrics that have a meaning over several runs, by name."""
    metrics = (metric for metric in benchmark.metrics if not metric.is_of_run_alone)
    return {metric.name: metric for metric in metrics}


def bound_problems(
    bounds: Iterable[FigureBound], metrics: Mapping[str, MetricInfo]
) -> Iterator[Problem]:
    """Gates on metrics and figures that do not exist, or whose result is certain."""
    times = [metric.name for metric in metrics.values() if metric.censored_by]
    for bound in bounds:
        if bound.metric not in metrics:
            yield unknown_metric(bound.gate, bound.metric, metrics)
        elif bound.figure != "mean" and bound.metric not in times:
            named = " and ".join(times) or "None"
            yield bound.problem(NO_TIME, times=named, figure=bound.figure)
        elif problem := gate_problem(bound.gate, metrics[bound.metric]):
            yield problem


def without_extra(
    bounds: Iterable[FigureBound], has_intervals: Callable[[], bool]
) -> Iterator[Problem]:
    """Gates on limits where there are no intervals."""
    for bound in bounds:
        if bound.is_of_limit and not has_intervals():
            yield bound.problem(NO_EXTRA)


class Feasibility(Struct, kw_only=True):
    """Which figures the prepared runs of a sweep can have.

    Attributes:
        axes: the settings that give more samples.
        n_parts: by sample, the number of items that each metric can have.
        highest: by metric, the highest value that a run can show.
        item_metrics: metrics that are known once items are read.
        is_judged: whether a run has a judge where its benchmark has verdicts.
    """

    axes: Sequence[str]
    n_parts: dict[Hashable, Mapping[str, int]] = {}
    highest: dict[str, float] = {}
    item_metrics: dict[str, MetricInfo] = {}
    is_judged: bool = False

    def add(self, sample: Hashable, plan: Plan) -> None:
        """Add a prepared run; of several runs of a sample the largest numbers count."""
        n_parts = plan.episode.opening.n_parts
        before = self.n_parts.get(sample, n_parts)
        names = {**before, **n_parts}
        self.n_parts[sample] = {
            name: max(before.get(name, 1), n_parts.get(name, 1)) for name in names
        }
        for name, value in plan.benchmark.highest_values(plan.config).items():
            self.highest[name] = max(value, self.highest.get(name, value))
        self.item_metrics |= {metric.name: metric for metric in plan.episode.opening.metrics}
        self.is_judged |= bool(plan.config.jurors) or plan.episode.rubric is None

    def problems(self, bounds: Iterable[FigureBound], benchmark: Benchmark) -> Iterator[Problem]:
        """Gates whose result is certain by what is to be played."""
        metrics = metrics_of_many(benchmark) | self.item_metrics
        for bound in bounds:
            name = bound.metric
            n = sum(n_parts.get(name, 1) for n_parts in self.n_parts.values())
            if (metric := metrics.get(name)) is None:
                yield unknown_metric(bound.gate, name, metrics)
                continue
            if problem := gate_problem(
                bound.gate,
                metric,
                is_judged=self.is_judged,
                highest=self.highest.get(name),
                n_parts=n,
            ):
                yield problem
                continue
            is_time = bound.figure != "mean" or metric.censored_by
            least = FEWEST_OF_TIMES if is_time else FEWEST
            if bound.is_of_limit and n < least:
                hint = f"Name more of them with {' or '.join(f'{{{name}}}' for name in self.axes)}."
                if any(name in n_parts for n_parts in self.n_parts.values()):
                    hint = "Ask for more of them."
                yield bound.problem(f"{TOO_FEW} {hint}", least=least, n=n)


def figure_gates(
    bounds: Iterable[FigureBound],
    name: str,
    means: Mapping[str, Mean],
    survival: Mapping[str, Survival],
) -> Iterator[FigureGate]:
    """The figures of the model `name`, and whether they keep their bounds."""
    for bound in bounds:
        mean, times = means.get(bound.metric), survival.get(bound.metric)
        value = _value(bound, mean, times)
        # A median that was not reached is known to be over a bound up to the horizon.
        is_median = bound.figure == "median" and not bound.is_of_limit
        is_beyond = is_median and times is not None and times.horizon >= bound.gate.bound
        yield FigureGate(
            name=name,
            gate=bound.gate.metric,
            side=bound.gate.side,
            bound=bound.gate.bound,
            value=value,
            reason=_reason(bound, mean, times) if value is None else None,
            passed=is_beyond and bound.gate.side == "under"
            if value is None
            else bound.gate.passes(value),
        )


def _value(bound: FigureBound, mean: Mean | None, times: Survival | None) -> float | None:
    """A mean of times is the restricted one: that of their plain values ignores censoring."""
    limit = LIMITS[bound.gate.side].removeprefix(".") if bound.is_of_limit else None
    if times is not None:
        estimate = times.median if bound.figure == "median" else times.restricted_mean
        return getattr(estimate, limit or "value")  # type: ignore[no-any-return] # Estimate's fields
    if mean is None or bound.figure != "mean":
        return None
    return getattr(mean, limit or "mean")  # type: ignore[no-any-return] # Mean's fields


def _reason(bound: FigureBound, mean: Mean | None, times: Survival | None) -> str:
    """Why a figure is unknown."""
    figure = times or (mean if bound.figure == "mean" else None)
    if figure is None or not figure.n:
        return "no complete run has it"
    if bound.is_of_limit and figure.n_clusters < FEWEST:
        return "one sample has no interval"
    if bound.is_of_limit and figure is times and figure.n_clusters < FEWEST_OF_TIMES:
        return f"times of fewer than {FEWEST_OF_TIMES} samples have no interval"
    if times is not None and not times.n_events:
        return "no run saw the event"
    if bound.is_of_limit:
        return f"its interval has no {LIMITS[bound.gate.side].removeprefix('.')} limit"
    return "fewer than half of the runs saw the event"


def missed_gates(gates: Iterable[FigureGate]) -> list[str]:
    """A sentence for each gate that was missed."""
    return [
        Gate(gate.gate, gate.bound, gate.side).failure(
            f"{gate.gate} of {gate.name}", gate.value, gate.reason
        )
        for gate in gates
        if not gate.passed
    ]


class MaxDrop(Struct, frozen=True, kw_only=True):
    """METRIC=VALUE; METRIC.low=VALUE for the worse limit of the difference's interval, METRIC.high
    for the better one, which is over VALUE only if the drop is significant.
    """

    metric: str
    max_drop: float
    of: Literal["mean", "low", "high"] = "mean"

    @classmethod
    def parse(cls, word: str) -> "MaxDrop | None":
        """`None` if the word has another form."""
        gate = Gate.parse(word)
        if gate is None or gate.bound < 0:
            return None
        metric, _, limit = gate.metric.rpartition(".")
        if limit in ("low", "high"):
            return cls(metric=metric, max_drop=gate.bound, of=limit)  # type: ignore[arg-type]
        return cls(metric=gate.metric, max_drop=gate.bound)

    @property
    def is_of_limit(self) -> bool:
        return self.of != "mean"

    def problem(self, metric: MetricInfo) -> str | None:
        """Why no drop can be that large; `None` if one can."""
        if metric.low is None or metric.high is None or self.max_drop < metric.high - metric.low:
            return None
        ends = f"from {metric.low:g} to {metric.high:g}"
        return f"{self.metric} is {ends}, so no drop is over {self.max_drop:g}."


def drop_gates(
    drops: Sequence[MaxDrop],
    pairs: Sequence[ComparedPair],
    failed: Sequence[FailedContender],
    metrics: Sequence[MetricInfo],
) -> Iterator[DropGate]:
    """Whether each pair keeps to each bound; models without a complete run miss all of them."""
    higher_is_better = {metric.name: metric.higher_is_better for metric in metrics}

    def gate(bound: MaxDrop, name: str, drop: float | None, reason: str | None) -> DropGate:
        return DropGate(
            name=name,
            metric=bound.metric,
            of=bound.of,
            max_drop=bound.max_drop,
            drop=drop,
            reason=reason,
            passed=drop is not None and drop <= bound.max_drop,
        )

    for pair in pairs:
        for bound in drops:
            difference, times = pair.differences[bound.metric], pair.survival.get(bound.metric)
            is_higher_better = higher_is_better[bound.metric]
            drop = _drop_of_pair(bound, difference, times, higher_is_better=is_higher_better)
            yield gate(bound, pair.first, drop, _drop_reason(difference) if drop is None else None)
    for contender in failed:
        for bound in drops:
            yield gate(bound, contender.model, None, "no complete run has it")


def _drop_of_pair(
    bound: MaxDrop,
    difference: Difference,
    times: SurvivalDifference | None,
    *,
    higher_is_better: bool,
) -> float | None:
    """How much worse the first model of a pair is."""
    # The plain difference of times ignores censoring, but has limits where no run of one model saw
    # the event.
    if bound.of == "high" and times and times.no_interval_because == "no_event":
        times = None
    figure = times.restricted_mean if times else difference
    drop = _drop(bound, figure, higher_is_better=higher_is_better)
    if bound.of == "mean" and times:  # runs that end in low turns lower the plain mean alone
        plain = _drop(bound, difference, higher_is_better=higher_is_better)
        drop = max((one for one in (drop, plain) if one is not None), default=None)
    if drop is None and bound.of == "high" and _is_uniform(times or difference):
        mean = replace(bound, of="mean")  # that of each sample: there is nothing to cover
        drop = _drop(mean, figure, higher_is_better=higher_is_better)
    return drop


def _is_uniform(difference: Difference | SurvivalDifference) -> bool:
    """Whether several samples differ all alike, so that there is no interval."""
    return difference.n_clusters > 1 and difference.no_interval_because == "no_spread"


def _drop_reason(difference: Difference) -> str:
    """Why a drop is unknown."""
    if not difference.n:
        return "no pair of runs has it"
    if difference.n_clusters < FEWEST:
        return "one sample has no interval"
    if difference.no_interval_because == "no_spread":
        return "all samples differ alike"
    return "its interval has no limit"


def _drop(
    bound: MaxDrop, figure: Difference | FigureDifference, *, higher_is_better: bool
) -> float | None:
    """How much worse the first is; of an interval, its worse or its better limit."""
    worse, better = (figure.low, figure.high) if higher_is_better else (figure.high, figure.low)
    mean = figure.mean if isinstance(figure, Difference) else figure.value
    value = {"mean": mean, "low": worse, "high": better}[bound.of]
    if value is None:
        return None
    # Without a difference the drop is 0, and not minus 0.
    return 0.0 - value if higher_is_better else value


def missed_drops(gates: Iterable[DropGate]) -> Iterator[str]:
    """A sentence for each gate that was missed."""
    for gate in (gate for gate in gates if not gate.passed):
        limit = "" if gate.of == "mean" else f".{gate.of}"
        figure = f"{gate.metric}{limit} of {gate.name}"
        if gate.drop is None:
            yield (
                f"The drop of {figure} is null ({gate.reason}), so it does not keep to "
                f"{gate.max_drop:g}."
            )
        else:
            yield f"{figure} is {gate.drop:.4g} worse than the baseline, over {gate.max_drop:g}."
