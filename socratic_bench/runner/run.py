"""Plays one run and returns its result; the command is a thin caller of this."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

from socratic_bench.artifacts.delivery import Delivery
from socratic_bench.artifacts.keys import RunKeys
from socratic_bench.artifacts.lane import Patience
from socratic_bench.artifacts.places import open_bucket, open_folder
from socratic_bench.config import RunConfig
from socratic_bench.documents import encode
from socratic_bench.documents.result import Place, RunResult
from socratic_bench.errors import (
    ENDINGS,
    ArtifactError,
    BenchError,
    InternalError,
    ModelError,
    Stopped,
)
from socratic_bench.judging import Judge
from socratic_bench.ports import ArtifactStore, Benchmark, Finale, Listener
from socratic_bench.runner.backend import ModelFactory, bedrock_models, utc_now
from socratic_bench.runner.gates import shortfalls
from socratic_bench.runner.halt import Halt
from socratic_bench.runner.listener import Silence
from socratic_bench.runner.plan import Plan, prepare
from socratic_bench.runner.record import Record
from socratic_bench.runner.run_id import new_run_id
from socratic_bench.runner.stage import Counted, Endable, Ledger, LiveStage
from socratic_bench.runner.stores import check_stores
from socratic_bench.types import Turn, Unjudged

if TYPE_CHECKING:
    from socratic_bench.runner.budget import Budget

# How long a run that was told to end still waits for writes on their way.
LAST_WRITES_S = 1.0
CALLS_AT_ONCE = 4


def run(
    config: RunConfig,
    *,
    benchmark: Benchmark | None = None,
    listener: Listener | None = None,
    halt: Halt | None = None,
) -> RunResult:
    """Play one run, from any thread, without argv, signals, exit or stdout.

    Raises `UsageError` for a configuration that cannot be run; whatever happens later is told by
    the result. `benchmark` replaces the one that the configuration names, `halt` ends it early.
    """
    return perform(prepare(config, benchmark=benchmark), listener=listener, halt=halt)


def perform(plan: Plan, *, listener: Listener | None = None, halt: Halt | None = None) -> RunResult:
    """Play a prepared run. Raises `UsageError` if a store is sure to be unusable."""
    return _Performance(plan, listener or Silence(), halt or Halt()).result()


class _Performance:
    """One run under way: the parts that its steps share."""

    def __init__(self, plan: Plan, listener: Listener, halt: Halt) -> None:
        self.plan = plan
        self.config = plan.config
        self.listener = listener
        self.halt = halt
        self.keys = RunKeys(new_run_id())
        self.ledger = Ledger()
        self.notices: list[str] = []
        self.started_at: datetime = utc_now()
        self.started_s = time.monotonic()

    def result(self) -> RunResult:
        self.halt.start_deadline(self.config.deadline_s)
        self.folder = open_folder(self.config)
        self.bucket = open_bucket(self.config, self._notice)
        self.stores: list[ArtifactStore] = [s for s in (self.folder, self.bucket) if s]
        self.delivery = Delivery(
            self.stores,
            backing=self.folder,
            patience=Patience(tries=self.config.max_attempts),
            on_full=self.halt.end,
        )
        self.record: Record | None = None
        self.pool = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="call")
        try:
            return self._settled(*self._checked_and_played())
        finally:
            self.pool.shutdown(wait=False, cancel_futures=True)
            self.delivery.close()
            self.listener.on_end()

    def _checked_and_played(self) -> tuple[Finale, BenchError | None]:
        try:
            self.halt.result(self.pool.submit(check_stores, self.stores))
        except Stopped as ended:
            return Finale(end_reason=ended.end_reason), ended
        self.listener.on_start(self.keys.run_id, self.config, self.plan.episode.opening)
        return self._play()

    def _play(self) -> tuple[Finale, BenchError | None]:
        """Play and judge; what cut it short comes back as an error, with all that was finished."""
        with ExitStack() as stack:
            try:
                model_of = stack.enter_context(
                    bedrock_models(self.config, self.halt, self._notice, self._purse())
                )
                self.record = self._new_record(model_of)
                stack.callback(self.record.close)
                return self._play_and_judge(self._stage(model_of), self.record)
            except BenchError as error:
                return Finale(end_reason=error.end_reason), error
            except Exception as defect:  # noqa: BLE001 -- the boundary: finished turns are reported
                return Finale(end_reason="internal"), _internal(defect)

    def _play_and_judge(self, stage: LiveStage, record: Record) -> tuple[Finale, BenchError | None]:
        error: BenchError | None = None
        try:
            finale = self.plan.episode.play(stage)
        except ModelError as broken:
            # The verdicts on what was played are still wanted.
            finale, error = Finale(end_reason=broken.end_reason), broken
        except Stopped as stopped:
            if stopped.end_reason != "budget":
                raise
            # Verdicts under way are paid for, and others may still fit.
            finale, error = Finale(end_reason="budget"), stopped
        record.wait()
        return finale, error

    def _purse(self) -> "Budget | None":
        if self.config.max_cost_usd is None:
            return None
        from socratic_bench.pricing.table import builtin_prices
        from socratic_bench.runner.budget import Budget

        return Budget(
            self.config.max_cost_usd,
            table=self.plan.prices or builtin_prices(),
            region=self.config.region,
            wait=self.halt.result,
        )

    def _new_record(self, model_of: ModelFactory) -> Record:
        judge = None
        if self.plan.episode.rubric and self.config.judge_model:
            judge = Judge(
                model=self._counted(model_of, self.config.judge_model),
                rubric=self.plan.episode.rubric,
                seed=self.config.seed or 0,
                now=utc_now,
            )
        return Record(
            keys=self.keys,
            episode=self.plan.episode,
            judge=judge,
            delivery=self.delivery,
            listener=self.listener,
            halt=self.halt,
        )

    def _stage(self, model_of: ModelFactory) -> LiveStage:
        def endable(model_id: str) -> Endable:
            return Endable(self._counted(model_of, model_id), self.pool, self.halt)

        student = self.config.student_model
        assert self.record is not None  # noqa: S101 -- made just before
        return LiveStage(
            tutor=endable(self.config.model),
            student=endable(student) if student else None,
            on_turn=self.record.add,
        )

    def _counted(self, model_of: ModelFactory, model_id: str) -> Counted:
        return Counted(model_of(model_id), self.ledger, self.listener.on_call)

    def _notice(self, text: str) -> None:
        self.notices.append(text)
        self.listener.on_notice(text)

    def _settled(self, finale: Finale, error: BenchError | None) -> RunResult:
        """Deliver all files, the curated one last and only for a complete run."""
        turns = self.record.turns if self.record else ()
        error = error or _unavailable_judge(turns) or _unaffordable_judge(turns)
        error, lost = self._delivered(error)
        result = self._summed_up(finale, error or lost, turns)
        if lost and error:
            self._notice(lost.message)
            return self._summed_up(finale, error, turns)
        if result.status != "completed" or not self.stores:
            return result
        from socratic_bench.documents.artifacts import curated_document

        document = curated_document(result.document)
        late: BenchError | None
        try:
            late = self.delivery.conclude(self.keys.curated, encode(document), self.halt.wait_for)
        except BenchError as ended:
            late = ended
        return self._summed_up(finale, late, turns) if late else result

    def _delivered(
        self, error: BenchError | None
    ) -> tuple[BenchError | None, ArtifactError | None]:
        """What ended the run, be it while files are delivered, and what was not delivered."""
        if self.halt.error is None:
            try:
                return error, self.delivery.settle(self.halt.wait_for)
            except BenchError as ended:
                error = error or ended
        lost = self.delivery.give_up(LAST_WRITES_S)
        return error or (self.halt.error if lost else None), lost

    def _summed_up(
        self, finale: Finale, error: BenchError | None, turns: tuple[Turn, ...]
    ) -> RunResult:
        metrics = self.plan.benchmark.summarise(self.config, turns)
        end_reason = error.end_reason if error else finale.end_reason
        complete = ENDINGS[end_reason].status == "completed"
        is_judged = bool(self.plan.episode.rubric and self.config.judge_model)
        completed_at = utc_now()
        return RunResult(
            run_id=self.keys.run_id,
            benchmark=self.plan.benchmark.name,
            config=self.config,
            opening=self.plan.episode.opening,
            rubric=self.plan.episode.rubric,
            turns=turns,
            end_reason=end_reason,
            closing=finale.closing,
            closing_flags=finale.closing_flags,
            error=error,
            metrics=metrics,
            shortfalls=shortfalls(
                self.config,
                metrics,
                n_turns=sum(not turn.replayed for turn in turns),
                n_judged=sum(turn.verdict is not None for turn in turns),
                is_judged=is_judged,
            )
            if complete
            else (),
            tallies=self.ledger.tallies(),
            s3=self._place(self.bucket, complete=complete),
            folder=self._place(self.folder, complete=complete),
            notices=tuple(self.notices),
            started_at=self.started_at,
            completed_at=completed_at,
            duration_s=time.monotonic() - self.started_s,
            prices=self.plan.prices,
        )

    def _place(self, store: ArtifactStore | None, *, complete: bool) -> Place | None:
        if store is None:
            return None
        curated = store.location(self.keys.curated) if complete else None
        return Place(raw=store.location(self.keys.raw), curated=curated)


def _unavailable_judge(turns: tuple[Turn, ...]) -> BenchError | None:
    """The dialogue is played out without a judge that is gone, but the run is not complete."""
    missing = [turn.outcome for turn in turns if isinstance(turn.outcome, Unjudged)]
    gone = [outcome for outcome in missing if outcome.reason == "unavailable"]
    if not gone:
        return None
    return ModelError(
        f"{len(gone)} turns could not be judged. {gone[0].message}",
        code="judge_unavailable",
        end_reason="unavailable",
        retryable=True,
        hint=gone[0].hint or "Run again later, or raise --max-attempts.",
    )


def _unaffordable_judge(turns: tuple[Turn, ...]) -> BenchError | None:
    """The dialogue may have ended by itself while its last verdicts did not fit the budget."""
    missing = [turn.outcome for turn in turns if isinstance(turn.outcome, Unjudged)]
    refused = [outcome for outcome in missing if outcome.reason == "budget"]
    if not refused:
        return None
    stopped = Stopped(
        f"{len(refused)} turns could not be judged. {refused[0].message}",
        end_reason="budget",
        hint="Raise --max-cost-usd.",
    )
    stopped.retryable = False
    return stopped


def _internal(defect: Exception) -> InternalError:
    error = InternalError(
        f"A defect in this program: {type(defect).__name__}.",
        hint="Run again with --debug for the traceback, and report it.",
    )
    error.__cause__ = defect
    return error
