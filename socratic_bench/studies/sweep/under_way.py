"""What cells that earlier processes began, and did not end, have cost so far."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import chain

import msgspec
from msgspec.structs import replace

from socratic_bench.catalogue.prices import PriceTable
from socratic_bench.errors import BenchError
from socratic_bench.journal import ReplayLog
from socratic_bench.ports.store import Entry
from socratic_bench.runs import prepare
from socratic_bench.runs.models import earlier_usd, new_budget
from socratic_bench.runs.prepare import Plan
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.replicated_journal import distinct
from socratic_bench.storage.stores import ListedBucket, ListedStore
from socratic_bench.studies.sweep.control import CellJob
from socratic_bench.studies.sweep.grid import Grid

READERS = 16


def journals_of(run_ids: Iterable[str], stores: Sequence[ListedStore]) -> dict[str, list[Entry]]:
    """What the journals of these runs hold, by id, of those that have begun."""
    ids = [*run_ids]
    with ThreadPoolExecutor(READERS, thread_name_prefix="under-way") as pool:
        read = [pool.map(partial(journal_entries, store), ids) for store in stores]
        found = [[*distinct([*chain(*of_run)]).values()] for of_run in zip(*read, strict=True)]
    return {run_id: entries for run_id, entries in zip(ids, found, strict=True) if entries}


def counted(
    jobs: Sequence[CellJob],
    grid: Grid,
    journals: Mapping[str, Sequence[Entry]],
    price_tables: Callable[[], dict[str, PriceTable]],
) -> list[CellJob]:
    """The same jobs, each with what its run's journal tells that it has cost, in USD at most.

    A run whose journal cannot be read says so itself once it is to go on.
    """
    tables = price_tables()
    return [
        _counted(job, grid, journals[job.run_id], tables) if job.run_id in journals else job
        for job in jobs
    ]


def newest_request(entries: Sequence[Entry]) -> datetime | None:
    """When the last request that a journal tells of was sent; `None` without any. A run whose
    journal cannot be read says so itself once it is to go on.
    """
    with suppress(BenchError):
        sent = (attempt.started_at for attempt, _ in ReplayLog(entries).requests())
        return max(sent, default=None)
    return None


def _counted(
    job: CellJob, grid: Grid, entries: Sequence[Entry], price_tables: dict[str, PriceTable]
) -> CellJob:
    with suppress(BenchError):
        plan = prepare(grid.config(job.cell), price_tables=price_tables)
        return replace(job, counted_usd=_cost_usd(plan, ReplayLog(entries)))
    return job


def _cost_usd(plan: Plan, replay_log: ReplayLog) -> float:
    return earlier_usd(new_budget(plan, None, lambda _: None), plan, replay_log)


def journal_entries(store: ListedStore, run_id: str) -> list[Entry]:
    """Of a run's journal: one file in a folder, and an object an entry in a bucket."""
    keys = RunKeys(run_id)
    if not isinstance(store, ListedBucket):
        return [*_read((store.get(keys.journal_file) or b"").splitlines())]
    names = sorted(key for key in store.keys(keys.journal) if key != keys.lease)
    links = _read(store.get(name) or b"" for name in names)
    return [entry for link in links if isinstance(entry := link.get("entry"), dict)]


def _read(lines: Iterable[bytes]) -> Iterator[Entry]:
    for line in lines:
        with suppress(msgspec.DecodeError):  # the last one, of a process that was killed
            yield msgspec.json.decode(line, type=dict)
