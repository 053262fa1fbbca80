"""The prices that a run goes by, and whether they are all known where a budget needs them."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from socratic_bench.config import RunConfig, read_bounded
from socratic_bench.errors import UsageError

if TYPE_CHECKING:
    from socratic_bench.pricing.table import PriceTable


def read_prices(config: RunConfig) -> "PriceTable | None":
    """The user's own prices; `None` without any. Raises `UsageError` with all mistakes in them."""
    if config.prices_file is None:
        return None
    from socratic_bench.pricing.table import load_prices

    try:
        content = read_bounded(config.prices_file)
    except OSError as error:
        raise UsageError(
            [f"--prices {config.prices_file} cannot be read: {error.strerror}."]
        ) from error
    return load_prices(content, config.prices_file)


def unknown_prices(
    config: RunConfig, table: "PriceTable | None", *, is_judged: bool
) -> Iterator[str]:
    """A sentence for each model whose worst case a budget could not tell."""
    if not config.max_cost_usd or config.max_cost_usd < 0:
        return  # no bound, or a mistake of its own
    from socratic_bench.pricing.rates import Terms
    from socratic_bench.pricing.table import builtin_prices

    table = table or builtin_prices()
    judge = config.judge_model if is_judged else None
    roles = (("--model", config.model), ("--student-model", config.student_model))
    for flag, model in (*roles, ("--judge-model", judge)):
        prices = table.of(model, config.region) if model else None
        asked = Terms(config.service_tier, config.latency_profile)
        names = (asked if flag == "--model" else Terms()).names
        missing = names if prices is None else names - prices.tiers.keys()
        if model and missing:
            yield (
                f"--max-cost-usd needs the price of {flag} {model}{_at(missing)}, which is not "
                "known: give it with --prices (docs/cost.md)."
            )


def _at(missing: AbstractSet[str]) -> str:
    from socratic_bench.pricing.rates import DEFAULT_TIER, OPTIMIZED

    told = [f"the tier {name}" for name in sorted(missing - {DEFAULT_TIER, OPTIMIZED})]
    told += ["optimized latency"] if OPTIMIZED in missing else []
    return f" at {' and '.join(told)}" if told else ""
