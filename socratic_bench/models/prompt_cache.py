"""Lets one request write a shared prefix to a model's prompt cache before others begin with it.

An entry can be read only once the first response has begun; requests that are sent together would
all write, and pay for, the same prefix.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

KEPT_S = 300.0  # a service keeps an entry so long without its being read
MAX_WAIT_S = 60.0  # no request waits longer for another one
# Waits for a future, so long at most: returns, or raises `TimeoutError`, or what ends the run.
Wait = Callable[["Future[None]", float], None]


class PromptCacheGate:
    """The prefixes that were sent lately, each with the model that it was sent to; safe to use from
    several threads.
    """

    def __init__(self, *, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._used_at_s: dict[Hashable, float] = {}
        self._writing: dict[Hashable, Future[None]] = {}

    @contextmanager
    def turn(
        self, prefix: Hashable | None, wait: Wait, is_still_cached: Callable[[], bool]
    ) -> Iterator[None]:
        """Wait while another request writes the prefix, and send within the block; `None`: the
        request has no prefix. Nobody waits for a cache that was refused meanwhile, and the next one
        writes it if this request fails. Raises what ends the run meanwhile.
        """
        if prefix is None or not self._is_first(prefix, wait):
            yield
            return
        is_written = False
        try:
            yield
            is_written = True
        finally:
            is_done = is_written or not is_still_cached()
            with self._lock:
                if is_done:
                    self._used_at_s[prefix] = self._monotonic_s()
                self._writing.pop(prefix).set_result(None)

    def _is_first(self, prefix: Hashable, wait: Wait) -> bool:
        """Wait while another request writes the prefix; whether this one is to write it."""
        while True:
            with self._lock:
                if self._is_cached(prefix):
                    return False
                writing = self._writing.get(prefix)
                if writing is None:
                    self._writing[prefix] = Future()
                    return True
            try:
                wait(writing, MAX_WAIT_S)
            except TimeoutError:
                return False

    def _is_cached(self, prefix: Hashable) -> bool:
        """Whether the cache has it; it is read now, and so is kept for longer."""
        now_s = self._monotonic_s()
        self._used_at_s = {
            key: used_at_s
            for key, used_at_s in self._used_at_s.items()
            if used_at_s > now_s - KEPT_S
        }
        if prefix not in self._used_at_s:
            return False
        self._used_at_s[prefix] = now_s
        return True
