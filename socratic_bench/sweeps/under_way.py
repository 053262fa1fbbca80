"""What cells that earlier processes began, and did not end, have cost so far."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

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
from socratic_bench.storage.listing import ListedStore
from socratic_bench.store_ports import Entry
from socratic_bench.sweeps.control import CellJob
from socratic_bench.sweeps.grid import Grid

JOURNALS = "journal/runs/"
READERS = 16


def counted(
    jobs: Sequence[CellJob],
    grid: Grid,
    stores: Sequence[ListedStore],
    run_ids_begin_with: str,
    price_tables: dict[str, PriceTable],
) -> list[CellJob]:
    """The same jobs, each with what its run's journals tell that it has cost, in USD at most.

    A run whose journal cannot be read says so itself once it is to go on.
    """
    by_run = {job.run_id: job for job in jobs}
    entries: dict[str, list[Entry]] = {}
    for store in stores:
        for name, found in _journals(store, run_ids_begin_with, by_run):
            entries.setdefault(name, []).extend(found)
    for name, known in entries.items():
        job = by_run[name]
        with suppress(BenchError):
            plan = prepare(grid.config(job.cell), price_tables=price_tables)
            usd = _cost_usd(plan, ReplayLog([*distinct(known).values()]))
            by_run[name] = replace(job, counted_usd=usd)
    return [*by_run.values()]


def _cost_usd(plan: Plan, replay_log: ReplayLog) -> float:
    budget = Budget(
        SpendingLimit(0.0),
        table=plan.prices or builtin_prices(),
        region=plan.config.region,
        wait=lambda _: None,
    )
    return earlier_usd(budget, plan, replay_log)


def _journals(
    store: ListedStore, beginning: str, wanted: Iterable[str]
) -> Iterator[tuple[str, list[Entry]]]:
    """A run's journal is one file in a folder, and a folder of its entries in a bucket."""
    kept = frozenset(wanted)
    keys: dict[str, list[str]] = {}
    for key in sorted(store.keys(f"{JOURNALS}{beginning}")):
        name, _, entry = key.removeprefix(JOURNALS).partition("/")
        if (run_id := name.removesuffix(".jsonl")) in kept and entry != "lease.json":
            keys.setdefault(run_id, []).append(key)
    with ThreadPoolExecutor(READERS, thread_name_prefix="under-way") as pool:
        bodies = pool.map(store.get, [key for of_run in keys.values() for key in of_run])
        for run_id, of_run in keys.items():
            found = [body for _, body in zip(of_run, bodies, strict=False)]
            yield run_id, [*_entries(found)]


def _entries(bodies: Iterable[bytes | None]) -> Iterator[Entry]:
    for body in bodies:
        for line in (body or b"").splitlines():
            with suppress(msgspec.DecodeError):  # the last one, of a process that was killed
                yield msgspec.json.decode(line, type=dict)
