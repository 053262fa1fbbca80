"""Slots for requests at a rate that adapts, in a time that tests turn."""

import itertools
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import pytest

from socratic_bench.emulator.throttle import Throttle
from socratic_bench.models.rate_limiter import (
    ANSWERS_ALONE,
    BURST_S,
    LOOK_AGAIN_S,
    NARROWED,
    NARROWED_IN_VAIN,
    PAUSE_S,
    REST_MAX_S,
    REST_S,
    SLOWEST_PER_S,
    START_PER_S,
    RateLimiter,
)
from socratic_bench.models.rate_limiters import RateLimiters
from tests.shared_time import SharedTime

AT_ONCE = round(BURST_S * START_PER_S) + 1


@dataclass
class Clock:
    """A time that only sleeping moves on."""

    now_s: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    def limiter(self) -> RateLimiter:
        return RateLimiter(monotonic_s=lambda: self.now_s)

    def answered(self, limiter: RateLimiter, within_s: float) -> None:
        """A request that takes so long."""
        with limiter.slot(self.sleep):
            self.now_s += within_s
            limiter.answered()

    def refused(self, limiter: RateLimiter, **asked: float) -> None:
        """A request that is throttled at once."""
        with limiter.slot(self.sleep):
            limiter.throttled(sent_at_s=self.now_s, **asked)

    def throttled_at(self, limiter: RateLimiter, *, after: int, **asked: float) -> None:
        """So many requests get through, one each second, and the next one is refused."""
        for _ in range(after):
            limiter.acquire(self.sleep)
            limiter.answered()
            self.now_s += 1.0
        limiter.acquire(self.sleep)
        limiter.throttled(sent_at_s=self.now_s, **asked)
        self.slept.clear()


def slots(clock: Clock, limiter: RateLimiter, number: int) -> list[float]:
    """When so many callers in a row may send, from now on."""
    began_s = clock.now_s
    moments = []
    for _ in range(number):
        limiter.acquire(clock.sleep)
        moments.append(clock.now_s - began_s)
    return moments


def test_a_few_calls_at_once_wait_for_nothing():
    clock = Clock()

    assert slots(clock, clock.limiter(), AT_ONCE) == pytest.approx([0.0] * AT_ONCE, abs=1e-6)


def test_more_of_them_are_spread_so_that_a_refusal_is_heard_before_all_are_on_their_way():
    clock = Clock()
    moments = slots(clock, clock.limiter(), 200 + AT_ONCE)

    assert moments[-1] == pytest.approx(200 / START_PER_S)


def test_throttling_narrows_the_rate_to_a_share_of_what_got_through():
    clock = Clock()
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10)

    assert limiter.per_s == pytest.approx(NARROWED)


def test_a_rate_under_which_nothing_gets_through_is_halved_down_to_a_bound():
    clock = Clock()
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10)
    rates = []
    for _ in range(12):
        limiter.acquire(clock.sleep)
        limiter.throttled(sent_at_s=clock.now_s)
        rates.append(limiter.per_s)

    expected = [NARROWED * NARROWED_IN_VAIN**number for number in range(1, 13)]
    assert rates == pytest.approx([max(SLOWEST_PER_S, rate) for rate in expected])


def test_nobody_sends_before_the_rest_is_over():
    clock = Clock()
    limiter = clock.limiter()
    slots(clock, limiter, 64)
    limiter.throttled(sent_at_s=clock.now_s)

    assert limiter.acquire(clock.sleep) == pytest.approx(REST_S)


def test_nobody_sends_before_the_servers_wait_is_over():
    clock = Clock()
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10, retry_after_s=7.0)

    assert slots(clock, limiter, 3) == pytest.approx([7.0, 7.0 + 1 / 0.9, 7.0 + 2 / 0.9])


def test_an_absurd_wait_of_the_servers_is_bounded():
    clock = Clock()
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10, retry_after_s=86_400.0)

    assert limiter.acquire(clock.sleep) == pytest.approx(REST_MAX_S)


def test_a_wait_is_foretold():
    clock = Clock()
    limiter = clock.limiter()
    before_s = limiter.wait_s
    clock.throttled_at(limiter, after=10, retry_after_s=7.0)

    assert before_s == 0.0
    assert limiter.wait_s == pytest.approx(7.0)
    assert slots(clock, limiter, 1) == pytest.approx([7.0])
    assert limiter.wait_s == pytest.approx(1 / limiter.per_s)


def test_time_that_passed_otherwise_is_not_waited_again():
    clock = Clock()
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10, retry_after_s=7.0)
    clock.now_s += 5.0

    assert limiter.acquire(clock.sleep) == pytest.approx(2.0)
    clock.now_s += 100.0
    assert limiter.acquire(clock.sleep) == 0.0


def test_requests_that_were_under_way_together_narrow_it_once():
    clock = Clock()
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10)
    sent_at_s, rate = clock.now_s - 0.01, limiter.per_s
    for _ in range(5):
        limiter.throttled(sent_at_s=sent_at_s)

    assert limiter.per_s == rate
    assert [change.cause for change in limiter.changes].count("throttled") == 1


def test_answers_give_back_what_throttling_took_all_by_the_same_step():
    clock = Clock()
    limiter = clock.limiter()
    slots(clock, limiter, 64)
    full = limiter.per_s
    limiter.throttled(sent_at_s=clock.now_s)
    rates = [limiter.per_s]
    for _ in range(round(2 * ANSWERS_ALONE)):
        limiter.acquire(clock.sleep)
        limiter.answered()
        rates.append(limiter.per_s)

    steps = [after - before for before, after in itertools.pairwise(rates)]
    assert steps == pytest.approx([steps[0]] * len(steps))
    assert rates[-1] - rates[0] == pytest.approx(2 * (full - rates[0]))


def test_answers_tell_nothing_where_nobody_waits_for_a_slot():
    clock = Clock()
    limiter = clock.limiter()
    for _ in range(100):
        limiter.acquire(clock.sleep)
        clock.now_s += 1.0
        limiter.answered()

    assert limiter.per_s == START_PER_S


def test_an_error_of_the_server_only_stops_the_growth_for_a_while():
    clock = Clock()
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10)
    rate = limiter.per_s
    limiter.failed()
    ends_s = clock.now_s + PAUSE_S
    while clock.now_s < ends_s:
        assert limiter.per_s == rate
        limiter.acquire(clock.sleep)
        limiter.answered()

    assert limiter.per_s > rate


def test_each_change_can_be_read_with_its_moment_and_its_cause():
    clock = Clock(now_s=0.0)
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10)
    slots(clock, limiter, 2)
    for _ in range(3):
        limiter.answered()
    limiter.failed()
    told = [(change.at_s, change.cause, change.per_s) for change in limiter.changes]

    step = (1.0 - NARROWED) / ANSWERS_ALONE  # one got through each second
    rested_s = 10 + 2 / NARROWED
    assert told == [
        (10.0, "throttled", pytest.approx(NARROWED)),
        (pytest.approx(rested_s), "answered", pytest.approx(NARROWED + 3 * step)),
        (pytest.approx(rested_s), "server_error", pytest.approx(NARROWED + 3 * step)),
    ]


def test_a_rest_that_becomes_longer_can_be_read_without_a_change_of_the_rate():
    clock = Clock(now_s=0.0)
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10)
    under_way_s, rest_s = clock.now_s - 0.5, 1 / NARROWED
    for retry_after_s in (None, 0.5, 5.0, 4.0, 9.0):
        limiter.throttled(sent_at_s=under_way_s, retry_after_s=retry_after_s)
    told = [(change.at_s, change.cause, change.per_s, change.rest_s) for change in limiter.changes]

    # Refusals of what was under way say nothing new but for the rests that they ask for.
    assert told == [
        (10.0, "throttled", pytest.approx(NARROWED), pytest.approx(rest_s)),
        (10.0, "rested", pytest.approx(NARROWED), 9.0),
    ]
    assert limiter.wait_s == pytest.approx(9.0)


def test_a_provider_a_model_and_a_region_have_one_limiter_together():
    limiters = RateLimiters(monotonic_s=lambda: 0.0)
    keys = list(itertools.product(("bedrock", "other"), ("a", "b"), ("us-east-1", "eu-west-1")))

    assert len({id(limiters.of(*key)) for key in keys * 2}) == len(keys)


class Service:
    """Answers after a time, as far as its quota goes, and refuses at once beyond it."""

    def __init__(self, time: SharedTime, *, per_minute: float, answer_s: float) -> None:
        self._time = time
        self._answer_s = answer_s
        self._throttle = Throttle(per_minute, lambda: time.now_s)
        self.n_answered = self.n_refused = 0

    def call(self, limiter: RateLimiter) -> None:
        """Ask until there is an answer, as a caller with a retry does."""
        is_answered = False
        while not is_answered:
            with limiter.slot(self._time.sleep):
                is_answered = self.send(limiter)

    def send(self, limiter: RateLimiter) -> bool:
        """Whether there is an answer."""
        sent_at_s = self._time.now_s
        if self._throttle.wait_ms() is None:
            self._time.sleep(self._answer_s)
            limiter.answered()
            self.n_answered += 1
            return True
        self.n_refused += 1
        self._time.sleep(0.002)
        limiter.throttled(sent_at_s=sent_at_s)
        return False


@pytest.mark.parametrize(
    ("callers", "calls", "per_minute", "answer_s"),
    [(64, 10, 1200, 0.3), (16, 20, 300, 2.0), (128, 10, 2400, 0.1)],
)
def test_many_callers_use_a_quota_up_and_are_hardly_refused(callers, calls, per_minute, answer_s):
    """No rate is given: the limiter finds it, with the burst that such a quota lets through."""
    time = SharedTime()
    service = Service(time, per_minute=per_minute, answer_s=answer_s)
    limiter = RateLimiter(monotonic_s=lambda: time.now_s)
    time.run([lambda: [service.call(limiter) for _ in range(calls)]] * callers)

    least_s = (callers * calls - per_minute / 10) / (per_minute / 60)
    assert service.n_answered == callers * calls
    assert service.n_refused <= 0.015 * callers * calls
    assert time.now_s <= 1.05 * least_s + answer_s
    # Each caller wakes for its own slot and its own answer, and a few times more for throttling.
    assert time.n_wakings <= callers * calls * 2 + callers * 8


@pytest.mark.parametrize("pause_s", [2.0, 10.0, 60.0, 600.0])
def test_a_pause_of_all_callers_does_not_count_as_slowness(pause_s):
    """A few calls, none for a while, and then many at once, which are more than the quota."""
    time = SharedTime()
    service = Service(time, per_minute=300, answer_s=0.3)
    limiter = RateLimiter(monotonic_s=lambda: time.now_s)
    time.run([lambda: [service.call(limiter) for _ in range(20)]])
    time.run([lambda: time.sleep(pause_s)])
    began_s = time.now_s
    time.run([lambda: [service.call(limiter) for _ in range(5)]] * 64)

    assert service.n_refused <= 0.02 * 64 * 5
    assert time.now_s - began_s <= 1.1 * (64 * 5 - 30) / 5


@pytest.mark.parametrize("pause_s", [30.0, 600.0])
def test_one_refusal_after_a_pause_does_not_halt_a_caller_alone(pause_s):
    clock = Clock()
    limiter = clock.limiter()
    for _ in range(6):
        clock.answered(limiter, within_s=1.0)
    clock.now_s += pause_s
    clock.refused(limiter)

    # Six calls took a second each, and as much as two more is the most that a pause counts.
    assert limiter.per_s == pytest.approx(NARROWED * 6 / 8)
    assert limiter.acquire(clock.sleep) == pytest.approx(1 / limiter.per_s)


def test_a_wait_before_a_retry_is_no_pause():
    """A caller alone is let through once in 7.5 s; its calls take hardly any time."""
    clock = Clock()
    limiter = clock.limiter()
    for _ in range(3):
        clock.answered(limiter, within_s=0.01)
        clock.refused(limiter, retry_after_s=7.5)
        clock.now_s += 7.5

    assert limiter.per_s <= NARROWED / 7.5


def throttled_at_random(callers: int, calls: int, *, share: float, seed: int) -> float:
    """As by others on the same account: this share of requests, however slowly they are sent. How
    many seconds all of it takes, at 300 ms each.
    """
    chance, time = Random(seed), SharedTime()
    limiter = RateLimiter(monotonic_s=lambda: time.now_s)

    def dialogue() -> None:
        n_answered = 0
        while n_answered < calls:
            limiter.acquire(time.sleep)
            sent_at_s = time.now_s
            time.sleep(0.3)
            if chance.random() < share:
                limiter.throttled(sent_at_s=sent_at_s)
            else:
                limiter.answered()
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


@pytest.mark.parametrize("callers", [2, 4, 16])
def test_nor_does_it_bring_several_callers_to_a_halt(callers):
    assert throttled_at_random(callers, 40, share=0.1, seed=1) < 40 * 3


@pytest.mark.parametrize("per_minute", [6, 12, 20])
def test_a_dialogue_under_a_tight_quota_is_slowed_and_burns_few_attempts(per_minute):
    """Forty calls in a row where the quota allows one in 3 to 10 s."""
    time = SharedTime()
    service = Service(time, per_minute=per_minute, answer_s=2.0)
    limiter = RateLimiter(monotonic_s=lambda: time.now_s)
    time.run([lambda: [service.call(limiter) for _ in range(40)]])

    assert service.n_refused <= 20
    assert time.now_s <= 1.6 * 40 * 60 / per_minute


def test_a_storm_of_others_is_got_over_once_it_has_passed():
    time = SharedTime()
    service = Service(time, per_minute=60_000, answer_s=1.0)
    limiter = RateLimiter(monotonic_s=lambda: time.now_s)

    def dialogue() -> float:
        for _ in range(5):
            service.call(limiter)
        for _ in range(8):
            limiter.acquire(time.sleep)
            limiter.throttled(sent_at_s=time.now_s)
        stormed_s = time.now_s
        for _ in range(100):
            service.call(limiter)
        return time.now_s - stormed_s

    assert time.run([dialogue])[0] <= 100 + 1.1 * (1 / SLOWEST_PER_S)


def test_who_is_told_to_end_waits_no_longer_and_leaves_its_slot_to_another():
    clock = Clock()
    limiter = clock.limiter()
    clock.throttled_at(limiter, after=10, retry_after_s=5.0)

    def ended(seconds: float) -> None:
        raise KeyError(seconds)

    for _ in range(10):
        with pytest.raises(KeyError):
            limiter.acquire(ended)

    assert slots(clock, limiter, 2) == pytest.approx([5.0, 5.0 + 1 / limiter.per_s])


class Crowd:
    """Callers of a limiter at one request a second or a little less, who leave together."""

    def __init__(self, *, leave_s: float) -> None:
        self.time = SharedTime()
        self.limiter = RateLimiter(monotonic_s=lambda: self.time.now_s)
        self._leave_s = leave_s
        for _ in range(10):
            self.limiter.acquire(self._pass)
            self._pass(1.0)
        self.limiter.throttled(sent_at_s=self.time.now_s)
        self.began_s = self.time.now_s

    def _pass(self, seconds: float) -> None:
        self.time.now_s += seconds

    def leave(self) -> None:
        """Wait for a slot until all of them are told to end."""
        with suppress(KeyError):
            self.limiter.acquire(self._sleep)

    def _sleep(self, seconds: float) -> None:
        left_s = self.began_s + self._leave_s - self.time.now_s
        self.time.sleep(min(seconds, left_s))
        if left_s <= seconds:
            raise KeyError(seconds)

    def stay(self) -> float:
        """Wait behind them; when there was a slot."""
        self.time.sleep(0.1)
        self.limiter.acquire(self.time.sleep)
        return self.time.now_s - self.began_s


def test_those_who_wait_behind_others_who_leave_move_up():
    crowd = Crowd(leave_s=2.5)
    *_, first, second, third = crowd.time.run([crowd.leave] * 60 + [crowd.stay] * 3)
    slot_s = 1 / crowd.limiter.per_s

    # A minute sooner than their own slots, as soon as they look, and never closer than slots are.
    moments = sorted([first, second, third])
    assert moments[0] <= LOOK_AGAIN_S + 0.1 + slot_s
    assert [later - one for one, later in itertools.pairwise(moments)] == pytest.approx(
        [slot_s] * 2
    )
    assert crowd.limiter.wait_s == pytest.approx(slot_s)


def test_slots_that_nobody_took_do_not_put_others_off_at_the_next_refusal():
    crowd = Crowd(leave_s=2.5)
    limiter, time = crowd.limiter, crowd.time

    def throttle() -> None:
        time.sleep(LOOK_AGAIN_S - 0.5)  # slots that were left are past, and nobody has looked yet
        limiter.throttled(sent_at_s=crowd.began_s - 1.0, retry_after_s=2.0)

    moment = time.run([crowd.leave] * 8 + [crowd.stay, throttle])[8]

    assert moment <= LOOK_AGAIN_S + 2.0 + 1 / limiter.per_s


def test_nobody_waits_for_slots_that_all_have_left():
    crowd = Crowd(leave_s=2.5)
    crowd.time.run([crowd.leave] * 60)

    assert crowd.limiter.wait_s <= 1 / crowd.limiter.per_s
