"""Gates on how far a contender may fall behind the baseline."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from socratic_bench.documents.comparison import ComparedPair, Difference, DropGate, FailedContender
from socratic_bench.ports.benchmark import MetricInfo
from socratic_bench.settings import Gate
from socratic_bench.statistics.intervals import FEWEST

LOW = ".low"


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
            metric=gate.metric.removesuffix(LOW),
            max_drop=gate.minimum,
            is_of_limit=gate.metric.endswith(LOW),
        )


def held(
    drops: Sequence[MaxDrop], pairs: Iterable[ComparedPair], metrics: Sequence[MetricInfo]
) -> Iterator[DropGate]:
    """Each pair against each bound; the second of a pair is the baseline."""
    higher = {one.name: one.higher_is_better for one in metrics}
    for pair in pairs:
        for one in drops:
            found = pair.differences[one.metric]
            drop = _drop(one, found, is_higher_better=higher[one.metric])
            yield _gate(one, pair.first, drop, _reason(found) if drop is None else None)


def of_failed(drops: Sequence[MaxDrop], failed: Iterable[FailedContender]) -> Iterator[DropGate]:
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


def _reason(found: Difference) -> str:
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


def missed(gates: Iterable[DropGate]) -> list[str]:
    """A sentence for each that was missed."""
    return [_sentence(one) for one in gates if not one.passed]


def _sentence(one: DropGate) -> str:
    what = f"{one.metric}{LOW if one.of == 'low' else ''} of {one.name}"
    if one.drop is None:
        return (
            f"The drop of {what} is null ({one.reason}), so it does not keep to {one.max_drop:g}."
        )
    return f"{what} is {one.drop:.4g} worse than the baseline, over {one.max_drop:g}."
