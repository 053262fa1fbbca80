"""The end of a run: deliver what was made, sum it up, and say how to go on."""

import shlex
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from socratic_bench.calling.cancel_token import CancelToken
from socratic_bench.calling.usage import UsageTracker
from socratic_bench.documents import encode
from socratic_bench.documents.place import Place
from socratic_bench.documents.result import RunResult
from socratic_bench.errors import (
    ENDINGS,
    ArtifactError,
    BenchError,
    TakenOverError,
)
from socratic_bench.journal import Log
from socratic_bench.ports import EpisodeResult
from socratic_bench.runner.conclusion import is_open, metrics_of, words_of
from socratic_bench.runner.gates import missing_verdicts, shortfalls
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.resume import AcquiredRun, in_time
from socratic_bench.settings import CoreConfig
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.keys import RunKeys
from socratic_bench.store_ports import ArtifactStore, Entry
from socratic_bench.turns import Concluded, Turn

# How long a run that was told to end still waits for pending writes. All such waits together are
# shorter than the two seconds after a signal.
LAST_WRITES_S = 0.8
# How long to wait for abandoned calls to note what they had sent.
GIVEN_UP_S = 0.3
NOT_FROM_BRIEF = (
    "The short form leaves out what the run could be gone on with: give --output-dir, or no "
    "--brief."
)
FROM_DOCUMENT = "Go on with this document, kept in a file: socratic-runner --resume-from FILE."


class Closing(Struct, frozen=True, kw_only=True):
    """What is known of a run once its last turn is played, and how it becomes a result.

    `acquired` and `log` are `None` if the run was ended before it was begun. `is_journal_shown`
    tells whether the document that people get to see has a journal.
    """

    plan: Plan
    keys: RunKeys
    acquired: AcquiredRun | None
    log: Log | None
    usage_tracker: UsageTracker
    delivery: Delivery
    folder: ArtifactStore | None
    bucket: ArtifactStore | None
    cancel_token: CancelToken
    notices: list[str]
    notice: Callable[[str], None]
    body_of: Callable[[str], bytes | None]
    concluded: Concluded | None
    started_at: datetime
    now: Callable[[], datetime]
    elapsed_s: Callable[[], float]
    is_journal_shown: bool

    def result(
        self, episode_result: EpisodeResult, error: BenchError | None, turns: tuple[Turn, ...]
    ) -> RunResult:
        """Deliver all files, the curated one last and only for a complete run."""
        error = error or missing_verdicts(turns)
        if missing := words_of(self.concluded):
            self.notice(missing)
        error, lost = self._delivered(error)
        if lost and error:
            self.notice(lost.message)
        error = error or lost or self._unkept() or self._taken_away()
        for text in self.acquired.journal.mended if self.acquired else ():
            self._lasting_notice(text)
        result = self._summed_up(episode_result, error, turns)
        if result.status != "completed":
            return result
        late = self._conclude(result)
        if late:
            return self._summed_up(episode_result, late, turns)
        self._log_end(result)
        return result

    def _taken_away(self) -> BenchError | None:
        """Store again what was deleted during the run; returns an error if that fails."""

        def verify() -> ArtifactError | None:
            if self.acquired:
                self.acquired.journal.mend()
            return self.delivery.verify(self.body_of, self._lasting_notice)

        if not self.delivery.has_stores:
            return None
        try:
            return in_time(verify, self.cancel_token)
        except BenchError as ended:
            return ended

    def _lasting_notice(self, text: str) -> None:
        """A notice that is shown again whenever the complete run is printed again."""
        if text in self.notices:
            return
        if self.log:
            self.log.notice(text)
        self.notice(text)

    def _conclude(self, result: RunResult) -> BenchError | None:
        if not self.delivery.has_stores:
            return None
        from socratic_bench.documents.run import CuratedDocument

        document = encode(CuratedDocument.of(result).printed)
        try:
            return self.delivery.conclude(self.keys.curated, document, self.cancel_token.wait_for)
        except BenchError as ended:
            return ended

    def _log_end(self, result: RunResult) -> None:
        if is_open(self.concluded):
            return  # to be asked again
        if self.log and self.acquired and not self._was_complete(self.acquired, self.log):
            self.log.ended(
                turns=self.plan.config.turns,
                completed_at=result.completed_at,
                duration_s=result.duration_s,
            )

    def _unkept(self) -> BenchError | None:
        """A journal that failed while the last call was answered ends the run like any store."""
        return (
            self.cancel_token.error if isinstance(self.cancel_token.error, ArtifactError) else None
        )

    def _delivered(
        self, error: BenchError | None
    ) -> tuple[BenchError | None, ArtifactError | None]:
        """What ended the run, if only during delivery, and what was not delivered."""
        if self.cancel_token.error is None:
            try:
                return error, self.delivery.settle(self.cancel_token.wait_for)
            except BenchError as ended:
                error = error or ended
        lost = self.delivery.give_up(LAST_WRITES_S)
        return error or (self.cancel_token.error if lost else None), lost

    def _summed_up(
        self, episode_result: EpisodeResult, error: BenchError | None, turns: tuple[Turn, ...]
    ) -> RunResult:
        plan = self.plan
        metrics = metrics_of(plan, turns, self.concluded)
        end_reason = error.end_reason if error else episode_result.end_reason
        complete = ENDINGS[end_reason].status == "completed"
        completed_at, duration_s = self._times()
        if error:
            self._say_how_to_go_on(error)
        return RunResult(
            run_id=self.keys.run_id,
            benchmark=plan.benchmark.name,
            config=plan.config,
            opening=plan.episode.opening,
            rubric=plan.episode.rubric,
            turns=turns,
            end_reason=end_reason,
            closing=episode_result.closing,
            closing_flags=episode_result.closing_flags,
            concluded=self.concluded,
            error=error,
            metrics=metrics,
            parts=plan.benchmark.parts,
            shortfalls=shortfalls(
                plan.config,
                metrics,
                n_turns=sum(self._counts(turn) for turn in turns),
                n_judged=sum(turn.verdict is not None for turn in turns),
                rubric=plan.rubric,
            )
            if complete
            else (),
            tallies=self.usage_tracker.tallies(),
            s3=self._place(self.bucket, complete=complete),
            folder=self._place(self.folder, complete=complete),
            notices=tuple(self.notices),
            prices=plan.prices,
            journal=self._entries() if self._is_to_go_on(complete=complete) else None,
            started_at=self.started_at,
            completed_at=completed_at,
            duration_s=duration_s,
        )

    def _is_to_go_on(self, *, complete: bool) -> bool:
        """Whether only the document holds what a resume needs."""
        return (not complete or is_open(self.concluded)) and not self._is_kept

    def _counts(self, turn: Turn) -> bool:
        """Whether it is one of those that were to be judged or, without a judge, to be played."""
        is_due = self.plan.rubric is None or self.plan.rubric_of(turn.index) is not None
        return is_due and not turn.replayed

    def _times(self) -> tuple[datetime, float]:
        """When the run was complete, and how long its processes took together."""
        now, worked_s = self.now(), self.elapsed_s()
        if self.acquired is None or self.log is None:
            return now, worked_s
        end, times = self.acquired.replay_log.end, self.acquired.replay_log.times
        if end and self._was_complete(self.acquired, self.log):
            duration_s = times.worked_s if end.duration_s is None else end.duration_s
            return max(end.completed_at, self.started_at), duration_s
        return now, times.worked_s + worked_s

    @staticmethod
    def _was_complete(acquired: AcquiredRun, log: Log) -> bool:
        return acquired.replay_log.end is not None and not log.has_asked

    @property
    def _is_kept(self) -> bool:
        """Whether a store holds the run's journal to the last entry."""
        return bool(self.acquired and self.acquired.journal.is_kept)

    def _entries(self) -> tuple[Entry, ...] | None:
        return tuple(self.acquired.journal.entries) if self.acquired else None

    def _say_how_to_go_on(self, error: BenchError) -> None:
        if self.acquired is None or error.end_reason in ("usage", "internal"):
            return
        if isinstance(error, TakenOverError):
            return
        if not any(entry.get("kind") == "answered" for entry in self.acquired.journal.entries):
            return
        how = self._resume_words()
        if how in error.hints:
            return
        if isinstance(error, ArtifactError) and not self._is_kept:
            # The store is what failed, and the document holds all of it.
            error.hints = (how, *error.hints)
        else:
            error.hints = (*error.hints, how)

    def _resume_words(self) -> str:
        config = self.plan.config
        has_store = bool(config.output_dir or config.s3_bucket)
        stored = stored_words(config, self.keys.run_id) if has_store else None
        if self._is_kept:
            return f"Go on with it: {stored}"
        from_document = FROM_DOCUMENT if self.is_journal_shown else NOT_FROM_BRIEF
        if stored is None:
            return from_document
        return (
            f"{from_document} Without it, with what was kept, once there is room and access: "
            f"{stored}"
        )

    def _place(self, store: ArtifactStore | None, *, complete: bool) -> Place | None:
        if store is None:
            return None
        curated = store.location(self.keys.curated) if complete else None
        return Place(raw=store.location(self.keys.raw), curated=curated)


def stored_words(config: CoreConfig, run_id: str) -> str:
    """The command line that goes on with a run of a store; one that is complete is printed."""
    words = ["socratic-runner", "resume", run_id]
    places = (
        ("--output-dir", config.output_dir),
        ("--s3-bucket", config.s3_bucket),
        ("--s3-prefix", config.s3_prefix),
        ("--s3-kms-key-id", config.s3_kms_key_id),
    )
    for flag, value in places:
        words += [flag, value] if value else []
    return shlex.join(words)
