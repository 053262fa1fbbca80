"""The models of a sweep for a look beforehand: each as some of its cells call it."""

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.models.rate_target import RateTarget, target_of
from socratic_bench.runs import doctor_calls, prepare
from socratic_bench.settings import table
from socratic_bench.studies.sweep.request import SweepRequest


def targets_of(
    asked: SweepRequest, tested: Collection[str] | None = None
) -> list[doctor_calls.Target]:
    """Every model in each role, region, tier and other setting by which calls differ, with what a
    minute is to have of it; those of the `tested` alone, if some are named. Raises `UsageError`.
    """
    tables, limits = asked.price_tables(), asked.targets()
    return [
        _with_limits(target, limits)
        for config in _configs(asked)
        if tested is None or config.model in tested
        for target in doctor_calls.targets_of(prepare(config, price_tables=tables))
    ]


def _configs(asked: SweepRequest) -> Iterator[RunConfig]:
    """One for all samples: what is played makes no other call of a model."""
    grid, declared = asked.grid, table(RunConfig)
    seen: set[tuple[object, ...]] = set()
    for cell in grid.distinct():
        values = (v for name, v in cell.values.items() if not declared[name].setting.is_sample)
        if (kind := tuple(values)) not in seen:
            seen.add(kind)
            yield grid.config(cell)


def _with_limits(target: doctor_calls.Target, limits: Sequence[RateTarget]) -> doctor_calls.Target:
    limit = target_of(limits, target.model_id, target.config.region or "")
    return replace(target, target_rpm=limit.requests_per_minute, target_tpm=limit.tokens_per_minute)
