"""What a run would take: calls, tokens, money and time, without a call that costs anything."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from time import monotonic

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.dry_run import DryRunDocument, Expectation, Forecast, Sent
from socratic_bench.forecast.latency_models import EMBEDDED, emulation_at
from socratic_bench.forecast.models import Sizes
from socratic_bench.forecast.simulation import Simulation, simulate
from socratic_bench.ports import Length
from socratic_bench.providers import load_provider
from socratic_bench.runner.plan import Plan
from socratic_bench.settings import BEDROCK, OFFLINE_REGION
from socratic_bench.storage.places import check_stores, open_bucket, open_folder
from socratic_bench.types import Json

LENGTHS: tuple[Length, ...] = ("likely", "short", "long")


def dry_run(
    plan: Plan, environ: Mapping[str, str], call: Callable[[str], str] = str
) -> dict[str, Json]:
    """The document of a dry run, in which settings are called as `call` does.

    Raises `UsageError` if a store is sure to be unusable.
    """
    config = plan.config
    bucket = open_bucket(config)
    check_stores([store for store in (open_folder(config), bucket) if store])
    url = _foreign_endpoint(config, environ)
    emulation = EMBEDDED if config.offline else emulation_at(url) if url else None
    with _sizes(config) as sizes:
        foretell = partial(simulate, plan, emulation=emulation, sizes=sizes)
        first = foretell(length="likely", scales={})
        scales, n_counts = _scales(config, first)
        played = {
            length: foretell(length=length, scales=scales)
            for length in LENGTHS
            if scales or length != "likely"
        }
    played.setdefault("likely", first)
    expected = {
        length: Expectation(
            simulation.turns,
            simulation.calls,
            simulation.episode_result,
            simulation.duration_s,
            simulation.refusal,
            simulation.lacks_closing,
        )
        for length, simulation in played.items()
    }
    if refusal := played["likely"].refusal:
        refusal.call_settings(call)
    sent = Sent(count_tokens=n_counts, emulator_pace=int(bool(url)), bucket=int(bool(bucket)))
    forecast = Forecast(
        expected=expected, counted=tuple(scales), emulated=emulation is not None, sent=sent
    )
    document = DryRunDocument.of(
        config,
        plan.benchmark,
        plan.episode,
        forecast,
        models=plan.models,
        prices=plan.prices,
    )
    return document.printed


@contextmanager
def _sizes(config: RunConfig) -> Iterator[Sizes | None]:
    """How a provider sizes requests; `None` for Bedrock, whose refusals are foretold besides."""
    if config.provider == BEDROCK:
        yield None
        return
    module = load_provider(config.provider)
    with module.open(config, module.prepare(config), monotonic) as provider:
        yield provider.sizes


def _foreign_endpoint(config: RunConfig, environ: Mapping[str, str]) -> str | None:
    """The URL of an endpoint that is not the service's own, which may be an emulator's: its own are
    never asked if they are one.
    """
    if config.offline or config.provider != BEDROCK:
        return None
    from socratic_bench.providers.bedrock.session import configured_endpoint, is_aws

    url = configured_endpoint(config.region or OFFLINE_REGION, environ)
    return url if url and not is_aws(url) else None


def _scales(config: RunConfig, simulation: Simulation) -> tuple[dict[str, float], int]:
    """By model, counted tokens divided by estimated ones, for its largest request; and how many
    requests that took.
    """
    if config.offline or config.provider != BEDROCK:
        return {}, 0
    from socratic_bench.providers.bedrock.counting import count_tokens

    largest = {name: model for name, model in simulation.models.items() if model.largest}
    counts = count_tokens(
        {name: model.largest or {} for name, model in largest.items()},
        region=config.region or OFFLINE_REGION,
        assume_role_arn=config.assume_role_arn,
    )
    scales = {name: tokens / largest[name].most_tokens for name, tokens in counts.tokens.items()}
    return scales, counts.n_sent
