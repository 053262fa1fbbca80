"""The state of a stored sweep, whoever plays it: read from its rows, journals and ledger.

A reader keeps what cannot change any more, so that each further look costs a listing and the
journals that have grown.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import prod
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.json import Decoder
from msgspec.structs import replace

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.concurrency import decode
from socratic_bench.documents.document import ErrorEntry
from socratic_bench.documents.sweep import CellRow, SweepFile, Value
from socratic_bench.documents.sweep_status import SpendingFile
from socratic_bench.documents.usage import cost_total
from socratic_bench.runs.gates import metric_at
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.stores import ListedStore
from socratic_bench.studies.places import (
    SWEEPS,
    begun_sweeps,
    plan_of,
    read_all,
    rows_in,
    run_ids_begin_with,
)
from socratic_bench.types import CallKey, EndReason

State = Literal["running", "pending", "judging", "completed", "failed"]
JOURNALS = "journal/runs/"
MINUTE = timedelta(minutes=1)
# The time left is estimated from the runs that ended so lately.
LATELY = timedelta(minutes=15)
TESTED_ROLE = "tutor"


class CellStatus(Struct, frozen=True, kw_only=True):
    """A run of a sweep that has begun.

    Attributes:
        repeat: its number; `None` while it has no row yet.
        turn: turns that the model under test has answered, of `n_turns`.
        last_at: the time of its last record; `None`: unknown.
        n_refused: requests that failed.
    """

    run_id: str
    axes: Mapping[str, Value]
    state: State
    repeat: int | None = None
    turn: int = 0
    n_turns: int | None = None
    last_at: datetime | None = None
    score: float | None = None
    cost_usd: float | None = None
    n_refused: int = 0
    end_reason: EndReason | None = None
    error: ErrorEntry | None = None

    def age_s(self, now: datetime) -> float | None:
        """Seconds since its last record."""
        return None if self.last_at is None else max(0.0, (now - self.last_at).total_seconds())


class SweepStatus(Struct, frozen=True, kw_only=True):
    """What a sweep has come to.

    Attributes:
        axes: all values of each axis.
        cells: the runs that have begun; the others are missing.
        spent_usd: at most, by the ledger, else by the rows; `None`: unknown.
        requests_per_min: requests of the last minute, by model.
    """

    sweep: SweepFile
    axes: Mapping[str, Sequence[Value]]
    n_runs: int
    cells: Sequence[CellStatus]
    spent_usd: float | None = None
    requests_per_min: Mapping[str, int] = {}
    left_s: float | None = None

    def count(self, *states: State) -> int:
        """The number of runs in one of these states."""
        return sum(cell.state in states for cell in self.cells)

    @property
    def n_missing(self) -> int:
        """Runs that have neither completed nor failed, those in progress included."""
        return max(0, self.n_runs - self.count("completed", "failed"))

    @property
    def is_complete(self) -> bool:
        return self.count("completed") == self.n_runs


class _Record(Struct, frozen=True):
    """What is read of an entry of a journal."""

    kind: str = ""
    key: CallKey | None = None
    at: str | None = None
    started_at: str | None = None
    elapsed_s: float | None = None
    model_id: str | None = None
    turns: int | None = None
    config: msgspec.Raw = msgspec.Raw()


class _Link(Struct, frozen=True):
    entry: _Record = _Record()


_RECORD, _LINK = Decoder(_Record), Decoder(_Link)


class _Journal:
    """What the journal of one run has said so far."""

    def __init__(self) -> None:
        self.config: Mapping[str, Value] = {}
        self.n_turns: int | None = None
        self.process_at: datetime | None = None
        self.last_at: datetime | None = None
        self.answers: dict[str, set[int]] = {}
        self.requests: list[tuple[datetime, str]] = []
        self.n_refused = 0
        self.is_ended = False
        self.is_pending = False  # a batch job has its calls, none of which is answered yet
        self._n_read = 0

    def add_lines(self, body: bytes) -> None:
        """Add the lines of a file that were not read before; the last one may be incomplete."""
        end = body.rfind(b"\n") + 1
        for line in body[self._n_read : end].splitlines():
            with suppress(msgspec.DecodeError):
                self.add(_RECORD.decode(line))
        self._n_read = end

    def add(self, record: _Record) -> None:
        self.is_ended = record.kind == "end"
        if record.kind in ("batch", "asked", "answered", "end"):
            self.is_pending = record.kind == "batch"
        if record.kind in ("run", "process"):
            self._begin_process(record)
        elif record.elapsed_s is not None and self.process_at:
            self.last_at = self.process_at + timedelta(seconds=record.elapsed_s)
        if record.kind == "asked" and (at := _moment(record.at)):
            self.requests.append((at, record.model_id or self.model))
        elif record.kind == "attempt":
            self.n_refused += 1
        elif record.kind == "answered" and record.key:
            self.answers.setdefault(record.key.role, set()).add(record.key.index)

    @property
    def model(self) -> str:
        return str(self.config.get("model"))

    @property
    def turn(self) -> int:
        return len(self.answers.get(TESTED_ROLE, ()))

    def _begin_process(self, record: _Record) -> None:
        self.process_at = self.last_at = _moment(record.started_at) or self.last_at
        if record.kind == "run":
            with suppress(msgspec.DecodeError):
                self.config = msgspec.json.decode(record.config, type=dict)
            turns = self.config.get("turns")
            self.n_turns = turns if isinstance(turns, int) else None
        self.n_turns = record.turns or self.n_turns


class SweepReader:
    """Reads the state of one sweep again and again. Not safe to use from several threads."""

    def __init__(self, store: ListedStore, sweep: SweepFile) -> None:
        self._store = store
        self._sweep = sweep
        self._prefix = f"{JOURNALS}{run_ids_begin_with(sweep)}"
        self._primary = load_benchmark(sweep.benchmark).primary_metric
        self._index_files: set[str] = set()
        self._rows: dict[str, CellStatus] = {}  # of runs that have ended
        self._sizes: dict[str, int] = {}
        self._journals: dict[str, _Journal] = {}
        self._scores: dict[str, tuple[float | None, float | None]] = {}

    def read(self, now: datetime | None = None) -> SweepStatus:
        """The state now. Raises `ArtifactError` if the store cannot be read."""
        now = now or datetime.now(UTC)
        self._read_rows()
        self._read_journals()
        begun = {**dict.fromkeys(self._rows), **dict.fromkeys(self._journals)}
        cells = [self._cell(run_id) for run_id in begun]
        rows = self._rows.values()
        plan = plan_of(self._sweep, [row.axes for row in rows])
        repeats = self._sweep.repeats or max((row.repeat or 1 for row in rows), default=1)
        n_runs = max(len(cells), repeats * prod(map(len, plan.values())))
        n_ended = sum(cell.state in ("completed", "failed") for cell in cells)
        return SweepStatus(
            sweep=self._sweep,
            axes=plan,
            n_runs=n_runs,
            cells=cells,
            spent_usd=self._spent_usd(),
            requests_per_min=self._requests_per_min(now),
            left_s=self._left_s(n_runs - n_ended, now),
        )

    def _read_rows(self) -> None:
        keys = self._store.keys(f"{SWEEPS}{self._sweep.sweep_id}/cells/")
        unread = sorted({*keys} - self._index_files)
        for row in rows_in(read_all(unread, self._store.get)):
            self._rows[row.run_id] = _cell_of(row, self._primary)
        self._index_files.update(unread)

    def _read_journals(self) -> None:
        """Read what has grown, but for runs that are complete by their rows."""
        sizes = {
            key: size
            for key, size in self._store.sizes(self._prefix).items()
            if size != self._sizes.get(key) and not key.endswith("lease.json")
        }
        self._sizes.update(sizes)
        changed = sorted(key for key in sizes if not self._is_complete(_run_of(key)))
        for key, body in zip(changed, read_all(changed, self._store.get), strict=True):
            journal = self._journals.setdefault(_run_of(key), _Journal())
            if key.endswith(".jsonl"):
                journal.add_lines(body or b"")
            else:
                with suppress(msgspec.DecodeError):
                    journal.add(_LINK.decode(body or b"{}").entry)

    def _is_complete(self, run_id: str) -> bool:
        row = self._rows.get(run_id)
        return row is not None and row.state == "completed" and run_id not in self._journals

    def _cell(self, run_id: str) -> CellStatus:
        row, journal = self._rows.get(run_id), self._journals.get(run_id)
        if row and (row.state == "completed" or not journal or not _is_newer(journal, row)):
            return replace(row, n_refused=journal.n_refused) if journal else row
        assert journal  # noqa: S101 -- it has begun
        score, cost_usd = self._result(run_id) if journal.is_ended else (None, None)
        is_judging = journal.n_turns is not None and journal.turn >= journal.n_turns
        return CellStatus(
            run_id=run_id,
            axes={name: journal.config.get(name) for name in self._axis_names()},
            repeat=row.repeat if row else None,
            state=(
                "completed"
                if journal.is_ended
                else "pending"
                if journal.is_pending
                else "judging"
                if is_judging
                else "running"
            ),
            turn=journal.turn,
            n_turns=journal.n_turns,
            last_at=journal.last_at,
            score=score,
            cost_usd=cost_usd,
            n_refused=journal.n_refused,
        )

    def _axis_names(self) -> Sequence[str]:
        return [*(self._sweep.axes or {"model": [], "scenario": []})]

    def _result(self, run_id: str) -> tuple[float | None, float | None]:
        """Score and cost of a run whose row is not written yet, by its document."""
        if run_id not in self._scores and (body := self._store.get(RunKeys(run_id).curated)):
            with suppress(msgspec.DecodeError):
                document = msgspec.json.decode(body, type=dict)
                total = (document.get("cost") or {}).get("total") or {}
                score = metric_at(self._primary, document.get("metrics") or {})
                self._scores[run_id] = score, total.get("total_usd")
        return self._scores.get(run_id, (None, None))

    def _spent_usd(self) -> float | None:
        """By the ledger, if every process had a budget, else by the runs that have ended."""
        body = self._store.get(f"{SWEEPS}{self._sweep.sweep_id}/spending.json")
        with suppress(msgspec.DecodeError):
            amounts = [*decode(body, SpendingFile).spent_usd.values()] if body else []
            known_usd = [usd for usd in amounts if usd is not None]
            if amounts and len(known_usd) == len(amounts):
                return sum(known_usd)
        return cost_total(row.cost_usd for row in self._rows.values())

    def _requests_per_min(self, now: datetime) -> dict[str, int]:
        per_min: dict[str, int] = {}
        for journal in self._journals.values():
            journal.requests = [(at, model) for at, model in journal.requests if at > now - MINUTE]
            for _, model in journal.requests:
                per_min[model] = per_min.get(model, 0) + 1
        return per_min

    def _left_s(self, n_left: int, now: datetime) -> float | None:
        """At the pace of late; `None` while no run has ended lately."""
        ends = [row.last_at for row in self._rows.values()]
        ends += [journal.last_at for journal in self._journals.values() if journal.is_ended]
        n_lately = sum(end is not None and end > now - LATELY for end in ends)
        if not n_lately or not n_left:
            return None
        began = max(_moment(self._sweep.started_at) or now, now - LATELY)
        return n_left * (now - began).total_seconds() / n_lately


def find_sweep_file(store: ListedStore, sweep_id: str) -> SweepFile | None:
    """The beginning of a sweep; `None` if it is not there."""
    return next((sweep for sweep in begun_sweeps(store) if sweep.sweep_id == sweep_id), None)


def _cell_of(row: CellRow, primary: str) -> CellStatus:
    """The run of a row, with its value of the primary metric."""
    is_complete = row.status == "completed"
    return CellStatus(
        run_id=row.run_id,
        axes=row.axes,
        repeat=row.repeat,
        state="completed" if is_complete else "failed",
        turn=row.n_turns,
        n_turns=row.n_turns if is_complete else None,
        last_at=_moment(row.completed_at),
        score=row.metrics.get(primary),
        cost_usd=row.cost_usd,
        end_reason=row.end_reason,
        error=row.error,
    )


def _is_newer(journal: _Journal, row: CellStatus) -> bool:
    """Whether a process plays a failed run again. Rows have whole seconds."""
    if journal.process_at is None or row.last_at is None:
        return False
    return journal.process_at > row.last_at + timedelta(seconds=1)


def _run_of(key: str) -> str:
    return key.removeprefix(JOURNALS).partition("/")[0].removesuffix(".jsonl")


def _moment(text: str | None) -> datetime | None:
    with suppress(ValueError, TypeError):
        moment = datetime.fromisoformat(text or "")
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
