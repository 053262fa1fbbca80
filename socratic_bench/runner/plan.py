"""Everything that is checked before the first call, all mistakes at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from secrets import randbits
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.errors import Problem, UsageError, Words
from socratic_bench.journal import Identity
from socratic_bench.parts import Parts
from socratic_bench.ports import Benchmark, Episode
from socratic_bench.providers import load_provider
from socratic_bench.redaction import look_again
from socratic_bench.runner.prices import read_prices, unknown_prices
from socratic_bench.types import JUDGE, Role

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
    def models(self) -> Mapping[Role, str | None]:
        """The model of each role; `None` where none takes part."""
        is_judged = self.episode.rubric is not None
        return self.benchmark.parts.models(self.config, is_judged=is_judged)

    @property
    def speakers(self) -> Mapping[Role, str]:
        """The models that an episode is played with, by role."""
        return {role: model for role, model in self.models.items() if model and role != JUDGE}

    @property
    def identity(self) -> Identity:
        played = self.benchmark.parts.sample.of(self.episode.opening)
        return Identity.of(self.config, self.episode.opening, played, seed_given=self.seed_given)

    def going_on(self, seed: int, turns: int) -> "Plan":
        """The same plan with the seed that was drawn earlier, and for so many turns."""
        config = replace(self.config, seed=seed, turns=turns)
        return replace(self, config=config, episode=self.benchmark.prepare(config))


def draw_seed() -> int:
    """A seed for a run that was given none."""
    return randbits(SEED_BITS)


def prepare(
    config: RunConfig,
    problems: Sequence[Words] = (),
    *,
    benchmark: Benchmark | None = None,
    draw: Callable[[], int] = draw_seed,
) -> Plan:
    """Check everything and read what the episode needs.

    Raises `UsageError` with the given problems and all others that there are.
    """
    look_again()
    seed_given = config.seed is not None
    if not seed_given:
        config = replace(config, seed=draw())
    found: list[Words] = [*problems, *config.problems(), *_provider_problems(config)]
    chosen, episode, prices = benchmark, None, None
    try:
        chosen = chosen or load_benchmark(config.benchmark)
        found.extend(_gate_problems(config, chosen))
        episode = chosen.prepare(config)
    except UsageError as error:
        found.extend(error.said)
    is_judged = episode is None or episode.rubric is not None
    try:
        prices = read_prices(config)
        parts = chosen.parts if chosen else Parts()
        found.extend(unknown_prices(config, prices, parts, is_judged=is_judged))
    except UsageError as error:
        found.extend(error.said)
    if found or chosen is None or episode is None:
        raise UsageError(found, hint="socratic-runner --help lists every flag and variable.")
    return Plan(config, chosen, episode, prices, seed_given)


def _provider_problems(config: RunConfig) -> Iterator[Words]:
    try:
        yield from load_provider(config.provider).problems(config)
    except UsageError as error:
        yield from error.said


def _gate_problems(config: RunConfig, benchmark: Benchmark) -> Iterator[Problem]:
    names = [metric.name for metric in benchmark.metrics]
    for gate in config.gates:
        if gate.metric not in names:
            yield Problem.of(
                "{gates} names no metric: {metric!r}. There is {known}.",
                metric=gate.metric,
                known=", ".join(names),
            )
