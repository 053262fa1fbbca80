"""How long a sweep is expected to take: the longest of what its cells wait for."""

import heapq
from collections.abc import Mapping, Sequence

from msgspec import Struct

from socratic_bench.documents.dry_run import BoundBy
from socratic_bench.models.rate_target import RateTarget, target_of
from socratic_bench.ports.benchmark import Length
from socratic_bench.studies.sweep.forecast_totals import Kind, Load, Place, sum_loads
from socratic_bench.studies.sweep.grid import Cell
from socratic_bench.studies.sweep.settings import SweepSettings
from socratic_bench.types import Json

# What one process does, about: see docs/performance.md.
CALLS_PER_S = 200.0
MINUTE_S = 60.0


class Timing(Struct, frozen=True, kw_only=True):
    """The cells in their order, their forecasts, and what bounds how fast they are played."""

    cells: Sequence[Cell]
    kinds: Sequence[Kind]
    settings: SweepSettings
    targets: Sequence[RateTarget]

    def duration(self, length: Length) -> tuple[float, BoundBy]:
        """Seconds that all cells take, and what they depend on most."""
        loads = sum_loads(self.kinds, length)
        n_calls = sum(load.requests for load in loads.values())
        at_targets = [self.at_targets_s(place, load) for place, load in loads.items()]
        longest = [kind.by_length[length].duration_s for kind in self.kinds]
        bounds: dict[BoundBy, float] = {
            "longest_cell": max(longest, default=0.0),
            "max_connections": max(self._played_s(length), self._under_way_s(length)),
            "process": n_calls / CALLS_PER_S,
            "targets": max((one for one in at_targets if one is not None), default=0.0),
        }
        bound_by = max(bounds, key=lambda name: bounds[name])
        return bounds[bound_by], bound_by

    def target(self, place: Place) -> RateTarget:
        """The target that holds for a model in a region."""
        model, region = place
        return target_of(self.targets, model, region or "")

    def at_targets_s(self, place: Place, load: Load) -> float | None:
        """Seconds until the last request of a model is sent at its targets; `None` without any.

        Tokens have no slots: those of one minute may be sent at its beginning.
        """
        target = self.target(place)
        tpm = target.tokens_per_minute
        found = []
        if target.requests_per_minute:
            found.append((load.requests - 1) * target.spacing_s - target.burst_s)
        if tpm:
            found.append((load.tokens / tpm - 1) * MINUTE_S)
        return max(0.0, *found) if found else None

    def _played_s(self, length: Length) -> float:
        """When the last cell ends, if each begins as soon as one before it has left its place."""
        seconds_of = {key(one.values): one.by_length[length].duration_s for one in self.kinds}
        free_at = [0.0] * min(self.settings.max_connections, len(self.cells) or 1)
        for cell in self.cells:
            begun_s = heapq.heappop(free_at)
            heapq.heappush(free_at, begun_s + seconds_of[key(cell.values)])
        return max(free_at)

    def _under_way_s(self, length: Length) -> float:
        """How long so many requests at once take for all of them."""
        under_way_s = sum(kind.by_length[length].requests_s * kind.n for kind in self.kinds)
        return under_way_s / self.settings.max_connections


def key(values: Mapping[str, Json]) -> str:
    """The same for cells that differ in their repeat alone."""
    return repr(sorted(values.items()))
