"""When a failed call is tried again, and after how long: tenacity, the server's word first.

Imported once a call has failed: tenacity takes a fiftieth of a run's start-up.
"""

from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.stop import stop_after_delay
from tenacity.wait import wait_base

from socratic_bench.errors import ModelError
from socratic_bench.providers.bedrock.context import Uniform
from socratic_bench.providers.bedrock.kinds import ERROR_KINDS
from socratic_bench.providers.bedrock.server_wait import SERVER_WAIT_MAX_S

Result = TypeVar("Result")

WAIT_BASE_S = 0.5
WAIT_MAX_S = 20.0
RETRY_WINDOW_S = 900.0


class FullJitter(wait_base):
    """Uniform between 0 and an exponentially growing bound, or what the server asked for.

    Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/. The
    server's wait is honoured up to `SERVER_WAIT_MAX_S` and gets up to a quarter of jitter on top,
    so that calls which were throttled together do not come back together.
    """

    def __init__(self, uniform: Uniform) -> None:
        self._uniform = uniform

    def __call__(self, retry_state: RetryCallState) -> float:
        asked = _asked_wait_s(retry_state)
        if asked is not None:
            wait = min(asked, SERVER_WAIT_MAX_S)
            return wait + self._uniform(0, wait / 4)
        bound = min(WAIT_MAX_S, WAIT_BASE_S * 2 ** (retry_state.attempt_number - 1))
        return self._uniform(0, bound)


def _asked_wait_s(state: RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after_s if isinstance(error, ModelError) else None


def _passes(error: BaseException) -> bool:
    return isinstance(error, ModelError) and ERROR_KINDS[error.code].retried


def retrying(
    *,
    max_attempts: int,
    sleep: Callable[[float], None],
    uniform: Uniform,
    window_s: float = RETRY_WINDOW_S,
) -> Retrying:
    """Tenacity's loop for one call: bounded in tries and in time, re-raising the last error."""
    return Retrying(
        retry=retry_if_exception(_passes),
        stop=stop_after_attempt(max_attempts) | stop_after_delay(window_s),
        wait=FullJitter(uniform),
        sleep=sleep,
        reraise=True,
    )


def try_again(failed: ModelError, attempt: Callable[[], Result], loop: Retrying) -> Result:
    """Go on with `attempt` as the loop has it, for which `failed` is the first try's outcome."""
    first = [failed]

    def tried() -> Result:
        if first:
            raise first.pop()
        return attempt()

    return loop(tried)
