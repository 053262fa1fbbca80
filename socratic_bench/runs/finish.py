"""The end of a run: deliver its files, check its gates, and sum it up as a result."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.documents import encode
from socratic_bench.documents.document import Place
from socratic_bench.documents.journal import EndEntry
from socratic_bench.documents.run import CuratedDocument, RunResult
from socratic_bench.errors import ENDINGS, MOST_SHOWN, ArtifactError, BenchError, InternalError
from socratic_bench.models import load_provider
from socratic_bench.models.cancel import run_cancellable
from socratic_bench.ports.benchmark import EpisodeResult, Metrics
from socratic_bench.ports.store import ArtifactStore
from socratic_bench.runs.context import RunContext
from socratic_bench.runs.gates import gate_failures, missing_verdicts, unread_failures
from socratic_bench.runs.items import REFUSED
from socratic_bench.runs.judge_turns import Outcome, PlayedTurns
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.resume import StartedRun, add_resume_hints
from socratic_bench.runs.stores import RunStores
from socratic_bench.settings import provider_of
from socratic_bench.turns import ClosingResult, Turn, Unscored
from socratic_bench.types import CONTEXT_WINDOW, plural

# How long a run that was told to end still waits for pending writes. All such waits together are
# shorter than the two seconds after a signal.
LAST_WRITES_S = 0.8
ASK_AGAIN = "Resume the run to have it asked again."


def finish_run(
    context: RunContext,
    started: StartedRun | None,
    stores: RunStores,
    played: PlayedTurns,
    outcome: Outcome,
) -> RunResult:
    """Deliver all files, the curated one last and only for a complete run, and sum the run up.
    `started` is `None` of a run that ended before it was begun in its stores.
    """
    notices = context.notices
    if played.unmeasured:
        notices.add_passing(_unmeasured_notice(played.unmeasured))
    context.listener.on_wait("the stores to take what was made")
    if notice := _closing_notice(played.closing):
        notices.add_passing(notice)
    if not isinstance(outcome, BenchError):
        outcome = missing_verdicts(played.turns) or outcome
    finish = _Finish(context, started, stores, played)
    outcome = finish.deliver(outcome)
    for text in started.journal.mended if started else ():
        notices.add(text)
    result = finish.sum_up(outcome)
    if result.status == "completed":
        result = replace(finish.complete(result), stored=stores.files.kept)
    if context.cancel_token.error is None:  # else there is no time left
        stores.delivery.give_up(LAST_WRITES_S)
    return result


class _Finish(Struct, frozen=True):
    context: RunContext
    started: StartedRun | None
    stores: RunStores
    played: PlayedTurns

    def deliver(self, outcome: Outcome) -> Outcome:
        """Wait until all files are stored; how the run ended, if only by that."""
        files, token = self.stores.files, self.context.cancel_token
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
            self.context.notices.add_passing(lost.message)
        # A journal that failed while the last call was answered ends the run like any store.
        failed = token.error if isinstance(token.error, ArtifactError) else None
        return error or lost or failed or self._restore() or outcome

    def sum_up(self, outcome: Outcome) -> RunResult:
        context, started, stores = self.context, self.started, self.stores
        plan, turns, closing = context.plan, self.played.turns, self.played.closing
        outcome, metrics = self._summarise(outcome)
        error = outcome if isinstance(outcome, BenchError) else None
        is_complete = ENDINGS[outcome.end_reason].status == "completed"
        completed_at, duration_s = self._times()
        # Whether only the document holds what a resume needs.
        is_to_resume = not is_complete or _is_unanswered(closing)
        is_carried = started is not None and is_to_resume and not started.journal.is_kept
        if error:
            add_resume_hints(error, started, plan, is_journal_shown=context.is_journal_shown)
        if closing and closing.verdict:
            turns = tuple(plan.episode.with_findings(turns, closing.verdict.findings))
        return RunResult(
            run_id=context.run_id,
            benchmark=plan.benchmark.name,
            config=plan.config,
            opening=plan.episode.opening,
            rubric=plan.episode.rubric,
            turns=turns,
            end_reason=outcome.end_reason,
            closing=outcome.closing if isinstance(outcome, EpisodeResult) else None,
            concluded=closing,
            error=error,
            metrics=metrics,
            parts=plan.benchmark.parts,
            shortfalls=_gate_failures(plan, self.played, metrics) if is_complete else (),
            tallies=context.usage_tracker.tallies(),
            s3=self._place(stores.bucket, is_complete=is_complete),
            folder=self._place(stores.folder, is_complete=is_complete),
            notices=tuple(context.notices.texts),
            sdk_version=load_provider(provider_of(plan.config.model)).sdk_version(),
            prices=plan.prices,
            held_judges=plan.held_judges,
            journal=tuple(started.journal.entries) if started and is_carried else None,
            started_at=context.started_at,
            completed_at=completed_at,
            duration_s=duration_s,
        )

    def complete(self, result: RunResult) -> RunResult:
        """Store the curated document of a complete run, and note its end in the journal."""
        context, started, files = self.context, self.started, self.stores.files
        if files.has_stores:
            body = encode(CuratedDocument.of(result).printed)
            try:
                error: BenchError | None = files.conclude(
                    context.keys.curated, body, context.cancel_token.wait_for
                )
            except BenchError as ended:
                error = ended
            if error:
                return self.sum_up(error)
        # An unanswered closing question is asked again when the run is resumed.
        if started and not _is_unanswered(result.concluded) and not self._was_complete:
            started.log.add(
                EndEntry(
                    turns=context.config.turns,
                    completed_at=result.completed_at,
                    duration_s=result.duration_s,
                )
            )
        return result

    @property
    def _was_complete(self) -> bool:
        """Whether an earlier process has ended the run, and this one has called nothing."""
        started = self.started
        return bool(started and started.replay_log.end and not started.log.has_calls)

    def _restore(self) -> BenchError | None:
        """Store again what was deleted during the run; returns an error if that fails."""
        files, started = self.stores.files, self.started
        if not files.has_stores:
            return None

        def body_of(key: str) -> bytes | None:
            body = started.journal.body_of(key) if started else None
            return self.stores.body_of(key) if body is None else body

        def verify() -> ArtifactError | None:
            if started:
                started.journal.mend()
            return files.verify(body_of, self.context.notices.add)

        try:
            return run_cancellable(verify, self.context.cancel_token)
        except BenchError as error:
            return error

    def _summarise(self, outcome: Outcome) -> tuple[Outcome, Metrics]:
        """The metrics; a benchmark that fails here ends the run, whose costs and journal are
        kept.
        """
        plan, played = self.context.plan, self.played
        measured = [turn for turn in played.turns if turn.index not in played.unmeasured]
        try:
            return outcome, _metrics(plan, measured, played.closing)
        except Exception as defect:  # noqa: BLE001 -- the boundary: finished turns are reported
            self.context.notices.add_passing(
                f"The metrics could not be summed up ({type(defect).__name__}): there are none."
            )
            error = outcome if isinstance(outcome, BenchError) else InternalError.of(defect)
        with suppress(Exception):
            return error, _metrics(plan, (), None)
        return error, {}

    def _times(self) -> tuple[datetime, float]:
        """When the run was complete, and the seconds that its processes took together."""
        context, started = self.context, self.started
        now, worked_s = context.clock(), context.clock.elapsed_s()
        if started is None:
            return now, worked_s
        end, times = started.replay_log.end, started.replay_log.times
        if end and self._was_complete:
            duration_s = times.worked_s if end.duration_s is None else end.duration_s
            return max(end.completed_at, context.started_at), duration_s
        return now, times.worked_s + worked_s

    def _place(self, store: ArtifactStore | None, *, is_complete: bool) -> Place | None:
        if store is None:
            return None
        keys = self.context.keys
        curated = store.location(keys.curated) if is_complete else None
        return Place(raw=store.location(keys.raw), curated=curated)


def _metrics(plan: Plan, turns: Sequence[Turn], closing: ClosingResult | None) -> Metrics:
    """The metrics of the turns, and those of the closing verdict."""
    verdict = closing.verdict if closing else None
    findings = verdict.findings if verdict else ()
    return {
        **plan.benchmark.summarise(plan.config, turns),
        **plan.episode.metrics_of_all(turns),
        **plan.benchmark.closing_metrics(findings),
    }


def _gate_failures(plan: Plan, played: PlayedTurns, metrics: Metrics) -> tuple[str, ...]:
    turns = played.turns
    # A turn is due to be judged or, without a judge, to be played. An item that the model refused
    # without a word is a result, and nothing for a judge.
    due = [
        turn
        for turn in turns
        if not turn.replayed
        and (plan.rubric is None or plan.rubric_of(turn.index) is not None)
        and (turn.unscorable is None or turn.unscorable.reason != REFUSED)
    ]
    failures = gate_failures(
        plan.config,
        metrics,
        n_turns=len(due),
        n_judged=sum(turn.verdict is not None for turn in turns),
        rubric=plan.rubric,
        closing=plan.benchmark.closing_metrics(()).keys(),
    )
    return (*failures, *unread_failures(turns, played.closing))


def _is_unanswered(closing: ClosingResult | None) -> bool:
    """Whether the closing question was asked in vain, and may be answered once the run is resumed.
    For a dialogue that is too long it would be refused again.
    """
    outcome = closing.outcome if closing else None
    return isinstance(outcome, Unscored) and outcome.reason != CONTEXT_WINDOW


def _closing_notice(closing: ClosingResult | None) -> str | None:
    """What people are told if the closing verdict is missing."""
    outcome = closing.outcome if closing else None
    if not isinstance(outcome, Unscored):
        return None
    text = f"There is no closing verdict: {outcome.message}"
    return f"{text} {ASK_AGAIN}" if _is_unanswered(closing) else text


def _unmeasured_notice(unmeasured: Mapping[int, str]) -> str:
    turns = ", ".join(map(str, sorted(unmeasured)[:MOST_SHOWN]))
    more = ", ..." if len(unmeasured) > MOST_SHOWN else ""
    kinds = ", ".join(sorted({*unmeasured.values()}))
    return (
        f"{plural(len(unmeasured), 'turn')} could not be measured ({kinds}), and metrics are "
        f"without: {turns}{more}."
    )
