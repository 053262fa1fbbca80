"""What a run would take: calls, tokens, money and time, without a call that costs anything."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.dry_run import DryRunDocument, Forecast, Sent
from socratic_bench.models.providers import load_provider
from socratic_bench.ports import Length
from socratic_bench.runs.dry_run.latency_models import EMBEDDED, Emulation, emulation_at
from socratic_bench.runs.dry_run.models import Sizes
from socratic_bench.runs.dry_run.simulation import Simulation, simulate
from socratic_bench.runs.plan import Plan
from socratic_bench.settings import BEDROCK, OFFLINE_REGION
from socratic_bench.storage.stores import check_stores, open_bucket, open_folder
from socratic_bench.types import Json

OTHERS: tuple[Length, ...] = ("short", "long")


def dry_run(plan: Plan, call: Callable[[str], str] = str) -> dict[str, Json]:
    """The document of a dry run, in which settings are called as `call` does.

    Raises `UsageError` if a store is sure to be unusable.
    """
    forecaster = Forecaster()
    forecaster.check_stores(plan.config)
    forecast = forecaster.forecast(plan)
    if refusal := forecast.expected["likely"].refusal:
        refusal.call_settings(call)
    document = DryRunDocument.of(
        plan.config, plan.benchmark, plan.episode, forecast, models=plan.models, prices=plan.prices
    )
    return document.printed


class Forecaster:
    """Forecasts runs, one after the other.

    What they have in common is asked for once: which endpoint answers, and how many tokens a
    model's request has. The prompt caches keep instructions from one run to the next.
    """

    def __init__(self) -> None:
        self._emulations: dict[str, Emulation | None] = {}
        self._scales: dict[tuple[Hashable, str], float | None] = {}
        self._prefixes: dict[Hashable, set[int]] = {}
        self._n_counts = 0
        self._n_buckets = 0

    @property
    def sent(self) -> Sent:
        """The requests that forecasting took so far."""
        return Sent(
            count_tokens=self._n_counts, emulator_pace=len(self._emulations), bucket=self._n_buckets
        )

    @property
    def n_prefixes(self) -> int:
        """How many prefixes of instructions are cached for runs to come."""
        return sum(map(len, self._prefixes.values()))

    def check_stores(self, config: RunConfig) -> None:
        """Raises `UsageError` if a store of the run is sure to be unusable."""
        bucket = open_bucket(config)
        self._n_buckets += bucket is not None
        check_stores([store for store in (open_folder(config), bucket) if store])

    def forecast(self, plan: Plan) -> Forecast:
        """What the run is expected to take."""
        config, emulation = plan.config, self._emulation(plan.config)
        with _sizes(config) as sizes:

            def played(length: Length) -> Simulation:
                learned: dict[Hashable, set[int]] = {}
                simulation = simulate(
                    plan,
                    length=length,
                    emulation=emulation,
                    scales=self._known_scales(config),
                    sizes=sizes,
                    prefixes=partial(self._copied, learned, length, config),
                )
                if length != "likely" or not self._count(config, simulation):
                    self._prefixes |= learned
                    return simulation
                return played(length)  # with the tokens that were counted

            likely = played("likely")
            # The replies and paces of an emulator are known.
            lengths = {length: likely if emulation else played(length) for length in OTHERS}
        scales = self._known_scales(config)
        return Forecast(
            expected={
                length: simulation.expectation
                for length, simulation in {"likely": likely, **lengths}.items()
            },
            counted=tuple(name for name in likely.models if name in scales),
            emulated=emulation is not None,
            sent=self.sent,
        )

    def _emulation(self, config: RunConfig) -> Emulation | None:
        if config.offline:
            return EMBEDDED
        url = _foreign_endpoint(config)
        if url and url not in self._emulations:
            self._emulations[url] = emulation_at(url)
        return self._emulations[url] if url else None

    def _copied(
        self, learned: dict[Hashable, set[int]], length: Length, config: RunConfig, model: str
    ) -> set[int]:
        """What a model's cache knows; others know what it learns once this run is played."""
        key = (length, config.region, model)
        return learned.setdefault(key, set(self._prefixes.get(key, ())))

    def _known_scales(self, config: RunConfig) -> dict[str, float]:
        """By model, counted tokens divided by estimated ones."""
        place = _place(config)
        return {
            model: scale
            for (where, model), scale in self._scales.items()
            if where == place and scale is not None
        }

    def _count(self, config: RunConfig, simulation: Simulation) -> bool:
        """Have the service count the largest request of each model that is new; whether it did."""
        if config.offline or config.provider != BEDROCK:
            return False
        from socratic_bench.models.bedrock.counting import count_tokens

        place = _place(config)
        new = {
            name: model
            for name, model in simulation.models.items()
            if model.largest and (place, name) not in self._scales
        }
        if not new:
            return False
        counts = count_tokens(
            {name: model.largest or {} for name, model in new.items()},
            region=config.region or OFFLINE_REGION,
            assume_role_arn=config.assume_role_arn,
        )
        self._n_counts += counts.n_sent
        for name, model in new.items():
            tokens = counts.tokens.get(name)
            self._scales[place, name] = None if tokens is None else tokens / model.most_tokens
        return bool(counts.tokens)


def _place(config: RunConfig) -> Hashable:
    return config.region, config.assume_role_arn


@contextmanager
def _sizes(config: RunConfig) -> Iterator[Sizes | None]:
    """How a provider sizes requests; `None` for Bedrock, whose refusals are foretold besides."""
    if config.provider == BEDROCK:
        yield None
        return
    module = load_provider(config.provider)
    with module.open(config, module.prepare(config), monotonic) as provider:
        yield provider.sizes


def _foreign_endpoint(config: RunConfig) -> str | None:
    """The URL of an endpoint that is not the service's own, which may be an emulator's: its own are
    never asked if they are one.
    """
    if config.offline or config.provider != BEDROCK:
        return None
    from socratic_bench.models.bedrock.session import configured_endpoint, is_aws

    url = configured_endpoint(config.region or OFFLINE_REGION)
    return url if url and not is_aws(url) else None
