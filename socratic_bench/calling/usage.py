"""Every call of a run that ended, by actor and model."""

import threading
from collections.abc import Mapping, Sequence

from socratic_bench.calling.events import (
    CallAnswered,
    CallBegan,
    CallEvent,
    CallFailed,
    CallReplayed,
)
from socratic_bench.documents.usage import RoleUsage
from socratic_bench.types import Attempt, Completion, Role


class UsageTracker:
    """Listens to the calls of a run; safe to use from several threads."""

    def __init__(self, roles: Sequence[Role]) -> None:
        self._lock = threading.Lock()
        self._completions: dict[Role, list[Completion]] = {role: [] for role in roles}
        self._failed: dict[Role, list[Attempt]] = {role: [] for role in roles}
        self._under_way = 0
        self._settled = threading.Condition(self._lock)

    def hear(self, event: CallEvent) -> None:
        with self._lock:
            self._take(event)

    def settle(self, timeout_s: float) -> None:
        """Wait until no call is under way: when a run is ended, each still notes its attempts."""
        with self._lock:
            self._settled.wait_for(lambda: self._under_way == 0, timeout_s)

    def add_failed(self, role: Role, *attempts: Attempt) -> None:
        with self._lock:
            self._failed[role].extend(attempts)

    def tallies(self) -> Mapping[Role, RoleUsage]:
        with self._lock:
            return {
                role: RoleUsage(completions=tuple(answered), failed=tuple(self._failed[role]))
                for role, answered in self._completions.items()
            }

    def _take(self, event: CallEvent) -> None:
        match event:
            case CallBegan():
                self._under_way += 1
            case CallReplayed(outcome=Completion() as completion):
                self._completions[event.key.role].append(completion)
            case CallReplayed(outcome=error):
                self._failed[event.key.role].extend(error.attempts)
            case CallAnswered():
                self._completions[event.key.role].append(event.completion)
                self._end()
            case CallFailed():
                self._failed[event.key.role].extend(event.error.attempts)
                self._end()
            case _:
                pass

    def _end(self) -> None:
        self._under_way -= 1
        self._settled.notify_all()
