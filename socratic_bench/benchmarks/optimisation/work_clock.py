"""Working time of an agent: the time of day without waits for throttled or limited calls."""

import threading
from collections.abc import Callable

from socratic_bench.models.events import (
    AttemptBegan,
    AttemptFailed,
    CallAnswered,
    CallBegan,
    CallEvent,
    CallFailed,
)
from socratic_bench.types import CallKey


class WorkClock:
    """A stopwatch that stands still while all calls in progress wait for their next request.

    It listens to the agent's calls, from any thread.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._calls: set[CallKey] = set()
        self._requests: set[CallKey] = set()
        self._worked_s = 0.0
        self._since_s = monotonic_s()

    @property
    def worked_s(self) -> float:
        with self._lock:
            self._advance()
            return self._worked_s

    def set_worked(self, seconds: float) -> None:
        """Go on from what an earlier process had taken."""
        with self._lock:
            self._advance()
            self._worked_s = max(self._worked_s, seconds)

    def on_call(self, event: CallEvent) -> None:
        with self._lock:
            self._advance()
            match event:
                case CallBegan():
                    self._calls.add(event.key)
                case AttemptBegan():
                    self._requests.add(event.key)
                case AttemptFailed():
                    self._requests.discard(event.key)
                case CallAnswered() | CallFailed():
                    self._calls.discard(event.key)
                    self._requests.discard(event.key)
                case _:
                    pass

    def _advance(self) -> None:
        now_s = self._monotonic_s()
        if self._requests or not self._calls:
            self._worked_s += now_s - self._since_s
        self._since_s = now_s
