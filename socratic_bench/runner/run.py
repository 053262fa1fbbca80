"""Plays one run and returns its result; the command is a thin caller of this."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

from socratic_bench.artifacts.delivery import Delivery
from socratic_bench.artifacts.folder_journal import owner
from socratic_bench.artifacts.keys import RunKeys
from socratic_bench.artifacts.lane import Patience
from socratic_bench.artifacts.places import (
    bucket_journals,
    folder_journals,
    open_bucket,
    open_folder,
)
from socratic_bench.bedrock.settings import setting_notices
from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.result import RunResult
from socratic_bench.errors import BenchError, InternalError, ModelError, Stopped, UsageError
from socratic_bench.journal import Log
from socratic_bench.judging import Judge
from socratic_bench.ports import ArtifactStore, Benchmark, Entry, Finale, Journals, Listener, Model
from socratic_bench.runner.backend import (
    ModelFactory,
    bedrock_models,
    early_session,
    late_models,
)
from socratic_bench.runner.clock import SteadyClock
from socratic_bench.runner.closing import GIVEN_UP_S, LAST_WRITES_S, Closing
from socratic_bench.runner.halt import Halt
from socratic_bench.runner.listener import Silence
from socratic_bench.runner.plan import Plan, prepare
from socratic_bench.runner.record import Record
from socratic_bench.runner.resume import Held, Taking, document_entries
from socratic_bench.runner.stage import (
    Counted,
    Endable,
    Guarded,
    Ledger,
    LiveStage,
    Logged,
    Noting,
    Replaying,
)
from socratic_bench.runner.stores import check_stores
from socratic_bench.types import ROLES, Json

if TYPE_CHECKING:
    from socratic_bench.bedrock.session import SdkSession
    from socratic_bench.runner.budget import Budget

CALLS_AT_ONCE = 4
# Clocks of two machines differ by less.
TOLD_BEHIND_S = 1.0
# For reading what an earlier process was told, when a run that goes on is told to end.
LAST_VERDICTS_S = 0.5


def run(
    config: RunConfig,
    *,
    benchmark: Benchmark | None = None,
    listener: Listener | None = None,
    halt: Halt | None = None,
    document: Mapping[str, Json] | None = None,
) -> RunResult:
    """Play one run, from any thread, without argv, signals, exit or stdout.

    Raises `UsageError` for a configuration that cannot be run; whatever happens later is told by
    the result. `benchmark` replaces the one that the configuration names, `halt` ends it early. A
    partial `document` of a run without a store is gone on with.
    """
    plan = prepare(config, benchmark=benchmark)
    entries = () if document is None else document_entries(document)
    return perform(plan, listener=listener, halt=halt, entries=entries)


def perform(
    plan: Plan,
    *,
    listener: Listener | None = None,
    halt: Halt | None = None,
    entries: Sequence[Entry] = (),
    is_journal_shown: bool = True,
) -> RunResult:
    """Play a prepared run; with the `entries` of a journal, go on with that one.

    Hints go by whether whoever asked `is_journal_shown`, from which a run without a store goes on.
    Raises `UsageError` if a store is sure to be unusable, or the run cannot go on as asked.
    """
    performance = _Performance(plan, listener or Silence(), halt or Halt(), entries)
    performance.is_journal_shown = is_journal_shown
    return performance.result()


class _Performance:
    """One run under way: the parts that its steps share."""

    def __init__(
        self, plan: Plan, listener: Listener, halt: Halt, entries: Sequence[Entry]
    ) -> None:
        from ulid import ULID

        self.plan = plan
        self.listener = listener
        self.halt = halt
        self.entries = entries
        self.keys = RunKeys(f"run-{ULID()}")
        self.ledger = Ledger()
        self.notices: list[str] = []
        self.now = SteadyClock(monotonic_s=halt.monotonic_s)
        self.started_at: datetime = self.now()
        self.started_s = halt.monotonic_s()
        self.held: Held | None = None
        self.log: Log | None = None
        self.is_delivered = False
        self.is_journal_shown = True
        self.record: Record | None = None
        self.session: SdkSession | ModelError | None = None

    @property
    def config(self) -> RunConfig:
        return self.plan.config

    def result(self) -> RunResult:
        self.halt.start_deadline(self.config.deadline_s)
        self.folder = open_folder(self.config, self.listener.on_notice)
        self.pool = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="call")
        early = self._open_bucket()
        self.stores: list[ArtifactStore] = [s for s in (self.folder, self.bucket) if s]
        self.delivery = self.files = self._new_delivery(self.stores)
        try:
            finale, error = early or self._checked_and_played()
            if self.halt.error is not None:
                self.ledger.settle(GIVEN_UP_S)
            turns = self.record.final() if self.record else ()
            result = self._closing().result(finale, error, turns)
            if self.halt.error is None:  # else the last moment is over already
                self.delivery.give_up(LAST_WRITES_S)
            return result
        finally:
            self.pool.shutdown(wait=False, cancel_futures=True)
            self.files.close()
            self.delivery.close()
            if self.log:
                self.log.close()
            self.listener.on_end()

    def _open_bucket(self) -> tuple[Finale, BenchError | None] | None:
        """Beside this thread, as credentials may take their time; what ended the run meanwhile."""
        self.bucket = None
        if not self.config.s3_bucket:
            return None
        try:
            opening = self.pool.submit(open_bucket, self.config, self._notice)
            self.bucket = self.halt.result(opening)
        except Stopped as ended:
            return Finale(end_reason=ended.end_reason), ended
        return None

    def _checked_and_played(self) -> tuple[Finale, BenchError | None]:
        try:
            self._take_up(self.halt.result(self.pool.submit(self._checked_and_held)))
        except UsageError:
            raise
        except BenchError as ended:
            return Finale(end_reason=ended.end_reason), ended
        opening = self.plan.episode.opening
        self.listener.on_start(self.keys.run_id, self.config, opening)
        for text in (*opening.notices, *setting_notices(self.config)):
            self._notice(text)
        return self._play()

    def _new_delivery(self, stores: Sequence[ArtifactStore]) -> Delivery:
        return Delivery(
            stores,
            backing=self.folder,
            patience=Patience(tries=self.config.max_attempts),
            on_full=self.halt.end,
        )

    def _journals(self) -> list[Journals]:
        """Where the run is kept call by call; the folder is asked first."""
        in_bucket = bucket_journals(
            self.bucket,
            self.delivery,
            sleep=self.halt.sleep,
            on_lost=self.halt.end,
            notice=self.listener.on_notice,
            keeps_notes=self.folder is None,
        )
        in_folder = folder_journals(self.config, self.listener.on_notice)
        return [found for found in (in_folder, in_bucket) if found]

    def _checked_and_held(self) -> Held:
        check_stores(self.stores)
        if not self.entries and self.config.resume_run_id is None:
            self.session = early_session(self.config, os.environ)
        taking = Taking(
            stores=self._journals(),
            new_run_id=self.keys.run_id,
            now=self.started_at,
            owner=owner(),
            notice=self.listener.on_notice,
        )
        held = taking.hold(self.plan, self.entries)
        curated = RunKeys(held.run_id).curated
        self.is_delivered = held.is_complete and (not self.bucket or self.bucket.holds(curated))
        return held

    def _take_up(self, held: Held) -> None:
        """From here on this is the run that is held, which an earlier process may have begun."""
        self.held, self.plan, self.keys = held, held.plan, RunKeys(held.run_id)
        self.started_at = held.started_at
        self.notices.extend(held.memory.notices)
        behind_s = self.now.go_on_from(held.memory.times.latest)
        if behind_s >= TOLD_BEHIND_S:
            self._passing_notice(
                f"The clock is {behind_s:.0f} s behind the run's last entry: its times go on from "
                "that entry."
            )
        for role in ROLES:
            self.ledger.add_failed(role, *held.memory.failed(role))
        if self.is_delivered:
            # A folder is cheap to look through and to mend; a bucket's files are never half there.
            self.files = self._new_delivery([self.folder] if self.folder else [])
        self.log = Log(
            held.journal, now=self.now, elapsed_s=self._elapsed_s, on_failure=self.halt.end
        )
        if held.memory.n_answers:
            self.listener.on_notice(
                f"{held.memory.n_answers} calls of {held.run_id} were answered before; "
                "they are taken over and not made again."
            )

    def _play(self) -> tuple[Finale, BenchError | None]:
        """Play and judge; what cut it short comes back as an error, with all that was finished."""
        with ExitStack() as stack:
            try:
                model_of = self._models(stack)
                self.record = self._new_record(model_of)
                stack.callback(self.record.close)
                return self._play_and_judge(self._stage(model_of), self.record)
            except UsageError:
                raise
            except BenchError as error:
                if self.record and self.held and self.held.is_resumed:
                    self.record.linger(LAST_VERDICTS_S)
                return Finale(end_reason=error.end_reason), error
            except Exception as defect:  # noqa: BLE001 -- the boundary: finished turns are reported
                return Finale(end_reason="internal"), InternalError.of(defect)

    def _models(self, stack: ExitStack) -> ModelFactory:
        """Connected at once, so that the first call need not wait; or not at all if none is due."""

        def connect() -> ModelFactory:
            assert self.log is not None  # noqa: S101 -- begun before anything is played
            purse = Noting(self.log, self.halt.result_in_call, self._purse())
            models = bedrock_models(
                self.config, self.halt, self._notice, purse, self.session, now=self.now
            )
            return stack.enter_context(models)

        return late_models(connect) if self.held and self.held.is_complete else connect()

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
        from socratic_bench.pricing.rates import Terms
        from socratic_bench.pricing.table import builtin_prices
        from socratic_bench.runner.budget import Budget

        budget = Budget(
            self.config.max_cost_usd,
            table=self.plan.prices or builtin_prices(),
            region=self.config.region,
            wait=self.halt.result,
        )
        memory = self.held.memory if self.held else None
        tutors = Terms(self.config.service_tier, self.config.latency_profile)
        for role, model_id in self.plan.models.items():
            if memory and model_id:
                budget.take_over(
                    model_id,
                    memory.completions(role),
                    memory.failed(role),
                    asked=tutors if role == "tutor" else Terms(),
                )
        return budget

    def _closing(self) -> Closing:
        return Closing(
            plan=self.plan,
            keys=self.keys,
            held=self.held,
            log=self.log,
            ledger=self.ledger,
            delivery=self.files,
            folder=self.folder,
            bucket=self.bucket,
            halt=self.halt,
            notices=self.notices,
            notice=self._passing_notice,
            body_of=self._body_of,
            started_at=self.started_at,
            now=self.now,
            elapsed_s=self._elapsed_s,
            is_journal_shown=self.is_journal_shown,
        )

    def _new_record(self, model_of: ModelFactory) -> Record:
        judge = None
        if self.plan.episode.rubric and self.config.judge_model:
            judge = Judge(
                model=self._replaying(
                    self._counted(Guarded(model_of(self.config.judge_model), self.halt))
                ),
                rubric=self.plan.episode.rubric,
                seed=self.config.seed or 0,
                now=self.now,
                seed_alone=self.held is not None and self.held.memory.header.version == 1,
            )
        return Record(
            keys=self.keys,
            plan=self.plan,
            judge=judge,
            delivery=self.files,
            listener=self.listener,
            halt=self.halt,
        )

    def _stage(self, model_of: ModelFactory) -> LiveStage:
        def endable(model_id: str) -> Model:
            inner = Endable(self._counted(model_of(model_id)), self.pool, self.halt)
            return self._replaying(inner)

        student = self.plan.models.get("student")
        assert self.record is not None  # noqa: S101 -- made just before
        return LiveStage(
            tutor=endable(self.config.model),
            student=endable(student) if student else None,
            on_turn=self.record.add,
        )

    def _counted(self, model: Model) -> Counted:
        assert self.log is not None  # noqa: S101 -- begun before anything is played
        return Counted(Logged(model, self.log), self.ledger, self.listener.on_call)

    def _replaying(self, inner: Model) -> Replaying:
        assert self.held is not None  # noqa: S101 -- likewise
        return Replaying(inner, self.held.memory, self.ledger)

    def _elapsed_s(self) -> float:
        return self.halt.monotonic_s() - self.started_s

    def _body_of(self, key: str) -> bytes | None:
        """A file of the run as it was sent to the stores."""
        body = self.held.journal.body_of(key) if self.held else None
        return self.record.body_of(key) if body is None and self.record else body

    def _notice(self, text: str) -> None:
        if text in self.notices:
            return  # an earlier process has said so
        if self.log:
            self.log.notice(text)
        self._passing_notice(text)

    def _passing_notice(self, text: str) -> None:
        """What concerns this process alone, and is no news to one that goes on with the run."""
        self.notices.append(text)
        self.listener.on_notice(text)
