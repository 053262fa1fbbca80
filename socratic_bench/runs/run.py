"""Plays one run and returns its result; the command only calls this."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from socratic_bench.benchmarks import RunConfig
from socratic_bench.errors import BenchError, InternalError, ModelError, Stopped, UsageError
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.ports.benchmark import Benchmark
from socratic_bench.ports.store import Entry
from socratic_bench.runs.closing_judging import Outcome
from socratic_bench.runs.context import Listener, RunScope
from socratic_bench.runs.models import Actors
from socratic_bench.runs.prepare import Plan, prepare
from socratic_bench.runs.record import Record
from socratic_bench.runs.resume import AcquiredRun, RunAcquisition, document_entries
from socratic_bench.runs.services import Services
from socratic_bench.runs.stores import RunStores
from socratic_bench.storage.stores import owner
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
        listener = listener or Listener()
        scope = RunScope(plan, listener, token, services, is_journal_shown=is_journal_shown)
        return execute(scope, entries)


# A run from its beginning to its end. What each step does stands in the room behind it.


def execute(scope: RunScope, entries: Sequence[Entry]) -> "RunResult":
    """Play a run, and tell all of it that was finished, whatever ended it.

    Raises `UsageError` if a store is sure to be unusable, or the run cannot go on as asked.
    """
    scope.cancel_token.start_deadline(scope.config.deadline_s, scope.plan.benchmark.shorter)
    with closing(scope), closing(RunStores(scope)) as stores:
        record = Record(scope, stores)
        try:
            outcome: Outcome = _played(scope, stores, record, entries)
        except UsageError:
            raise
        except BenchError as ended:
            record.wait_for_replayed()
            outcome = ended
        except Exception as defect:  # noqa: BLE001 -- the boundary: finished turns are reported
            outcome = InternalError.of(defect)
        finally:
            record.close()
        # Not needed before the last reply is there.
        from socratic_bench.runs.finish import Closing

        return Closing(scope, stores, record).result(outcome)


def _played(
    scope: RunScope, stores: RunStores, record: Record, entries: Sequence[Entry]
) -> Outcome:
    scope.listener.on_wait("stores, credentials and a connection")
    stores.open_bucket()
    scope.take_up(scope.in_time(lambda: _begun_or_resumed(scope, stores, entries)))
    scope.tell_start(stores.warnings())
    actors = Actors(scope)
    scope.listener.on_wait("")
    record.judge_by(actors.jury)
    try:
        ended = scope.plan.episode.play(actors.context(record.add))
        outcome: Outcome = ended
        for text in ended.notices:
            scope.passing_notice(text)
    except (ModelError, Stopped) as cut:
        if isinstance(cut, Stopped) and cut.end_reason != "budget":
            raise
        # Verdicts on what was played are still wanted: some are paid for, others may still fit.
        outcome = cut
    record.wait(outcome)
    return record.unless_incomplete(outcome)


def _begun_or_resumed(scope: RunScope, stores: RunStores, entries: Sequence[Entry]) -> AcquiredRun:
    journals = stores.checked_journals()
    if not entries and scope.config.resume_run_id is None:
        scope.prepared = scope.services.prepare(scope.config)
    acquired = RunAcquisition(
        stores=journals,
        is_kept=stores.folder.holds if stores.folder else lambda _: False,
        new_run_id=scope.keys.run_id,
        now=scope.started_at,
        owner=owner(),
        notice=scope.listener.on_notice,
    ).acquire_run(scope.plan, entries)
    stores.take_up(acquired.run_id, is_complete=acquired.is_complete)
    return acquired
