"""Bounds of its own that a thread gives connections which others use, too."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# `n_bytes` of an answer, and `wait_s` for the other side.
ALLOWED = threading.local()


@contextmanager
def answers_up_to(n_bytes: int) -> Iterator[None]:
    """Another bound for what this thread asks for meanwhile, such as a file of the user's own."""
    ALLOWED.n_bytes = n_bytes
    try:
        yield
    finally:
        del ALLOWED.n_bytes


@contextmanager
def each_wait_within(timeout_s: float) -> Iterator[None]:
    """Until the block ends, no wait for the other side is longer in this thread: a client's own
    timeouts are those of all runs that share it.
    """
    ALLOWED.wait_s = timeout_s
    try:
        yield
    finally:
        del ALLOWED.wait_s


def within_call(timeout_s: float | None) -> float | None:
    """A connection's timeout, or this thread's bound of a wait if that is shorter."""
    own_s: float | None = getattr(ALLOWED, "wait_s", None)
    return timeout_s if own_s is None else min(own_s, timeout_s or own_s)
