"""Everything that is checked before the first cell is played, all mistakes at once."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from socratic_bench.calling.rate_targets import RateTargets
from socratic_bench.errors import UsageError, Words
from socratic_bench.runner import prepare
from socratic_bench.sweeps.asked import Asked
from socratic_bench.sweeps.grid import Cell

if TYPE_CHECKING:
    from socratic_bench.pricing.table import PriceTable


def check(asked: Asked, problems: Sequence[Words], cells: Sequence[Cell]) -> None:
    """Raise `UsageError` with every mistake: those that are given, and those of any kind of cell.

    Repeats of a kind differ in their seeds alone, so one of each is looked at.
    """
    found: dict[Words, None] = dict.fromkeys(problems)
    grid = asked.grid
    tables: dict[str, PriceTable] = {}
    with suppress(UsageError):  # each run with such a file tells its mistakes
        tables = asked.price_tables()
    targets = RateTargets(asked.targets())
    for cell in _one_of_each_kind(cells):
        config = replace(grid.config(cell), max_cost_usd=grid.base.max_cost_usd)
        try:
            prepare(config, price_tables=tables)
        except UsageError as error:
            found.update(dict.fromkeys(said for said in error.said if _counts(said, asked)))
        if large := targets.problem(config.model, config.region, config.max_tokens):
            found[large] = None
    if found:
        raise UsageError([*found], hint="socratic-runner sweep --help lists every flag.")


def _counts(said: Words, asked: Asked) -> bool:
    """That an axis has no value is said already where none could be read."""
    return isinstance(said, str) or not {*said.settings} & {*asked.unread}


def _one_of_each_kind(cells: Sequence[Cell]) -> Sequence[Cell]:
    kinds = {tuple(cell.values.items()): cell for cell in reversed(cells)}
    return [*kinds.values()]
