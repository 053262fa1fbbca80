"""The open connections of an endpoint: how many there may be, and how long each may take."""

import asyncio
from typing import Protocol

# What all connections together may hold of requests that are not whole yet.
HELD_LIMIT = 256 * 1024 * 1024


class Connection(Protocol):
    """An open connection: what it does, and since when."""

    since_s: float

    @property
    def phase(self) -> str: ...
    def expire(self, now_s: float) -> None: ...
    def abort(self) -> None: ...


class ConnectionPool:
    """All open connections, up to a number; beyond it the one that waits longest makes room."""

    def __init__(self, *, most: int, read_timeout_s: float) -> None:
        self.read_timeout_s = read_timeout_s
        self._sweeping: asyncio.TimerHandle | None = None
        self._most = most
        self._open: set[Connection] = set()
        self._held_bytes = 0

    def reserve(self, newcomer: Connection) -> bool:
        """Whether there is room; if needed, a connection without a complete request is closed."""
        waiting = [] if len(self._open) < self._most else self._waiting()
        if waiting:
            oldest = min(waiting, key=lambda connection: connection.since_s)
            self._open.discard(oldest)
            oldest.abort()
        has_room = len(self._open) < self._most
        self._open.add(newcomer)
        return has_room

    def forget(self, connection: Connection) -> None:
        self._open.discard(connection)

    def hold(self, more_bytes: int) -> int:
        """Count bytes of requests that are not whole yet; how many there are now in all."""
        self._held_bytes += more_bytes
        return self._held_bytes

    def watch(self) -> None:
        """Close connections that take too long, as long as there are any."""
        if self._sweeping is None:
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(self.read_timeout_s / 4, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        now_s = asyncio.get_running_loop().time()
        for connection in tuple(self._open):
            connection.expire(now_s)
        if self._open:
            self.watch()

    def abort(self) -> None:
        for connection in tuple(self._open):
            connection.abort()

    def _waiting(self) -> list[Connection]:
        return [one for one in self._open if one.phase in ("reading", "leaving")]
