"""What all processes of a sweep share, and the services that each makes of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from socratic_bench.pricing.table import PriceTable
from socratic_bench.services import Services


class Shared(Struct, frozen=True, kw_only=True):
    """Told to each process of a sweep; `price_tables` are the user's own by their files' names."""

    price_tables: dict[str, PriceTable]

    @contextmanager
    def services(self, monotonic_s: Callable[[], float]) -> Iterator[Services]:
        """Those of one process."""
        with Services(monotonic_s=monotonic_s) as services:
            services.price_tables.update(self.price_tables)
            yield services
