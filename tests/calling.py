"""Calls outside of a run, with everything around them in sight."""

import itertools
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from socratic_bench.models.bedrock.capabilities import Options
from socratic_bench.models.bedrock.provider import BedrockProvider, Connection
from socratic_bench.models.bedrock.session import Endpoint
from socratic_bench.models.call import RETRY_WINDOW_S, CallContext, CalledModel, CallServices
from socratic_bench.models.cancel import CancelToken, wait_for_first
from socratic_bench.models.prompt_cache import PromptCacheGate
from socratic_bench.models.rate_limiter import RateLimiter
from socratic_bench.ports.provider import Provider
from socratic_bench.retrying import RetryPolicy
from tests.fakes import NOON


@dataclass
class Around:
    """A run that keeps what was waited and said. Each look at the clock is one second on, and each
    wait as long as it is.
    """

    waits: list[float] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    bounds: list[tuple[float, float]] = field(default_factory=list)
    share: float = 1.0
    now_s: float = -1.0
    call_timeout_s: float = 300.0

    def __post_init__(self) -> None:
        self.cancel_token = CancelToken(monotonic_s=self.monotonic_s, wait=self.wait)
        self.rate_limiter = RateLimiter("m", monotonic_s=lambda: sum(self.waits))

    def monotonic_s(self) -> float:
        self.now_s += 1
        return self.now_s

    def wait(self, futures: Sequence["Future[Any]"], timeout_s: float | None) -> None:
        queue = self.rate_limiter._queue
        if len(futures) == 1 or any(slot.turn is futures[0] for slot in queue):
            self.sleep(timeout_s or 0.0)  # only for time to pass
        else:
            wait_for_first(futures, timeout_s)  # for an answer

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_s += seconds

    def uniform(self, low: float, high: float) -> float:
        self.bounds.append((low, high))
        return low + (high - low) * self.share

    def notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def services(self, provider: Provider) -> CallServices:
        return CallServices(
            provider=lambda _: provider,
            rate_limiter=lambda _: self.rate_limiter,
            cache_gate=PromptCacheGate(monotonic_s=time.monotonic),
        )

    def context(self, max_attempts: int) -> CallContext:
        moments = itertools.count()
        return CallContext(
            now=lambda: NOON + timedelta(seconds=next(moments)),
            cancel_token=self.cancel_token,
            retry_policy=RetryPolicy(
                max_attempts=max_attempts, window_s=RETRY_WINDOW_S, uniform=self.uniform
            ),
            timeout_s=self.call_timeout_s,
            notice=self.notice,
            tested="tutor",
        )

    def model(
        self,
        connection: Connection,
        model_id: str = "m",
        *,
        max_attempts: int = 1,
        options: Options | None = None,
    ) -> CalledModel:
        """A model on Bedrock."""
        provider = BedrockProvider(
            connection, options or Options(), monotonic_s=self.cancel_token.monotonic_s
        )
        return CalledModel(model_id, self.services(provider), self.context(max_attempts))


@contextmanager
def connected(url: str, **endpoint: Any) -> Iterator[Connection]:
    with closing(Connection(Endpoint(region="us-east-1", url=url, **endpoint))) as connection:
        yield connection
