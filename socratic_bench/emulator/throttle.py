"""A token bucket: so many requests a minute, with a burst of a tenth of that."""

from collections.abc import Callable


class Throttle:
    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._rate = per_minute / 60
        self._room = max(1.0, per_minute / 10)
        self._left = self._room
        self._clock = clock
        self._at = clock()

    def wait_ms(self) -> float | None:
        """Take one; `None` if there was one to take, else the milliseconds until there will be."""
        now = self._clock()
        self._left = min(self._room, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return None
        return (1 - self._left) / self._rate * 1000
