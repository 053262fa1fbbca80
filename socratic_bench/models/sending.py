"""Waits for one request's answer, and gives it up where nobody waits for it any longer."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from socratic_bench.fair_semaphore import Pass
from socratic_bench.in_flight_request import InFlightRequest
from socratic_bench.models.cancel_token import CancelToken
from socratic_bench.provider_ports import Answer, AnswerTimeoutError, Provider
from socratic_bench.threads import RequestThreads, let_go
from socratic_bench.types import Request

# What the wait for an answer has on top of a request's time, so that a provider's own timeouts,
# which tell more, come first.
GRACE_S = 1.0


def sent_in_time(  # noqa: PLR0913 -- what a request is sent with
    provider: Provider,
    model_id: str,
    request: Request,
    turn: Pass,
    *,
    timeout_s: float,
    threads: RequestThreads,
    cancel_token: CancelToken,
) -> Answer:
    """The answer, or raise what sending does, `AnswerTimeoutError`, or what ends the run meanwhile.

    `turn` is given back once the request is on its way. A request that cannot be given up has a
    thread of its own, which is left behind.
    """
    if not provider.tells_when_sent:
        turn.give_back()
    send = partial(provider.send, model_id, request, timeout_s)
    request_time = _Time(timeout_s + GRACE_S, cancel_token, threads)
    wait = request_time.sent_here if provider.can_be_aborted else request_time.sent_in_thread
    try:
        return wait(turn, send)
    except TimeoutError as error:
        raise AnswerTimeoutError(model_id, timeout_s) from error


class _Time(Struct):
    """The time that a request has from now on, by the clock that sockets wait by."""

    time_s: float
    cancel_token: CancelToken
    threads: RequestThreads
    monotonic_s: Callable[[], float] = time.monotonic
    ends_at_s: float = 0.0

    def __post_init__(self) -> None:
        self.ends_at_s = self.monotonic_s() + self.time_s

    def sent_here(self, turn: Pass, send: Callable[[], Answer]) -> Answer:
        """In this thread. Raises `TimeoutError` for an answer that is not there in time."""
        under_way = InFlightRequest(self._aside, self._remaining_s)
        with self.cancel_token.aborting(under_way.abort):
            try:
                answer = turn.run(partial(under_way.run, send))
            except Exception as error:  # noqa: BLE001 -- raised again, unless there is more to say
                failed = error
            else:
                if self.cancel_token.remaining_s == 0:
                    self.cancel_token.check()
                return answer
        let_go(failed)
        # The end of the run says more than the error of a request that it cut off.
        self.cancel_token.check()
        if self._remaining_s() <= 0:
            raise TimeoutError from failed
        raise failed

    def sent_in_thread(self, turn: Pass, send: Callable[[], Answer]) -> Answer:
        """In another thread, which is left behind if it does not answer in time."""
        under_way = InFlightRequest()
        sending = self.threads.submit(partial(turn.run, partial(under_way.run, send)))
        try:
            return self.cancel_token.result(sending, self.time_s)
        except TimeoutError:
            if sending.done():
                return sending.result()
            raise
        finally:
            under_way.abort()

    def _aside(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 -- whatever the work gives
        """What it asks for meanwhile, such as credentials of STS, is given up with the request."""
        under_way = InFlightRequest()
        doing = self.threads.submit(partial(under_way.run, work))
        try:
            return self.cancel_token.result(doing, self._remaining_s())
        finally:
            under_way.abort()

    def _remaining_s(self) -> float:
        """Of the request's time, or of the run's, whichever is over first."""
        remaining_s = self.ends_at_s - self.monotonic_s()
        of_run_s = self.cancel_token.remaining_s
        return remaining_s if of_run_s is None else min(remaining_s, of_run_s)
