"""How a request that is under way ends at once when nobody waits for its answer any longer."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from socratic_bench.fair_semaphore import sent

Result = TypeVar("Result")
_here = threading.local()


class InFlightRequest:
    """A request under way in some thread, which whoever waits for it can give up.

    `aside` does work in another thread, which is left behind once the request is given up or
    `remaining_s` have passed; by default, there is nobody who would have to leave it.
    """

    def __init__(
        self,
        aside: Callable[[Callable[[], Any]], Any] | None = None,
        remaining_s: Callable[[], float] | None = None,
    ) -> None:
        self.aside = aside
        self.remaining_s = remaining_s
        self._lock = threading.Lock()
        self._closers: dict[Callable[[], object], Callable[[], object]] = {}
        self.is_aborted = False

    def run(self, send: Callable[[], Result]) -> Result:
        """Send it in this thread. What it holds open when it fails is of no more use."""
        _here.sending = self
        try:
            return send()
        except BaseException:
            self.is_aborted = True
            for end in self._left():
                end()
            raise
        finally:
            del _here.sending
            self._left()

    def _left(self) -> list[Callable[[], object]]:
        """What ends all that is held open, which is nobody's from now on."""
        with self._lock:
            ends = [*self._closers.values()]
            self._closers.clear()
        return ends

    def abort(self) -> None:
        """Close what it holds open, so that it ends at once; nothing once it has ended."""
        with self._lock:
            self.is_aborted = True
            for close in self._closers:
                close()

    def hold(self, close: Callable[[], object], end: Callable[[], object]) -> None:
        """From now on `close` ends it from any thread, and `end` tidies up after it in its own."""
        with self._lock:
            self._closers[close] = end
            if self.is_aborted:
                close()

    def release(self, close: Callable[[], object]) -> None:
        """From now on it is no longer this request's to close; of one that was given up it is of no
        more use.
        """
        with self._lock:
            end = self._closers.pop(close, None)
        if end and self.is_aborted:
            end()


def sending_here() -> InFlightRequest | None:
    """The request that this thread sends, for a provider to say what closes it."""
    return getattr(_here, "sending", None)


def aside(work: Callable[[], Result]) -> Result:
    """Do what may block and what closing nothing would end, such as the lookup of a name, or a
    program that gives credentials. Others are let past the semaphore before.

    Raises `TimeoutError` once the request's time is over, and what ends the run meanwhile.
    """
    sent()
    sending = sending_here()
    if sending is None or sending.aside is None:
        return work()
    result: Result = sending.aside(work)
    return result


def within_time(timeout_s: float | None) -> float | None:
    """The timeout, or what remains of the time of the request that this thread sends, if that is
    shorter: a read that takes longer is in vain.

    Raises `TimeoutError` once nothing remains.
    """
    sending = sending_here()
    if sending is None or sending.remaining_s is None:
        return timeout_s
    remaining_s = sending.remaining_s()
    if remaining_s <= 0:
        raise TimeoutError("the time of the request is over")
    return remaining_s if timeout_s is None else min(timeout_s, remaining_s)
