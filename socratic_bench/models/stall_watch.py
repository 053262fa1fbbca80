"""Stops a model of which nothing is answered, however often it is called."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from socratic_bench.errors import ModelError
from socratic_bench.models.bedrock.error_table import ERROR_KINDS
from socratic_bench.models.cancel import CancelToken

STALL_S = 900.0
MOST_PAUSE_S = 60.0  # of a pause without a call no more counts as work
STALL = "stalled"  # the kind of error that its runs end by


class StallWatch:
    """Counts the seconds in which calls of a model are under way, and ends all runs that call it
    once nothing was answered for `stall_s` of them; `None`: never. For several threads.
    """

    def __init__(self, label: str, stall_s: float | None, monotonic_s: Callable[[], float]) -> None:
        self.is_stalled = False
        self._label, self._stall_s, self._monotonic_s = label, stall_s, monotonic_s
        self._lock = threading.Lock()
        self._work_s = self._answered_at_work_s = 0.0
        self._counted_at_s: float | None = None
        self._calling: list[CancelToken] = []

    @property
    def work_s(self) -> float:
        """Seconds from the first call on, pauses of more than a minute left out."""
        with self._lock:
            if self._calling:
                self._count()
            return self._work_s

    @contextmanager
    def calling(self, cancel_token: CancelToken) -> Iterator[None]:
        """Around a call, with its waits and retries, of a run that the token ends."""
        with self._lock:
            self._count()
            self._calling.append(cancel_token)
        try:
            self._end_if_stalled()
            cancel_token.check()
            yield
        finally:
            with self._lock:
                self._count()
                self._calling.remove(cancel_token)

    def record_answer(self) -> None:
        """A request was answered."""
        with self._lock:
            self._count()
            self._answered_at_work_s = self._work_s

    def record_failure(self) -> None:
        """A request was not answered."""
        with self._lock:
            self._count()
            in_vain_s = self._work_s - self._answered_at_work_s
            if self._stall_s is not None and in_vain_s >= self._stall_s:
                self.is_stalled = True
        self._end_if_stalled()

    def _count(self) -> None:
        now_s = self._monotonic_s()
        if self._counted_at_s is not None:
            gone_s = now_s - self._counted_at_s
            self._work_s += gone_s if self._calling else min(gone_s, MOST_PAUSE_S)
        self._counted_at_s = now_s

    def _end_if_stalled(self) -> None:
        if not self.is_stalled:
            return
        with self._lock:
            calling = tuple(self._calling)
        for cancel_token in calling:
            cancel_token.end(self._error())

    def _error(self) -> ModelError:
        minutes = (self._stall_s or 0.0) / 60
        return ModelError(
            f"{self._label} was stopped: it was called for {minutes:g} min, and none of its "
            "requests was answered.",
            code=STALL,
            end_reason=ERROR_KINDS[STALL].end_reason,
            retryable=True,
            hint=ERROR_KINDS[STALL].hint,
        )
