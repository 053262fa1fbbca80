"""Everything that is checked before the first cell is played, all mistakes at once."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from socratic_bench.calling.rate_targets import RateTargets
from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.runner import prepare
from socratic_bench.sweeps.asked import Asked, names_any
from socratic_bench.sweeps.grid import Cell
from socratic_bench.sweeps.plan_models import TARGETS

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
    called: set[str] = set()
    for cell in _one_of_each_kind(cells):
        config = replace(grid.config(cell), max_cost_usd=grid.base.max_cost_usd)
        called.add(config.model)
        try:
            called.update(filter(None, prepare(config, price_tables=tables).models.values()))
        except UsageError as error:
            # That an axis has no value is said already where none could be read.
            mistakes = (said for said in error.said if not names_any(said, asked.unread))
            found.update(dict.fromkeys(mistakes))
        if large := targets.problem(config.model, config.region, config.max_tokens):
            found[large] = None
    # Who else is called is known once all can be.
    if not found and (unmatched := _targets_of_none(asked, called)):
        found = dict.fromkeys(unmatched)
    if found:
        raise UsageError([*found], hint="socratic-runner sweep --help lists every flag.")


def _targets_of_none(asked: Asked, called: Collection[str]) -> list[Problem]:
    """A limit of a model that no cell calls is a slip. A plan's models need not all be played."""
    known = {*called, *(model.id for model in asked.plan.models)}
    named = {
        (name, target.model): None
        for name in TARGETS
        for target in getattr(asked.settings, name)
        if target.model and target.model not in known
    }
    return [
        Problem.of(
            f"{{{name}}} names {{model!r}}, which no cell calls. They call {{called}}.",
            model=model,
            called=", ".join(sorted(called)),
        )
        for name, model in named
    ]


def _one_of_each_kind(cells: Sequence[Cell]) -> Sequence[Cell]:
    kinds = {tuple(cell.values.items()): cell for cell in reversed(cells)}
    return [*kinds.values()]
