"""What the runs of a process share: connections, rate limiters, prompt caches and prices."""

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from socratic_bench.catalogue.prices import PriceTable
from socratic_bench.concurrency import ConnectionLimit, start_thread
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.models import load_provider
from socratic_bench.models.adaptive_rate import RateNarrowed
from socratic_bench.models.batch import BatchJobs
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.models.call import CallServices
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.prompt_cache import PromptCacheGate
from socratic_bench.models.rate_limiter import RateLimiter, RateTargets
from socratic_bench.ports.provider import Provider
from socratic_bench.settings import BEDROCK, CoreConfig, models_of, provider_of

# By provider: what it has read to connect, or the error that there is in place of it.
Prepared = Mapping[str, Any]


class Services:
    """What runs share: connections with the embedded endpoint, rate limiters, cache gates, prices.

    Safe to use from several threads. Each run still has its own cancel token, budget, notices and
    journal, and one that fails ends no other. Close it, or use it as a context manager, once all
    runs have ended; runs that have not are ended by it, as by its `cancel_token`.

    Args:
        monotonic_s: the clock of all runs.
        rate_targets: rates that the runs keep to together; not closed with the services.
        spending: a limit that the runs spend from together, in place of each run's own budget.
        max_connections: the most requests under way at once.
        on_narrowed: hears of throttling that slows a model down.
        batch_jobs: the jobs of the runs; without any, each run has its own.
    """

    def __init__(
        self,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
        rate_targets: RateTargets | None = None,
        spending: SpendingLimit | None = None,
        max_connections: int | None = None,
        on_narrowed: Callable[[RateNarrowed], None] | None = None,
        batch_jobs: BatchJobs | None = None,
    ) -> None:
        self.batch_jobs = batch_jobs or BatchJobs()
        self.cancel_token = CancelToken(monotonic_s=monotonic_s)
        self.rate_targets = rate_targets or RateTargets(stall_s=None, monotonic_s=monotonic_s)
        self.spending = spending
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
        """What the providers of the run's models read to connect, or their errors."""
        names = dict.fromkeys(map(provider_of, models_of(config)))
        return {name: self._prepare(name, config) for name in names}

    def calls(
        self, config: CoreConfig, prepared: Prepared, cancel_token: CancelToken
    ) -> CallServices:
        """What the calls of one run need; waiting for the connection ends with the run."""
        opened: dict[str, Provider] = {}

        def provider(model_id: str) -> Provider:
            name = provider_of(model_id)
            if name not in opened:
                opening = self._opening(name, config, prepared.get(name))
                try:
                    connected = cancel_token.result(opening)
                except ModelError as error:
                    raise error.copied() from error  # several runs may wait for one connection
                opened[name] = load_provider(name).for_run(connected, config)
            return opened[name]

        def rate_limiter(model_id: str) -> RateLimiter:
            return self.rate_targets.of(provider_of(model_id), config.region or "", model_id)

        return CallServices(
            provider=provider,
            rate_limiter=rate_limiter,
            on_narrowed=self._on_narrowed,
            connections=self._connection_limit,
            cache_gate=self._cache_gates.setdefault(
                _key(BEDROCK, config), PromptCacheGate(monotonic_s=self._monotonic_s)
            ),
        )

    def close(self) -> None:
        """End all runs that use the services, and close the connections."""
        self._is_closed = True
        closed = "The services that the run shares with others were closed."
        self.cancel_token.end(Stopped(closed, end_reason="interrupted"))
        self._stack.close()

    def _prepare(self, name: str, config: CoreConfig) -> Any:  # noqa: ANN401 -- see `Prepared`
        """`None` if there is a connection."""
        with self._lock:
            if self._open_connection(name, config):
                return None
        try:
            return load_provider(name).prepare(config)
        except ModelError as error:
            return error

    def _open_connection(self, name: str, config: CoreConfig) -> "Future[Provider] | None":
        """The connection for such configurations, unless it has failed."""
        opening = self._connections.get(_key(name, config))
        return None if opening and opening.done() and opening.exception() else opening

    def _opening(self, name: str, config: CoreConfig, prepared: object) -> "Future[Provider]":
        with self._lock:
            opening = self._open_connection(name, config)
            if opening is None:
                opening = start_thread(partial(self._open, name, config, prepared))
                self._connections[_key(name, config)] = opening
            return opening

    def _open(self, name: str, config: CoreConfig, prepared: object) -> Provider:
        """Connect, in a thread of its own: a program that gives credentials may take its time."""
        if isinstance(prepared, ModelError):
            raise prepared
        opening = load_provider(name).open(config, prepared, self._monotonic_s)
        provider = self._stack.enter_context(opening)
        if self._is_closed:
            self._stack.close()
        return provider

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _key(name: str, config: CoreConfig) -> Hashable:
    return (name, load_provider(name).connection_key(config))
