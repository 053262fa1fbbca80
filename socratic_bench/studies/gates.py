"""Bounds on what several runs come to: the lower limit of a mean, or a time by which half have had
an event.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from socratic_bench.documents.comparison import ComparedPair, Difference, DropGate, FailedContender
from socratic_bench.documents.sweep import Mean, MinimumGate, Survival
from socratic_bench.errors import Problem
from socratic_bench.ports.benchmark import Benchmark, MetricInfo
from socratic_bench.settings import Gate
from socratic_bench.statistics.bootstrap import FEWEST_DRAWN, Method
from socratic_bench.statistics.intervals import FEWEST

if TYPE_CHECKING:
    from socratic_bench.runs import Plan


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


class Bound(Struct, frozen=True, kw_only=True):
    """Over all runs of a model, what a metric's figure must reach: the figure itself, or the lower
    limit of its interval.
    """

    metric: str
    figure: Literal["mean", "median", "restricted_mean"]
    is_of_limit: bool
    minimum: float

    @classmethod
    def of(cls, gate: Gate) -> "Bound":
        """METRIC, METRIC.low, and METRIC.median, METRIC.restricted_mean, of these .low, too."""
        path = gate.metric.removesuffix(LOW)
        figure = next((one for one in OF_TIMES if path.endswith(f".{one}")), "mean")
        return cls(
            metric=path.removesuffix(f".{figure}"),
            figure=figure,  # type: ignore[arg-type] # one of these three
            is_of_limit=path != gate.metric,
            minimum=gate.minimum,
        )

    @property
    def word(self) -> str:
        """As it is given."""
        parts = [self.metric] if self.figure == "mean" else [self.metric, self.figure]
        return ".".join(parts) + LOW * self.is_of_limit

    @property
    def is_of_many(self) -> bool:
        """Whether one run alone has nothing that it could be on."""
        return self.is_of_limit or self.figure != "mean"


def misnamed(bounds: Iterable[Bound], benchmark: Benchmark) -> Iterator[Problem]:
    """What they are on, and is nothing. Of metrics that are known once items are read nothing is
    said.
    """
    if benchmark.parts.has_item_metrics:
        return
    known = {one.name: one for one in benchmark.metrics}
    times = [one.name for one in known.values() if one.censored_by]
    for one in bounds:
        if one.metric not in known:
            yield Problem.of(UNKNOWN, metric=one.metric, known=", ".join(known))
        elif one.figure != "mean" and one.metric not in times:
            named = {"word": one.word, "metric": one.metric, "figure": one.figure}
            yield Problem.of(NO_TIME, times=" and ".join(times) or "None", **named)


def without_extra(bounds: Iterable[Bound], has_intervals: Callable[[], bool]) -> Iterator[Problem]:
    """Limits that are bounded where there are no intervals."""
    for one in (one for one in bounds if one.is_of_limit):
        if not has_intervals():
            yield Problem.of(NO_EXTRA, word=one.word, metric=one.metric)


class Feasibility(Struct, kw_only=True):
    """What the prepared runs of a sweep say of the figures that are to come: by sample, of how many
    parts each metric can be; whether anybody is asked for a verdict, where these have one. `method`
    is how intervals are made; more samples are given by the settings `axes`.
    """

    method: Method
    axes: Sequence[str]
    n_parts: dict[Hashable, Mapping[str, int]] = {}
    is_judged: bool = False

    def add(self, sample: Hashable, plan: "Plan") -> None:
        """Of several runs of a sample the largest numbers count."""
        its = plan.episode.opening.n_parts
        before = self.n_parts.get(sample, its)
        names = {**before, **its}
        self.n_parts[sample] = {n: max(before.get(n, 1), its.get(n, 1)) for n in names}
        self.is_judged |= bool(plan.config.jurors) or plan.episode.rubric is None

    def problems(self, bounds: Iterable[Bound], benchmark: Benchmark) -> Iterator[Problem]:
        """Why figures that are bounded cannot come."""
        known = {one.name: one for one in benchmark.metrics}
        for one in bounds:
            metric, named = known.get(one.metric), {"word": one.word, "metric": one.metric}
            n = sum(some.get(one.metric, 1) for some in self.n_parts.values())
            least = self._least(one, metric)
            if not self.is_judged and metric and metric.needs_turns != 0:
                yield Problem.of(NO_JUDGE, **named)
            elif not n:
                yield Problem.of(NEVER, **named)
            elif n < least:
                yield Problem.of(f"{TOO_FEW} {self._more(one)}", least=least, n=n, **named)

    def _least(self, bound: Bound, metric: MetricInfo | None) -> int:
        """Limits of rates and of times do not depend on the method."""
        if not bound.is_of_limit:
            return 1
        is_rate = metric is not None and metric.is_rate
        is_drawn = self.method == "bootstrap-t" and bound.figure == "mean" and not is_rate
        return FEWEST_DRAWN if is_drawn else FEWEST

    def _more(self, bound: Bound) -> str:
        if any(bound.metric in some for some in self.n_parts.values()):
            return "Ask for more of them."
        return f"Name more of them with {' or '.join(f'{{{name}}}' for name in self.axes)}."


def minimum_gates(
    bounds: Iterable[Bound], name: str, means: Mapping[str, Mean], survival: Mapping[str, Survival]
) -> Iterator[MinimumGate]:
    """What a model's figures are, and whether they reach the bounds."""
    for one in bounds:
        mean, times = means.get(one.metric), survival.get(one.metric)
        value = _value(one, mean, times)
        yield MinimumGate(
            name=name,
            gate=one.word,
            minimum=one.minimum,
            value=value,
            reason=_reason(one, mean, times) if value is None else None,
            passed=value is not None and value >= one.minimum,
        )


def _value(bound: Bound, mean: Mean | None, times: Survival | None) -> float | None:
    if bound.figure == "mean":
        if mean is None:
            return None
        return mean.low if bound.is_of_limit else mean.mean
    if times is None:
        return None
    estimate = times.median if bound.figure == "median" else times.restricted_mean
    return estimate.low if bound.is_of_limit else estimate.value


def _reason(bound: Bound, mean: Mean | None, times: Survival | None) -> str:
    """Why a figure is not known."""
    found = mean if bound.figure == "mean" else times
    if found is None or not found.n:
        return "no complete run tells it"
    if bound.is_of_limit and found.n_clusters < FEWEST:
        return "one sample has no interval"
    if times is not None and bound.figure != "mean" and not times.n_events:
        return "no run saw the event"
    if bound.is_of_limit:
        return "its interval has no lower limit"
    return "fewer than half of the runs saw the event"


def missed_minima(gates: Iterable[MinimumGate]) -> list[str]:
    """A sentence for each that was missed_minima."""
    return [_sentence(one) for one in gates if not one.passed]


def _sentence(one: MinimumGate) -> str:
    what = f"{one.gate} of {one.name}"
    if one.value is None:
        return f"{what} is null ({one.reason}), so it does not reach {one.minimum:g}."
    return f"{what} is {one.value:g}, which is {one.minimum - one.value:.4g} under {one.minimum:g}."


# Gates on how far a contender may fall behind the baseline.

LOW_OF_DROP = ".low"


class MaxDrop(Struct, frozen=True, kw_only=True):
    """METRIC=VALUE, or METRIC.low=VALUE for the worse limit of the difference's interval."""

    metric: str
    max_drop: float
    is_of_limit: bool

    @classmethod
    def parse(cls, word: str) -> "MaxDrop | None":
        gate = Gate.parse(word)
        if gate is None or gate.minimum < 0:
            return None
        return cls(
            metric=gate.metric.removesuffix(LOW_OF_DROP),
            max_drop=gate.minimum,
            is_of_limit=gate.metric.endswith(LOW_OF_DROP),
        )


def drop_gates(
    drops: Sequence[MaxDrop], pairs: Iterable[ComparedPair], metrics: Sequence[MetricInfo]
) -> Iterator[DropGate]:
    """Each pair against each bound; the second of a pair is the baseline."""
    higher = {one.name: one.higher_is_better for one in metrics}
    for pair in pairs:
        for one in drops:
            found = pair.differences[one.metric]
            drop = _drop(one, found, is_higher_better=higher[one.metric])
            yield _gate(one, pair.first, drop, _drop_reason(found) if drop is None else None)


def drop_gates_of_failed(
    drops: Sequence[MaxDrop], failed: Iterable[FailedContender]
) -> Iterator[DropGate]:
    """Each bound for what has no complete run, so that no drop of it is known."""
    for gone in failed:
        for one in drops:
            yield _gate(one, gone.model, None, "no complete run tells it")


def _gate(one: MaxDrop, name: str, drop: float | None, reason: str | None) -> DropGate:
    return DropGate(
        name=name,
        metric=one.metric,
        of="low" if one.is_of_limit else "mean",
        max_drop=one.max_drop,
        drop=drop,
        reason=reason,
        passed=drop is not None and drop <= one.max_drop,
    )


def _drop_reason(found: Difference) -> str:
    """Why a drop is not known."""
    if not found.n:
        return "no pair of runs tells it"
    if found.n_clusters < FEWEST:
        return "one sample has no interval"
    return "its interval has no limit"


def _drop(one: MaxDrop, found: Difference, *, is_higher_better: bool) -> float | None:
    """How much worse the first is; of an interval, its worse limit."""
    limit = found.low if is_higher_better else found.high
    difference = limit if one.is_of_limit else found.mean
    if difference is None:
        return None
    # Of no difference there is no drop, rather than one of minus zero.
    return 0.0 - difference if is_higher_better else difference


def missed_drops(gates: Iterable[DropGate]) -> list[str]:
    """A sentence for each that was missed_drops."""
    return [_drop_sentence(one) for one in gates if not one.passed]


def _drop_sentence(one: DropGate) -> str:
    what = f"{one.metric}{LOW_OF_DROP if one.of == 'low' else ''} of {one.name}"
    if one.drop is None:
        return (
            f"The drop of {what} is null ({one.reason}), so it does not keep to {one.max_drop:g}."
        )
    return f"{what} is {one.drop:.4g} worse than the baseline, over {one.max_drop:g}."
