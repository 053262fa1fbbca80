"""Gates over several runs: minima of figures, and how far one may fall behind a baseline.

The gates of a single run are in `runs.gates`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from socratic_bench.documents.comparison import ComparedPair, Difference, DropGate, FailedContender
from socratic_bench.documents.sweep import Mean, MinimumGate, Survival
from socratic_bench.errors import Problem
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.runs import Plan
from socratic_bench.settings import Gate
from socratic_bench.statistics.bootstrap import FEWEST_DRAWN, Method
from socratic_bench.statistics.intervals import FEWEST
from socratic_bench.statistics.survival import FEWEST_OF_TIMES

LOW = ".low"
OF_TIMES = ("median", "restricted_mean")
NO_EXTRA = (
    "{gates} {word}: limits of intervals need scipy, which is not installed. Install the extra "
    'stats (pip install ".[stats]"), or bound {metric} itself.'
)
UNKNOWN = "{gates} names no metric: {metric!r}. There is {known}."
NO_TIME = "{gates} {word}: {metric} is no time until an event. {times} have a {figure}."
TOO_FEW = "{gates} {word}: limits of intervals need {least} samples at least, not {n}."
NO_JUDGE = "{gates} {word}: {metric} is of judged turns, and {no_judge} leaves judging out."
NEVER = "{gates} {word}: nothing of what is asked for has {metric}."


class Minimum(Struct, frozen=True, kw_only=True):
    """The least value of a figure over all runs of a model, or of its interval's lower limit."""

    metric: str
    figure: Literal["mean", "median", "restricted_mean"]
    is_of_limit: bool
    minimum: float

    @classmethod
    def of(cls, gate: Gate) -> "Minimum":
        """METRIC, METRIC.low, METRIC.median, METRIC.restricted_mean, and .low of the last two."""
        path = gate.metric.removesuffix(LOW)
        figure = next((figure for figure in OF_TIMES if path.endswith(f".{figure}")), "mean")
        return cls(
            metric=path.removesuffix(f".{figure}"),
            figure=figure,  # type: ignore[arg-type] # one of these three
            is_of_limit=path != gate.metric,
            minimum=gate.minimum,
        )

    @property
    def word(self) -> str:
        """The path as it is given."""
        parts = [self.metric] if self.figure == "mean" else [self.metric, self.figure]
        return ".".join(parts) + LOW * self.is_of_limit

    @property
    def is_of_many(self) -> bool:
        """Whether a single run has no such figure."""
        return self.is_of_limit or self.figure != "mean"


def misnamed(minima: Iterable[Minimum], benchmark: Benchmark) -> Iterator[Problem]:
    """Minima of metrics that do not exist. Metrics that are known only once items are read pass."""
    if benchmark.parts.has_item_metrics:
        return
    metrics = {metric.name: metric for metric in benchmark.metrics if not metric.is_of_run_alone}
    times = [metric.name for metric in metrics.values() if metric.censored_by]
    for gate in minima:
        if gate.metric not in metrics:
            yield Problem.of(UNKNOWN, metric=gate.metric, known=", ".join(metrics))
        elif gate.figure != "mean" and gate.metric not in times:
            named = {"word": gate.word, "metric": gate.metric, "figure": gate.figure}
            yield Problem.of(NO_TIME, times=" and ".join(times) or "None", **named)


def without_extra(
    minima: Iterable[Minimum], has_intervals: Callable[[], bool]
) -> Iterator[Problem]:
    """Minima of limits where there are no intervals."""
    for gate in minima:
        if gate.is_of_limit and not has_intervals():
            yield Problem.of(NO_EXTRA, word=gate.word, metric=gate.metric)


class Feasibility(Struct, kw_only=True):
    """Which figures the prepared runs of a sweep can have.

    Attributes:
        method: how intervals are made.
        axes: the settings that give more samples.
        n_parts: by sample, the number of items that each metric can have.
        is_judged: whether a run has a judge where its benchmark has verdicts.
    """

    method: Method
    axes: Sequence[str]
    n_parts: dict[Hashable, Mapping[str, int]] = {}
    is_judged: bool = False

    def add(self, sample: Hashable, plan: Plan) -> None:
        """Add a prepared run; of several runs of a sample the largest numbers count."""
        n_parts = plan.episode.opening.n_parts
        before = self.n_parts.get(sample, n_parts)
        names = {**before, **n_parts}
        self.n_parts[sample] = {
            name: max(before.get(name, 1), n_parts.get(name, 1)) for name in names
        }
        self.is_judged |= bool(plan.config.jurors) or plan.episode.rubric is None

    def problems(self, minima: Iterable[Minimum], benchmark: Benchmark) -> Iterator[Problem]:
        """Why figures that have a minimum will be unknown."""
        metrics = {metric.name: metric for metric in benchmark.metrics}
        for gate in minima:
            metric, named = metrics.get(gate.metric), {"word": gate.word, "metric": gate.metric}
            n = sum(n_parts.get(gate.metric, 1) for n_parts in self.n_parts.values())
            least = self._least(gate, metric)
            if not self.is_judged and metric and metric.needs_turns != 0:
                yield Problem.of(NO_JUDGE, **named)
            elif not n:
                yield Problem.of(NEVER, **named)
            elif n < least:
                yield Problem.of(f"{TOO_FEW} {self._hint(gate)}", least=least, n=n, **named)

    def _least(self, gate: Minimum, metric: MetricInfo | None) -> int:
        """The least number of samples; limits of rates and of times do not depend on the method."""
        if not gate.is_of_limit:
            return 1
        if gate.figure != "mean":
            return FEWEST_OF_TIMES
        is_rate = metric is not None and metric.is_rate
        is_drawn = self.method == "bootstrap-t" and not is_rate
        return FEWEST_DRAWN if is_drawn else FEWEST

    def _hint(self, gate: Minimum) -> str:
        if any(gate.metric in n_parts for n_parts in self.n_parts.values()):
            return "Ask for more of them."
        return f"Name more of them with {' or '.join(f'{{{name}}}' for name in self.axes)}."


def minimum_gates(
    minima: Iterable[Minimum],
    name: str,
    means: Mapping[str, Mean],
    survival: Mapping[str, Survival],
) -> Iterator[MinimumGate]:
    """The figures of the model `name`, and whether they reach the minima."""
    for gate in minima:
        mean, times = means.get(gate.metric), survival.get(gate.metric)
        value = _value(gate, mean, times)
        yield MinimumGate(
            name=name,
            gate=gate.word,
            minimum=gate.minimum,
            value=value,
            reason=_reason(gate, mean, times) if value is None else None,
            passed=value is not None and value >= gate.minimum,
        )


def _value(gate: Minimum, mean: Mean | None, times: Survival | None) -> float | None:
    if gate.figure == "mean":
        if mean is None:
            return None
        return mean.low if gate.is_of_limit else mean.mean
    if times is None:
        return None
    estimate = times.median if gate.figure == "median" else times.restricted_mean
    return estimate.low if gate.is_of_limit else estimate.value


def _reason(gate: Minimum, mean: Mean | None, times: Survival | None) -> str:
    """Why a figure is unknown."""
    figure = mean if gate.figure == "mean" else times
    if figure is None or not figure.n:
        return "no complete run tells it"
    if gate.is_of_limit and figure.n_clusters < FEWEST:
        return "one sample has no interval"
    if gate.is_of_limit and figure is times and figure.n_clusters < FEWEST_OF_TIMES:
        return f"times of fewer than {FEWEST_OF_TIMES} samples have no interval"
    if times is not None and gate.figure != "mean" and not times.n_events:
        return "no run saw the event"
    if gate.is_of_limit:
        return "its interval has no lower limit"
    return "fewer than half of the runs saw the event"


def missed_minima(gates: Iterable[MinimumGate]) -> list[str]:
    """A sentence for each gate that was missed."""
    return [_missed_minimum(gate) for gate in gates if not gate.passed]


def _missed_minimum(gate: MinimumGate) -> str:
    figure = f"{gate.gate} of {gate.name}"
    if gate.value is None:
        return f"{figure} is null ({gate.reason}), so it does not reach {gate.minimum:g}."
    missing = gate.minimum - gate.value
    return f"{figure} is {gate.value:g}, which is {missing:.4g} under {gate.minimum:g}."


class MaxDrop(Struct, frozen=True, kw_only=True):
    """METRIC=VALUE, or METRIC.low=VALUE for the worse limit of the difference's interval."""

    metric: str
    max_drop: float
    is_of_limit: bool

    @classmethod
    def parse(cls, word: str) -> "MaxDrop | None":
        """`None` if the word has another form."""
        gate = Gate.parse(word)
        if gate is None or gate.minimum < 0:
            return None
        return cls(
            metric=gate.metric.removesuffix(LOW),
            max_drop=gate.minimum,
            is_of_limit=gate.metric.endswith(LOW),
        )


def drop_gates(
    drops: Sequence[MaxDrop], pairs: Iterable[ComparedPair], metrics: Sequence[MetricInfo]
) -> Iterator[DropGate]:
    """Whether each pair keeps to each bound; the second of a pair is the baseline."""
    higher_is_better = {metric.name: metric.higher_is_better for metric in metrics}
    for pair in pairs:
        for bound in drops:
            difference = pair.differences[bound.metric]
            drop = _drop(bound, difference, higher_is_better=higher_is_better[bound.metric])
            reason = _drop_reason(difference) if drop is None else None
            yield _drop_gate(bound, pair.first, drop, reason)


def drop_gates_of_failed(
    drops: Sequence[MaxDrop], failed: Iterable[FailedContender]
) -> Iterator[DropGate]:
    """The missed gates of models without a complete run."""
    for contender in failed:
        for bound in drops:
            yield _drop_gate(bound, contender.model, None, "no complete run tells it")


def _drop_gate(bound: MaxDrop, name: str, drop: float | None, reason: str | None) -> DropGate:
    return DropGate(
        name=name,
        metric=bound.metric,
        of="low" if bound.is_of_limit else "mean",
        max_drop=bound.max_drop,
        drop=drop,
        reason=reason,
        passed=drop is not None and drop <= bound.max_drop,
    )


def _drop_reason(difference: Difference) -> str:
    """Why a drop is unknown."""
    if not difference.n:
        return "no pair of runs tells it"
    if difference.n_clusters < FEWEST:
        return "one sample has no interval"
    if difference.no_interval_because == "no_spread":
        return "all samples differ alike"
    return "its interval has no limit"


def _drop(bound: MaxDrop, difference: Difference, *, higher_is_better: bool) -> float | None:
    """How much worse the first is; of an interval, its worse limit."""
    limit = difference.low if higher_is_better else difference.high
    value = limit if bound.is_of_limit else difference.mean
    if value is None:
        return None
    # Without a difference the drop is 0, and not minus 0.
    return 0.0 - value if higher_is_better else value


def missed_drops(gates: Iterable[DropGate]) -> list[str]:
    """A sentence for each gate that was missed."""
    return [_missed_drop(gate) for gate in gates if not gate.passed]


def _missed_drop(gate: DropGate) -> str:
    figure = f"{gate.metric}{LOW if gate.of == 'low' else ''} of {gate.name}"
    if gate.drop is None:
        return (
            f"The drop of {figure} is null ({gate.reason}), so it does not keep to "
            f"{gate.max_drop:g}."
        )
    return f"{figure} is {gate.drop:.4g} worse than the baseline, over {gate.max_drop:g}."
