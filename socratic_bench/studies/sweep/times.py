"""The metrics of a group of cells that are times to an event: survival, clustered by sample."""

from collections.abc import Sequence

from msgspec.structs import replace

from socratic_bench.documents.document import FIGURE_PLACES, to_places
from socratic_bench.documents.sweep import CellRow, Estimate, Survival
from socratic_bench.statistics.survival import Time, curve, median, restricted_mean
from socratic_bench.studies.sweep.means import Means

Clusters = Sequence[Sequence[Time]]


def survival(means: Means, rows: Sequence[CellRow]) -> dict[str, Survival]:
    """Each such metric over the cells in which it is known; those of which rows do not tell what
    is censored are left out.
    """
    names = [one.name for one in means.metrics.values() if one.censored_by]
    found = {name: _clusters(name, means, rows) for name in names}
    return {
        name: survival_of(clusters, longest(clusters), has_limits=means.method is not None)
        for name, clusters in found.items()
        if clusters
    }


def _clusters(name: str, means: Means, rows: Sequence[CellRow]) -> list[list[Time]]:
    found: dict[tuple[object, ...], list[Time]] = {}
    for row in rows:
        value = row.metrics.get(name)
        if value is None:
            continue
        if row.censored is None:
            return []
        time = Time(value, is_event=name not in row.censored)
        found.setdefault(means.sample_of(row), []).append(time)
    return [*found.values()]


def longest(clusters: Clusters) -> float:
    return max(one.at for some in clusters for one in some)


def survival_of(clusters: Clusters, horizon: float, *, has_limits: bool) -> Survival:
    """The figures of the curve over all times; limits raise `ImportError` without numpy."""
    times = [one for some in clusters for one in some]
    steps = curve(times)
    middle = Estimate(value=median(steps))
    mean = Estimate(value=round(restricted_mean(steps, horizon), FIGURE_PLACES))
    if has_limits:
        from socratic_bench.statistics.bootstrap import in_fixed_order, survival_limits

        limits = survival_limits(in_fixed_order(clusters), horizon)
        of_mean = limits.restricted_mean
        middle = replace(middle, low=limits.median.low, high=limits.median.high)
        mean = replace(
            mean,
            low=to_places(of_mean.low, FIGURE_PLACES),
            high=to_places(of_mean.high, FIGURE_PLACES),
        )
    return Survival(
        n=len(times),
        n_events=sum(one.is_event for one in times),
        n_clusters=len(clusters),
        median=middle,
        restricted_mean=mean,
        horizon=horizon,
    )
