"""What all processes of a sweep share, and the services that each makes of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

from msgspec import Struct

from socratic_bench.catalogue.price_table import PriceTable
from socratic_bench.models.rate_targets import RateTargets
from socratic_bench.models.rate_window import RateTarget
from socratic_bench.models.spending import SpendingLimit
from socratic_bench.ports import Benchmark
from socratic_bench.runs.services import Services
from socratic_bench.studies.sweep.grid import Grid


class Shared(Struct, frozen=True, kw_only=True):
    """Told to each process of a sweep.

    `price_tables` are the user's own by their files' names; `limit_usd` is `None` without a budget.
    What several processes have to know of each other stands in files of `folder`; one process
    needs none. Whoever reads of a cell knows settings by what `call` makes of their names; it is a
    function of a module, so that processes can be told of it.
    """

    price_tables: dict[str, PriceTable]
    targets: tuple[RateTarget, ...]
    stall_s: float
    limit_usd: float | None
    folder: str | None
    call: Callable[[str], str]

    def rate_targets(self, monotonic_s: Callable[[], float]) -> RateTargets:
        """What all requests of this process keep to; to be closed."""
        return RateTargets(
            self.targets,
            shared=self._file("rate_targets"),
            stall_s=self.stall_s,
            monotonic_s=monotonic_s,
        )

    @contextmanager
    def services(
        self,
        targets: RateTargets,
        monotonic_s: Callable[[], float],
        notice: Callable[[str], None],
        max_connections: int,
    ) -> Iterator[Services]:
        """Those of one process, with its share of connections; `notice` hears of models that are
        slowed down.
        """
        with ExitStack() as stack:
            services = stack.enter_context(
                Services(
                    monotonic_s=monotonic_s,
                    rate_targets=targets,
                    spending=self._spending(stack),
                    max_connections=max_connections,
                    on_narrowed=lambda narrowed: notice(f"{narrowed}."),
                )
            )
            services.price_tables.update(self.price_tables)
            yield services

    def _spending(self, stack: ExitStack) -> SpendingLimit | None:
        """The one that all processes share, which the stack closes."""
        if self.limit_usd is None:
            return None
        spending = SpendingLimit(self.limit_usd, shared=self._file("spending"))
        stack.callback(spending.close)
        return spending

    def _file(self, name: str) -> Path | None:
        return Path(self.folder, name) if self.folder else None


def ask_of_all(targets: RateTargets, grid: Grid, benchmark: Benchmark) -> None:
    """A report tells of the models that are asked for, here those of other processes."""
    for cell in grid.distinct():
        config = grid.config(cell)
        asked = benchmark.parts.asked_models(config, is_judged=True)
        for model in chain.from_iterable(asked.values()):
            targets.of(config.provider, config.region or "", model)
