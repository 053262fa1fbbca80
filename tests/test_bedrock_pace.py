"""The rate limiter under a model of Bedrock's: what it spares, in a time that tests turn."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from socratic_bench.emulator.runtime import Throttle
from socratic_bench.errors import ModelError
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.bedrock.capabilities import Options
from socratic_bench.models.bedrock.provider import BedrockProvider, Connection
from socratic_bench.models.bedrock.session import Endpoint
from socratic_bench.models.call import GRACE_S, CallContext, CalledModel, CallServices
from socratic_bench.models.cancel import CancelToken, wait_for_first
from socratic_bench.models.prompt_cache import PromptCacheGate
from socratic_bench.models.rate_limiter import OnWait, RateLimiter, RequestSize, Slot
from socratic_bench.retrying import RetryPolicy
from socratic_bench.types import CallKey, Completion, Message, Request
from tests.command import daily
from tests.fakes import NOON, FakeBedrock, Said, Sent, answer, refusal
from tests.shared_time import SharedTime

REQUEST = Request(messages=(Message.user("Hello."),), config=GenerateConfig(max_tokens=100))


class NoPace(RateLimiter):
    """Admits every request at once."""

    @contextmanager
    def slot(self, size: RequestSize, cancel_token: CancelToken, on_wait: OnWait) -> Iterator[Slot]:
        del on_wait
        yield Slot(size=size, asked_at_s=cancel_token.monotonic_s())


@dataclass(frozen=True)
class Played:
    """What twenty turns with a judge came to."""

    answered: dict[str, int]
    n_failed: int
    n_requests: int
    lasted_s: float
    completions: tuple[Completion, ...]

    @property
    def n_refused(self) -> int:
        return self.n_requests - sum(self.answered.values())


TURNS = 20
ROLES = ("tutor", "judge")
CALL_S = 2.0
TIMEOUT_S = 300.0


def play(kind: type[RateLimiter], *, per_minute: float, advice: bool) -> Played:
    """Twenty turns of a tutor, each judged beside the next, on a service with a tight quota."""
    shared = SharedTime()
    throttles = {role: Throttle(per_minute, lambda: shared.now_s) for role in ROLES}

    def serve(sent: Sent) -> Said:
        wait_ms = throttles[sent.model_id].wait_ms()
        if wait_ms is None:
            return answer("Why?")
        headers = {"x_amz_retry_after": f"{wait_ms:.0f}"} if advice else {}
        return refusal(429, "ThrottlingException", **headers)

    def wait(futures: Any, timeout_s: float | None) -> None:
        if timeout_s == TIMEOUT_S + GRACE_S:  # for an answer, in real time
            wait_for_first(futures, timeout_s)
        else:
            shared.wait(futures, timeout_s)

    cancel_token = CancelToken(monotonic_s=lambda: shared.now_s, wait=wait)
    context = CallContext(
        now=lambda: NOON,
        cancel_token=cancel_token,
        retry_policy=RetryPolicy(max_attempts=10, uniform=Random(7).uniform),
        timeout_s=TIMEOUT_S,
        notice=print,
    )
    limiters = {role: kind(role, monotonic_s=lambda: shared.now_s) for role in ROLES}
    with FakeBedrock({"tutor": serve, "judge": serve}) as service:
        connection = Connection(Endpoint(region="us-east-1", url=service.url))
        provider = BedrockProvider(connection, Options(), monotonic_s=lambda: shared.now_s)
        services = CallServices(
            provider=lambda _: provider,
            rate_limiter=limiters.__getitem__,
            cache_gate=PromptCacheGate(monotonic_s=time.monotonic),
        )
        models = {role: CalledModel(role, services, context) for role in ROLES}
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
@pytest.mark.parametrize("per_minute", daily([6, 12, 20], 20))
def test_a_run_under_a_tight_quota_is_slowed_and_burns_few_attempts(per_minute, advice):
    """Twenty calls each of two models whose quotas allow one in 3 to 10 s."""
    paced = play(RateLimiter, per_minute=per_minute, advice=advice)
    hasty = play(NoPace, per_minute=per_minute, advice=advice)

    assert (paced.answered, paced.n_failed) == ({"Why?": 2 * TURNS}, 0)
    assert paced.n_requests <= 1.25 * 2 * TURNS
    assert 2 * paced.n_refused <= hasty.n_refused
    quota_s = TURNS * 60 / per_minute
    assert paced.lasted_s <= 1.6 * quota_s


def test_what_the_pace_costs_is_in_the_attempts():
    paced = play(RateLimiter, per_minute=12, advice=False)

    attempts = [one for call in paced.completions for one in call.attempts]
    assert len(attempts) == paced.n_requests
    assert max(one.wait_ms for one in attempts if one.error is None) >= 1000
