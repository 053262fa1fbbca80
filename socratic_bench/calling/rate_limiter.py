"""How fast requests are sent: reserved slots, at a rate that adapts to what a service allows."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

# More than what quotas allow, 9,000 a minute, and little enough that the first refusal is read
# before many more requests are on their way.
START_PER_S = 150.0
SLOWEST_PER_S = 1 / 60
# What is left of a rate when it is throttled, and if nothing got through since it was narrowed.
NARROWED = 0.9
NARROWED_IN_VAIN = 0.5
# Long enough that what gets through after it tells the quota.
REST_S = 0.5
REST_MAX_S = 120.0
PAUSE_S = 15.0
# So many answers give back what throttling took. More of them find a quota with fewer throttled
# requests; fewer of them get over throttling that is none of this program's doing sooner.
ANSWERS_TO_REGAIN = 400
# A rate of up to one request a second grows by this share of itself with each answer, however
# little was taken from it last: 400 answers would take it minutes or hours.
GROWTH = 0.1
# At such rates a single dialogue sends by itself: the rest before its first request counts not as
# time in which it was slowed, or throttling now and then would bring it to a halt.
DIALOGUES_PER_S = (0.5, 4.0)
# What was not sent in time may be sent later, for so long.
BURST_S = 0.04
# So many requests tell how fast they were sent lately.
MEASURED = 32
CHANGES_KEPT = 1000

Cause = Literal["throttled", "server_error", "answered"]
Sleep = Callable[[float], None]


class RateChange(Struct, frozen=True, kw_only=True):
    """A rate, in requests a second, from a moment on, and what made it so.

    `at_s` is of the limiter's clock. After `server_error` the rate is as before, and does not grow.
    """

    at_s: float
    cause: Cause
    per_s: float


class _Slot(Struct, eq=False):
    """When its caller may send; throttling meanwhile puts it off."""

    at_s: float


class RateLimiter:
    """Hands out slots to all who send to one model, of one provider in one region.

    Each caller sleeps until its own slot, so that nobody wakes for another's; safe to use from
    several threads. The rate adapts: a throttled request narrows it to nine tenths of what got
    through lately, and nobody sends for a moment. Each answer widens it by the same amount, as long
    as slots are waited for. An error of the server's says nothing of quotas: it only stops that for
    `PAUSE_S`.
    """

    def __init__(self, *, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._per_s = self._before_per_s = START_PER_S
        self._step_per_s = START_PER_S / ANSWERS_TO_REGAIN
        self._last_at_s = self._since_s = self._grows_from_s = float("-inf")
        self._waiting: set[_Slot] = set()
        self._given_back: set[_Slot] = set()
        self._sent_at_s: deque[float] = deque(maxlen=MEASURED)
        self._changes: deque[RateChange] = deque(maxlen=CHANGES_KEPT)

    @property
    def per_s(self) -> float:
        """Requests a second, as of now."""
        return self._per_s

    @property
    def changes(self) -> Sequence[RateChange]:
        """The rate's history, the latest changes of it; answers in a row make one change."""
        with self._lock:
            return tuple(self._changes)

    def acquire(self, sleep: Sleep) -> float:
        """Wait for a slot of the caller's own; the seconds that it slept.

        What `sleep` raises, such as the end of a run, leaves the slot to others.
        """
        slot, slept_s = self._reserve(), 0.0
        try:
            while (wait_s := self._due_in_s(slot)) > 0:
                sleep(wait_s)
                slept_s += wait_s
        except BaseException:
            self._give_back(slot)
            raise
        return slept_s

    def throttled(self, *, sent_at_s: float, retry_after_s: float | None = None) -> None:
        """A request that was sent at `sent_at_s` was refused for being one too many."""
        with self._lock:
            now_s, before_per_s = self._monotonic_s(), self._per_s
            rest_s = min(retry_after_s or 0.0, REST_MAX_S)
            # What was under way when the rate was narrowed says nothing of the new one.
            if sent_at_s >= self._since_s:
                self._narrow(now_s)
                rest_s = max(REST_S, 1 / self._per_s, rest_s)
            self._put_off(now_s, rest_s, before_per_s / self._per_s)

    def failed(self) -> None:
        """The server made an error."""
        with self._lock:
            now_s = self._monotonic_s()
            self._grows_from_s = now_s + PAUSE_S
            self._note("server_error", now_s)

    def answered(self) -> None:
        """A request got through."""
        with self._lock:
            now_s = self._monotonic_s()
            is_waited_for = self._next_at_s > now_s
            if is_waited_for and now_s >= self._grows_from_s:
                self._per_s += self._step_per_s
                self._note("answered", now_s)

    @property
    def _next_at_s(self) -> float:
        return self._last_at_s + 1 / self._per_s

    def _reserve(self) -> _Slot:
        with self._lock:
            now_s = self._monotonic_s()
            open_again = [slot for slot in self._given_back if slot.at_s > now_s]
            slot = min(open_again, key=lambda one: one.at_s, default=None)
            if slot is None:
                slot = _Slot(max(self._next_at_s, now_s - BURST_S))
                self._last_at_s = slot.at_s
            self._given_back = {one for one in open_again if one is not slot}
            self._waiting.add(slot)
            return slot

    def _due_in_s(self, slot: _Slot) -> float:
        """Seconds until the slot is due; from then on it is used up."""
        with self._lock:
            now_s = self._monotonic_s()
            if slot.at_s <= now_s:
                self._waiting.remove(slot)
                self._since_s = now_s if self._since_s == float("-inf") else self._since_s
                self._sent_at_s.append(now_s)
            return slot.at_s - now_s

    def _give_back(self, slot: _Slot) -> None:
        with self._lock:
            self._waiting.remove(slot)
            self._given_back.add(slot)

    def _narrow(self, now_s: float) -> None:
        sent = self._sent_at_s
        if len(sent) > 1:
            is_full, per_s = len(sent) == MEASURED, self._per_s
            is_dialogues = DIALOGUES_PER_S[0] <= per_s < DIALOGUES_PER_S[1]
            since_s = sent[0] if is_full or is_dialogues else self._since_s
            # All but the one that was refused got through, as far as is known.
            through_per_s = (len(sent) - 1) / max(now_s - since_s, BURST_S)
            self._before_per_s = self._per_s
            per_s = NARROWED * min(self._per_s, through_per_s)
        else:
            per_s = NARROWED_IN_VAIN * self._per_s
        self._per_s = max(SLOWEST_PER_S, per_s)
        least_per_s = GROWTH * min(self._per_s, self._per_s**-3)
        taken_per_s = self._before_per_s - self._per_s
        self._step_per_s = max(least_per_s, taken_per_s / ANSWERS_TO_REGAIN)
        self._since_s = now_s
        sent.clear()
        self._note("throttled", now_s)

    def _put_off(self, now_s: float, rest_s: float, stretch: float) -> None:
        """Spread what was reserved by the new rate, and have none of it before a rest is over."""
        reserved = (*self._waiting, *self._given_back)
        first_s = min((slot.at_s for slot in reserved), default=now_s)
        start_s = now_s + max(rest_s, (first_s - now_s) * stretch)
        for slot in reserved:
            slot.at_s = start_s + (slot.at_s - first_s) * stretch
        self._last_at_s = max((slot.at_s for slot in reserved), default=start_s - 1 / self._per_s)

    def _note(self, cause: Cause, now_s: float) -> None:
        if cause == "answered" and self._changes and self._changes[-1].cause == cause:
            self._changes.pop()
        self._changes.append(RateChange(at_s=now_s, cause=cause, per_s=self._per_s))


class RateLimiters:
    """One limiter for each provider, model and region; safe to use from several threads."""

    def __init__(self, *, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._limiters: dict[tuple[str, str, str], RateLimiter] = {}

    def of(self, provider: str, region: str, model_id: str) -> RateLimiter:
        """The limiter that all share who send there."""
        with self._lock:
            key = (provider, region, model_id)
            if key not in self._limiters:
                self._limiters[key] = RateLimiter(monotonic_s=self._monotonic_s)
            return self._limiters[key]
