"""Lets one request write a shared prefix to the model's cache before others that begin with it go.

An entry can be read only once the first response has begun; requests that are sent together all
write, and pay for, the same prefix.
"""

import threading
from concurrent.futures import Future
from typing import Protocol

# No request is held longer for the sake of another one.
MAX_WAIT_S = 60.0


class Wait(Protocol):
    """Waits for a future: returns, or raises `TimeoutError`, or whatever ends the run meanwhile."""

    def __call__(self, future: "Future[None]", timeout_s: float, /) -> None: ...


class PromptCacheGate:
    """The prefixes that were sent, each with the model that it was sent to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._warm: set[str] = set()
        self._warming: dict[str, Future[None]] = {}

    def enter(self, prefix: str, wait: Wait) -> bool:
        """Wait while another request writes the prefix; whether this one is to write it.

        Whoever is to write it has to `leave` it. Raises what ends the run meanwhile.
        """
        while True:
            with self._lock:
                if prefix in self._warm:
                    return False
                writing = self._warming.get(prefix)
                if writing is None:
                    self._warming[prefix] = Future()
                    return True
            try:
                wait(writing, MAX_WAIT_S)
            except TimeoutError:
                return False

    def leave(self, prefix: str, *, is_done: bool) -> None:
        """Let the others go; the next of them writes the prefix if this is not done."""
        with self._lock:
            if is_done:
                self._warm.add(prefix)
            self._warming.pop(prefix).set_result(None)
