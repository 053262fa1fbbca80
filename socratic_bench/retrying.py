"""The retry policy of calls, uploads and reads: what is tried again, and after how long.

Tenacity is imported once something has failed: it takes a fiftieth of a run's start-up.
"""

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from tenacity import RetryCallState

Result = TypeVar("Result")

SERVER_WAIT_MAX_S = 120.0
DOUBLINGS_MAX = 10


class Uniform(Protocol):
    """`random.Random.uniform`, or a fake."""

    def __call__(self, low: float, high: float, /) -> float: ...


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """Full jitter: each wait is uniform between 0 and a bound, which doubles with each try.

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/. A wait that a server
    asked for is honoured up to `SERVER_WAIT_MAX_S` and gets up to a quarter of jitter on top, so
    that what was refused together does not come back together.

    Attributes:
        max_attempts: tries in all; `None` for no bound.
        window_s: none begins later than so long after the first; `None` for no bound.
        wait_base_s, wait_max_s: the first bound of a wait, and the last one.
    """

    max_attempts: int | None = None
    window_s: float | None = None
    wait_base_s: float = 0.5
    wait_max_s: float = 20.0
    uniform: Uniform = random.uniform

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
        """What `work` returns, or its last error, if that does not pass or it `is_enough`."""
        begun_s = monotonic_s()
        try:
            return work()
        except Exception as error:
            if not passes(error):
                raise
            first = [error]

        from tenacity import Retrying, retry_if_exception

        def tried() -> Result:
            if first:
                raise first.pop()
            return work()

        def is_over(state: "RetryCallState") -> bool:
            return is_enough() or self._is_over(state.attempt_number, monotonic_s() - begun_s)

        def wait_s(state: "RetryCallState") -> float:
            error = state.outcome.exception() if state.outcome else None
            asked_s = server_wait_s(error) if error else None
            return self._wait_s(state.attempt_number, asked_s)

        return Retrying(
            retry=retry_if_exception(passes), stop=is_over, wait=wait_s, sleep=sleep, reraise=True
        )(tried)

    def _is_over(self, n_tried: int, passed_s: float) -> bool:
        if self.max_attempts is not None and n_tried >= self.max_attempts:
            return True
        return self.window_s is not None and passed_s >= self.window_s

    def _wait_s(self, n_tried: int, asked_s: float | None) -> float:
        if asked_s is not None:
            wait_s = min(asked_s, SERVER_WAIT_MAX_S)
            return wait_s + self.uniform(0, wait_s / 4)
        doublings = min(n_tried - 1, DOUBLINGS_MAX)
        return self.uniform(0, min(self.wait_max_s, self.wait_base_s * 2**doublings))
