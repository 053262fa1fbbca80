"""Lists the runs and sweeps in a folder or bucket, complete or not."""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path
from statistics import fmean
from typing import Any

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.report import ListDocument, ListedRun, ListedSweep
from socratic_bench.documents.sweep import CellRow, SweepFile
from socratic_bench.documents.usage import cost_total
from socratic_bench.errors import UsageError
from socratic_bench.runs.gates import metric_at
from socratic_bench.settings import S3
from socratic_bench.storage.stores import ListedStore, store_at
from socratic_bench.studies.places import (
    ALL_RUNS,
    RAW,
    CellIndex,
    begun_sweeps,
    curated_bodies,
    plan_of,
)
from socratic_bench.studies.rows import read_document
from socratic_bench.studies.sweep.resume import journal_entries


def list_place(place: str, region: Callable[[], str]) -> ListDocument:
    """The runs and sweeps of a place; `region` is that of buckets. Raises `UsageError`."""
    if not place.startswith(S3) and not Path(place).is_dir():
        raise UsageError([f"There is no folder {place}."])
    store = store_at(place.rstrip("/") or place, region)
    sweeps: list[ListedSweep] = []
    in_sweeps: set[str] = set()
    for sweep in begun_sweeps(store):
        rows = [*CellIndex(store, sweep.sweep_id, notice=lambda _: None).rows().values()]
        in_sweeps |= {row.run_id for row in rows}
        sweeps.append(_sweep(sweep, rows))
    return ListDocument(place=place, sweeps=sweeps, runs=[*_runs(store, in_sweeps)][::-1])


def _sweep(sweep: SweepFile, rows: Sequence[CellRow]) -> ListedSweep:
    plan = plan_of(sweep, [row.axes for row in rows])
    repeats = sweep.repeats or max((row.repeat for row in rows), default=1)
    n_runs = max(len(rows), repeats * prod(map(len, plan.values())))
    primary = load_benchmark(sweep.benchmark).primary_metric
    completed = [row for row in rows if row.status == "completed"]
    scores = [score for row in completed if (score := row.metrics.get(primary)) is not None]
    return ListedSweep(
        sweep_id=sweep.sweep_id,
        status="completed" if len(completed) == n_runs else "incomplete",
        benchmark=sweep.benchmark,
        models=[str(model) for model in plan.get("model", ())],
        n_runs=n_runs,
        n_completed=len(completed),
        n_failed=len(rows) - len(completed),
        score=round(fmean(scores), 4) if scores else None,
        cost_usd=cost_total(row.cost_usd for row in rows),
        started_at=sweep.started_at,
    )


def _runs(store: ListedStore, in_sweeps: set[str]) -> Iterator[ListedRun]:
    """The runs that are in no sweep, by their ids, which begin with the time."""
    curated = dict(curated_bodies(store, ALL_RUNS, lambda run_id: run_id not in in_sweeps))
    begun = {run_id for run_id in store.folders(RAW) if run_id.startswith(ALL_RUNS)}
    for run_id in sorted((begun | curated.keys()) - in_sweeps):
        if run_id not in curated:
            entries = journal_entries(store, run_id)
            config: Any = entries[0].get("config") if entries else {}
            model, scenario = config.get("model"), config.get("scenario")
            yield ListedRun(run_id=run_id, status="incomplete", model=model, scenario=scenario)
            continue
        document = read_document(curated[run_id], run_id)
        total = (document.get("cost") or {}).get("total") or {}
        primary = load_benchmark(document.get("benchmark", "socratic")).primary_metric
        yield ListedRun(
            run_id=run_id,
            status="completed",
            model=document["model"],
            scenario=document.get("scenario"),
            score=metric_at(primary, document.get("metrics") or {}),
            cost_usd=total.get("total_usd"),
        )
