"""A rate of requests that adapts to a quota which nobody knows.

Throttling narrows the rate to a little less than what got through lately, and nobody sends for a
moment. Answers widen it again while requests wait for it: slowly where many callers share a quota,
quickly where there is one caller, or where throttling comes however slowly they send.
"""

from collections import deque
from math import inf

from msgspec import Struct

# More than what quotas allow, 9,000 requests a minute, and little enough that the first refusal is
# read before many more requests are on their way.
START_PER_S = 150.0
SLOWEST_PER_S = 1 / 60
BURST_S = 0.04  # requests that were not sent in time may be sent later, for so long
N_MEASURED = 32  # so many requests tell how fast they were sent lately

# What throttling leaves of the rate that got through, or of the rate itself if nothing got through
# since the last time; and up to which multiple of the former answers widen it.
NARROWED, NARROWED_IN_VAIN, WIDENED = 0.9, 0.5, 1.2
# So many answers do: of one caller, of one at less than `SLOW_PER_S`, of each of several callers,
# of all at most. More answers find a quota with fewer refusals; fewer get over throttling sooner
# that other programs cause.
ANSWERS_ALONE, ANSWERS_SLOW, ANSWERS_OF_EACH, ANSWERS_OF_ALL = 3.5, 10.0, 24.0, 600.0
SLOW_PER_S = 0.7
# If less than this share of them came before the next throttling, half as many do, else more again;
# at less than `SHARE_OF_OTHERS` of the usual number throttling comes whatever the rate is.
SHARE_TOO_SOON, MORE_ANSWERS, SHARE_OF_OTHERS = 0.6, 1.4, 0.4
CALLERS_KEPT = 0.9  # of so many as waited together, this share counts after each throttling

# Nobody sends for so long after throttling, of one caller and of several; a service may ask for
# more, up to the last.
REST_S, REST_OF_MANY_S, REST_MAX_S = 0.1, 0.4, 120.0
# Between two calls a caller may be at other models for as long as so many requests take, and at
# least this: a longer pause tells nothing of a quota.
TURN_REQUESTS, TURN_S = 2, 2.0
REQUESTS_AVERAGED = 16


class RateNarrowed(Struct, frozen=True, kw_only=True):
    """Throttling has narrowed the rate of requests to a model, here in requests a second."""

    model_id: str
    region: str
    before_per_s: float
    after_per_s: float

    def __str__(self) -> str:
        where = f" in {self.region}" if self.region else ""
        rates = (self.before_per_s, self.after_per_s)
        before, after = (f"{per_s:.1f}" if per_s >= 1 else f"{per_s:.3f}" for per_s in rates)
        return f"{self.model_id}{where} throttled: {before} -> {after} requests a second"


class AdaptiveRate:
    """Requests a second to one model; for one thread at a time. Every moment is the caller's
    `now_s`, of a clock that never goes back.
    """

    def __init__(self) -> None:
        self.per_s = self._base_per_s = START_PER_S
        self._step_per_s = 0.0
        self._last_s = self._rests_until_s = -inf
        # Since the rate was narrowed: when that was, when requests were sent, how many answers
        # came, how many widen it, and how many callers waited together at most.
        self._narrowed_at_s, self._measured_from_s = -inf, 0.0
        self._sent_at_s: deque[float] = deque(maxlen=N_MEASURED)
        self._n_answers, self._n_to_widen = 0, inf
        self._most_waiting = 0.0
        self._is_of_others = False
        # Pauses, in which no call is under way, do not count as time in which little got through.
        self._n_calls, self._left_at_s, self._pauses_s = 0, inf, 0.0
        self._request_s = 0.0

    def begin_call(self, now_s: float) -> None:
        """A call begins, with its waits and retries."""
        if not self._n_calls:
            turn_s = max(TURN_S, TURN_REQUESTS * self._request_s)
            self._pauses_s += max(0.0, now_s - self._left_at_s - turn_s)
        self._n_calls += 1

    def end_call(self, now_s: float) -> None:
        """A call is over."""
        self._n_calls -= 1
        self._left_at_s = now_s

    def due_s(self) -> float:
        """When the next request may be sent."""
        return max(self._last_s + 1 / self.per_s, self._rests_until_s)

    def note_waiting(self, n_waiting: int) -> None:
        """So many requests wait by now."""
        self._most_waiting = max(self._most_waiting, n_waiting)

    def take(self, now_s: float) -> None:
        """The next request is admitted."""
        self._last_s = max(self.due_s(), now_s - BURST_S)

    def record_request(self, now_s: float) -> None:
        """A request is sent."""
        if not self._sent_at_s and self._narrowed_at_s == -inf:
            self._measured_from_s = self._busy_s(now_s)
        self._sent_at_s.append(self._busy_s(now_s))

    def record_duration(self, now_s: float, sent_at_s: float) -> None:
        """A request that was sent then was answered, or failed."""
        self._request_s += (now_s - sent_at_s - self._request_s) / REQUESTS_AVERAGED

    def record_answer(self, now_s: float) -> None:
        """A request got through; the rate grows if another one would have to wait."""
        self._n_answers += 1
        if self.due_s() > now_s:
            self.per_s += self._step_per_s

    def record_throttling(
        self, now_s: float, sent_at_s: float, retry_after_s: float | None, n_waiting: int
    ) -> None:
        """A request that was sent then was one too many; so many others wait."""
        rest_s = min(retry_after_s or 0.0, REST_MAX_S)
        # What was under way when the rate was narrowed says nothing of the new one.
        if sent_at_s >= self._narrowed_at_s:
            rest_s = max(rest_s, REST_S if self._is_unshared else REST_OF_MANY_S)
            self._narrow(now_s, n_waiting, is_advised=retry_after_s is not None)
        self._rests_until_s = max(self._rests_until_s, now_s + rest_s)

    def _narrow(self, now_s: float, n_waiting: int, *, is_advised: bool) -> None:
        if len(self._sent_at_s) > 1:
            through_per_s = min(self.per_s, self._through_per_s(now_s, is_advised=is_advised))
            self._base_per_s = min(self.per_s, WIDENED * through_per_s)
            per_s = NARROWED * through_per_s
        else:
            self._base_per_s = max(self._base_per_s, self.per_s)
            per_s = NARROWED_IN_VAIN * self.per_s
        self.per_s = max(SLOWEST_PER_S, per_s)
        self._n_to_widen = self._answers_to_widen()
        self._step_per_s = (self._base_per_s - self.per_s) / self._n_to_widen
        self._narrowed_at_s, self._measured_from_s = now_s, self._busy_s(now_s)
        self._most_waiting = max(n_waiting, self._most_waiting * CALLERS_KEPT)
        self._n_answers = 0
        self._sent_at_s.clear()

    def _through_per_s(self, now_s: float, *, is_advised: bool) -> float:
        """How fast requests got through: all but the one that was refused, as far as is known."""
        sent, until_s = self._sent_at_s, self._busy_s(now_s)
        since_s = sent[0] if len(sent) == N_MEASURED else self._measured_from_s
        if self._is_unshared and not is_advised:
            # A rest is no time in which it was slow, or a rest for nothing would slow it.
            since_s, until_s = sent[0], sent[-1]
        return (len(sent) - 1) / max(until_s - since_s, BURST_S)

    def _answers_to_widen(self) -> float:
        if self._most_waiting <= 1:
            self._is_of_others = False
            # Under the slowest rate, nothing that this program does helps.
            is_slow = SLOWEST_PER_S < self.per_s < SLOW_PER_S
            return ANSWERS_SLOW if is_slow else ANSWERS_ALONE
        usual = min(ANSWERS_OF_ALL, ANSWERS_OF_EACH * self._most_waiting)
        is_soon = self._n_answers < SHARE_TOO_SOON * self._n_to_widen
        likely = self._n_to_widen / 2 if is_soon else self._n_to_widen * MORE_ANSWERS
        n_answers = max(ANSWERS_ALONE, min(usual, likely))
        self._is_of_others = n_answers <= SHARE_OF_OTHERS * usual
        return n_answers

    @property
    def _is_unshared(self) -> bool:
        """Whether the rate is one caller's, or is not what throttling depends on."""
        return self._most_waiting <= 1 or self._is_of_others

    def _busy_s(self, now_s: float) -> float:
        """The time without pauses."""
        return now_s - self._pauses_s
