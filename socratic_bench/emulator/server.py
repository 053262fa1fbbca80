"""Runs the service: in a thread of its own, or in the foreground until a signal."""

import asyncio
import resource
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from queue import SimpleQueue
from typing import Self

from socratic_bench.emulator.connections import ConnectionPool
from socratic_bench.emulator.loop import loop_factory
from socratic_bench.emulator.service import RequestRecord, Service
from socratic_bench.emulator.settings import Settings
from socratic_bench.emulator.wire import Connection

_BACKLOG = 1024
SPARE_DESCRIPTORS = 100


NewLoop = Callable[[], asyncio.AbstractEventLoop] | None


class Emulator:
    """A running endpoint. It listens as soon as it is made, until `close` or the block's end.

    Its answers come by the time of the loop that `new_loop` makes, its quotas and caches go by
    `clock`: by default, the system's.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        new_loop: NewLoop = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._new_loop = new_loop
        self._service = Service(settings or Settings(), clock)
        started: SimpleQueue[str | OSError] = SimpleQueue()
        self._stop: Callable[[], object] | None = None
        self._thread = threading.Thread(
            target=self._run, args=(host, port, started), name="bedrock-emulator", daemon=True
        )
        self._thread.start()
        outcome = started.get()
        if isinstance(outcome, OSError):
            self._thread.join()
            raise outcome
        self.url = outcome

    @property
    def requests(self) -> list[RequestRecord]:
        """All requests so far, in the order of their arrival."""
        return list(self._service.records)

    def close(self) -> None:
        """Stop listening and drop every connection. A second call does nothing."""
        if self._thread.is_alive() and self._stop is not None:
            self._stop()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _run(self, host: str, port: int, started: "SimpleQueue[str | OSError]") -> None:
        def ready(url: str, stop: Callable[[], None]) -> None:
            loop = asyncio.get_running_loop()
            self._stop = partial(loop.call_soon_threadsafe, stop)
            started.put(url)

        try:
            _run(_listen(self._service, host, port, ready), self._new_loop)
        except OSError as error:
            started.put(error)


def serve(settings: Settings, *, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Listen until SIGHUP, SIGINT or SIGTERM, but for one that is ignored. For the main thread.

    `ready` is told the URL.
    """

    def started(url: str, stop: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, stop)
        ready(url)

    _have_descriptors(settings.max_connections + SPARE_DESCRIPTORS)
    _run(_listen(Service(settings), host, port, started))


def _have_descriptors(number: int) -> None:
    """As many open files as all connections take, as far as the system grants them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _run(serving: Coroutine[None, None, None], new_loop: NewLoop = None) -> None:
    with asyncio.Runner(loop_factory=new_loop or loop_factory()) as runner:
        runner.run(serving)


async def _listen(
    service: Service, host: str, port: int, ready: Callable[[str, Callable[[], None]], None]
) -> None:
    settings = service.settings
    pool = ConnectionPool(most=settings.max_connections, read_timeout_s=settings.read_timeout_s)
    stopped = asyncio.Event()
    numbers = iter(range(1, 2**63))

    def connect() -> Connection:
        pool.watch()
        return Connection(service.handle, pool, next(numbers), listening.refuse)

    listening = _ListeningSocket(connect)
    name, number = await listening.open(host, port)
    service.gate.listens_at(host, name)
    ready(f"http://{f'[{name}]' if ':' in name else name}:{number}", stopped.set)
    await stopped.wait()
    await listening.close()
    pool.abort()
    # An aborted connection closes its socket on the loop's next round.
    await asyncio.sleep(0)


class _ListeningSocket:
    """Where clients connect. While it is closed, the system refuses connections."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._main_task = asyncio.current_task()
        self._opening: asyncio.Task[None] | None = None
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen; where, in numbers."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connect, host, port, backlog=_BACKLOG)
        name, number = self._server.sockets[0].getsockname()[:2]
        return name, number

    def refuse(self, seconds: float) -> None:
        """Refuse new connections for a while; open ones stay."""
        if self._server is not None:
            server, self._server = self._server, None
            _stop_accepting(server)
            self._opening = asyncio.get_running_loop().create_task(self._reopen(server, seconds))

    async def _reopen(self, server: asyncio.Server, seconds: float) -> None:
        host, port = server.sockets[0].getsockname()[:2]
        await self._close_server(server)
        await asyncio.sleep(seconds)
        await self.open(host, port)

    async def close(self) -> None:
        """Let nobody in any more. Whoever was accepted is in when this returns."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if self._server is not None:
            _stop_accepting(self._server)
            await self._close_server(self._server)

    async def _close_server(self, server: asyncio.Server) -> None:
        """Close a server, but first let those in whom it has accepted.

        An asyncio server that is closed meanwhile forgets their sockets, and leaves them open.
        """
        entering = asyncio.all_tasks() - {self._main_task, self._opening}
        try:
            if entering:
                await asyncio.wait(entering)
        finally:
            server.close()


def _stop_accepting(server: asyncio.Server) -> None:
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
