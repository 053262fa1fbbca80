"""Everything that is checked before the first call, all mistakes at once."""

from collections.abc import Callable, Iterator, Sequence
from secrets import randbits
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.bedrock.settings import known_problems
from socratic_bench.benchmarks import load_benchmark
from socratic_bench.config import RunConfig
from socratic_bench.errors import UsageError
from socratic_bench.journal import Identity
from socratic_bench.ports import Benchmark, Episode
from socratic_bench.runner.prices import read_prices, unknown_prices

if TYPE_CHECKING:
    from socratic_bench.pricing.table import PriceTable

SEED_BITS = 32


class Plan(Struct, frozen=True):
    """A run that may start: its configuration is whole and its episode is read.

    `prices` are the user's own; `None` leaves the built-in ones.
    `seed_given` tells a seed that was asked for from one that was drawn.
    """

    config: RunConfig
    benchmark: Benchmark
    episode: Episode
    prices: "PriceTable | None" = None
    seed_given: bool = True

    @property
    def seed(self) -> int:
        """The seed, given or drawn."""
        assert self.config.seed is not None  # noqa: S101 -- `prepare` draws one
        return self.config.seed

    @property
    def identity(self) -> Identity:
        return Identity.of(self.config, self.episode.opening, seed_given=self.seed_given)

    def going_on(self, seed: int, turns: int) -> "Plan":
        """The same run by the seed that was drawn for it earlier, for so many turns."""
        config = replace(self.config, seed=seed, turns=turns)
        return replace(self, config=config, episode=self.benchmark.prepare(config))


def draw_seed() -> int:
    """A seed for a run that was given none."""
    return randbits(SEED_BITS)


def prepare(
    config: RunConfig,
    problems: Sequence[str] = (),
    *,
    benchmark: Benchmark | None = None,
    draw: Callable[[], int] = draw_seed,
) -> Plan:
    """Check everything and read what the episode needs.

    Raises `UsageError` with the given problems and all others that there are.
    """
    seed_given = config.seed is not None
    if not seed_given:
        config = replace(config, seed=draw())
    chosen = benchmark or load_benchmark(config.benchmark)
    found = [
        *problems,
        *config.problems(),
        *known_problems(config),
        *_gate_problems(config, chosen),
    ]
    episode, prices = None, None
    try:
        episode = chosen.prepare(config)
    except UsageError as error:
        found.extend(error.problems)
    is_judged = episode is None or episode.rubric is not None
    try:
        prices = read_prices(config)
        found.extend(unknown_prices(config, prices, is_judged=is_judged))
    except UsageError as error:
        found.extend(error.problems)
    if found or episode is None:
        raise UsageError(
            list(dict.fromkeys(found)), hint="socratic-runner --help lists every flag and variable."
        )
    return Plan(config, chosen, episode, prices, seed_given)


def _gate_problems(config: RunConfig, benchmark: Benchmark) -> Iterator[str]:
    names = [metric.name for metric in benchmark.metrics]
    for gate in config.gates:
        if gate.metric not in names:
            yield f"--fail-under names no metric: {gate.metric!r}. There is {', '.join(names)}."
