"""An event loop with precise timers, so that latencies are as configured.

On Linux, epoll counts in whole milliseconds, and the system may be late by a thousandth of a wait:
a reply that is due after 300 ms would come after up to 301.4.
"""

import asyncio
import select
import selectors
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectors import SelectorKey

LONG_S = 0.005
# `select` takes no file descriptor from here on, as a program with many open files may have.
DESCRIPTORS = 1024
# Of a long wait the loop is woken a little early, and then waits for the rest, which is short.
LAST_SHARE = 1 / 400


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Makes such a loop; `None` where the system's own way to wait is punctual enough."""
    if not hasattr(selectors, "EpollSelector"):
        return None

    class HighResolutionSelector(selectors.EpollSelector):
        def select(self, timeout: float | None = None) -> "list[tuple[SelectorKey, int]]":
            if timeout is not None and timeout > 0 and self.fileno() < DESCRIPTORS:
                wait_s = timeout * (1 - LAST_SHARE) if timeout > LONG_S else timeout
                select.select([self.fileno()], [], [], wait_s)
                timeout = 0
            return super().select(timeout)

    return lambda: asyncio.SelectorEventLoop(HighResolutionSelector())
