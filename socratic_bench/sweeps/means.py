"""The metrics of a group of cells: their means, with intervals that are clustered by sample."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from socratic_bench.documents.sweep import CellRow, Mean, Variance
from socratic_bench.ports import MetricInfo
from socratic_bench.statistics.clusters import Clustered, clustered, parts
from socratic_bench.statistics.intervals import Interval, runs_to_halve, t_interval
from socratic_bench.statistics.intervals import wilson_interval as wilson
from socratic_bench.sweeps.grid import Grid

PLACES = 6
# By sample, then by what differs beside the repeat: a metric's values.
Split = Mapping[tuple[object, ...], Mapping[tuple[object, ...], list[float]]]


class Means(Struct, frozen=True, kw_only=True):
    """How means are made: `sample_axes` say of which sample a cell is, `metrics` what is known of
    each metric; `has_intervals` needs the extra `stats`.
    """

    sample_axes: tuple[str, ...]
    metrics: Mapping[str, MetricInfo]
    has_intervals: bool

    @classmethod
    def of(
        cls, grid: Grid, metrics: Iterable[MetricInfo], *, has_intervals: bool = False
    ) -> "Means":
        by_name = {one.name: one for one in metrics}
        return cls(sample_axes=grid.sample_axes, metrics=by_name, has_intervals=has_intervals)

    def over(self, rows: Sequence[CellRow]) -> dict[str, Mean]:
        """Each metric over the cells in which it is known."""
        names = dict.fromkeys(name for row in rows for name in row.metrics)
        return {name: self._mean(name, rows) for name in names}

    def sample_of(self, row: CellRow) -> tuple[object, ...]:
        """What its cell is clustered by."""
        return tuple(row.axes[axis] for axis in self.sample_axes)

    def _mean(self, name: str, rows: Sequence[CellRow]) -> Mean:
        split = self._split(name, rows)
        if not split:
            return Mean(mean=None, n=0)
        found = clustered([_flat(kinds.values()) for kinds in split.values()])
        interval = interval_of(self.metrics.get(name), found) if self.has_intervals else None
        return Mean(
            mean=round(found.mean, PLACES),
            n=found.n,
            n_clusters=found.n_clusters,
            scope="samples like these" if interval else "these samples",
            low=round(interval.low, PLACES) if interval else None,
            high=round(interval.high, PLACES) if interval else None,
            variance=_variance(split),
            runs_to_halve=runs_to_halve(found) if interval else None,
        )

    def _split(self, name: str, rows: Sequence[CellRow]) -> Split:
        found: dict[tuple[object, ...], dict[tuple[object, ...], list[float]]] = {}
        for row in rows:
            value = row.metrics.get(name)
            if value is not None:
                kinds = found.setdefault(self.sample_of(row), {})
                kinds.setdefault(tuple(row.axes.values()), []).append(value)
        return found


def interval_of(metric: MetricInfo | None, found: Clustered) -> Interval | None:
    """Within the bounds of the metric. Raises `ImportError` without scipy."""
    is_rate = metric is not None and metric.is_rate
    interval = wilson(found) if is_rate else t_interval(found)
    if interval is None or metric is None:
        return interval
    low = interval.low if metric.low is None else max(metric.low, interval.low)
    high = interval.high if metric.high is None else min(metric.high, interval.high)
    return Interval(low, high)


def _variance(split: Split) -> Variance | None:
    found = parts([[*kinds.values()] for kinds in split.values()])
    if found is None:
        return None
    return Variance(sample=round(found.between, PLACES), repeat=round(found.within, PLACES))


def _flat(lists: Iterable[Sequence[float]]) -> list[float]:
    return [value for values in lists for value in values]
