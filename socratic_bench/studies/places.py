"""Where stored runs are: files, folders, prefixes of buckets, and sweeps in these.

`sweeps/{sweep_id}/sweep.json` has the beginning of a sweep with its plan, and
`sweeps/{sweep_id}/cells/*.jsonl` how its cells ended, many rows a file. The rows are an index of
the runs: one that a killed process did not write is made again from the curated file of its run.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.json import Decoder
from ulid import ULID

from socratic_bench.concurrency import decode
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys, with_current_keys
from socratic_bench.documents.sweep import CellRow, SweepFile, SweepPlace, Value
from socratic_bench.errors import ArtifactError, UsageError
from socratic_bench.settings import MAX_STORED_BYTES, S3, read_bounded
from socratic_bench.storage.folder import FolderStore
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import ListedStore, Region, store_at
from socratic_bench.studies.formats.dialogues import Dialogue, is_dialogues, read_dialogues
from socratic_bench.studies.formats.imported import unjudged_document
from socratic_bench.studies.rows import COMPLETE_IT, Document, SweepCell, read_document
from socratic_bench.types import Json

N_READERS = 16
ROWS_A_FILE = 100
FLUSH_AFTER_S = 10.0
SWEEPS = "sweeps/"
CURATED = "curated/runs/"
RAW = "raw/runs/"

_ROW = Decoder(CellRow)


def sweep_key(sweep_id: str) -> str:
    """The key of the file with a sweep's beginning."""
    return f"{SWEEPS}{sweep_id}/sweep.json"


def begun_sweeps(store: ListedStore) -> Iterator[SweepFile]:
    """The beginnings of the sweeps of a store, the newest first; files of others are skipped."""
    for name in sorted(store.folders(SWEEPS), reverse=True):
        body = store.get(sweep_key(name))
        if body is None:
            continue
        try:
            sweep = decode(body, SweepFile)
            run_ids_begin_with(sweep)
        except (msgspec.DecodeError, ValueError, OverflowError):  # such as a time out of range
            continue
        yield sweep


def run_id(sweep: SweepFile, cell_key: str) -> str:
    """The id of a cell's run. It follows from the sweep and the cell, so that the store shows which
    cells have begun, and no cell begins twice.
    """
    digest = sha256(f"{sweep.sweep_id} {cell_key}".encode()).digest()[:10]
    return f"run-{ULID.from_bytes(_begun_ms(sweep) + digest)}"


def run_ids_begin_with(sweep: SweepFile) -> str:
    """The common beginning of the ids of all runs of a sweep."""
    return f"run-{str(ULID.from_bytes(_begun_ms(sweep) + bytes(10)))[:10]}"


def _begun_ms(sweep: SweepFile) -> bytes:
    started_at = datetime.fromisoformat(sweep.started_at)
    return int(started_at.timestamp() * 1000).to_bytes(6)


def plan_of(
    sweep: SweepFile, played: Iterable[Mapping[str, Value]]
) -> Mapping[str, Sequence[Value]]:
    """All values of each axis of a sweep; by the axes of its runs if its beginning has no plan."""
    if sweep.axes is not None:
        return sweep.axes
    plan: dict[str, dict[Value, None]] = {}
    for axes in played:
        for name, value in axes.items():
            plan.setdefault(name, {})[value] = None
    return {name: [*values] for name, values in plan.items()}


def expected_values(run_id: str, axes: Mapping[str, Json], seed: int) -> dict[str, Json]:
    """What the document of a cell's run has to tell of it, as far as the index knows."""
    played = {name: axes.get(name) for name in ("model", "scenario")}
    return {"run_id": run_id, "seed": seed, **played}


class CellIndex:
    """The rows of one sweep in one store, written many at once. Safe to use from several threads.
    `notice` gets a text, once, if rows cannot be written.
    """

    def __init__(self, store: ListedStore, sweep_id: str, notice: Callable[[str], None]) -> None:
        self._store = store
        self._folder = f"{SWEEPS}{sweep_id}/cells/"
        self._sweep_id = sweep_id
        self._notice = notice
        self._lock = Lock()
        self._unwritten: list[bytes] = []
        self._oldest_s = 0.0
        self._is_unwritable = False

    def begin(self, sweep: SweepFile) -> None:
        """Write the beginning of the sweep, if it has changed. Raises `ArtifactError`."""
        body, key = encode(plain_keys(sweep)), sweep_key(self._sweep_id)
        self._store.update(key, lambda stored: None if stored == body else body)

    def rows(self) -> dict[str, CellRow]:
        """The last row of each cell, by its key; lines that are no rows are skipped."""
        keys = sorted(self._store.keys(self._folder))
        return {row.key: row for row in rows_in(read_all(keys, self._store.get))}

    def add(self, row: CellRow) -> None:
        """Write a row within some seconds."""
        with self._lock:
            self._unwritten.append(encode(plain_keys(row)))
            now_s = time.monotonic()
            self._oldest_s = self._oldest_s if len(self._unwritten) > 1 else now_s
            is_old = now_s - self._oldest_s >= FLUSH_AFTER_S
            is_due = is_old or len(self._unwritten) >= ROWS_A_FILE
        if is_due:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are not written yet; they stay in memory if that fails."""
        with self._lock:
            rows, self._unwritten = self._unwritten, []
        if not rows:
            return
        try:
            self._store.put(f"{self._folder}{ULID()}.jsonl", b"\n".join(rows) + b"\n")
        except ArtifactError as error:
            with self._lock:
                self._unwritten = [*rows, *self._unwritten]
                is_first, self._is_unwritable = not self._is_unwritable, True
            if is_first:
                self._notice(f"The sweep's index could not be written: {error.message}")

    def place(self) -> SweepPlace:
        """Where people find it."""
        runs = self._store.location("raw/runs/")
        return SweepPlace(index=self._store.location(self._folder), runs=runs)


def curated_bodies(
    store: ListedStore, run_ids_begin_with: str, is_wanted: Callable[[str], bool]
) -> Iterator[tuple[str, bytes]]:
    """The ids and curated files of the complete runs that are wanted."""
    keys = store.keys(f"{CURATED}{run_ids_begin_with}")
    names = [key.removeprefix(CURATED).removesuffix(".json") for key in keys]
    ids = [name for name in names if is_wanted(name)]
    bodies = read_all([RunKeys(name).curated for name in ids], store.get)
    for name, body in zip(ids, bodies, strict=True):
        if body is not None:
            yield name, body


def rows_in(bodies: Iterable[bytes | None]) -> Iterator[CellRow]:
    """The rows of files of an index, in order; lines that are no rows are skipped."""
    for body in bodies:
        for line in (body or b"").splitlines():
            with suppress(msgspec.DecodeError):
                yield _ROW.decode(line)


def read_all(keys: Sequence[str], get: Callable[[str], bytes | None]) -> Iterator[bytes | None]:
    """The files of these keys, in order, by the names that keys have now."""
    with ThreadPoolExecutor(N_READERS, thread_name_prefix="index") as pool:
        for body in pool.map(get, keys):
            yield None if body is None else with_current_keys(body)


ALL_RUNS = "run-"
WHAT_HOLDS_RUNS = (
    "RUNS are output folders, s3:// prefixes, documents of runs or sweeps, or dialogues (.jsonl, "
    ".txt, .eval)."
)


class FoundRun(Struct, frozen=True, kw_only=True):
    """The stored document of a run, where it is, and its place in its sweep, if it is of one.

    `store` is where it was found; `None` for a document that was named by itself. `expected` are
    values of the document that its name and the index tell. A `dialogue` is from another tool's
    file.
    """

    name: str
    body: bytes
    cell: SweepCell | None = None
    store: ListedStore | None = None
    expected: Mapping[str, Json] = {}
    dialogue: Dialogue | None = None

    def document(self) -> Document:
        """See `read_document`; of a dialogue from a file, that of a run which nobody has judged."""
        body = unjudged_document(self.dialogue) if self.dialogue else self.body
        return read_document(body, self.name, **self.expected)


class Place(Struct, frozen=True):
    """All runs of a folder or prefix, or those of one sweep in it."""

    root: str
    sweep_id: str | None = None


class FoundRuns(Struct, frozen=True):
    """The complete runs that an argument names, and the failed cells of its sweeps."""

    runs: list[FoundRun]
    failed: list[CellRow]


def find_runs(argument: str, region: Region) -> FoundRuns:
    """The runs that an argument names; `region` is that of buckets. Raises `UsageError` if there
    are none, `ArtifactError` if a store cannot be read.
    """
    is_file = not argument.startswith(S3) and Path(argument).is_file()
    if is_file and is_dialogues(Path(argument)):
        dialogues = read_dialogues(argument)
        return FoundRuns([FoundRun(name=d.place, body=b"", dialogue=d) for d in dialogues], [])
    place = _open_file(argument) if is_file else place_of(argument)
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
        raise UsageError([f"{path} is not a JSON document."], hint=WHAT_HOLDS_RUNS) from error
    if isinstance(document, dict) and document.get("kind") == "sweep":
        return _open_sweep_document(document, path)
    is_stored = Path(path).absolute().match(f"{CURATED}run-*.json")
    if not is_stored:
        return FoundRun(name=path, body=body)
    run_id, root = Path(path).stem, Path(path).absolute().parents[2]
    has_files = (root / RunKeys(run_id).raw).is_dir()
    store = FolderStore(str(root)) if has_files else None
    return FoundRun(name=path, body=body, store=store, expected={"run_id": run_id})


def _open_sweep_document(document: Mapping[str, Any], path: str) -> Place:
    """The folder if it still exists, else the bucket."""
    artifacts = (document.get("output_artifacts"), document.get("s3_artifacts"))
    places = [place for place in artifacts if isinstance(place, dict)]
    roots = [str(place.get("runs")).removesuffix(RAW) for place in places]
    existing = [root for root in roots if root.startswith(S3) or Path(root).is_dir()]
    if not existing:
        raise UsageError([f"{path}: the runs of this sweep are not where it says any more."])
    return Place(existing[0].rstrip("/"), str(document.get("sweep_id")))


def place_of(argument: str) -> Place:
    """The folder or prefix that an argument names, or a sweep in it. Raises `UsageError`."""
    if not argument.strip():
        raise UsageError(["An argument is empty: name a file, a folder or a prefix of a bucket."])
    if argument.startswith(S3) and not argument.removeprefix(S3).strip("/"):
        raise UsageError([f"{argument} names no bucket: write s3://BUCKET/PREFIX."])
    root, is_sweep, sweep_id = argument.rstrip("/").rpartition(f"/{SWEEPS}")
    if is_sweep and sweep_id.startswith("sweep-"):
        return Place(root, sweep_id)
    if not argument.startswith(S3) and not Path(argument).is_dir():
        raise UsageError([f"There is no file or folder {argument}."], hint=WHAT_HOLDS_RUNS)
    return Place(argument.rstrip("/") or argument)


def _find_in(place: Place, region: Region, argument: str) -> FoundRuns:
    store = store_at(place.root, region)
    sweeps = [sweep for sweep in begun_sweeps(store) if place.sweep_id in (None, sweep.sweep_id)]
    if place.sweep_id is not None and not sweeps:
        raise UsageError([f"{argument}: there is no {place.sweep_id} in {place.root}."])
    cells: dict[str, SweepCell] = {}
    expected: dict[str, Mapping[str, Json]] = {}
    failed: list[CellRow] = []
    for sweep in sweeps:
        rows = CellIndex(store, sweep.sweep_id, notice=lambda _: None).rows().values()
        plan = plan_of(sweep, [row.axes for row in rows])
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
    return FolderStore(root) if root and Path(root).is_dir() else None


def store_of(document: Mapping[str, Any], region: Region) -> ListedStore | None:
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
