"""What the runs of a process share: what is learnt of services and models, and kept no longer."""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from socratic_bench.concurrency import ConnectionLimit, start_thread
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.models.adaptive_rate import RateNarrowed
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.context import CallServices
from socratic_bench.models.prompt_cache import PromptCacheGate
from socratic_bench.models.providers import load_provider
from socratic_bench.models.rate_limiter import RateTargets
from socratic_bench.ports.provider import Provider
from socratic_bench.settings import CoreConfig

if TYPE_CHECKING:
    from socratic_bench.catalogue.prices import PriceTable
    from socratic_bench.models.budget import SpendingLimit

Prepared = Any  # a provider's own, or the error that there is in place of it


class Services:
    """Connections, what models are seen to take, rate limiters, prompt cache gates, prices
    and the embedded endpoint of all runs that are given it.

    Safe to use from several threads. Each run still has its own cancel token, budget, notices and
    journal, and one that fails ends no other. To be closed, or used as a context manager, once all
    runs have ended: runs that have not are ended by it. `cancel_token` ends all of them.

    With `rate_targets` or `spending`, which are not closed with it, they keep to these together; a
    run's own budget does not count then. `max_connections` bounds the requests under way at
    once. `on_narrowed` is told of throttling that slows a model down.
    """

    def __init__(
        self,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
        rate_targets: RateTargets | None = None,
        spending: "SpendingLimit | None" = None,
        max_connections: int | None = None,
        on_narrowed: Callable[[RateNarrowed], None] | None = None,
    ) -> None:
        self.cancel_token = CancelToken(monotonic_s=monotonic_s)
        self.rate_targets = rate_targets or RateTargets(stall_s=None, monotonic_s=monotonic_s)
        self.spending = spending
        # By the ids of runs that go on: what `spending` knows of their earlier processes, in USD.
        self.counted_usd: dict[str, float] = {}
        self._connection_limit = ConnectionLimit(max_connections) if max_connections else None
        self.price_tables: dict[str, PriceTable] = {}
        self._monotonic_s = monotonic_s
        self._on_narrowed = on_narrowed
        self._lock = threading.Lock()
        self._connections: dict[Hashable, Future[Provider]] = {}
        self._cache_gates: dict[Hashable, PromptCacheGate] = {}
        self._stack = ExitStack()
        self._is_closed = False

    def prepare(self, config: CoreConfig) -> Prepared:
        """What a connection for this configuration is opened with, if there is none yet."""
        with self._lock:
            if self._begun(config):
                return None
        try:
            return load_provider(config.provider).prepare(config)
        except ModelError as error:
            return error

    def calls(
        self, config: CoreConfig, prepared: Prepared, cancel_token: CancelToken
    ) -> CallServices:
        """What the calls of one run need, which waits for a connection no longer than it lasts."""
        module = load_provider(config.provider)
        opened: list[Provider] = []

        def provider() -> Provider:
            if not opened:
                opening = self._opening(config, prepared)
                opened.append(module.for_run(_own(cancel_token, opening), config))
            return opened[0]

        return CallServices(
            provider=provider,
            rate_limiter=partial(self.rate_targets.of, config.provider, config.region or ""),
            on_narrowed=self._on_narrowed,
            spending=self.spending,
            connections=self._connection_limit,
            cache_gate=self._cache_gates.setdefault(
                _key(config), PromptCacheGate(monotonic_s=self._monotonic_s)
            ),
        )

    def close(self) -> None:
        """Let go of all that is open."""
        self._is_closed = True
        closed = "The services that the run shares with others were closed."
        self.cancel_token.end(Stopped(closed, end_reason="interrupted"))
        self._stack.close()

    def _begun(self, config: CoreConfig) -> "Future[Provider] | None":
        """The connection for such configurations, unless none came about."""
        found = self._connections.get(_key(config))
        return None if found and found.done() and found.exception() else found

    def _opening(self, config: CoreConfig, prepared: Prepared) -> "Future[Provider]":
        with self._lock:
            found = self._begun(config)
            if found is None:
                found = start_thread(partial(self._open, config, prepared))
                self._connections[_key(config)] = found
            return found

    def _open(self, config: CoreConfig, prepared: Prepared) -> Provider:
        """A program of the user's own that gives credentials may take its time."""
        if isinstance(prepared, ModelError):
            raise prepared
        opening = load_provider(config.provider).open(config, prepared, self._monotonic_s)
        provider = self._stack.enter_context(opening)
        if self._is_closed:
            self._stack.close()
        return provider

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _key(config: CoreConfig) -> Hashable:
    return (config.provider, load_provider(config.provider).connection_key(config))


def _own(cancel_token: CancelToken, opening: "Future[Provider]") -> Provider:
    """What came about, for one of the runs that wait for it: each has an error of its own."""
    try:
        return cancel_token.result(opening)
    except ModelError as error:
        raise error.copied() from error
