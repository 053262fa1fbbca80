"""How fast requests are sent: reserved slots, at a rate that adapts to what a service allows."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Literal

from msgspec import Struct

from socratic_bench.models.busy_time import BusyTime
from socratic_bench.models.slot_line import Slot, SlotLine

# More than what quotas allow, 9,000 a minute, and little enough that the first refusal is read
# before many more requests are on their way.
START_PER_S = 150.0
SLOWEST_PER_S = 1 / 60
# What is left of a rate when it is throttled, and if nothing got through since it was narrowed.
NARROWED = 0.9
NARROWED_IN_VAIN = 0.5
# A rest; that of many callers is long enough that what gets through after it tells the quota.
REST_S, REST_OF_MANY_S = 0.1, 0.4
REST_MAX_S = 120.0
PAUSE_S = 15.0
# So many answers give back what throttling took: of one caller, of one under a rate so slow that
# each attempt is dear, of each of several callers, of all at most. More of them find a quota with
# fewer throttled requests; fewer get over throttling that is none of this program's doing sooner.
ANSWERS_ALONE, ANSWERS_SLOW, ANSWERS_OF_EACH, ANSWERS_OF_ALL = 3.5, 10, 24, 600
SLOW_PER_S = 0.7
# Callers may wait elsewhere for now: of so many as waited here, this share counts after each time.
CALLERS_KEPT = 0.9
# Where less than this share of them came before the next throttled request, half as many give back
# what it takes, and otherwise more than last time, up to the usual number.
SHARE_TOO_SOON, MORE_ANSWERS = 0.6, 1.4
# Under this share of the usual number, throttling comes whatever the rate is: others cause it.
SHARE_OF_OTHERS = 0.4
# Not more is given back than this multiple of what got through.
MOST_GIVEN_BACK = 1.2
# What was not sent in time may be sent later, for so long.
BURST_S = 0.04
# So many requests tell how fast they were sent lately.
MEASURED = 32
# Growth brings slots nearer, and some are given back: who waits for longer than this looks again.
LOOK_AGAIN_S = 5.0
ROUNDING_S = 1e-9
CHANGES_KEPT = 1000

Cause = Literal["throttled", "rested", "server_error", "answered"]
Sleep = Callable[[float], None]


class RateChange(Struct, frozen=True, kw_only=True):
    """A rate, in requests a second, from a moment on, and what made it so.

    `at_s` is of the limiter's clock. After `server_error` the rate is as before, and does not grow.
    Nobody sends for the first `rest_s`; a rest that becomes longer is a change, too (`rested`).
    """

    at_s: float
    cause: Cause
    per_s: float
    rest_s: float = 0.0


class RateLimiter:
    """Hands out slots to all who send to one model, of one provider in one region.

    Each caller sleeps until its own slot, so that nobody wakes for another's, and looks now and
    then for a sooner one that was given back; safe to use from several threads. The rate adapts: a
    throttled request narrows it to nine tenths of what got through lately, and nobody sends for a
    moment. Each answer widens it by the same amount, as long as slots are waited for: a small one
    where many callers share a quota, a larger one where there is one caller, or where throttling
    comes again and again however slowly they send. An error of the server's says nothing of quotas:
    it only stops that for `PAUSE_S`.
    """

    def __init__(
        self,
        *,
        monotonic_s: Callable[[], float],
        on_narrowed: Callable[[float, float], None] | None = None,
    ) -> None:
        self._monotonic_s = monotonic_s
        self._on_narrowed = on_narrowed
        self._lock = threading.Lock()
        self._per_s = self._before_per_s = START_PER_S
        self._step_per_s = 0.0
        self._since_s = self._grows_from_s = -inf
        # It counts at its rate, from a number that it had at a moment; a rest puts the moment off.
        self._counted, self._counted_at_s = 0.0, monotonic_s()
        self._line = SlotLine()
        self._busy = BusyTime()
        self._busy_since_s = 0.0
        # Since the rate was narrowed: at what busy time requests were sent, how many callers waited
        # together at most, how many answers came, and how many of them give back what was taken.
        self._sent_at_s: deque[float] = deque(maxlen=MEASURED)
        self._has_waited = False
        self._most_waiting, self._n_answered = 0.0, 0
        self._to_regain = inf
        self._is_of_others = self._is_told = False
        self._changes: deque[RateChange] = deque(maxlen=CHANGES_KEPT)

    @property
    def per_s(self) -> float:
        """Requests a second, as of now."""
        return self._per_s

    @property
    def changes(self) -> Sequence[RateChange]:
        """The rate's history, the latest changes of it; answers, or rests, in a row make one."""
        with self._lock:
            return tuple(self._changes)

    @property
    def wait_s(self) -> float:
        """Seconds that whoever asks for a slot now will about wait for it."""
        with self._lock:
            now_s = self._monotonic_s()
            rest_s = max(0.0, self._counted_at_s - now_s)
            return max(0.0, rest_s + (self._line.next - self._count(now_s)) / self._per_s)

    @contextmanager
    def slot(self, sleep: Sleep) -> Iterator[float]:
        """Wait for one, and send within the block; the seconds that it was waited for."""
        slept_s = self.acquire(sleep)
        try:
            yield slept_s
        finally:
            self.ended()

    def acquire(self, sleep: Sleep) -> float:
        """Wait for a slot of the caller's own; the seconds that it slept. `ended` is to follow.

        What `sleep` raises, such as the end of a run, leaves the slot to others.
        """
        slot, slept_s = self._reserve(), 0.0
        try:
            while (wait_s := self._due_in_s(slot)) > 0:
                wait_s = min(wait_s, LOOK_AGAIN_S)
                sleep(wait_s)
                slept_s += wait_s
        except BaseException:
            self._give_back(slot)
            raise
        return slept_s

    def throttled(self, *, sent_at_s: float, retry_after_s: float | None = None) -> None:
        """A request that was sent at `sent_at_s` was refused for being one too many."""
        with self._lock:
            before_per_s = self._per_s
            now_s = self._monotonic_s()
            rest_s = min(retry_after_s or 0.0, REST_MAX_S)
            self._busy.refused(now_s, rest_s)
            ends_s = max(now_s, self._counted_at_s)
            # What was under way when the rate was narrowed says nothing of the new one.
            is_news = sent_at_s >= self._since_s
            if is_news:
                usual_s = REST_S if self._is_alone or self._is_of_others else REST_OF_MANY_S
                busy_s = self._busy.at(now_s)
                last_s = self._sent_at_s[-1] if self._sent_at_s else busy_s
                self._narrow(now_s)
                rest_s = max(usual_s, last_s + 1 / self._per_s - busy_s, rest_s)
                self._is_told = retry_after_s is not None
            self._rest(now_s, rest_s)
            if is_news or self._counted_at_s > ends_s:
                self._note("throttled" if is_news else "rested", now_s)
            after_per_s = self._per_s
        if self._on_narrowed and after_per_s != before_per_s:
            self._on_narrowed(before_per_s, after_per_s)

    def ended(self) -> None:
        """A request is over: what it told was told before."""
        with self._lock:
            self._busy.ended(self._monotonic_s())

    def failed(self) -> None:
        """The server made an error."""
        with self._lock:
            now_s = self._monotonic_s()
            self._busy.refused(now_s)
            self._grows_from_s = now_s + PAUSE_S
            self._note("server_error", now_s)

    def answered(self) -> None:
        """A request got through."""
        with self._lock:
            self._n_answered += 1
            now_s = self._monotonic_s()
            is_waited_for = self._line.next > self._count(now_s)
            if is_waited_for and now_s >= self._grows_from_s:
                self._set_rate(now_s, self._per_s + self._step_per_s)
                self._note("answered", now_s)

    def _count(self, now_s: float) -> float:
        return self._counted + max(0.0, now_s - self._counted_at_s) * self._per_s

    def _set_rate(self, now_s: float, per_s: float) -> None:
        self._counted = self._count(now_s)
        self._counted_at_s = max(self._counted_at_s, now_s)
        self._per_s = per_s

    def _rest(self, now_s: float, rest_s: float) -> None:
        """Whoever is first in the line goes on when the rest is over."""
        first = self._line.first
        ends_s = max(now_s + rest_s, self._counted_at_s)
        if first <= self._count(ends_s):
            self._counted, self._counted_at_s = first, ends_s

    def _reserve(self) -> Slot:
        with self._lock:
            now_s = self._monotonic_s()
            self._busy.asked(now_s)
            count = self._count(now_s)
            slot = self._line.reserve(count, count - BURST_S * self._per_s)
            if slot.number > count:
                self._has_waited = True
                self._most_waiting = max(self._most_waiting, len(self._line))
            return slot

    def _due_in_s(self, slot: Slot) -> float:
        """Seconds until the slot is due; from then on it is used up."""
        with self._lock:
            now_s = self._monotonic_s()
            count, rest_s = self._count(now_s), max(0.0, self._counted_at_s - now_s)
            self._line.move_up(slot, count)
            wait_s = rest_s + (slot.number - count) / self._per_s
            if wait_s > ROUNDING_S:
                return wait_s
            self._line.use(slot, count)
            self._busy.sent(now_s)
            if self._since_s == -inf:
                self._measure_from(now_s)
            self._sent_at_s.append(self._busy.at(now_s))
            return 0.0

    def _give_back(self, slot: Slot) -> None:
        with self._lock:
            now_s = self._monotonic_s()
            self._line.give_back(slot, self._count(now_s))
            self._busy.gave_up(now_s)

    def _narrow(self, now_s: float) -> None:
        before_per_s = self._per_s
        if len(self._sent_at_s) > 1:
            through_per_s = min(before_per_s, self._through_per_s(now_s))
            # A rate that nobody waited for bounded nothing.
            most = MOST_GIVEN_BACK if self._has_waited else 1.0
            self._before_per_s = min(before_per_s, most * through_per_s)
            per_s = NARROWED * through_per_s
        else:
            self._before_per_s = max(self._before_per_s, before_per_s)
            per_s = NARROWED_IN_VAIN * before_per_s
        self._set_rate(now_s, max(SLOWEST_PER_S, per_s))
        self._step_per_s = (self._before_per_s - self._per_s) / self._answers_to_regain()
        self._measure_from(now_s)
        self._has_waited, self._n_answered = bool(self._line), 0
        self._most_waiting = max(len(self._line), self._most_waiting * CALLERS_KEPT)
        self._sent_at_s.clear()

    def _measure_from(self, now_s: float) -> None:
        self._since_s, self._busy_since_s = now_s, self._busy.at(now_s)

    def _through_per_s(self, now_s: float) -> float:
        """All but the one that was refused got through, as far as is known."""
        sent, until_s = self._sent_at_s, self._busy.at(now_s)
        since_s = sent[0] if len(sent) == MEASURED else self._busy_since_s
        if (self._is_alone or self._is_of_others) and not self._is_told:
            # A rest is no time in which it was slow, or a rest for nothing would slow it.
            since_s, until_s = sent[0], sent[-1]
        return (len(sent) - 1) / max(until_s - since_s, BURST_S)

    def _answers_to_regain(self) -> float:
        if self._is_alone:
            self._is_of_others = False
            # Under the slowest rate, nothing that this program does helps.
            is_slow = SLOWEST_PER_S < self._per_s < SLOW_PER_S
            return ANSWERS_SLOW if is_slow else ANSWERS_ALONE
        is_soon = self._n_answered < SHARE_TOO_SOON * self._to_regain
        likely = self._to_regain / 2 if is_soon else self._to_regain * MORE_ANSWERS
        usual = min(ANSWERS_OF_ALL, ANSWERS_OF_EACH * self._most_waiting)
        self._to_regain = max(ANSWERS_ALONE, min(usual, likely))
        self._is_of_others = self._to_regain <= SHARE_OF_OTHERS * usual
        return self._to_regain

    @property
    def _is_alone(self) -> bool:
        """Whether nobody waits for others: its rate is then no more than one caller's."""
        return self._most_waiting <= 1

    def _note(self, cause: Cause, now_s: float) -> None:
        is_more = cause in ("answered", "rested")
        if is_more and self._changes and self._changes[-1].cause == cause:
            self._changes.pop()
        rest_s = max(0.0, self._counted_at_s - now_s)
        change = RateChange(at_s=now_s, cause=cause, per_s=self._per_s, rest_s=rest_s)
        self._changes.append(change)
