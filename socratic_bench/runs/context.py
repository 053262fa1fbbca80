"""Who hears of a run while it goes on."""

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.journal import Noticed
from socratic_bench.journal import Log
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.models.events import CallEvent
from socratic_bench.models.providers import load_provider
from socratic_bench.models.usage import UsageTracker
from socratic_bench.ports.benchmark import Sample
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.resume import AcquiredRun
from socratic_bench.runs.services import Prepared, Services
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn
from socratic_bench.types import counted


class Listener:
    """Hears of a run while it goes on, from whichever thread; must not block and must not raise.

    This one wants to hear nothing: another extends it by what it wants to hear.
    """

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None: ...

    def on_call(self, event: CallEvent) -> None: ...

    def on_wait(self, what: str) -> None:
        """From now on the run waits for something other than calls; empty: no longer."""

    def on_turn(self, turn: Turn) -> None: ...

    def on_judged(self, turn: Turn) -> None: ...

    def on_notice(self, text: str) -> None: ...

    def on_end(self) -> None: ...


# The time of day of one run, which never goes back even if the machine's clock does.


def utc_now() -> datetime:
    return datetime.now(UTC)


class SteadyClock:
    """UTC that never goes back: if the machine's clock is set back, it goes on from where it was.

    `monotonic_s` counts seconds from anywhere, at the pace of real time.
    """

    def __init__(self, *, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._read_s = monotonic_s()
        self._read_at = utc_now()

    def __call__(self) -> datetime:
        """The time of day; safe to use from several threads."""
        with self._lock:
            read_s = self._monotonic_s()
            gone_on = self._read_at + timedelta(seconds=read_s - self._read_s)
            self._read_s, self._read_at = read_s, max(gone_on, utc_now())
            return self._read_at

    def go_on_from(self, moment: datetime) -> float:
        """Tell no time before `moment`; how many seconds the clock was behind it, or 0."""
        behind_s = (moment - self()).total_seconds()
        with self._lock:
            self._read_at = max(self._read_at, moment)
        return max(0.0, behind_s)


# What all rooms of one run share: its plan, clock, notices, usage and journal.

Result = TypeVar("Result")

# Clocks of two machines differ by less.
TOLD_BEHIND_S = 1.0


class RunScope:
    """Its own of each run, beside the services that runs share.

    `plan`, `keys` and `started_at` are those of a new run until it is taken up: an earlier process
    may have begun it. `acquired` and `log` are `None` until then. `prepared` is what the provider
    has read beforehand, or why it could not. `is_journal_shown` tells whether the document that
    people get to see has a journal.
    """

    def __init__(
        self,
        plan: Plan,
        listener: Listener,
        cancel_token: CancelToken,
        services: Services,
        *,
        is_journal_shown: bool = True,
    ) -> None:
        self.plan = plan
        self.listener = listener
        self.cancel_token = cancel_token
        self.services = services
        self.is_journal_shown = is_journal_shown
        self.keys = plan.keys(plan.run_id or _new_run_id())
        self.usage_tracker = UsageTracker(plan.benchmark.cast.roles)
        self.notices: list[str] = []
        self._noticing = threading.RLock()
        self.now = SteadyClock(monotonic_s=cancel_token.monotonic_s)
        self.started_at: datetime = self.now()
        self._started_s = cancel_token.monotonic_s()
        self.acquired: AcquiredRun | None = None
        self.log: Log | None = None
        self.prepared: Prepared = None

    @property
    def config(self) -> RunConfig:
        return self.plan.config

    @property
    def taken_up(self) -> tuple[AcquiredRun, Log]:
        """Once it is."""
        assert self.acquired and self.log  # noqa: S101, PT018 -- taken up before it is played
        return self.acquired, self.log

    def in_time(self, work: Callable[[], Result]) -> Result:
        """See `Services.in_time`."""
        return self.services.in_time(work, self.cancel_token)

    def elapsed_s(self) -> float:
        return self.cancel_token.monotonic_s() - self._started_s

    def take_up(self, acquired: AcquiredRun) -> None:
        """From here on this is the acquired run, which an earlier process may have begun."""
        self.acquired, self.plan = acquired, acquired.plan
        self.keys = self.plan.keys(acquired.run_id)
        self.started_at = acquired.started_at
        replay_log = acquired.replay_log
        self.notices.extend(replay_log.notices)
        behind_s = self.now.go_on_from(replay_log.times.latest)
        if behind_s >= TOLD_BEHIND_S:
            self.passing_notice(
                f"The clock is {behind_s:.0f} s behind the run's last entry: its times go on from "
                "that entry."
            )
        self.usage_tracker.take_over(replay_log, self.plan.models)
        self.log = Log(
            acquired.journal,
            now=self.now,
            elapsed_s=self.elapsed_s,
            on_failure=self.cancel_token.end,
        )
        if replay_log.n_answers:
            self.listener.on_notice(
                f"{counted(replay_log.n_answers, 'call')} of {acquired.run_id} answered before: "
                "taken over, and not made again."
            )

    def tell_start(self, passing: Iterable[str]) -> None:
        """Tell what is played, and what people should know of it beforehand."""
        opening = self.plan.episode.opening
        self.listener.on_start(self.keys.run_id, self.config, opening)
        of_provider = load_provider(self.config.provider).notices(self.config)
        for text in (*opening.notices, *of_provider, *self.plan.jury_notices):
            self.notice(text)
        for text in passing:
            self.passing_notice(text)

    def notice(self, text: str) -> None:
        """A notice that is shown again whenever the run is resumed or printed again."""
        with self._noticing:
            if text in self.notices:
                return  # an earlier process has said so, or another call of this one
            if self.log:
                self.log.add(Noticed(text=text))
            self.passing_notice(text)

    def passing_notice(self, text: str) -> None:
        """A notice for this process only."""
        self.notices.append(text)
        self.listener.on_notice(text)

    def close(self) -> None:
        if self.log:
            self.log.close()
        self.listener.on_end()


def _new_run_id() -> str:
    from ulid import ULID

    return f"run-{ULID()}"
