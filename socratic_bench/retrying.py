"""The retry policy of calls, uploads and reads: exponential backoff with full jitter."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct
from tenacity import RetryCallState, Retrying, retry_if_exception

Result = TypeVar("Result")

SERVER_WAIT_MAX_S = 120.0
DOUBLINGS_MAX = 10


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """Full jitter: each wait is uniform between 0 and a bound, which doubles with each attempt.

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/. A wait that a server
    asks for is honoured up to `SERVER_WAIT_MAX_S`, with up to a quarter of jitter added, so that
    requests refused together do not come back together.

    Attributes:
        max_attempts: the most attempts; `None` for no bound.
        window_s: seconds after the first attempt from which none begins; `None` for no bound.
        wait_base_s, wait_max_s: the first and the largest bound of a wait.
    """

    max_attempts: int | None = None
    window_s: float | None = None
    wait_base_s: float = 0.5
    wait_max_s: float = 20.0
    uniform: Callable[[float, float], float] = random.uniform

    def call(
        self,
        work: Callable[[], Result],
        *,
        passes: Callable[[BaseException], bool],
        sleep: Callable[[float], None],
        monotonic_s: Callable[[], float] = time.monotonic,
        server_wait_s: Callable[[BaseException], float | None] = lambda _: None,
        is_enough: Callable[[], bool] = lambda: False,
    ) -> Result:
        """Call `work` until it succeeds; returns its result, or raises its last error.

        `passes` says whether an error may pass, `server_wait_s` the wait that it asks for. It gives
        up once `is_enough`.
        """
        started_s = monotonic_s()

        def is_over(state: RetryCallState) -> bool:
            is_last = self.max_attempts is not None and state.attempt_number >= self.max_attempts
            is_late = self.window_s is not None and monotonic_s() - started_s >= self.window_s
            return is_enough() or is_last or is_late

        def wait_s(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            return self._wait_s(state.attempt_number, server_wait_s(error) if error else None)

        retrying = Retrying(
            retry=retry_if_exception(passes), stop=is_over, wait=wait_s, sleep=sleep, reraise=True
        )
        return retrying(work)

    def _wait_s(self, n_attempts: int, requested_s: float | None) -> float:
        if requested_s is not None:
            wait_s = min(requested_s, SERVER_WAIT_MAX_S)
            return wait_s + self.uniform(0, wait_s / 4)
        doublings = min(n_attempts - 1, DOUBLINGS_MAX)
        return self.uniform(0, min(self.wait_max_s, self.wait_base_s * 2**doublings))
