"""Where compared runs come from: files, folders, prefixes of buckets, and sweeps in either."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from socratic_bench.documents.sweep import CellRow, SweepFile
from socratic_bench.errors import UsageError
from socratic_bench.settings import MAX_STORED_BYTES, S3, read_bounded
from socratic_bench.storage.stores import ListedStore, store_at
from socratic_bench.studies.index import CellIndex, begun_sweeps, curated_bodies
from socratic_bench.studies.rows import COMPLETE_IT
from socratic_bench.studies.sweep.grid import run_ids_begin_with

SWEEPS = "/sweeps/"
RUNS = "raw/runs/"
ALL_RUNS = "run-"
WHAT_HOLDS_RUNS = "Name a run's or a sweep's document, an output folder, or s3://BUCKET/PREFIX."


class Found(Struct, frozen=True, kw_only=True):
    """A run's document as it is stored, where it stands, and its repeat if it is of a sweep;
    `store` is where it was found, `None` of a document that was given by itself.
    """

    name: str
    body: bytes
    repeat: int | None = None
    store: ListedStore | None = None


class Place(Struct, frozen=True):
    """All runs of a folder or prefix, or those of one sweep in it."""

    root: str
    sweep_id: str | None = None


def found_at(argument: str, region: Callable[[], str]) -> list[Found]:
    """The complete runs that an argument names; `region` is that of buckets.

    Raises `UsageError` if there are none, `ArtifactError` if a store cannot be read.
    """
    named = _named(argument)
    return [named] if isinstance(named, Found) else [*_of_place(named, region, argument)]


def _named(argument: str) -> Place | Found:
    if not argument.startswith(S3) and Path(argument).is_file():
        return _of_file(argument)
    return _place(argument)


def _of_file(path: str) -> Place | Found:
    """The one run whose document it is, or where the runs of the sweep are whose document it is."""
    try:
        body = read_bounded(path, bound=MAX_STORED_BYTES)
        document = json.loads(body)
    except OSError as error:
        raise UsageError([f"{path} cannot be read: {error.strerror}."]) from error
    except (ValueError, RecursionError) as error:
        raise UsageError([f"{path} is no JSON document."], hint=WHAT_HOLDS_RUNS) from error
    if isinstance(document, dict) and document.get("kind") == "sweep":
        return _of_sweep_document(document, path)
    return Found(name=path, body=body)


def _of_sweep_document(document: Mapping[str, Any], path: str) -> Place:
    """The folder where it is still there, else the bucket."""
    kept = (document.get("output_artifacts"), document.get("s3_artifacts"))
    roots = [str(one.get("runs")).removesuffix(RUNS) for one in kept if isinstance(one, dict)]
    there = [root for root in roots if root.startswith(S3) or Path(root).is_dir()]
    if not there:
        raise UsageError([f"{path}: the runs of this sweep are not where it says any more."])
    return Place(there[0].rstrip("/"), str(document.get("sweep_id")))


def _place(argument: str) -> Place:
    if not argument.strip():
        raise UsageError(["An argument is empty: name a file, a folder or a prefix of a bucket."])
    if argument.startswith(S3) and not argument.removeprefix(S3).strip("/"):
        raise UsageError([f"{argument} names no bucket: write s3://BUCKET/PREFIX."])
    root, found, sweep_id = argument.rstrip("/").rpartition(SWEEPS)
    if found and sweep_id.startswith("sweep-"):
        return Place(root, sweep_id)
    if not argument.startswith(S3) and not Path(argument).is_dir():
        raise UsageError([f"There is no file or folder {argument}."], hint=WHAT_HOLDS_RUNS)
    return Place(argument.rstrip("/") or argument)


def _of_place(place: Place, region: Callable[[], str], shown: str) -> Iterator[Found]:
    store, sweeps = _sweeps_of(place, region)
    if place.sweep_id is not None and not sweeps:
        raise UsageError([f"{shown}: there is no {place.sweep_id} in {place.root}."])
    repeats = {row.run_id: row.repeat for one in sweeps for row in _rows(store, one)}
    start = ALL_RUNS if place.sweep_id is None else run_ids_begin_with(sweeps[0])
    n_found = 0
    for name, body in curated_bodies(store, start, lambda _: True):
        n_found += 1
        where = store.location(f"curated/runs/{name}.json")
        yield Found(name=where, body=body, repeat=repeats.get(name), store=store)
    if not n_found:
        raise UsageError([f"{shown} has no complete run (curated/runs/*.json)."], hint=COMPLETE_IT)


def failed_cells_at(argument: str, region: Callable[[], str]) -> list[CellRow]:
    """The cells of an argument's sweeps that could not be played to their end."""
    named = _named(argument)
    if isinstance(named, Found):
        return []
    store, sweeps = _sweeps_of(named, region)
    rows = [row for one in sweeps for row in _rows(store, one)]
    return [row for row in rows if row.status != "completed"]


def _sweeps_of(place: Place, region: Callable[[], str]) -> tuple[ListedStore, list[SweepFile]]:
    store = store_at(place.root, region)
    return store, [one for one in begun_sweeps(store) if place.sweep_id in (None, one.sweep_id)]


def _rows(store: ListedStore, sweep: SweepFile) -> Iterable[CellRow]:
    return CellIndex(store, sweep.sweep_id, notice=lambda _: None).rows().values()
