"""Lets one request write a shared prefix to the model's cache before others that begin with it go.

An entry can be read only once the first response has begun; requests that are sent together all
write, and pay for, the same prefix.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future

# So long an entry stays without being read.
KEPT_S = 300.0
# No request is held longer for the sake of another one.
MAX_WAIT_S = 60.0
# Waits for a future, so long at most: returns, or raises `TimeoutError`, or what ends the run.
Wait = Callable[["Future[None]", float], None]


class PromptCacheGate:
    """The prefixes that were sent lately, each with the model that it was sent to."""

    def __init__(self, *, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._read_at_s: dict[Hashable, float] = {}
        self._warming: dict[Hashable, Future[None]] = {}

    def enter(self, key: Hashable, wait: Wait) -> bool:
        """Wait while another request writes the prefix of the key; whether this is to write it.

        Whoever is to write it has to `leave` it. Raises what ends the run meanwhile.
        """
        while not self._is_warm(key):  # as it nearly always is; all runs would wait for the lock
            with self._lock:
                if self._is_warm(key):
                    return False
                self._forget_cold()
                writing = self._warming.get(key)
                if writing is None:
                    self._warming[key] = Future()
                    return True
            try:
                wait(writing, MAX_WAIT_S)
            except TimeoutError:
                return False
        return False

    def leave(self, key: Hashable, *, is_done: bool) -> None:
        """Let the others go; the next of them writes the prefix if this is not done."""
        with self._lock:
            if is_done:
                self._read_at_s[key] = self._monotonic_s()
            self._warming.pop(key).set_result(None)

    def _is_warm(self, key: Hashable) -> bool:
        """Whether it is, as it will be for longer now that it is read."""
        now_s = self._monotonic_s()
        if self._read_at_s.get(key, float("-inf")) <= now_s - KEPT_S:
            return False
        self._read_at_s[key] = now_s
        return True

    def _forget_cold(self) -> None:
        since_s = self._monotonic_s() - KEPT_S
        self._read_at_s = {one: at_s for one, at_s in [*self._read_at_s.items()] if at_s > since_s}
