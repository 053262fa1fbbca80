"""What cells that earlier processes began, and did not end, have cost so far."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain

import msgspec
from msgspec.structs import replace

from socratic_bench.calling.budget import Budget
from socratic_bench.calling.spending import SpendingLimit
from socratic_bench.errors import BenchError
from socratic_bench.journal import ReplayLog
from socratic_bench.journal.replicated_journal import distinct
from socratic_bench.pricing.table import PriceTable, builtin_prices
from socratic_bench.runner import prepare
from socratic_bench.runner.earlier_spending import earlier_usd
from socratic_bench.runner.plan import Plan
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.listing import ListedBucket, ListedStore
from socratic_bench.store_ports import Entry
from socratic_bench.sweeps.control import CellJob
from socratic_bench.sweeps.grid import Grid

READERS = 16


def counted(
    jobs: Sequence[CellJob],
    grid: Grid,
    stores: Sequence[ListedStore],
    price_tables: dict[str, PriceTable],
) -> list[CellJob]:
    """The same jobs, each with what its run's journals tell that it has cost, in USD at most.

    A run whose journal cannot be read says so itself once it is to go on.
    """
    with ThreadPoolExecutor(READERS, thread_name_prefix="under-way") as pool:
        read = [
            pool.map(partial(_entries, store), [job.run_id for job in jobs]) for store in stores
        ]
        found = [[*chain(*of_job)] for of_job in zip(*read, strict=True)]
    return [
        _counted(job, grid, known, price_tables) if known else job
        for job, known in zip(jobs, found, strict=True)
    ]


def _counted(
    job: CellJob, grid: Grid, entries: Sequence[Entry], price_tables: dict[str, PriceTable]
) -> CellJob:
    with suppress(BenchError):
        plan = prepare(grid.config(job.cell), price_tables=price_tables)
        usd = _cost_usd(plan, ReplayLog([*distinct(entries).values()]))
        return replace(job, counted_usd=usd)
    return job


def _cost_usd(plan: Plan, replay_log: ReplayLog) -> float:
    budget = Budget(
        SpendingLimit(0.0),
        table=plan.prices or builtin_prices(),
        region=plan.config.region,
        wait=lambda _: None,
    )
    return earlier_usd(budget, plan, replay_log)


def _entries(store: ListedStore, run_id: str) -> list[Entry]:
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
