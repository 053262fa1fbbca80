"""The table of a sweep's models and of a comparison's: their figures with intervals."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from socratic_bench.documents.comparison import Contender
from socratic_bench.documents.sweep import Estimate, Group, NoInterval, PairedDifference
from socratic_bench.settings import EMULATOR_PREFIX
from socratic_bench.studies.figures import figure_of

from .output import say_table
from .terminal import INTERVAL, UNKNOWN, number

SIMULATED = " (simulated)"  # after a cost that nobody is billed for

TOO_FEW: NoInterval = "too_few_scenarios"


def say_figures(
    heads: Mapping[str, Sequence[str]],
    groups: Sequence[Group | Contender],
    metrics: Iterable[str],
    tail: Mapping[str, Sequence[str]] = MappingProxyType({}),
    differences: Sequence[PairedDifference] = (),
) -> None:
    """Print a table of groups: cells by head, the mean of each metric with its interval, and the
    cells of the tail. Columns in which nothing is known are left out. A metric has no interval
    where too few scenarios leave its `differences` without one.
    """
    columns = [*heads.items()]
    for name in dict.fromkeys(metrics):
        figures = [figure_of(name, group.metrics) for group in groups]
        values = [number(figure.value if figure else None) for figure in figures]
        columns.append((name.rpartition(".")[2], values))
        if any(d.metric == name and d.no_interval_because == TOO_FEW for d in differences):
            continue
        columns.append((INTERVAL, [_interval_text(figure) for figure in figures]))
    known = [(head, cells) for head, cells in [*columns, *tail.items()] if {*cells} != {UNKNOWN}]
    say_table([head for head, _ in known], [*zip(*(cells for _, cells in known), strict=True)])


def format_cost(amount: float | None, models: Iterable[str], unit: str = "") -> str:
    """A cost, marked where its models are those of the built-in mock."""
    if amount is None:
        return "cost unknown" if unit else UNKNOWN
    is_simulated = all(model.startswith(EMULATOR_PREFIX) for model in models)
    return f"{number(amount)}{unit}{SIMULATED if is_simulated else ''}"


def _interval_text(figure: Estimate | None) -> str:
    """The limits, of which one may lie beyond what was played."""
    if figure is None or figure.low is figure.high is None:
        return UNKNOWN
    return f"{number(figure.low)} to {number(figure.high)}"
