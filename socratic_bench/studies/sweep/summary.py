"""What the rows of a sweep come to: each value of each axis with its means, the best first."""

from collections.abc import Iterable, Mapping, Sequence

from socratic_bench.documents.document import USD_PLACES
from socratic_bench.documents.sweep import (
    CellEntry,
    CellRow,
    FailedCell,
    Group,
    PrimaryMetric,
    Survival,
)
from socratic_bench.documents.usage import ActorUsage, Tokens
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.statistics.survival import Time
from socratic_bench.studies.figures import Means, hazards
from socratic_bench.studies.sweep.grid import MODEL, Cell, Grid, by_axis
from socratic_bench.studies.times import longest, survival_of
from socratic_bench.types import Json

Rows = Mapping[str, CellRow]
_OF_FAILED = FailedCell.__struct_fields__  # rows have them, too


def primary_metric(benchmark: Benchmark) -> PrimaryMetric:
    """By which groups are ordered."""
    name = benchmark.primary_metric
    higher = next(one.higher_is_better for one in benchmark.metrics if one.name == name)
    return PrimaryMetric(name=name, higher_is_better=higher)


def groups(
    grid: Grid, cells: Sequence[Cell], rows: Rows, by: PrimaryMetric, means: Means
) -> dict[str, list[Group]]:
    """The groups of every axis, each axis ordered by the primary metric, untested ones last."""
    names = dict.fromkeys((MODEL, *(axis.name for axis in grid.axes)))
    return {name: _ordered(by_axis(cells, name), rows, by, means) for name in names}


def _ordered(
    split: Mapping[Json, Sequence[Cell]], rows: Rows, by: PrimaryMetric, means: Means
) -> list[Group]:
    sign = -1 if by.higher_is_better else 1

    def rank(group: Group) -> tuple[bool, float]:
        mean = group.metrics[by.name].mean if by.name in group.metrics else None
        return (mean is None, 0.0 if mean is None else sign * mean)

    return sorted((_group(value, cells, rows, means) for value, cells in split.items()), key=rank)


def _group(value: Json, cells: Sequence[Cell], rows: Rows, means: Means) -> Group:
    ended = [rows[cell.key] for cell in cells if cell.key in rows]
    complete = [row for row in ended if row.status == "completed"]
    return Group(
        value=value,  # type: ignore[arg-type] # of an axis
        n_cells=len(cells),
        n_completed=len(complete),
        n_failed=len(ended) - len(complete),
        n_missing=len(cells) - len(ended),
        metrics=means.over(complete),
        survival=survival(means, complete),
        hazards=hazards(means, complete),
        usage=usage_of(ended),
        cost_usd=cost_of(ended),
    )


def usage_of(rows: Iterable[CellRow]) -> ActorUsage:
    """The sums; null where one is not known."""
    used = [row.usage for row in rows]
    tokens = {name: _sum(getattr(one, name) for one in used) for name in Tokens.__struct_fields__}
    return ActorUsage(
        calls=sum(one.calls for one in used), attempts=sum(one.attempts for one in used), **tokens
    )


def cost_of(rows: Iterable[CellRow]) -> float | None:
    """USD in all; `None` if one is not known."""
    costs = [row.cost_usd for row in rows]
    return None if None in costs else round(sum(cost or 0.0 for cost in costs), USD_PLACES)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [*values]
    return None if None in known else sum(value or 0 for value in known)


def entries(completed: Iterable[CellRow], by: PrimaryMetric) -> list[CellEntry]:
    """The cells that are complete."""
    return [
        CellEntry(
            cell=row.cell,
            run_id=row.run_id,
            axes=row.axes,
            repeat=row.repeat,
            value=row.metrics.get(by.name),
        )
        for row in completed
    ]


def failed(ended: Iterable[CellRow]) -> list[FailedCell]:
    """The cells that failed."""
    rows = (row for row in ended if row.status != "completed")
    return [FailedCell(**{name: getattr(row, name) for name in _OF_FAILED}) for row in rows]


def survival(means: Means, rows: Sequence[CellRow]) -> dict[str, Survival]:
    """Each such metric over the cells in which it is known; those of which rows do not tell what
    is censored are left out.
    """
    names = [one.name for one in means.metrics.values() if one.censored_by]
    found = {name: _cell_clusters(name, means, rows) for name in names}
    return {
        name: survival_of(clusters, longest(clusters), has_limits=means.method is not None)
        for name, clusters in found.items()
        if clusters
    }


def _cell_clusters(name: str, means: Means, rows: Sequence[CellRow]) -> list[list[Time]]:
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
