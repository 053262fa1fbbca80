"""What a command line asks a sweep for: the settings that its runs share, and the axes."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.prices import PriceTable
from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.models.rate_target import RateTarget
from socratic_bench.runs.prepare import BUILT_IN, read_prices
from socratic_bench.settings import Sources, read_config, table
from socratic_bench.settings.reader import Flags, Reader
from socratic_bench.settings.table import SettingField
from socratic_bench.studies.sweep.bounds import Bound
from socratic_bench.studies.sweep.grid import MODEL, Axis, Grid, axis_settings
from socratic_bench.studies.sweep.plan_file import NO_PLAN, PlanFile
from socratic_bench.studies.sweep.plan_models import TARGETS
from socratic_bench.studies.sweep.prompts import read_prompts
from socratic_bench.studies.sweep.settings import SweepSettings

# Settings of a run by which one is found again: a sweep finds its runs by itself.
NOT_OF_CELLS = ("resume", "resume-from")


class SweepRequest(Struct, frozen=True, kw_only=True):
    """A sweep as it is asked for; `unread` are axes, by field, of which no value is one, or that
    are needed and not given, and settings that the plan gives wrongly. `bounds` are those on
    what all runs of a model come to: those on single runs are their own settings.
    """

    settings: SweepSettings
    grid: Grid
    plan: PlanFile = NO_PLAN
    unread: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()

    def price_tables(self) -> dict[str, PriceTable]:
        """What runs of the sweep are to know of prices: the plan's own, over those of a file.

        Raises `UsageError` with all mistakes in that file.
        """
        tables: dict[str, PriceTable] = {}
        below = read_prices(self.grid.base, tables)
        prices = self.plan.prices(below)
        return {self.grid.base.prices_file or BUILT_IN: prices} if prices else tables

    def targets(self) -> tuple[RateTarget, ...]:
        """The limits a minute that no model is sent more than: of models that are named, and of
        each other model, whoever calls it.
        """
        requests = {one.model: one.per_min for one in self.settings.target_rpm}
        tokens = {one.model: one.per_min for one in self.settings.target_tpm}
        return tuple(
            RateTarget(
                model=name,
                requests_per_minute=requests.get(name, requests.get(None)),
                tokens_per_minute=tokens.get(name, tokens.get(None)),
            )
            for name in {**requests, **tokens}
        )


def read_sweep(
    flags: Flags, sources: Sources, plan: PlanFile = NO_PLAN, *, keeps: bool = True
) -> tuple[SweepRequest, list[Words]]:
    """The sweep that flags ask for, and a plan where there is no flag, as far as they can be read,
    and every mistake in them. One that `keeps` its runs needs a store.
    """
    misgiven = [*_misgiven(plan, flags)]
    flags = {**plan.flags, **flags}
    problems: list[Words] = []
    own = Reader(SweepSettings, replace(sources, flags=flags))
    settings = SweepSettings(**{name: own.read(name) for name in table(SweepSettings)})
    problems.extend(own.problems)
    axes = [*_axes(flags, sources, settings, problems)]
    base, misread = read_config(RunConfig, replace(sources, flags=_of_cells(flags, axes)))
    problems.extend(misread)
    problems.extend(_own_problems(settings, base, axes, keeps=keeps))
    problems.extend(_contradictions(plan, axes))
    bounds = {gate: Bound.of(gate) for gate in base.gates}
    base = replace(
        base,
        gates=tuple(gate for gate, bound in bounds.items() if not bound.is_of_many),
        **{axis.name: axis.values[0] for axis in axes if axis.values},
    )
    grid = Grid(
        base=base,
        axes=tuple(axis for axis in axes if axis.values and not _is_default(axis, plan)),
        repeats=max(1, settings.repeats),
        by_model=plan.by_model,
    )
    problems = [*plan.mistakes, *(one for one in problems if not names_any(one, misgiven))]
    unread = [*misgiven, *(axis.name for axis in axes if not axis.values)]
    if not any(axis.name == MODEL for axis in axes):
        unread.append(MODEL)
    asked = SweepRequest(
        settings=settings,
        grid=grid,
        plan=plan,
        unread=tuple(unread),
        bounds=tuple(bound for bound in bounds.values() if bound.is_of_many),
    )
    return asked, problems


def names_any(said: Words, settings: Collection[str]) -> bool:
    """Whether a mistake is about one of the settings, by field."""
    return isinstance(said, Problem) and not {*said.settings}.isdisjoint(settings)


def _misgiven(plan: PlanFile, flags: Flags) -> Iterator[str]:
    """What the plan gives wrongly and no flag gives instead, with the axes of such flags."""
    left = {name: flag for name, flag in plan.misread.items() if flag not in flags}
    yield from left
    yield from (one.name for one in axis_settings() if one.setting.axis in left.values())


def _of_cells(flags: Flags, axes: Sequence[Axis]) -> Flags:
    """The flags of one of its runs: with the first word of each axis, so that what is wrong with
    the setting as such is found.
    """
    of_axes = {one.setting.axis: one for one in axis_settings()}
    own = {one.flag for one in table(SweepSettings).values()}
    kept = {
        flag: value
        for flag, value in flags.items()
        if flag not in of_axes and flag not in own and flag not in NOT_OF_CELLS
    }
    given = {axis.name for axis in axes}
    first = {
        one.flag: words[0]
        for axis, one in of_axes.items()
        if one.name in given and one.flag and isinstance(words := flags.get(axis), list) and words
        if one.setting.expand is None
    }
    return {**kept, **first}


def _axes(
    flags: Flags, sources: Sources, settings: SweepSettings, problems: list[Words]
) -> Iterator[Axis]:
    for one in axis_settings():
        if one.name == "prompt":
            if settings.prompts:
                yield Axis(one.name, _prompts(settings.prompts, problems))
        elif words := flags.get(one.setting.axis):
            asked = words if isinstance(words, list | tuple) else [str(words)]
            values = [value for word in asked for value in _values(one, word, sources, problems)]
            problems.extend(_repeated(one, values))
            yield Axis(one.name, tuple(dict.fromkeys(values)))


def _prompts(path: str, problems: list[Words]) -> tuple[str, ...]:
    try:
        return tuple(one.text for one in read_prompts(path))
    except UsageError as error:
        problems.extend(error.sentences)
        return ()


def _values(one: SettingField, word: str, sources: Sources, problems: list[Words]) -> Sequence[Any]:
    """The values that a word of an axis stands for."""
    if one.setting.expand is not None:
        try:
            return one.setting.expand(word)
        except UsageError as error:
            problems.extend(error.sentences)
            return ()
    reader = Reader(RunConfig, replace(sources, flags={one.flag or one.name: word}))
    value = reader.read(one.name)
    problems.extend(reader.problems)
    return () if reader.problems else (value,)


def _repeated(one: SettingField, values: Sequence[Any]) -> Iterator[Problem]:
    for value in dict.fromkeys(value for value in values if values.count(value) > 1):
        text = f"{{{one.name}}} names {{value!r}} more than once: {{repeats}} plays cells again."
        yield Problem.of(text, value=value)


def _is_default(axis: Axis, plan: PlanFile) -> bool:
    """Whether its only value holds for the models that have none of their own."""
    return len(axis.values) == 1 and any(axis.name in own for own in plan.by_model.values())


def _contradictions(plan: PlanFile, axes: Sequence[Axis]) -> Iterator[Problem]:
    for axis in (axis for axis in axes if len(axis.values) > 1):
        for model in (model for model, own in plan.by_model.items() if axis.name in own):
            yield Problem.of(
                f"{{{axis.name}}} names several values, but the plan gives {{model!r}} one of its "
                "own: keep one of both.",
                model=model,
            )


def _own_problems(
    settings: SweepSettings, base: RunConfig, axes: Sequence[Axis], *, keeps: bool
) -> Iterator[Problem]:
    given = {one: getattr(settings, name) for name, one in table(SweepSettings).items()}
    # Runs have seeds that follow from it, and tell nothing of the seed itself.
    for one, value in (*given.items(), (table(RunConfig)["seed"], base.seed)):
        if problem := one.bounds_problem(value):
            yield problem
    if not any(axis.name == MODEL for axis in axes):
        yield Problem.of("No models to test: give {model} with one Bedrock model id or more.")
    if keeps and not (base.output_dir or base.s3_bucket):
        yield Problem.of(
            "A sweep keeps its runs: give {output_dir} or {s3_bucket}. Nothing that is finished is "
            "lost then, and {resume} goes on with it."
        )
    for name in TARGETS:
        named = [target.model for target in getattr(settings, name)]
        for model in dict.fromkeys(one for one in named if named.count(one) > 1):
            whom = "models in general" if model is None else repr(model)
            yield Problem.of(
                f"{{{name}}} is given more than once for {{whom}}: keep one.", whom=whom
            )
    if settings.retry_failed and not settings.resume:
        yield Problem.of("{retry_failed} is given without {resume}.")
