"""One pace for all that send: what it waits, and what it spares, in a time that tests turn."""

import heapq
import itertools
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from socratic_bench.calling.call import CalledModel
from socratic_bench.calling.cancel_token import CancelToken, wait_for_first
from socratic_bench.calling.context import CallContext, CallServices
from socratic_bench.calling.prompt_cache_gate import PromptCacheGate
from socratic_bench.calling.rate_limiter import (
    ANSWERS_TO_DOUBLE,
    GAP_CLEAR_S,
    GAP_FIRST_S,
    GAP_MAX_S,
    RateLimiter,
)
from socratic_bench.calling.threads import RequestThreads
from socratic_bench.emulator.throttle import Throttle
from socratic_bench.errors import ModelError
from socratic_bench.generation import GenerateConfig
from socratic_bench.providers.bedrock.connection import Connection
from socratic_bench.providers.bedrock.options import Options
from socratic_bench.providers.bedrock.provider import BedrockProvider
from socratic_bench.providers.bedrock.session import Endpoint
from socratic_bench.retrying import SERVER_WAIT_MAX_S, RetryPolicy
from socratic_bench.types import CallKey, Completion, Message, Request
from tests.fakes import NOON, FakeBedrock, Said, Sent, answer, refusal

REQUEST = Request(messages=(Message.user("Hello."),), config=GenerateConfig(max_tokens=100))


@dataclass
class Clock:
    """A time that only sleeping moves on."""

    now_s: float = 1000.0
    slept: list[float] = field(default_factory=list)
    n_looks: int = 0

    def look(self) -> float:
        self.n_looks += 1
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    def rate_limiter(self) -> RateLimiter:
        return RateLimiter(monotonic_s=self.look, sleep=self.sleep)


class TestPace:
    def test_it_costs_nothing_until_somebody_is_throttled(self):
        clock = Clock()
        rate_limiter = clock.rate_limiter()
        for _ in range(100):
            assert rate_limiter.enter() == 0
            rate_limiter.answered()

        assert (clock.n_looks, clock.slept) == (0, [])

    def test_nobody_sends_before_the_servers_wait_is_over(self):
        clock = Clock()
        rate_limiter = clock.rate_limiter()
        rate_limiter.throttled(sent_at_s=clock.now_s, asked_s=7.0)

        assert rate_limiter.enter() == 7.0
        assert clock.slept == [7.0]

    def test_an_absurd_wait_of_the_servers_is_bounded(self):
        clock = Clock()
        rate_limiter = clock.rate_limiter()
        rate_limiter.throttled(sent_at_s=clock.now_s, asked_s=86_400.0)

        assert rate_limiter.enter() == SERVER_WAIT_MAX_S

    def test_without_the_servers_word_the_gap_is_waited_and_then_kept(self):
        clock = Clock()
        rate_limiter = clock.rate_limiter()
        rate_limiter.throttled(sent_at_s=clock.now_s, asked_s=None)

        assert [rate_limiter.enter() for _ in range(3)] == [GAP_FIRST_S] * 3

    def test_time_that_passed_otherwise_is_not_waited_again(self):
        clock = Clock()
        rate_limiter = clock.rate_limiter()
        rate_limiter.throttled(sent_at_s=clock.now_s, asked_s=7.0)
        clock.now_s += 5.0

        assert rate_limiter.enter() == 2.0
        clock.now_s += 100.0
        assert rate_limiter.enter() == 0.0

    def test_the_gap_doubles_up_to_a_bound_while_nothing_gets_through(self):
        clock = Clock()
        rate_limiter = clock.rate_limiter()
        waits = []
        for _ in range(12):
            rate_limiter.throttled(sent_at_s=clock.now_s, asked_s=None)
            waits.append(rate_limiter.enter())

        assert waits == [min(GAP_MAX_S, GAP_FIRST_S * 2**number) for number in range(12)]

    def test_requests_that_were_under_way_together_widen_it_once(self):
        clock = Clock()
        rate_limiter = clock.rate_limiter()
        sent_at_s = clock.now_s
        for _ in range(5):
            clock.now_s += 0.01
            rate_limiter.throttled(sent_at_s=sent_at_s, asked_s=None)

        assert rate_limiter.enter() == pytest.approx(GAP_FIRST_S)
        assert rate_limiter.enter() == pytest.approx(GAP_FIRST_S)

    def test_answers_narrow_it_until_it_is_gone(self):
        clock = Clock()
        rate_limiter = clock.rate_limiter()
        rate_limiter.throttled(sent_at_s=clock.now_s, asked_s=None)
        gaps = []
        while wait_s := rate_limiter.enter():
            gaps.append(wait_s)
            rate_limiter.answered()

        assert gaps == sorted(gaps, reverse=True)
        assert gaps[0] == GAP_FIRST_S
        assert gaps[ANSWERS_TO_DOUBLE] == pytest.approx(GAP_FIRST_S / 2, rel=0.1)
        assert gaps[-1] == pytest.approx(GAP_CLEAR_S, rel=0.01)

    def test_after_an_answer_it_widens_by_half(self):
        clock = Clock()
        rate_limiter = clock.rate_limiter()
        for _ in range(5):
            rate_limiter.throttled(sent_at_s=clock.now_s, asked_s=None)
            wide = rate_limiter.enter()
        rate_limiter.answered()
        rate_limiter.enter()
        narrower = rate_limiter.enter()
        rate_limiter.throttled(sent_at_s=clock.now_s, asked_s=None)

        assert narrower < wide
        assert rate_limiter.enter() == pytest.approx(1.5 * narrower)

    def test_who_is_told_to_end_does_not_wait_on(self):
        def ended(seconds: float) -> None:
            raise KeyError(seconds)

        rate_limiter = RateLimiter(monotonic_s=lambda: 0.0, sleep=ended)
        rate_limiter.throttled(sent_at_s=0.0, asked_s=3.0)

        with pytest.raises(KeyError):
            rate_limiter.enter()


class SharedTime:
    """A time that several threads sleep in: it moves to the next waking once all of them sleep."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._awake = 0
        self._wakings: list[tuple[float, int, threading.Event]] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def sleep(self, seconds: float) -> None:
        woken = threading.Event()
        with self._lock:
            at_s = self.now_s + seconds
            heapq.heappush(self._wakings, (at_s, next(self._numbers), woken))
            self._rest()
        woken.wait()

    def start(self, pool: ThreadPoolExecutor, work: Callable[[], Any]) -> "Future[Any]":
        """Work in another thread, which counts as awake from now on."""
        with self._lock:
            self._awake += 1

        def whole() -> Any:
            try:
                return work()
            finally:
                with self._lock:
                    self._rest()

        return pool.submit(whole)

    def _rest(self) -> None:
        self._awake -= 1
        if self._awake == 0 and self._wakings:
            self.now_s, _, woken = heapq.heappop(self._wakings)
            self._awake = 1
            woken.set()


class NoPace(RateLimiter):
    """As it was without: everyone for themselves."""

    def enter(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Played:
    """What twenty turns with a judge came to."""

    answered: dict[str, int]
    n_failed: int
    n_requests: int
    lasted_s: float
    completions: tuple[Completion, ...]


TURNS = 20
CALL_S = 2.0


def play(kind: type[RateLimiter], *, per_minute: float, advice: bool) -> Played:
    """Twenty turns of a tutor, each judged beside the next, on a service with a tight quota."""
    shared = SharedTime()
    throttle = Throttle(per_minute, lambda: shared.now_s)

    def serve(sent: Sent) -> Said:
        wait_ms = throttle.wait_ms()
        if wait_ms is None:
            return answer("Why?")
        headers = {"x_amz_retry_after": f"{wait_ms:.0f}"} if advice else {}
        return refusal(429, "ThrottlingException", **headers)

    def wait(futures: Any, timeout_s: float | None) -> None:
        if len(futures) > 1:
            wait_for_first(futures, timeout_s)
        else:
            shared.sleep(timeout_s or 0.0)

    cancel_token = CancelToken(monotonic_s=lambda: shared.now_s, wait=wait)
    context = CallContext(
        now=lambda: NOON,
        cancel_token=cancel_token,
        retry_policy=RetryPolicy(max_attempts=10, uniform=Random(7).uniform),
        timeout_s=300.0,
        notice=print,
    )
    rate_limiter = kind(monotonic_s=lambda: shared.now_s, sleep=shared.sleep)
    with FakeBedrock({"tutor": serve, "judge": serve}) as service:
        connection = Connection(Endpoint(region="us-east-1", url=service.url))
        provider = BedrockProvider(connection, Options(), monotonic_s=lambda: shared.now_s)
        services = CallServices(
            provider=lambda: provider,
            rate_limiter=rate_limiter,
            cache_gate=PromptCacheGate(),
            threads=RequestThreads(),
        )
        models = {role: CalledModel(role, services, context) for role in ("tutor", "judge")}
        found = _perform(shared, models)
        connection.close()
    completions = tuple(one for one in found if isinstance(one, Completion))
    return Played(
        answered=Counter(one.message.text for one in completions),
        n_failed=len(found) - len(completions),
        n_requests=len(service.sent),
        lasted_s=shared.now_s,
        completions=completions,
    )


def _perform(shared: SharedTime, models: dict[str, CalledModel]) -> list[Completion | ModelError]:
    found: list[Completion | ModelError] = []
    judging: list[Future[Any]] = []

    def call(role: Any, index: int) -> None:
        try:
            found.append(models[role].complete(REQUEST, CallKey(role=role, index=index)))
        except ModelError as error:
            found.append(error)
        shared.sleep(CALL_S)

    def dialogue() -> None:
        for index in range(TURNS):
            call("tutor", index)
            judging.append(shared.start(judges, lambda index=index: call("judge", index)))

    with ThreadPoolExecutor(TURNS) as judges, ThreadPoolExecutor(1) as tutor:
        shared.start(tutor, dialogue).result()
        for one in judging:
            one.result()
    return found


@pytest.mark.parametrize("advice", [True, False], ids=["advised", "unadvised"])
@pytest.mark.parametrize("per_minute", [6, 12, 20])
def test_a_run_under_a_tight_quota_is_slowed_and_burns_few_attempts(per_minute, advice):
    """Forty calls where the quota allows one in 3 to 10 s, with the pace and without it."""
    paced = play(RateLimiter, per_minute=per_minute, advice=advice)
    hasty = play(NoPace, per_minute=per_minute, advice=advice)

    assert (paced.answered, paced.n_failed) == ({"Why?": 2 * TURNS}, 0)
    assert paced.n_requests <= 1.5 * 2 * TURNS
    assert 1.5 * paced.n_requests <= hasty.n_requests
    quota_s = 2 * TURNS * 60 / per_minute
    assert paced.lasted_s <= 1.6 * quota_s


def test_what_the_pace_costs_is_in_the_attempts():
    paced = play(RateLimiter, per_minute=12, advice=False)

    attempts = [one for call in paced.completions for one in call.attempts]
    assert len(attempts) == paced.n_requests
    assert max(one.wait_ms for one in attempts if one.error is None) >= 1000
