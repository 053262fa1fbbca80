"""Where stored runs are: files, folders, prefixes of buckets, and sweeps in these."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.documents.sweep import CellRow
from socratic_bench.errors import UsageError
from socratic_bench.settings import MAX_STORED_BYTES, S3, read_bounded
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import ListedFolder, ListedStore, store_at
from socratic_bench.studies.index import (
    CURATED,
    RAW,
    CellIndex,
    begun_sweeps,
    curated_bodies,
    expected_values,
    plan_of,
    run_ids_begin_with,
)
from socratic_bench.studies.rows import COMPLETE_IT, Document, SweepCell, read_document
from socratic_bench.types import Json

SWEEPS = "/sweeps/"
ALL_RUNS = "run-"
WHAT_HOLDS_RUNS = "Name a run's or a sweep's document, an output folder, or s3://BUCKET/PREFIX."


class FoundRun(Struct, frozen=True, kw_only=True):
    """The stored document of a run, where it is, and its place in its sweep, if it is of one.

    `store` is where it was found; `None` for a document that was named by itself. `expected` are
    values of the document that its name and the index tell.
    """

    name: str
    body: bytes
    cell: SweepCell | None = None
    store: ListedStore | None = None
    expected: Mapping[str, Json] = {}

    def document(self) -> Document:
        """See `read_document`."""
        return read_document(self.body, self.name, **self.expected)


class Place(Struct, frozen=True):
    """All runs of a folder or prefix, or those of one sweep in it."""

    root: str
    sweep_id: str | None = None


class FoundRuns(Struct, frozen=True):
    """The complete runs that an argument names, and the failed cells of its sweeps."""

    runs: list[FoundRun]
    failed: list[CellRow]


def find_runs(argument: str, region: Callable[[], str]) -> FoundRuns:
    """The runs that an argument names; `region` is that of buckets.

    Raises `UsageError` if there are none, `ArtifactError` if a store cannot be read.
    """
    if not argument.startswith(S3) and Path(argument).is_file():
        place = _open_file(argument)
    else:
        place = _open_place(argument)
    if isinstance(place, FoundRun):
        return FoundRuns([place], [])
    return _find_in(place, region, argument)


def _open_file(path: str) -> Place | FoundRun:
    """The run whose document it is, or where the runs are of the sweep whose document it is."""
    try:
        body = read_bounded(path, bound=MAX_STORED_BYTES)
        document = json.loads(body)
    except OSError as error:
        raise UsageError([f"{path} cannot be read: {error.strerror}."]) from error
    except (ValueError, RecursionError) as error:
        raise UsageError([f"{path} is no JSON document."], hint=WHAT_HOLDS_RUNS) from error
    if isinstance(document, dict) and document.get("kind") == "sweep":
        return _open_sweep_document(document, path)
    is_stored = Path(path).absolute().match(f"{CURATED}run-*.json")
    if not is_stored:
        return FoundRun(name=path, body=body)
    run_id, root = Path(path).stem, Path(path).absolute().parents[2]
    has_files = (root / RunKeys(run_id).raw).is_dir()
    store = ListedFolder(str(root)) if has_files else None
    return FoundRun(name=path, body=body, store=store, expected={"run_id": run_id})


def _open_sweep_document(document: Mapping[str, Any], path: str) -> Place:
    """The folder if it still exists, else the bucket."""
    artifacts = (document.get("output_artifacts"), document.get("s3_artifacts"))
    roots = [
        str(place.get("runs")).removesuffix(RAW) for place in artifacts if isinstance(place, dict)
    ]
    existing = [root for root in roots if root.startswith(S3) or Path(root).is_dir()]
    if not existing:
        raise UsageError([f"{path}: the runs of this sweep are not where it says any more."])
    return Place(existing[0].rstrip("/"), str(document.get("sweep_id")))


def _open_place(argument: str) -> Place:
    if not argument.strip():
        raise UsageError(["An argument is empty: name a file, a folder or a prefix of a bucket."])
    if argument.startswith(S3) and not argument.removeprefix(S3).strip("/"):
        raise UsageError([f"{argument} names no bucket: write s3://BUCKET/PREFIX."])
    root, is_sweep, sweep_id = argument.rstrip("/").rpartition(SWEEPS)
    if is_sweep and sweep_id.startswith("sweep-"):
        return Place(root, sweep_id)
    if not argument.startswith(S3) and not Path(argument).is_dir():
        raise UsageError([f"There is no file or folder {argument}."], hint=WHAT_HOLDS_RUNS)
    return Place(argument.rstrip("/") or argument)


def _find_in(place: Place, region: Callable[[], str], argument: str) -> FoundRuns:
    store = store_at(place.root, region)
    sweeps = [sweep for sweep in begun_sweeps(store) if place.sweep_id in (None, sweep.sweep_id)]
    if place.sweep_id is not None and not sweeps:
        raise UsageError([f"{argument}: there is no {place.sweep_id} in {place.root}."])
    cells: dict[str, SweepCell] = {}
    expected: dict[str, Mapping[str, Json]] = {}
    failed: list[CellRow] = []
    for sweep in sweeps:
        rows = CellIndex(store, sweep.sweep_id, notice=lambda _: None).rows().values()
        plan = plan_of(sweep, rows)
        for row in rows:
            cells[row.run_id] = SweepCell(axes=row.axes, repeat=row.repeat, plan=plan)
            expected[row.run_id] = expected_values(row.run_id, row.axes, row.seed)
        failed += [row for row in rows if row.status != "completed"]
    beginning = ALL_RUNS if place.sweep_id is None else run_ids_begin_with(sweeps[0])
    runs = [
        FoundRun(
            name=store.location(f"{CURATED}{run_id}.json"),
            body=body,
            cell=cells.get(run_id),
            store=store,
            expected=expected.get(run_id, {"run_id": run_id}),
        )
        for run_id, body in curated_bodies(store, beginning, lambda _: True)
    ]
    if not runs:
        sentence = f"{argument} has no complete run (curated/runs/*.json)."
        raise UsageError([sentence], hint=COMPLETE_IT)
    return FoundRuns(runs, failed)


def folder_of(document: Mapping[str, Any]) -> ListedStore | None:
    """The folder where a run's document says that the run is; `None` if it is not there."""
    root = next((root for root in _roots(document) if not root.startswith(S3)), None)
    return ListedFolder(root) if root and Path(root).is_dir() else None


def store_of(document: Mapping[str, Any], region: Callable[[], str]) -> ListedStore | None:
    """Where a run's document says that the run is: the folder if it still exists, or the bucket."""
    for root in _roots(document):
        if root.startswith(S3) or Path(root).is_dir():
            return store_at(root, region)
    return None


def _roots(document: Mapping[str, Any]) -> Iterator[str]:
    ending = RunKeys(str(document.get("run_id"))).raw
    for artifacts in (document.get("output_artifacts"), document.get("s3_artifacts")):
        if raw := str((artifacts or {}).get("raw") or ""):
            yield raw.removesuffix(ending).rstrip("/")
