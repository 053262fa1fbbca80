"""The sweeps of a store: how each began, and how its cells ended.

`sweeps/{sweep_id}/sweep.json` has the beginning with the plan, `sweeps/{sweep_id}/cells/*.jsonl`
many rows a file. The rows are an index of the runs: a row that a killed process did not write is
made again from the curated file of its run.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from hashlib import sha256
from threading import Lock

import msgspec
from msgspec.json import Decoder
from ulid import ULID

from socratic_bench.concurrency import decode
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys, with_current_keys
from socratic_bench.documents.sweep import CellRow, SweepFile, SweepPlace, Value
from socratic_bench.errors import ArtifactError
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import ListedStore
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


def plan_of(sweep: SweepFile, rows: Iterable[CellRow]) -> Mapping[str, Sequence[Value]]:
    """All values of each axis of a sweep; by its rows if its beginning has no plan."""
    if sweep.axes is not None:
        return sweep.axes
    plan: dict[str, dict[Value, None]] = {}
    for row in rows:
        for name, value in row.axes.items():
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
        """Write the beginning of the sweep. Raises `ArtifactError`."""
        self._store.put(sweep_key(self._sweep_id), encode(plain_keys(sweep)))

    def rows(self) -> dict[str, CellRow]:
        """The last row of each cell, by its key; lines that are no rows are skipped."""
        keys = sorted(self._store.keys(self._folder))
        rows: dict[str, CellRow] = {}
        for body in _read_all(keys, self._store.get):
            for line in (body or b"").splitlines():
                row = _read_row(line)
                if row is not None:
                    rows[row.cell] = row
        return rows

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
                self._notice(f"The sweep's index is behind: {error.message}")

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
    bodies = _read_all([RunKeys(name).curated for name in ids], store.get)
    for name, body in zip(ids, bodies, strict=True):
        if body is not None:
            yield name, body


def _read_all(keys: Sequence[str], get: Callable[[str], bytes | None]) -> Iterator[bytes | None]:
    with ThreadPoolExecutor(N_READERS, thread_name_prefix="index") as pool:
        for body in pool.map(get, keys):
            yield None if body is None else with_current_keys(body)


def _read_row(line: bytes) -> CellRow | None:
    try:
        return _ROW.decode(line)
    except msgspec.DecodeError:
        return None
