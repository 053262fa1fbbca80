"""Quotas of requests: a bucket of tokens for each model, with a burst of a tenth of a minute's."""

from collections.abc import Callable

# Buckets that are full again need not be kept; nobody has so many models in use.
MOST_KEPT = 1000


class Quotas:
    """So many requests a minute for each model, whatever it is called."""

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._throttles: dict[str, Throttle] = {}

    def wait_ms(self, model_id: str) -> float | None:
        """See `Throttle.wait_ms`."""
        throttle = self._throttles.get(model_id)
        if throttle is None:
            if len(self._throttles) >= MOST_KEPT:
                in_use = {name: one for name, one in self._throttles.items() if not one.is_full}
                self._throttles = in_use
            throttle = self._throttles[model_id] = Throttle(self._per_minute, self._clock)
        return throttle.wait_ms()


class Throttle:
    """One bucket."""

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._rate = per_minute / 60
        self._room = max(1.0, per_minute / 10)
        self._left = self._room
        self._clock = clock
        self._at = clock()

    def wait_ms(self) -> float | None:
        """Take one; `None` if there was one to take, else the milliseconds until there will be."""
        self._fill()
        if self._left >= 1:
            self._left -= 1
            return None
        return (1 - self._left) / self._rate * 1000

    @property
    def is_full(self) -> bool:
        self._fill()
        return self._left >= self._room

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(self._room, self._left + (now - self._at) * self._rate)
        self._at = now
