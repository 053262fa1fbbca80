"""What a run would take: calls, tokens, money and time, without a call that costs anything."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from socratic_bench.artifacts.places import open_bucket, open_folder
from socratic_bench.config import OFFLINE_REGION, RunConfig
from socratic_bench.documents.dry_run import Expectation, Forecast, dry_run_document
from socratic_bench.forecast.paces import ASSUMED, AT_ONCE, Paces, emulated_paces
from socratic_bench.forecast.rehearsal import Rehearsal, rehearse
from socratic_bench.ports import Length
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.stores import check_stores
from socratic_bench.types import Json

# The service's own endpoints, private ones included, are asked for nothing that is not theirs.
SERVICE = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
# Models at an endpoint of this machine are an emulator's, whatever it says of itself.
LOCAL = ("localhost", "127.0.0.1", "::1")
LENGTHS: tuple[Length, ...] = ("likely", "short", "long")


def dry_run(plan: Plan, environ: Mapping[str, str]) -> dict[str, Json]:
    """The document of a dry run. Raises `UsageError` if a store is sure to be unusable."""
    config = plan.config
    check_stores([store for store in (open_folder(config), open_bucket(config)) if store])
    paces = _known_paces(config, environ)
    emulated = paces is not None
    first = rehearse(
        plan, length="likely", emulated=emulated, scales={}, paces=paces or ASSUMED["likely"]
    )
    scales = _scales(config, first)
    played = {
        length: rehearse(
            plan, length=length, emulated=emulated, scales=scales, paces=paces or ASSUMED[length]
        )
        for length in LENGTHS
        if scales or length != "likely"
    }
    played.setdefault("likely", first)
    expected = {
        length: Expectation(
            rehearsal.turns,
            rehearsal.calls,
            rehearsal.finale,
            rehearsal.duration_s,
        )
        for length, rehearsal in played.items()
    }
    forecast = Forecast(expected=expected, counted=tuple(scales), emulated=emulated)
    return dry_run_document(config, plan.benchmark.name, plan.episode, forecast, prices=plan.prices)


def _known_paces(config: RunConfig, environ: Mapping[str, str]) -> Paces | None:
    """An emulator's, wherever it is; `None` where models of the service answer."""
    if config.offline:
        return AT_ONCE
    from socratic_bench.bedrock.session import configured_endpoint

    url = configured_endpoint(config.region or OFFLINE_REGION, environ) or ""
    host = urlsplit(url).hostname or ""
    if not host or host.endswith(SERVICE):
        return None
    told = emulated_paces(url)
    return told or (AT_ONCE if host in LOCAL else None)


def _scales(config: RunConfig, rehearsal: Rehearsal) -> dict[str, float]:
    """Counted over estimated tokens, by model, of each model's largest request."""
    if config.offline:
        return {}
    from socratic_bench.bedrock.counting import count_tokens

    largest = {name: model for name, model in rehearsal.models.items() if model.largest}
    counted = count_tokens(
        {name: model.largest or {} for name, model in largest.items()},
        region=config.region or OFFLINE_REGION,
        assume_role_arn=config.assume_role_arn,
    )
    return {name: tokens / largest[name].most_tokens for name, tokens in counted.items()}
