"""The models of a sweep for a look beforehand: each as some of its cells call it."""

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from socratic_bench import doctor
from socratic_bench.benchmarks import RunConfig
from socratic_bench.runner import prepare
from socratic_bench.settings import table
from socratic_bench.sweeps.asked import Asked
from socratic_bench.sweeps.settings import Target


def targets_of(asked: Asked, tested: Collection[str] | None = None) -> list[doctor.Target]:
    """Every model in each role, region, tier and other setting by which calls differ, with what a
    minute is to have of it; those of the `tested` alone, if some are named. Raises `UsageError`.
    """
    tables = asked.price_tables()
    found = [
        target
        for config in _configs(asked)
        if tested is None or config.model in tested
        for target in doctor.targets_of(prepare(config, price_tables=tables))
    ]
    return [_with_limits(target, asked) for target in found]


def _configs(asked: Asked) -> Iterator[RunConfig]:
    """One for all samples: what is played makes no other call of a model."""
    grid, declared = asked.grid, table(RunConfig)
    seen: set[tuple[object, ...]] = set()
    for cell in grid.distinct():
        values = (v for name, v in cell.values.items() if not declared[name].setting.is_sample)
        if (kind := tuple(values)) not in seen:
            seen.add(kind)
            yield grid.config(cell)


def _with_limits(target: doctor.Target, asked: Asked) -> doctor.Target:
    settings = asked.settings
    return replace(
        target,
        target_rpm=_limit(settings.target_rpm, target.model_id),
        target_tpm=_limit(settings.target_tpm, target.model_id),
    )


def _limit(targets: Sequence[Target], model_id: str) -> float | None:
    """A model's own, before the one of all that have none."""
    own = [one.per_min for one in targets if one.model == model_id]
    common = [one.per_min for one in targets if one.model is None]
    return next(iter([*own, *common]), None)
