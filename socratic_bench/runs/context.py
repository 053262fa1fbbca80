"""What every step of a run may use: its plan, clock, notices, listener, token and services."""

import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from ulid import ULID

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.journal import Noticed
from socratic_bench.journal.log import Log
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.events import CallEvent, UsageTracker
from socratic_bench.ports.benchmark import Sample
from socratic_bench.runs.prepare import Plan
from socratic_bench.runs.services import Services
from socratic_bench.settings import CoreConfig
from socratic_bench.storage.keys import RunKeys
from socratic_bench.turns import Turn


class Listener:
    """Hears of a run while it goes on, from any thread; must neither block nor raise. This one
    ignores everything; subclasses override what they want to hear.
    """

    def on_resume(self) -> None:
        """The run that starts next was begun by an earlier process."""

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None: ...

    def on_call(self, event: CallEvent) -> None: ...

    def on_wait(self, what: str) -> None:
        """The run now waits for something other than calls; empty: it waits no longer."""

    def on_turn(self, turn: Turn) -> None: ...

    def on_judged(self, turn: Turn) -> None: ...

    def on_notice(self, text: str) -> None: ...

    def on_end(self) -> None: ...


class SteadyClock:
    """The time of day (UTC) of one run, which never goes back even if the machine's clock does.
    `monotonic_s` counts seconds from anywhere, at the pace of real time.
    """

    def __init__(self, *, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._begun_s = self._read_s = monotonic_s()
        self._read_at = utc_now()

    def __call__(self) -> datetime:
        """The time of day; safe to use from several threads."""
        with self._lock:
            read_s = self._monotonic_s()
            expected_at = self._read_at + timedelta(seconds=read_s - self._read_s)
            self._read_s, self._read_at = read_s, max(expected_at, utc_now())
            return self._read_at

    def elapsed_s(self) -> float:
        """Seconds since the clock was made."""
        return self._monotonic_s() - self._begun_s

    def advance_to(self, moment: datetime) -> float:
        """Tell no time before `moment` from now on; returns how many seconds it was behind."""
        behind_s = (moment - self()).total_seconds()
        with self._lock:
            self._read_at = max(self._read_at, moment)
        return max(0.0, behind_s)


class Notices:
    """What people should know of one run, in the order in which it came up. Safe to use from
    several threads.
    """

    def __init__(self, listener: Listener) -> None:
        self.texts: list[str] = []
        self._listener = listener
        self._lock = threading.RLock()
        self._log: Log | None = None

    def keep_in(self, log: Log, earlier: Iterable[str]) -> None:
        """From now on keep lasting notices in the run's journal, which has these `earlier` ones."""
        self.texts.extend(earlier)
        self._log = log

    def add(self, text: str) -> None:
        """A lasting notice: it is shown again whenever the run is resumed or printed again."""
        with self._lock:
            if text in self.texts:
                return  # an earlier process or another call has added it
            if self._log:
                self._log.add(Noticed(text=text))
            self.add_passing(text)

    def add_passing(self, text: str) -> None:
        """A notice for this process only."""
        self.texts.append(text)
        self._listener.on_notice(text)


class RunContext(Struct, frozen=True, kw_only=True):
    """What every step of one run may use, beside the services that runs share.

    Plan, id and start are those of a new run, until it turns out that an earlier one is resumed:
    `resume.start_run` returns the context that is used from then on.

    Attributes:
        is_journal_shown: whether the document that people see has a journal to resume from.
    """

    plan: Plan
    run_id: str
    started_at: datetime
    listener: Listener
    cancel_token: CancelToken
    services: Services
    clock: SteadyClock
    notices: Notices
    usage_tracker: UsageTracker
    is_journal_shown: bool = True

    @property
    def config(self) -> RunConfig:
        return self.plan.config

    @property
    def keys(self) -> RunKeys:
        """The names of the run's files."""
        return self.plan.keys(self.run_id)


def new_context(
    plan: Plan,
    listener: Listener,
    cancel_token: CancelToken,
    services: Services,
    *,
    is_journal_shown: bool,
) -> RunContext:
    """The context of a new run, which starts now."""
    clock = SteadyClock(monotonic_s=cancel_token.monotonic_s)
    return RunContext(
        plan=plan,
        run_id=plan.run_id or f"run-{ULID()}",
        started_at=clock(),
        listener=listener,
        cancel_token=cancel_token,
        services=services,
        clock=clock,
        notices=Notices(listener),
        usage_tracker=UsageTracker(plan.benchmark.cast.roles),
        is_journal_shown=is_journal_shown,
    )


def utc_now() -> datetime:
    return datetime.now(UTC)
