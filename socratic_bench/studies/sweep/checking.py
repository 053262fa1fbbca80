"""Everything that is checked before the first cell is played, all mistakes at once."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.models.rate_limiter import RateTargets
from socratic_bench.runs import prepare
from socratic_bench.studies.sweep.bounds import Feasibility, misnamed, without_extra
from socratic_bench.studies.sweep.grid import MODEL, axis_settings
from socratic_bench.studies.sweep.plan_models import TARGETS
from socratic_bench.studies.sweep.request import SweepRequest, names_any

if TYPE_CHECKING:
    from socratic_bench.catalogue.prices import PriceTable


def check(
    asked: SweepRequest,
    problems: Sequence[Words],
    has_intervals: Callable[[], bool] = lambda: True,
    *,
    is_judge_known: bool = True,
) -> None:
    """Raise `UsageError` with every mistake: those that are given, those of bounds which nothing
    could reach, and those of any kind of cell. `has_intervals` is asked only if it matters. A limit
    of a model that nobody calls is none where it could be a judge that is named elsewhere.

    Repeats of a kind differ in their seeds alone, so one of each is looked at.
    """
    found: dict[Words, None] = dict.fromkeys([*problems, *_misbounded(asked, has_intervals)])
    grid = asked.grid
    tables: dict[str, PriceTable] = {}
    with suppress(UsageError):  # each run with such a file tells its mistakes
        tables = asked.price_tables()
    targets = RateTargets(asked.targets())
    called = {*asked.plan.ids} if MODEL in asked.unread else set()
    axes = [one.name for one in axis_settings() if one.setting.is_sample]
    feasibility = Feasibility(method=asked.settings.interval, axes=axes)
    for cell in grid.distinct():
        config = replace(grid.config(cell), max_cost_usd=grid.base.max_cost_usd)
        try:
            plan = prepare(config, price_tables=tables)
            called.update(*plan.requested_models.values())
            feasibility.add(tuple(cell.values.get(axis) for axis in grid.cluster_axes), plan)
        except UsageError as error:
            called.update(_named_by(config))
            # That an axis has no value is said already where none could be read.
            mistakes = (said for said in error.sentences if not names_any(said, asked.unread))
            found.update(dict.fromkeys(mistakes))
        if large := targets.problem(config.model, config.region, config.max_tokens):
            found[large] = None
    if is_judge_known and not _is_unsaid_who(asked, problems):
        found.update(dict.fromkeys(_targets_of_none(asked, called)))
    if asked.bounds and not found:  # what they can come to is known once all can be played
        benchmark = load_benchmark(grid.base.benchmark)
        found.update(dict.fromkeys(feasibility.problems(asked.bounds, benchmark)))
    if found:
        raise UsageError([*found], hint="socratic-runner sweep --help lists every flag.")


def _misbounded(asked: SweepRequest, has_intervals: Callable[[], bool]) -> Iterator[Words]:
    """What is wrong with bounds on all runs of a model, whatever is played."""
    if not asked.bounds:
        return
    try:
        yield from misnamed(asked.bounds, load_benchmark(asked.grid.base.benchmark))
    except UsageError:  # each cell tells of an unknown benchmark
        return
    yield from without_extra(asked.bounds, has_intervals)


def _named_by(config: RunConfig) -> Iterator[str]:
    """Whom a run would call, as far as that is known of one that cannot be played."""
    with suppress(UsageError):  # an unknown benchmark
        parts = load_benchmark(config.benchmark).parts
        yield from chain.from_iterable(parts.requested_models(config, is_judged=True).values())


def _is_unsaid_who(asked: SweepRequest, problems: Sequence[Words]) -> bool:
    """Whether a setting by which a model is called cannot be read."""
    try:
        actors = load_benchmark(asked.grid.base.benchmark).parts.everyone
    except UsageError:
        return True
    named = {MODEL} if asked.plan.ids else set()
    others = {actor.setting for actor in actors} - {MODEL}
    return not {MODEL, *others}.isdisjoint({*asked.unread} - named) or any(
        names_any(one, others) for one in problems
    )


def _targets_of_none(asked: SweepRequest, called: Collection[str]) -> list[Problem]:
    """A limit of a model that no cell calls is a slip. A plan's models need not all be played."""
    known = {*called, *asked.plan.ids}
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
            called=", ".join(sorted(filter(None, called))),
        )
        for name, model in named
    ]
