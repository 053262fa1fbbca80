"""How fast a run sends: without a limit until the service throttles it, then at one shared rate."""

import threading
from collections.abc import Callable

from socratic_bench.retrying import SERVER_WAIT_MAX_S

GAP_FIRST_S = 0.25
GAP_MAX_S = 60.0
GAP_CLEAR_S = 0.02
# A larger number finds a quota with fewer throttled requests; a smaller one recovers sooner from
# throttling caused by other programs on the same account.
ANSWERS_TO_DOUBLE = 10


class RateLimiter:
    """The gap between two requests, for all that send to one account.

    A throttled request widens the gap: by half, or to twice as much if nothing was answered since
    it was widened last. Each answer adds a tenth of the rate of that time, so that a quota is
    found from below (additive increase, multiplicative decrease). A gap under `GAP_CLEAR_S` is
    none. After a throttled request nobody sends until the gap, or the server's wait, is over.
    """

    def __init__(self, *, monotonic_s: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._lock = threading.Lock()
        self._gap_s = 0.0
        self._widened_to_s = 0.0
        self._widened_at_s = float("-inf")
        self._open_at_s = float("-inf")
        self._answered_since = False

    def enter(self) -> float:
        """Wait until it is this caller's turn to send; the seconds that it slept."""
        slept_s = 0.0
        while self._gap_s and (wait_s := self._turn_in_s()) > 0:
            self._sleep(wait_s)
            slept_s += wait_s
        return slept_s

    def throttled(self, *, sent_at_s: float, asked_s: float | None) -> None:
        """A request that was sent at `sent_at_s` was refused for being one too many."""
        with self._lock:
            now_s = self._monotonic_s()
            # Requests sent before the gap was widened say nothing about the new gap.
            if sent_at_s >= self._widened_at_s:
                self._widen(now_s)
            rest_s = self._gap_s if asked_s is None else min(asked_s, SERVER_WAIT_MAX_S)
            self._open_at_s = max(self._open_at_s, now_s + rest_s)

    def answered(self) -> None:
        """A request got through."""
        if not self._gap_s:
            return
        with self._lock:
            self._answered_since = True
            gap_s = self._gap_s / (1 + self._gap_s / (self._widened_to_s * ANSWERS_TO_DOUBLE))
            self._gap_s = gap_s if gap_s > GAP_CLEAR_S else 0.0

    def _turn_in_s(self) -> float:
        """Seconds until the next request may go; 0 if this one may, and then it has its turn."""
        with self._lock:
            now_s = self._monotonic_s()
            if now_s < self._open_at_s:
                return self._open_at_s - now_s
            self._open_at_s = now_s + self._gap_s
            return 0.0

    def _widen(self, now_s: float) -> None:
        factor = 1.5 if self._answered_since else 2.0
        self._gap_s = min(GAP_MAX_S, max(GAP_FIRST_S, self._gap_s * factor))
        self._widened_to_s, self._widened_at_s = self._gap_s, now_s
        self._answered_since = False
