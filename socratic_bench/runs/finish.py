"""The end of a run: deliver what was made, and sum it up."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from socratic_bench.documents import encode
from socratic_bench.documents.journal import EndEntry
from socratic_bench.documents.place import Place
from socratic_bench.documents.result import RunResult
from socratic_bench.errors import ENDINGS, MOST_SHOWN, ArtifactError, BenchError, InternalError
from socratic_bench.models.providers import load_provider
from socratic_bench.ports.benchmark import EpisodeResult, Metrics
from socratic_bench.ports.store import ArtifactStore
from socratic_bench.runs.closing_judging import (
    Outcome,
    is_open,
    metrics_of,
    with_closing_findings,
    words_of,
)
from socratic_bench.runs.context import RunScope
from socratic_bench.runs.gates import missing_verdicts, shortfalls
from socratic_bench.runs.record import Record
from socratic_bench.runs.resume import say_how_to_go_on
from socratic_bench.runs.stores import RunStores
from socratic_bench.turns import ClosingResult, Turn
from socratic_bench.types import counted

# How long a run that was told to end still waits for pending writes. All such waits together are
# shorter than the two seconds after a signal.
LAST_WRITES_S = 0.8
# How long to wait for abandoned calls to note what they had sent.
GIVEN_UP_S = 0.3

Turns = tuple[Turn, ...]


class Closing(Struct, frozen=True):
    """What becomes of a run once its last turn is played."""

    scope: RunScope
    stores: RunStores
    record: Record

    def result(self, outcome: Outcome) -> RunResult:
        """Deliver all files, the curated one last and only for a complete run."""
        scope = self.scope
        if scope.cancel_token.error is not None:
            scope.usage_tracker.settle(GIVEN_UP_S)
        turns, concluded = self.record.final(), self.record.concluded()
        if unmeasured := self.record.unmeasured:
            scope.passing_notice(_not_measured(unmeasured))
        scope.listener.on_wait("the stores to take what was made")
        if missing := words_of(concluded):
            scope.passing_notice(missing)
        is_failed = isinstance(outcome, BenchError)
        outcome = self._delivered(outcome if is_failed else missing_verdicts(turns) or outcome)
        for text in scope.acquired.journal.mended if scope.acquired else ():
            scope.notice(text)
        result = self._concluded(self._summed_up(outcome, turns, concluded))
        if scope.cancel_token.error is None:  # else there is no time left
            self.stores.delivery.give_up(LAST_WRITES_S)
        return result

    def _concluded(self, result: RunResult) -> RunResult:
        if result.status != "completed":
            return result
        late = self._conclude(result)
        if late:
            return self._summed_up(late, result.turns, result.concluded)
        if not is_open(result.concluded):  # else it is to be asked again
            self._log_end(result)
        return result

    def _delivered(self, outcome: Outcome) -> Outcome:
        """How the run ended, if only during delivery."""
        files, token = self.stores.files, self.scope.cancel_token
        error = outcome if isinstance(outcome, BenchError) else None
        lost: ArtifactError | None = None
        is_settled = False
        if token.error is None:
            try:
                lost, is_settled = files.settle(token.wait_for), True
            except BenchError as ended:
                error = error or ended
        if not is_settled:
            lost = files.give_up(LAST_WRITES_S)
            error = error or (token.error if lost else None)
        if lost and error:
            self.scope.passing_notice(lost.message)
        return error or lost or self._journal_error() or self._restoring_error() or outcome

    def _journal_error(self) -> BenchError | None:
        """A journal that failed while the last call was answered ends the run like any store."""
        error = self.scope.cancel_token.error
        return error if isinstance(error, ArtifactError) else None

    def _restoring_error(self) -> BenchError | None:
        """Store again what was deleted during the run; returns an error if that fails."""
        scope, stores = self.scope, self.stores

        def verify() -> ArtifactError | None:
            if scope.acquired:
                scope.acquired.journal.mend()
            return stores.files.verify(stores.body_of, scope.notice)

        if not stores.files.has_stores:
            return None
        try:
            return scope.in_time(verify)
        except BenchError as ended:
            return ended

    def _conclude(self, result: RunResult) -> BenchError | None:
        if not self.stores.files.has_stores:
            return None
        from socratic_bench.documents.run import CuratedDocument

        document, token = encode(CuratedDocument.of(result).printed), self.scope.cancel_token
        try:
            return self.stores.files.conclude(self.scope.keys.curated, document, token.wait_for)
        except BenchError as ended:
            return ended

    def _log_end(self, result: RunResult) -> None:
        if self.scope.log and not self._was_complete:
            self.scope.log.add(
                EndEntry(
                    turns=self.scope.config.turns,
                    completed_at=result.completed_at,
                    duration_s=result.duration_s,
                )
            )

    def _summed_up(
        self, outcome: Outcome, turns: Turns, concluded: ClosingResult | None
    ) -> RunResult:
        scope, plan = self.scope, self.scope.plan
        outcome, metrics = self._with_metrics(outcome, turns, concluded)
        error = outcome if isinstance(outcome, BenchError) else None
        ended = outcome if isinstance(outcome, EpisodeResult) else None
        complete = ENDINGS[outcome.end_reason].status == "completed"
        completed_at, duration_s = self._times()
        acquired = scope.acquired
        # Whether only the document holds what a resume needs.
        is_to_go_on = not complete or is_open(concluded)
        is_carried = acquired and is_to_go_on and not acquired.journal.is_kept
        if error:
            say_how_to_go_on(error, acquired, plan, is_journal_shown=scope.is_journal_shown)
        return RunResult(
            run_id=scope.keys.run_id,
            benchmark=plan.benchmark.name,
            config=plan.config,
            opening=plan.episode.opening,
            rubric=plan.episode.rubric,
            turns=with_closing_findings(plan, turns, concluded),
            end_reason=outcome.end_reason,
            closing=ended.closing if ended else None,
            concluded=concluded,
            error=error,
            metrics=metrics,
            parts=plan.benchmark.parts,
            shortfalls=shortfalls(
                plan.config,
                metrics,
                n_turns=sum(self._counts(turn) for turn in turns),
                n_judged=sum(turn.verdict is not None for turn in turns),
                rubric=plan.rubric,
                closing=plan.benchmark.closing_metrics(()).keys(),
            )
            if complete
            else (),
            tallies=scope.usage_tracker.tallies(),
            s3=self._place(self.stores.bucket, complete=complete),
            folder=self._place(self.stores.folder, complete=complete),
            notices=tuple(scope.notices),
            prices=plan.prices,
            held_judges=plan.held_judges,
            journal=tuple(acquired.journal.entries) if acquired and is_carried else None,
            started_at=scope.started_at,
            completed_at=completed_at,
            duration_s=duration_s,
            sdk_version=load_provider(plan.config.provider).sdk_version(),
        )

    def _with_metrics(
        self, outcome: Outcome, turns: Turns, concluded: ClosingResult | None
    ) -> tuple[Outcome, Metrics]:
        """A benchmark that fails here ends the run, with what it has cost and its journal told."""
        plan, unmeasured = self.scope.plan, self.record.unmeasured
        measured = [turn for turn in turns if turn.index not in unmeasured]
        try:
            return outcome, metrics_of(plan, measured, concluded)
        except Exception as defect:  # noqa: BLE001 -- the boundary: finished turns are reported
            self.scope.passing_notice(
                f"The metrics could not be summed up ({type(defect).__name__}): there are none."
            )
            error = outcome if isinstance(outcome, BenchError) else InternalError.of(defect)
        with suppress(Exception):
            return error, metrics_of(plan, (), None)
        return error, {}

    def _counts(self, turn: Turn) -> bool:
        """Whether it is one of those that were to be judged or, without a judge, to be played."""
        plan = self.scope.plan
        is_due = plan.rubric is None or plan.rubric_of(turn.index) is not None
        return is_due and not turn.replayed

    def _times(self) -> tuple[datetime, float]:
        """When the run was complete, and how long its processes took together."""
        scope = self.scope
        now, worked_s = scope.now(), scope.elapsed_s()
        if scope.acquired is None:
            return now, worked_s
        end, times = scope.acquired.replay_log.end, scope.acquired.replay_log.times
        if end and self._was_complete:
            duration_s = times.worked_s if end.duration_s is None else end.duration_s
            return max(end.completed_at, scope.started_at), duration_s
        return now, times.worked_s + worked_s

    @property
    def _was_complete(self) -> bool:
        acquired, log = self.scope.acquired, self.scope.log
        return bool(acquired and acquired.replay_log.end and log and not log.has_calls)

    def _place(self, store: ArtifactStore | None, *, complete: bool) -> Place | None:
        if store is None:
            return None
        keys = self.scope.keys
        curated = store.location(keys.curated) if complete else None
        return Place(raw=store.location(keys.raw), curated=curated)


def _not_measured(unmeasured: Mapping[int, str]) -> str:
    shown = ", ".join(map(str, sorted(unmeasured)[:MOST_SHOWN]))
    more = ", ..." if len(unmeasured) > MOST_SHOWN else ""
    kinds = ", ".join(sorted({*unmeasured.values()}))
    return (
        f"{counted(len(unmeasured), 'turn')} could not be measured ({kinds}), and metrics are "
        f"without: {shown}{more}."
    )
