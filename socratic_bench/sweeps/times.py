"""The metrics of a group of cells that are times to an event: survival, clustered by sample."""

from collections.abc import Sequence

from socratic_bench.documents.sweep import CellRow, Estimate, Survival
from socratic_bench.statistics.survival import Time, curve, median, restricted_mean
from socratic_bench.sweeps.means import PLACES, Means


def survival(means: Means, rows: Sequence[CellRow]) -> dict[str, Survival]:
    """Each such metric over the cells in which it is known; those of which rows do not tell what
    is censored are left out.
    """
    names = [one.name for one in means.metrics.values() if one.censored_by]
    found = {name: _clusters(name, means, rows) for name in names}
    return {name: _survival(clusters, means) for name, clusters in found.items() if clusters}


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


def _survival(clusters: Sequence[Sequence[Time]], means: Means) -> Survival:
    times = [one for cluster in clusters for one in cluster]
    horizon = max(one.at for one in times)
    steps = curve(times)
    middle, mean = median(steps), restricted_mean(steps, horizon)
    estimates = Estimate(value=middle), Estimate(value=round(mean, PLACES))
    if means.has_intervals:
        from socratic_bench.statistics.bootstrap import survival_limits

        limits = survival_limits(clusters, horizon)
        estimates = (
            Estimate(value=middle, low=limits.median.low, high=limits.median.high),
            Estimate(
                value=round(mean, PLACES),
                low=_rounded(limits.restricted_mean.low),
                high=_rounded(limits.restricted_mean.high),
            ),
        )
    return Survival(
        n=len(times),
        n_events=sum(one.is_event for one in times),
        n_clusters=len(clusters),
        median=estimates[0],
        restricted_mean=estimates[1],
        horizon=horizon,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, PLACES)
