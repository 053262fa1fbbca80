"""What a run would take: calls, tokens, money and time, without a call that costs anything."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from socratic_bench.artifacts.places import open_bucket, open_folder
from socratic_bench.config import OFFLINE_REGION, RunConfig
from socratic_bench.documents.dry_run import Expectation, Forecast, dry_run_document
from socratic_bench.ports import Length
from socratic_bench.runner.paces import ASSUMED, AT_ONCE, Paces, emulated_paces
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.rehearsal import Rehearsal, rehearse
from socratic_bench.runner.stores import check_stores
from socratic_bench.types import ROLES, Json

ENDPOINTS = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
# Models at an endpoint of this machine are an emulator's.
LOCAL = ("localhost", "127.0.0.1", "::1")
LENGTHS: tuple[Length, ...] = ("likely", "short", "long")


def dry_run(plan: Plan, environ: Mapping[str, str]) -> dict[str, Json]:
    """The document of a dry run. Raises `UsageError` if a store is sure to be unusable."""
    config = plan.config
    check_stores([store for store in (open_folder(config), open_bucket(config)) if store])
    url = _endpoint(environ)
    emulated = config.offline or urlsplit(url).hostname in LOCAL
    paces = None
    if emulated:
        paces = AT_ONCE if config.offline else emulated_paces(url)
    first = rehearse(plan, length="likely", emulated=emulated, scales={})
    scales = _scales(config, first)
    played = {
        length: rehearse(plan, length=length, emulated=emulated, scales=scales)
        for length in LENGTHS
        if scales or length != "likely"
    }
    played.setdefault("likely", first)
    expected = {
        length: Expectation(
            rehearsal.turns,
            rehearsal.calls,
            rehearsal.finale,
            _seconds(rehearsal, paces or ASSUMED[length]),
        )
        for length, rehearsal in played.items()
    }
    forecast = Forecast(expected=expected, counted=tuple(scales), emulated=emulated)
    return dry_run_document(config, plan.benchmark.name, plan.episode, forecast, prices=plan.prices)


def _endpoint(environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in ENDPOINTS if environ.get(name)), "")


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


def _seconds(rehearsal: Rehearsal, paces: Paces) -> float:
    """The critical path: tutor and student in turn, and the last verdict."""
    path = {**rehearsal.calls, "judge": rehearsal.calls["judge"][-1:]}
    return sum(paces[role].call_ms(call) for role in ROLES for call in path[role]) / 1000
