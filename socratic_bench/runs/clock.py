"""The time of day of one run, which never goes back even if the machine's clock does."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


def utc_now() -> datetime:
    return datetime.now(UTC)


class SteadyClock:
    """UTC that never goes back: if the machine's clock is set back, it goes on from where it was.

    `monotonic_s` counts seconds from anywhere, at the pace of real time.
    """

    def __init__(self, *, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._read_s = monotonic_s()
        self._read_at = utc_now()

    def __call__(self) -> datetime:
        """The time of day; safe to use from several threads."""
        with self._lock:
            read_s = self._monotonic_s()
            gone_on = self._read_at + timedelta(seconds=read_s - self._read_s)
            self._read_s, self._read_at = read_s, max(gone_on, utc_now())
            return self._read_at

    def go_on_from(self, moment: datetime) -> float:
        """Tell no time before `moment`; how many seconds the clock was behind it, or 0."""
        behind_s = (moment - self()).total_seconds()
        with self._lock:
            self._read_at = max(self._read_at, moment)
        return max(0.0, behind_s)
