"""One run, step by step: begun or resumed, played and judged, closed."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial

from socratic_bench.benchmarks import RunConfig
from socratic_bench.calling.cancel_token import CancelToken
from socratic_bench.calling.usage import UsageTracker
from socratic_bench.documents.result import RunResult
from socratic_bench.errors import BenchError, InternalError, ModelError, Stopped, UsageError
from socratic_bench.journal import Log
from socratic_bench.judging import Judge
from socratic_bench.ports import EpisodeResult
from socratic_bench.providers import load_provider
from socratic_bench.runner.actors import Actors
from socratic_bench.runner.clock import SteadyClock
from socratic_bench.runner.closing import GIVEN_UP_S, LAST_WRITES_S, Closing
from socratic_bench.runner.items import LiveEpisodeContext
from socratic_bench.runner.listener import Listener
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.record import Record
from socratic_bench.runner.resume import AcquiredRun, RunAcquisition
from socratic_bench.runner.stores import check_stores, folder_notices
from socratic_bench.services import Prepared, Services
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.folder_journal import owner
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.places import (
    bucket_journals,
    folder_journals,
    open_bucket,
    open_folder,
)
from socratic_bench.storage.upload_queue import UploadPolicy
from socratic_bench.store_ports import ArtifactStore, Entry, Journals
from socratic_bench.types import counted

# Clocks of two machines differ by less.
TOLD_BEHIND_S = 1.0
# For reading an earlier process's verdicts when a resumed run is told to end.
LAST_VERDICTS_S = 0.5


class RunExecution:
    """One run under way: the parts that its steps share."""

    def __init__(
        self,
        plan: Plan,
        listener: Listener,
        cancel_token: CancelToken,
        entries: Sequence[Entry],
        services: Services,
    ) -> None:
        from ulid import ULID

        self.plan = plan
        self.listener = listener
        self.cancel_token = cancel_token
        self.entries = entries
        self.services = services
        self.keys = RunKeys(f"run-{ULID()}")
        self.usage_tracker = UsageTracker(plan.benchmark.parts.roles)
        self.notices: list[str] = []
        self.now = SteadyClock(monotonic_s=cancel_token.monotonic_s)
        self.started_at: datetime = self.now()
        self.started_s = cancel_token.monotonic_s()
        self.acquired: AcquiredRun | None = None
        self.log: Log | None = None
        self.is_delivered = False
        self.is_journal_shown = True
        self.record: Record | None = None
        self.prepared: Prepared = None

    @property
    def config(self) -> RunConfig:
        return self.plan.config

    def result(self) -> RunResult:
        self.cancel_token.start_deadline(self.config.deadline_s)
        self.folder = open_folder(self.config, self.listener.on_notice)
        self.listener.on_wait("stores, credentials and a connection")
        early = self._open_bucket()
        self.stores: list[ArtifactStore] = [s for s in (self.folder, self.bucket) if s]
        self.delivery = self.files = self._new_delivery(self.stores)
        try:
            episode_result, error = early or self._checked_and_played()
            if self.cancel_token.error is not None:
                self.usage_tracker.settle(GIVEN_UP_S)
            turns = self.record.final() if self.record else ()
            self.listener.on_wait("the stores to take what was made")
            result = self._closing().result(episode_result, error, turns)
            if self.cancel_token.error is None:  # else there is no time left
                self.delivery.give_up(LAST_WRITES_S)
            return result
        finally:
            self.files.close()
            self.delivery.close()
            if self.log:
                self.log.close()
            self.listener.on_end()

    def _open_bucket(self) -> tuple[EpisodeResult, BenchError | None] | None:
        """In another thread, since credentials can be slow; what ended the run meanwhile."""
        self.bucket = None
        if not self.config.s3_bucket:
            return None
        try:
            opening = partial(open_bucket, self.config, self._notice)
            self.bucket = self.services.in_time(opening, self.cancel_token)
        except Stopped as ended:
            return EpisodeResult(end_reason=ended.end_reason), ended
        return None

    def _checked_and_played(self) -> tuple[EpisodeResult, BenchError | None]:
        try:
            self._take_up(self.services.in_time(self._checked_and_held, self.cancel_token))
        except UsageError:
            raise
        except BenchError as ended:
            return EpisodeResult(end_reason=ended.end_reason), ended
        opening = self.plan.episode.opening
        self.listener.on_start(self.keys.run_id, self.config, opening)
        for text in (*opening.notices, *load_provider(self.config.provider).notices(self.config)):
            self._notice(text)
        for text in folder_notices(self.config.output_dir, os.environ):
            self._passing_notice(text)
        return self._play()

    def _new_delivery(self, stores: Sequence[ArtifactStore]) -> Delivery:
        return Delivery(
            stores,
            backing=self.folder,
            policy=UploadPolicy(tries=self.config.max_attempts),
            on_full=self.cancel_token.end,
            threads=self.services.threads,
        )

    def _journals(self) -> list[Journals]:
        """Where the run is kept call by call; the folder is asked first."""
        in_bucket = bucket_journals(
            self.bucket,
            self.delivery,
            sleep=self.cancel_token.sleep,
            on_lost=self.cancel_token.end,
            notice=self.listener.on_notice,
            keeps_notes=self.folder is None,
        )
        in_folder = folder_journals(self.config, self.listener.on_notice)
        return [found for found in (in_folder, in_bucket) if found]

    def _checked_and_held(self) -> AcquiredRun:
        check_stores(self.stores)
        if not self.entries and self.config.resume_run_id is None:
            self.prepared = self.services.prepare(self.config)
        acquisition = RunAcquisition(
            stores=self._journals(),
            new_run_id=self.keys.run_id,
            now=self.started_at,
            owner=owner(),
            notice=self.listener.on_notice,
        )
        acquired = acquisition.acquire_run(self.plan, self.entries)
        curated = RunKeys(acquired.run_id).curated
        self.is_delivered = acquired.is_complete and (not self.bucket or self.bucket.holds(curated))
        return acquired

    def _take_up(self, acquired: AcquiredRun) -> None:
        """From here on this is the acquired run, which an earlier process may have begun."""
        self.acquired, self.plan, self.keys = acquired, acquired.plan, RunKeys(acquired.run_id)
        self.started_at = acquired.started_at
        self.notices.extend(acquired.replay_log.notices)
        behind_s = self.now.go_on_from(acquired.replay_log.times.latest)
        if behind_s >= TOLD_BEHIND_S:
            behind = f"The clock is {behind_s:.0f} s behind the run's last entry"
            self._passing_notice(f"{behind}: its times go on from that entry.")
        self.usage_tracker.take_over(acquired.replay_log, self.plan.models)
        if self.is_delivered:
            # A folder is cheap to look through and to mend; a bucket's files are never half there.
            self.files = self._new_delivery([self.folder] if self.folder else [])
        self.log = Log(
            acquired.journal,
            now=self.now,
            elapsed_s=self._elapsed_s,
            on_failure=self.cancel_token.end,
        )
        if acquired.replay_log.n_answers:
            self.listener.on_notice(
                f"{counted(acquired.replay_log.n_answers, 'call')} of {acquired.run_id} answered "
                "before: taken over, and not made again."
            )

    def _play(self) -> tuple[EpisodeResult, BenchError | None]:
        """Play and judge; what cut it short comes back as an error, with all that was finished."""
        with ExitStack() as stack:
            try:
                actors = self._actors()
                model_of = actors.models()
                self.listener.on_wait("")
                self.record = self._new_record(actors.judge(model_of))
                stack.callback(self.record.close)
                context = actors.context(model_of, on_turn=self.record.add)
                return self._play_and_judge(context, self.record)
            except UsageError:
                raise
            except BenchError as error:
                if self.record and self.acquired and self.acquired.is_resumed:
                    self.record.linger(LAST_VERDICTS_S)
                return EpisodeResult(end_reason=error.end_reason), error
            except Exception as defect:  # noqa: BLE001 -- the boundary: finished turns are reported
                return EpisodeResult(end_reason="internal"), InternalError.of(defect)

    def _play_and_judge(
        self, context: LiveEpisodeContext, record: Record
    ) -> tuple[EpisodeResult, BenchError | None]:
        error: BenchError | None = None
        try:
            episode_result = self.plan.episode.play(context)
        except ModelError as broken:
            # The verdicts on what was played are still wanted.
            episode_result, error = EpisodeResult(end_reason=broken.end_reason), broken
        except Stopped as stopped:
            if stopped.end_reason != "budget":
                raise
            # Verdicts under way are paid for, and others may still fit.
            episode_result, error = EpisodeResult(end_reason="budget"), stopped
        record.wait(episode_result)
        n_items = self.plan.episode.opening.n_items or 0
        if error is None and record.n_turns < n_items:
            error = InternalError(f"The benchmark published {record.n_turns} of {n_items} items.")
        return episode_result, error

    def _closing(self) -> Closing:
        return Closing(
            plan=self.plan,
            keys=self.keys,
            acquired=self.acquired,
            log=self.log,
            usage_tracker=self.usage_tracker,
            delivery=self.files,
            folder=self.folder,
            bucket=self.bucket,
            cancel_token=self.cancel_token,
            notices=self.notices,
            notice=self._passing_notice,
            body_of=self._body_of,
            concluded=self.record.concluded() if self.record else None,
            started_at=self.started_at,
            now=self.now,
            elapsed_s=self._elapsed_s,
            is_journal_shown=self.is_journal_shown,
        )

    def _actors(self) -> Actors:
        assert self.acquired and self.log  # noqa: S101, PT018 -- begun before anything is played
        return Actors(
            acquired=self.acquired,
            log=self.log,
            usage_tracker=self.usage_tracker,
            cancel_token=self.cancel_token,
            services=self.services,
            prepared=self.prepared,
            now=self.now,
            notice=self._notice,
            on_call=self.listener.on_call,
        )

    def _new_record(self, judge: Judge | None) -> Record:
        return Record(
            keys=self.keys,
            plan=self.plan,
            judge=judge,
            delivery=self.files,
            listener=self.listener,
            cancel_token=self.cancel_token,
            threads=self.services.threads,
        )

    def _elapsed_s(self) -> float:
        return self.cancel_token.monotonic_s() - self.started_s

    def _body_of(self, key: str) -> bytes | None:
        """A file of the run as it was sent to the stores."""
        body = self.acquired.journal.body_of(key) if self.acquired else None
        return self.record.body_of(key) if body is None and self.record else body

    def _notice(self, text: str) -> None:
        if text in self.notices:
            return  # an earlier process has said so
        if self.log:
            self.log.notice(text)
        self._passing_notice(text)

    def _passing_notice(self, text: str) -> None:
        """A notice for this process only: it is not repeated when the run is resumed."""
        self.notices.append(text)
        self.listener.on_notice(text)
