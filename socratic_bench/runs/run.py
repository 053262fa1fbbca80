"""Plays one run and returns its result; the command only calls this."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from socratic_bench.benchmarks import RunConfig
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.ports import Benchmark
from socratic_bench.runs.execution import execute
from socratic_bench.runs.listener import Listener
from socratic_bench.runs.plan import Plan, prepare
from socratic_bench.runs.resume import document_entries
from socratic_bench.runs.scope import RunScope
from socratic_bench.runs.services import Services
from socratic_bench.store_ports import Entry
from socratic_bench.types import Json

if TYPE_CHECKING:
    from socratic_bench.documents.result import RunResult


def run(
    config: RunConfig,
    *,
    benchmark: Benchmark | None = None,
    listener: Listener | None = None,
    cancel_token: CancelToken | None = None,
    document: Mapping[str, Json] | None = None,
    services: Services | None = None,
) -> "RunResult":
    """Play one run, from any thread, without argv, signals, exit or stdout.

    Raises `UsageError` for a configuration that cannot be run; whatever happens later is told by
    the result. `benchmark` replaces the one that the configuration names, `cancel_token` ends it
    early, and goes by the clock of the `services`. A partial `document` of a run without a store is
    gone on with. `services` are shared with other runs, played at the same time in other threads;
    without any, the run makes its own.
    """
    price_tables = services.price_tables if services else None
    plan = prepare(config, benchmark=benchmark, price_tables=price_tables)
    entries = () if document is None else document_entries(document)
    return perform(
        plan, listener=listener, cancel_token=cancel_token, entries=entries, services=services
    )


def perform(
    plan: Plan,
    *,
    listener: Listener | None = None,
    cancel_token: CancelToken | None = None,
    entries: Sequence[Entry] = (),
    is_journal_shown: bool = True,
    services: Services | None = None,
) -> "RunResult":
    """Play a prepared run; with the `entries` of a journal, go on with that one.

    `is_journal_shown`: the caller sees the journal, from which a run without a store is resumed, so
    hints may say so. Raises `UsageError` if a store is sure to be unusable, or the run cannot go on
    as asked.
    """
    # By the services' clock, too: when a call was sent is told to their rate limiters.
    token = cancel_token or (services.cancel_token.alike() if services else CancelToken())
    with ExitStack() as stack:
        if services is None:
            services = stack.enter_context(Services(monotonic_s=token.monotonic_s))
        stack.enter_context(services.cancel_token.parent_of(token))
        stack.enter_context(services.core_affinity.run())
        listener = listener or Listener()
        scope = RunScope(plan, listener, token, services, is_journal_shown=is_journal_shown)
        return execute(scope, entries)
