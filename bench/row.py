"""A row of the table, and how much is measured for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. `values` are its rounds; `more_is_better` turns `must` and `aim` into minima."""

    name: str
    measure: str
    unit: str
    must: float
    aim: float
    values: tuple[float, ...]
    more_is_better: bool = False

    @property
    def best(self) -> float:
        return max(self.values) if self.more_is_better else min(self.values)

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def passes(self) -> bool:
        """Whether the median keeps to what must be."""
        return self._reaches(self.must)

    @property
    def reaches_aim(self) -> bool:
        return self._reaches(self.aim)

    def _reaches(self, bound: float) -> bool:
        return self.median >= bound if self.more_is_better else self.median <= bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured. The long dialogue is played `runs` times, all else `rounds` times.

    Of many dialogues there are `dialogues` at once, four times as many without a folder, in
    `many_rounds` processes each; beside them, if there is one, so many `against` an older tree.
    Of stored runs `report_runs` are reported; 0: none.
    """

    turns: int = 40
    latency_ms: float = 300.0
    runs: int = 3
    rounds: int = 31
    calls: int = 40
    load_s: float = 4.0
    dialogues: int = 64
    many_turns: int = 10
    many_rounds: int = 3
    report_runs: int = 0
    against: Path | None = None


Say = Callable[[str], None]


def absolute(
    name: str, measure: str, unit: str, bounds: tuple[float, float], values: Sequence[float]
) -> Row:
    return Row(
        name=name, measure=measure, unit=unit, must=bounds[0], aim=bounds[1], values=tuple(values)
    )
