"""The end of a run: deliver its files, check its gates, and sum it up as a result."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

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
from socratic_bench.runs.judge_turns import Outcome, PlayedTurns
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.resume import StartedRun, add_resume_hints
from socratic_bench.runs.stores import RunStores
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
    outcome = _deliver(context, started, stores, outcome)
    for text in started.journal.mended if started else ():
        notices.add(text)
    result = _sum_up(context, started, stores, played, outcome)
    if result.status == "completed":
        result = _complete(context, started, stores, played, result)
        result = replace(result, stored=stores.files.kept)
    if context.cancel_token.error is None:  # else there is no time left
        stores.delivery.give_up(LAST_WRITES_S)
    return result


def _deliver(
    context: RunContext, started: StartedRun | None, stores: RunStores, outcome: Outcome
) -> Outcome:
    """Wait until all files are stored; how the run ended, if only by that."""
    files, token = stores.files, context.cancel_token
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
        context.notices.add_passing(lost.message)
    return error or lost or _journal_error(context) or _restore(context, started, stores) or outcome


def _journal_error(context: RunContext) -> BenchError | None:
    """A journal that failed while the last call was answered ends the run like any store."""
    error = context.cancel_token.error
    return error if isinstance(error, ArtifactError) else None


def _restore(
    context: RunContext, started: StartedRun | None, stores: RunStores
) -> BenchError | None:
    """Store again what was deleted during the run; returns an error if that fails."""
    if not stores.files.has_stores:
        return None

    def body_of(key: str) -> bytes | None:
        body = started.journal.body_of(key) if started else None
        return stores.body_of(key) if body is None else body

    def verify() -> ArtifactError | None:
        if started:
            started.journal.mend()
        return stores.files.verify(body_of, context.notices.add)

    try:
        return run_cancellable(verify, context.cancel_token)
    except BenchError as error:
        return error


def _complete(
    context: RunContext,
    started: StartedRun | None,
    stores: RunStores,
    played: PlayedTurns,
    result: RunResult,
) -> RunResult:
    """Store the curated document of a complete run, and note its end in the journal."""
    if error := _store_curated(context, stores, result):
        return _sum_up(context, started, stores, played, error)
    # An unanswered closing question is asked again when the run is resumed.
    if started and not _is_unanswered(result.concluded) and not _was_complete(started):
        started.log.add(
            EndEntry(
                turns=context.config.turns,
                completed_at=result.completed_at,
                duration_s=result.duration_s,
            )
        )
    return result


def _store_curated(context: RunContext, stores: RunStores, result: RunResult) -> BenchError | None:
    if not stores.files.has_stores:
        return None
    body = encode(CuratedDocument.of(result).printed)
    try:
        return stores.files.conclude(context.keys.curated, body, context.cancel_token.wait_for)
    except BenchError as error:
        return error


def _sum_up(
    context: RunContext,
    started: StartedRun | None,
    stores: RunStores,
    played: PlayedTurns,
    outcome: Outcome,
) -> RunResult:
    plan, closing = context.plan, played.closing
    outcome, metrics = _summarise(context, played, outcome)
    error = outcome if isinstance(outcome, BenchError) else None
    episode_result = outcome if isinstance(outcome, EpisodeResult) else None
    is_complete = ENDINGS[outcome.end_reason].status == "completed"
    completed_at, duration_s = _times(context, started)
    # Whether only the document holds what a resume needs.
    is_to_resume = not is_complete or _is_unanswered(closing)
    is_carried = started is not None and is_to_resume and not started.journal.is_kept
    if error:
        add_resume_hints(error, started, plan, is_journal_shown=context.is_journal_shown)
    return RunResult(
        run_id=context.run_id,
        benchmark=plan.benchmark.name,
        config=plan.config,
        opening=plan.episode.opening,
        rubric=plan.episode.rubric,
        turns=_with_closing_findings(plan, played.turns, closing),
        end_reason=outcome.end_reason,
        closing=episode_result.closing if episode_result else None,
        concluded=closing,
        error=error,
        metrics=metrics,
        parts=plan.benchmark.parts,
        shortfalls=_gate_failures(plan, played.turns, metrics) if is_complete else (),
        tallies=context.usage_tracker.tallies(),
        s3=_place(context, stores.bucket, is_complete=is_complete),
        folder=_place(context, stores.folder, is_complete=is_complete),
        notices=tuple(context.notices.texts),
        sdk_version=load_provider(plan.config.provider).sdk_version(),
        prices=plan.prices,
        held_judges=plan.held_judges,
        journal=tuple(started.journal.entries) if started and is_carried else None,
        started_at=context.started_at,
        completed_at=completed_at,
        duration_s=duration_s,
    )


def _summarise(
    context: RunContext, played: PlayedTurns, outcome: Outcome
) -> tuple[Outcome, Metrics]:
    """The metrics; a benchmark that fails here ends the run, whose costs and journal are kept."""
    plan = context.plan
    measured = [turn for turn in played.turns if turn.index not in played.unmeasured]
    try:
        return outcome, _metrics(plan, measured, played.closing)
    except Exception as defect:  # noqa: BLE001 -- the boundary: finished turns are reported
        context.notices.add_passing(
            f"The metrics could not be summed up ({type(defect).__name__}): there are none."
        )
        error = outcome if isinstance(outcome, BenchError) else InternalError.of(defect)
    with suppress(Exception):
        return error, _metrics(plan, (), None)
    return error, {}


def _metrics(plan: Plan, turns: Sequence[Turn], closing: ClosingResult | None) -> Metrics:
    """The metrics of the turns, and those of the closing verdict."""
    verdict = closing.verdict if closing else None
    findings = verdict.findings if verdict else ()
    return {
        **plan.benchmark.summarise(plan.config, turns),
        **plan.benchmark.closing_metrics(findings),
    }


def _with_closing_findings(
    plan: Plan, turns: tuple[Turn, ...], closing: ClosingResult | None
) -> tuple[Turn, ...]:
    """The turns with what the closing verdict says of each; as they are if there is none."""
    verdict = closing.verdict if closing else None
    return tuple(plan.episode.with_findings(turns, verdict.findings)) if verdict else turns


def _gate_failures(plan: Plan, turns: Sequence[Turn], metrics: Metrics) -> tuple[str, ...]:
    failures = gate_failures(
        plan.config,
        metrics,
        n_turns=sum(_is_due(plan, turn) for turn in turns),
        n_judged=sum(turn.verdict is not None for turn in turns),
        rubric=plan.rubric,
        closing=plan.benchmark.closing_metrics(()).keys(),
    )
    return (*failures, *unread_failures(turns))


def _is_due(plan: Plan, turn: Turn) -> bool:
    """Whether a turn was to be judged or, without a judge, to be played."""
    has_judge = plan.rubric is None or plan.rubric_of(turn.index) is not None
    return has_judge and not turn.replayed


def _times(context: RunContext, started: StartedRun | None) -> tuple[datetime, float]:
    """When the run was complete, and the seconds that its processes took together."""
    now, worked_s = context.clock(), context.clock.elapsed_s()
    if started is None:
        return now, worked_s
    end, times = started.replay_log.end, started.replay_log.times
    if end and _was_complete(started):
        duration_s = times.worked_s if end.duration_s is None else end.duration_s
        return max(end.completed_at, context.started_at), duration_s
    return now, times.worked_s + worked_s


def _was_complete(started: StartedRun) -> bool:
    """Whether an earlier process has ended the run, and this one has called nothing."""
    return started.replay_log.end is not None and not started.log.has_calls


def _place(context: RunContext, store: ArtifactStore | None, *, is_complete: bool) -> Place | None:
    if store is None:
        return None
    curated = store.location(context.keys.curated) if is_complete else None
    return Place(raw=store.location(context.keys.raw), curated=curated)


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
