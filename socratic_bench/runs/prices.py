"""The prices of a run, and whether all that a budget needs are known."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from socratic_bench.benchmarks import RunConfig
from socratic_bench.errors import Problem, UsageError
from socratic_bench.parts import BenchmarkSpec
from socratic_bench.settings import read_bounded

if TYPE_CHECKING:
    from socratic_bench.catalogue.price_table import PriceTable

BUILT_IN = ""  # no file has this name


def read_prices(
    config: RunConfig, known: "dict[str, PriceTable] | None" = None
) -> "PriceTable | None":
    """The user's own prices, read once for all runs that know them; `None` without any.

    `known` are those that were read, by their files' names, and under `BUILT_IN` those that stand
    in place of the built-in ones. Raises `UsageError` with all mistakes in them.
    """
    known = {} if known is None else known
    if config.prices_file is None:
        return known.get(BUILT_IN)
    if config.prices_file not in known:
        known[config.prices_file] = _read(config.prices_file)
    return known[config.prices_file]


def _read(name: str) -> "PriceTable":
    from socratic_bench.catalogue.price_table import load_prices

    try:
        content = read_bounded(name)
    except OSError as error:
        text = "{prices_file} {name} cannot be read: {why}."
        raise UsageError([Problem.of(text, name=name, why=error.strerror)]) from error
    return load_prices(content, name)


def unknown_prices(
    config: RunConfig, table: "PriceTable | None", cast: BenchmarkSpec, *, is_judged: bool
) -> Iterator[Problem]:
    """A sentence for each model without a known price, if there is a budget."""
    if not config.max_cost_usd or config.max_cost_usd < 0:
        return  # no bound, or a mistake of its own
    from socratic_bench.catalogue.price_table import builtin_prices

    table = table or builtin_prices()
    models = cast.asked_models(config, is_judged=is_judged)
    for actor, model in ((one, model) for one in cast.everyone for model in models[one.name]):
        prices = table.of(model, config.region)
        names = cast.tier(actor.name, config).names
        missing = names if prices is None else names - prices.tiers.keys()
        if missing:
            yield Problem.of(
                f"{{max_cost_usd}} needs the price of {{{actor.setting}}} {{id}}{_at(missing)}, "
                "which is not known: give it with {prices_file}, whose form socratic-runner schema "
                "prices tells.",
                id=model,
            )


def _at(missing: AbstractSet[str]) -> str:
    from socratic_bench.catalogue.rates import DEFAULT_TIER, OPTIMIZED

    told = [f"the tier {name}" for name in sorted(missing - {DEFAULT_TIER, OPTIMIZED})]
    told += ["optimized latency"] if OPTIMIZED in missing else []
    return f" at {' and '.join(told)}" if told else ""
