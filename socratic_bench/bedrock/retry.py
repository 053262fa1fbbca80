"""When a failed call is tried again, and after how long: tenacity, the server's word first."""

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Protocol

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.stop import stop_after_delay
from tenacity.wait import wait_base

from socratic_bench.bedrock.faults import FAULTS
from socratic_bench.errors import ModelError

WAIT_BASE_S = 0.5
WAIT_MAX_S = 20.0
SERVER_WAIT_MAX_S = 120.0
RETRY_WINDOW_S = 900.0


class Uniform(Protocol):
    """`random.Random.uniform`, or a fake."""

    def __call__(self, low: float, high: float, /) -> float: ...


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
    return isinstance(error, ModelError) and FAULTS[error.code].retried


def retrying(*, max_attempts: int, sleep: Callable[[float], None], uniform: Uniform) -> Retrying:
    """Tenacity's loop for one call: bounded in tries and in time, re-raising the last error."""
    return Retrying(
        retry=retry_if_exception(_passes),
        stop=stop_after_attempt(max_attempts) | stop_after_delay(RETRY_WINDOW_S),
        wait=FullJitter(uniform),
        sleep=sleep,
        reraise=True,
    )


def retry_after_s(headers: dict[str, str]) -> float | None:
    """Seconds that the server asks to wait: `x-amz-retry-after` (ms), else `retry-after` (s)."""
    for name, unit in (("x-amz-retry-after", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers[name]) * unit
        except KeyError:
            continue
        except ValueError:
            wait = _until_s(headers[name], headers.get("date"))
        if 0 <= wait < float("inf"):
            return wait
    return None


def _until_s(when: str, now: str | None) -> float:
    """Seconds from one HTTP date to another, both by the server's clock; negative if unknown."""
    try:
        return (parsedate_to_datetime(when) - parsedate_to_datetime(now or "")).total_seconds()
    except (ValueError, TypeError):
        return -1.0
