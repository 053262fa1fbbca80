"""Every call of a run that ended, by actor and model."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from socratic_bench.errors import ModelError
from socratic_bench.journal import ReplayLog
from socratic_bench.models.events import (
    CallAnswered,
    CallBegan,
    CallEvent,
    CallFailed,
    CallReplayed,
)
from socratic_bench.turns import without_words
from socratic_bench.types import JUDGE, Attempt, Completion, Role

if TYPE_CHECKING:
    from socratic_bench.documents.usage import RoleUsage


class UsageTracker:
    """Listens to the calls of a run; safe to use from several threads."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._lock = threading.Lock()
        self._completions: dict[Role, list[Completion]] = {role: [] for role in roles}
        self._failed: dict[Role, list[Attempt]] = {role: [] for role in roles}
        self._under_way = 0
        self._settled = threading.Condition(self._lock)

    def on_call(self, event: CallEvent) -> None:
        with self._lock:
            self._take(event)

    def settle(self, timeout_s: float) -> None:
        """Wait until no call is under way: when a run is ended, each still notes its attempts."""
        with self._lock:
            self._settled.wait_for(lambda: self._under_way == 0, timeout_s)

    def take_over(self, replay_log: ReplayLog, roles: Iterable[Role]) -> None:
        """Count what earlier processes did that is not replayed: requests that failed, and calls
        about the episode as it then was, which may have gone on.
        """
        with self._lock:
            for role in roles:
                self._failed[role].extend(replay_log.failed_attempts(role))
            for key, outcome in replay_log.closing_outcomes():
                self._count(key.role, outcome)

    def tallies(self) -> "Mapping[Role, RoleUsage]":
        # Not needed before the last reply is there.
        from socratic_bench.documents.usage import RoleUsage

        with self._lock:
            return {
                role: RoleUsage(completions=tuple(answered), failed=tuple(self._failed[role]))
                for role, answered in self._completions.items()
            }

    def _take(self, event: CallEvent) -> None:
        match event:
            case CallBegan():
                self._under_way += 1
            case CallReplayed():
                if not event.key.is_closing:
                    self._count(event.key.role, event.outcome)
            case CallAnswered():
                self._count(event.key.role, event.completion)
                self._end()
            case CallFailed():
                self._failed[event.key.role].extend(event.error.attempts)
                self._end()
            case _:
                pass

    def _count(self, role: Role, outcome: Completion | ModelError) -> None:
        if isinstance(outcome, Completion):
            # A turn has the words of its actors; a verdict has what is wanted of the judge's.
            kept = without_words(outcome) if role == JUDGE else outcome
            self._completions[role].append(kept)
        else:
            self._failed[role].extend(outcome.attempts)

    def _end(self) -> None:
        self._under_way -= 1
        self._settled.notify_all()
