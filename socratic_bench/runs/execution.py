"""A run from its beginning to its end. What each step does stands in the room behind it."""

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from socratic_bench.errors import BenchError, InternalError, ModelError, Stopped, UsageError
from socratic_bench.runs.actors import Actors
from socratic_bench.runs.closing_judging import Outcome
from socratic_bench.runs.record import Record
from socratic_bench.runs.resume import AcquiredRun, RunAcquisition
from socratic_bench.runs.scope import RunScope
from socratic_bench.runs.stores import RunStores
from socratic_bench.storage.stores import owner
from socratic_bench.store_ports import Entry

if TYPE_CHECKING:
    from socratic_bench.documents.result import RunResult


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
        from socratic_bench.runs.closing import Closing

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
