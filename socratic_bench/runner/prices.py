"""The prices that a run goes by, and whether they are all known where a budget needs them."""

from collections.abc import Iterator
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
    from socratic_bench.pricing.rates import DEFAULT_TIER, OPTIMIZED, priced_as
    from socratic_bench.pricing.table import builtin_prices

    table = table or builtin_prices()
    judge = config.judge_model if is_judged else None
    roles = (("--model", config.model), ("--student-model", config.student_model))
    for flag, model in (*roles, ("--judge-model", judge)):
        prices = table.of(model, config.region) if model else None
        is_tutor = flag == "--model"
        asked = (config.service_tier, config.latency_profile) if is_tutor else (None, None)
        tier = priced_as(*asked)
        if model and (prices is None or prices.rates(tier) is None):
            at = "" if tier == DEFAULT_TIER else f" at the tier {tier}"
            at = " at optimized latency" if tier == OPTIMIZED else at
            yield (
                f"--max-cost-usd needs the price of {flag} {model}{at}, which is not known: "
                "give it with --prices (docs/cost.md)."
            )
