"""What a store knows of a sweep: what it began with, and how its cells ended.

`sweeps/{sweep_id}/sweep.json` and, many rows a file, `sweeps/{sweep_id}/cells/*.jsonl`. The rows
are an index of the runs, which tell the same: those that were not written in time are read from
the curated files of the runs.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

import msgspec
from msgspec.json import Decoder
from ulid import ULID

from socratic_bench.concurrency import decode
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.sweep import CellRow, SweepFile, SweepPlace
from socratic_bench.errors import ArtifactError
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import ListedStore
from socratic_bench.studies.sweep.grid import run_ids_begin_with

READERS = 16
ROWS_AT_ONCE = 100
KEPT_BACK_S = 10.0
FOLDER = "sweeps/"
CURATED = "curated/runs/"

Found = TypeVar("Found")
_ROW = Decoder(CellRow)


def sweep_key(sweep_id: str) -> str:
    return f"{FOLDER}{sweep_id}/sweep.json"


def begun_sweeps(store: ListedStore) -> Iterator[SweepFile]:
    """What the sweeps of a store began with, the newest first; others' files are passed over."""
    for name in sorted(store.folders(FOLDER), reverse=True):
        body = store.get(sweep_key(name))
        if body is None:
            continue
        try:
            found = decode(body, SweepFile)
            run_ids_begin_with(found)
        except (msgspec.DecodeError, ValueError, OverflowError):  # or at no moment of ours
            continue
        yield found


class CellIndex:
    """The rows of one sweep in one store. Rows are written many at once: what a killed process had
    not written yet is found in the runs themselves.

    Safe to use from several threads. `notice` hears, once, of rows that could not be written.
    """

    def __init__(self, store: ListedStore, sweep_id: str, notice: Callable[[str], None]) -> None:
        self._store = store
        self._folder = f"{FOLDER}{sweep_id}/cells/"
        self._sweep_id = sweep_id
        self._notice = notice
        self._lock = Lock()
        self._rows: list[bytes] = []
        self._since_s = 0.0
        self._is_unwritable = False

    def begin(self, sweep: SweepFile) -> None:
        """Keep what the sweep began with. Raises `ArtifactError`."""
        self._store.put(sweep_key(self._sweep_id), encode(plain_keys(sweep)))

    def rows(self) -> dict[str, CellRow]:
        """The last row of each cell, by its key; what is no row is passed over."""
        keys = sorted(self._store.keys(self._folder))
        found: dict[str, CellRow] = {}
        for body in _all(keys, self._store.get):
            for line in (body or b"").splitlines():
                row = _read(line)
                if row is not None:
                    found[row.cell] = row
        return found

    def add(self, row: CellRow) -> None:
        """Keep a row, soon."""
        with self._lock:
            self._rows.append(encode(plain_keys(row)))
            now_s = time.monotonic()
            self._since_s = self._since_s if len(self._rows) > 1 else now_s
            is_due = len(self._rows) >= ROWS_AT_ONCE or now_s - self._since_s >= KEPT_BACK_S
        if is_due:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are not written yet."""
        with self._lock:
            rows, self._rows = self._rows, []
        if not rows:
            return
        try:
            self._store.put(f"{self._folder}{ULID()}.jsonl", b"\n".join(rows) + b"\n")
        except ArtifactError as error:
            with self._lock:
                self._rows = [*rows, *self._rows]
                is_new, self._is_unwritable = not self._is_unwritable, True
            if is_new:
                self._notice(f"The sweep's index is behind: {error.message}")

    def place(self) -> SweepPlace:
        """Where people find it."""
        runs = self._store.location("raw/runs/")
        return SweepPlace(index=self._store.location(self._folder), runs=runs)


def curated_bodies(
    store: ListedStore, run_ids_begin_with: str, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, bytes]]:
    """The ids of the wanted runs that are complete, and their curated files."""
    keys = store.keys(f"{CURATED}{run_ids_begin_with}")
    names = [key.removeprefix(CURATED).removesuffix(".json") for key in keys]
    ids = [name for name in names if wanted(name)]
    bodies = _all([RunKeys(name).curated for name in ids], store.get)
    for name, body in zip(ids, bodies, strict=True):
        if body is not None:
            yield name, body


def _all(keys: Sequence[str], get: Callable[[str], Found]) -> Iterator[Found]:
    with ThreadPoolExecutor(READERS, thread_name_prefix="index") as pool:
        yield from pool.map(get, keys)


def _read(line: bytes) -> CellRow | None:
    try:
        return _ROW.decode(line)
    except msgspec.DecodeError:
        return None
