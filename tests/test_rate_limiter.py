"""The adaptive rate of requests to a model, in a time that tests turn."""

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from socratic_bench.emulator.runtime import Throttle
from socratic_bench.errors import Stopped
from socratic_bench.models.adaptive_rate import (
    ANSWERS_ALONE,
    BURST_S,
    NARROWED,
    NARROWED_IN_VAIN,
    REST_MAX_S,
    REST_S,
    SLOWEST_PER_S,
    START_PER_S,
    WIDENED,
)
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.rate_limiter import RateLimiter, RateTargets, RequestSize
from socratic_bench.ports.provider import THROTTLED
from tests.shared_time import SharedTime

AT_ONCE = round(BURST_S * START_PER_S) + 1
NO_SIZE = RequestSize()
SERVER_ERROR = "server_error"


def ignore(*facts: object) -> None:
    del facts


@dataclass
class Caller:
    """One caller of a model, in a time that only its waits move on."""

    now_s: float = 1000.0
    foretold: list[float | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.limiter = RateLimiter("m", "us-east-1", monotonic_s=lambda: self.now_s)
        self.token = CancelToken(monotonic_s=lambda: self.now_s, wait=self.wait)

    def wait(self, futures: "list[Future[Any]]", timeout_s: float | None) -> None:
        del futures
        self.now_s += timeout_s or 0.0

    def request(self, takes_s: float, code: str | None = None, retry_after_s: float = 0.0) -> float:
        """Send a request, which fails by this code; the seconds that it waited."""
        slot_of = self.limiter.slot(
            NO_SIZE, self.token, lambda _, wait_s: self.foretold.append(wait_s)
        )
        with slot_of as slot:
            self.limiter.record_request(slot)
            self.now_s += takes_s
            if code is None:
                self.limiter.record_answer(slot, None)
            else:
                advice = retry_after_s or None
                self.limiter.record_failure(slot, code, maybe_billed=False, retry_after_s=advice)
        return slot.wait_s

    def call(self, takes_s: float, code: str | None = None, **how: float) -> float:
        """A call of one request."""
        with self.limiter.calling(self.token):
            return self.request(takes_s, code, **how)

    def narrowed(self, **how: float) -> "Caller":
        """Itself, after one request a second and a refusal."""
        for _ in range(10):
            self.request(1.0)
        self.request(0.0, THROTTLED, **how)
        return self


def test_a_few_requests_at_once_wait_for_nothing_and_more_are_spread():
    caller = Caller()
    waits = [caller.request(0.0) for _ in range(AT_ONCE + 200)]

    assert waits[:AT_ONCE] == [0.0] * AT_ONCE
    assert sum(waits) == pytest.approx(200 / START_PER_S, abs=0.01)


def test_throttling_narrows_the_rate_to_a_share_of_what_got_through():
    assert Caller().narrowed().limiter.per_s == pytest.approx(NARROWED)


def test_a_rate_under_which_nothing_gets_through_is_halved_down_to_a_bound():
    caller, rates = Caller().narrowed(), []
    for _ in range(12):
        caller.request(0.0, THROTTLED)
        rates.append(caller.limiter.per_s)

    expected = [NARROWED * NARROWED_IN_VAIN**number for number in range(1, 13)]
    assert rates == pytest.approx([max(SLOWEST_PER_S, rate) for rate in expected])


def test_nobody_sends_before_a_rest_is_over_and_the_wait_is_foretold():
    caller = Caller()
    for _ in range(64):
        caller.request(0.0)
    caller.request(0.0, THROTTLED)

    assert caller.request(0.0) == pytest.approx(REST_S)
    assert caller.foretold[-1] == pytest.approx(REST_S)


@pytest.mark.parametrize(("advised_s", "waited_s"), [(7.0, 7.0), (86_400.0, REST_MAX_S)])
def test_a_wait_that_the_service_asks_for_is_kept_up_to_a_bound(advised_s, waited_s):
    caller = Caller().narrowed(retry_after_s=advised_s)

    assert caller.request(0.0) == pytest.approx(waited_s)


def test_time_that_passed_otherwise_is_not_waited_again():
    caller = Caller().narrowed(retry_after_s=7.0)
    caller.now_s += 5.0

    assert caller.request(0.0) == pytest.approx(2.0)
    caller.now_s += 100.0
    assert caller.request(0.0) == 0.0


def test_requests_that_were_under_way_together_narrow_it_once():
    caller = Caller()
    slots = []
    for _ in range(5):
        with caller.limiter.slot(NO_SIZE, caller.token, ignore) as slot:
            caller.limiter.record_request(slot)
            slots.append(slot)
    caller.now_s += 1.0
    changes = [caller.limiter.record_failure(slot, THROTTLED, maybe_billed=False) for slot in slots]

    assert [change is not None for change in changes] == [True, False, False, False, False]
    assert str(changes[0]) == "m in us-east-1 throttled: 150.0 -> 90.0 requests a second"


def test_answers_widen_it_by_equal_steps_beyond_what_got_through():
    caller = Caller().narrowed()
    rates = [caller.limiter.per_s]
    for _ in range(round(2 * ANSWERS_ALONE)):
        caller.request(0.0)
        rates.append(caller.limiter.per_s)

    steps = [after - before for before, after in itertools.pairwise(rates)]
    assert steps == pytest.approx([steps[0]] * len(steps))
    assert rates[-1] == pytest.approx(NARROWED + 2 * (WIDENED - NARROWED))


def test_answers_tell_nothing_where_no_request_waits():
    caller = Caller().narrowed()
    for _ in range(100):
        caller.request(2.0)

    assert caller.limiter.per_s == pytest.approx(NARROWED)


def test_an_error_of_the_server_tells_nothing_of_quotas():
    caller = Caller().narrowed()
    rate = caller.limiter.per_s
    caller.request(0.0, SERVER_ERROR)
    assert caller.limiter.per_s == rate

    caller.request(0.0)
    assert caller.limiter.per_s > rate


def test_a_provider_a_model_and_a_region_have_one_limiter_together():
    limiters = RateTargets(monotonic_s=lambda: 0.0)
    keys = list(itertools.product(("bedrock", "other"), ("us-east-1", "eu-west-1"), ("a", "b")))

    assert len({id(limiters.of(*key)) for key in keys * 2}) == len(keys)


class Service:
    """Answers after a time, as far as its quota goes, and refuses at once beyond it."""

    def __init__(self, time: SharedTime, *, per_minute: float, answer_s: float) -> None:
        self._time, self._answer_s = time, answer_s
        self._throttle = Throttle(per_minute, lambda: time.now_s)
        self._token = time.cancel_token()
        self.limiter = RateLimiter("m", monotonic_s=lambda: time.now_s)
        self.n_answered = self.n_refused = 0

    def call(self) -> None:
        """Ask until there is an answer, as a caller with a retry does."""
        with self.limiter.calling(self._token):
            while not self._request():
                pass

    def calls(self, number: int) -> Callable[[], None]:
        """A caller of so many calls in a row."""

        def work() -> None:
            for _ in range(number):
                self.call()

        return work

    def _request(self) -> bool:
        """Whether there is an answer."""
        with self.limiter.slot(NO_SIZE, self._token, ignore) as slot:
            self.limiter.record_request(slot)
            if self._throttle.wait_ms() is None:
                self._time.sleep(self._answer_s)
                self.limiter.record_answer(slot, None)
                self.n_answered += 1
                return True
            self.n_refused += 1
            self._time.sleep(0.002)
            self.limiter.record_failure(slot, THROTTLED, maybe_billed=False)
            return False


@pytest.mark.parametrize(
    ("callers", "calls", "per_minute", "answer_s"),
    [(64, 10, 1200, 0.3), (16, 20, 300, 2.0), (128, 10, 2400, 0.1), (64, 25, 1200, 1.5)],
)
def test_many_callers_use_a_quota_up_and_are_hardly_refused(callers, calls, per_minute, answer_s):
    """No rate is given: the limiter finds it, with the burst that such a quota lets through."""
    time = SharedTime()
    service = Service(time, per_minute=per_minute, answer_s=answer_s)
    time.run([service.calls(calls)] * callers)

    least_s = (callers * calls - per_minute / 10) / (per_minute / 60)
    assert service.n_answered == callers * calls
    assert service.n_refused <= 0.03 * callers * calls
    assert time.now_s <= 1.05 * least_s + answer_s


@pytest.mark.parametrize("pause_s", [2.0, 10.0, 60.0, 600.0])
def test_a_pause_of_all_callers_does_not_count_as_slowness(pause_s):
    """A few calls, none for a while, and then many at once, which are more than the quota."""
    time = SharedTime()
    service = Service(time, per_minute=300, answer_s=0.3)
    time.run([service.calls(20)])
    time.run([lambda: time.sleep(pause_s)])
    began_s = time.now_s
    time.run([service.calls(5)] * 64)

    assert service.n_refused <= 0.03 * 64 * 5
    assert time.now_s - began_s <= 1.1 * (64 * 5 - 30) / 5


@pytest.mark.parametrize("pause_s", [30.0, 600.0])
def test_one_refusal_after_a_pause_does_not_halt_a_caller_alone(pause_s):
    caller = Caller()
    for _ in range(6):
        caller.call(1.0)
    caller.now_s += pause_s
    caller.call(0.0, THROTTLED)

    # Six calls took a second each, and a turn of at least 2 s is the most that a pause counts.
    rate = caller.limiter.per_s
    assert rate == pytest.approx(NARROWED * 6 / 8)
    assert caller.call(0.0) == pytest.approx(1 / rate, abs=BURST_S)


def test_a_wait_before_a_retry_is_no_pause():
    """A caller alone is let through once in 7.5 s; its calls take hardly any time."""
    caller = Caller()
    for _ in range(3):
        with caller.limiter.calling(caller.token):
            caller.request(0.01)
            caller.request(0.01, THROTTLED, retry_after_s=7.5)
            caller.now_s += 7.5

    assert caller.limiter.per_s <= NARROWED / 7.5


def throttled_at_random(
    callers: int, calls: int, *, share: float, seed: int, errors: float = 0.0
) -> float:
    """As by others on the same account: this share of requests, however slowly they are sent, and
    so many errors of the server beside them. How many seconds all of it takes, at 300 ms each.
    """
    chance, time = Random(seed), SharedTime()
    limiter, token = RateLimiter("m", monotonic_s=lambda: time.now_s), time.cancel_token()

    def dialogue() -> None:
        n_answered = 0
        while n_answered < calls:
            with (
                limiter.calling(token),
                limiter.slot(NO_SIZE, token, ignore) as slot,
            ):
                limiter.record_request(slot)
                time.sleep(0.3)
                drawn = chance.random()
                if drawn < share + errors:
                    code = THROTTLED if drawn < share else SERVER_ERROR
                    limiter.record_failure(slot, code, maybe_billed=False)
                else:
                    limiter.record_answer(slot, None)
                    n_answered += 1

    time.run([dialogue] * callers)
    return time.now_s


@pytest.mark.parametrize("share", [0.05, 1 / 12, 0.1, 1 / 6])
def test_throttling_that_comes_at_any_rate_hardly_slows_a_dialogue(share):
    """Eighty answers take 24 s, and what is sent again takes as long as the rest."""
    lasted_s = [throttled_at_random(1, 80, share=share, seed=seed) for seed in range(12)]

    # Most seeds need hardly more, and none is brought to a halt.
    assert max(lasted_s) < 5 * 24 / (1 - share)
    assert sorted(lasted_s)[len(lasted_s) // 2] < 1.5 * 24 / (1 - share)


@pytest.mark.parametrize(("callers", "times"), [(1, 2), (4, 3)])
def test_errors_of_the_server_beside_throttling_hardly_slow_it(callers, times):
    """Forty answers take 12 s, and what is sent again a quarter more."""
    lasted_s = [
        throttled_at_random(callers, 40, share=0.06, errors=0.15, seed=seed) for seed in range(12)
    ]

    assert max(lasted_s) < times * 12 / (1 - 0.21)


@pytest.mark.parametrize("callers", [2, 4, 16])
def test_nor_does_it_bring_several_callers_to_a_halt(callers):
    assert throttled_at_random(callers, 40, share=0.1, seed=1) < 40 * 3


@pytest.mark.parametrize("per_minute", [6, 12, 20])
def test_a_dialogue_under_a_tight_quota_is_slowed_and_burns_few_attempts(per_minute):
    """Forty calls in a row where the quota allows one in 3 to 10 s."""
    time = SharedTime()
    service = Service(time, per_minute=per_minute, answer_s=2.0)
    time.run([service.calls(40)])

    assert service.n_refused <= 20
    assert time.now_s <= 1.6 * 40 * 60 / per_minute


def test_a_storm_of_others_is_got_over_once_it_has_passed():
    caller = Caller()
    for _ in range(5):
        caller.call(1.0)
    for _ in range(8):
        caller.call(0.0, THROTTLED)
    stormed_s = caller.now_s
    for _ in range(100):
        caller.call(1.0)

    assert caller.now_s - stormed_s <= 100 + 1.1 * (1 / SLOWEST_PER_S)


def test_those_who_wait_behind_others_that_end_move_up_at_once():
    """Sixty callers at less than one request a second are told to end; three others stay."""
    time = SharedTime()
    service = Service(time, per_minute=60_000, answer_s=0.0)
    limiter, ending, staying = service.limiter, time.cancel_token(), time.cancel_token()

    def narrow() -> None:
        for _ in range(10):
            service.call()
            time.sleep(1.0)
        with limiter.slot(NO_SIZE, staying, ignore) as slot:
            limiter.record_request(slot)
            limiter.record_failure(slot, THROTTLED, maybe_billed=False)

    def leave() -> None:
        time.sleep(12.0)
        with suppress(Stopped), limiter.slot(NO_SIZE, ending, ignore) as slot:
            limiter.record_request(slot)

    def end() -> None:
        time.sleep(12.5)
        ending.end(Stopped("Enough.", end_reason="interrupted"))

    def stay() -> float:
        time.sleep(12.1)
        with limiter.slot(NO_SIZE, staying, ignore) as slot:
            limiter.record_request(slot)
            return time.now_s

    *_, first, second, third = time.run([narrow, end, *[leave] * 60, *[stay] * 3])
    moments, spacing_s = sorted((first, second, third)), 1 / limiter.per_s

    assert moments[0] <= 12.5 + spacing_s
    apart = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert apart == pytest.approx([spacing_s] * 2)
