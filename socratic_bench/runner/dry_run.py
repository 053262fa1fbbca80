"""What a run would take: calls, tokens, money and time, without a call that costs anything."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from socratic_bench.artifacts.places import open_bucket, open_folder
from socratic_bench.config import OFFLINE_REGION, RunConfig
from socratic_bench.documents.dry_run import Expectation, Forecast, dry_run_document
from socratic_bench.ports import Length
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.rehearsal import Rehearsal, rehearse
from socratic_bench.runner.stores import check_stores
from socratic_bench.types import Completion, Json
from socratic_bench.values import dataclass

ENDPOINTS = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
LENGTHS: tuple[Length, ...] = ("likely", "short", "long")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a call is expected to take: until its first token, and for each token of output."""

    first_token_ms: float
    output_token_ms: float

    def call_ms(self, call: Completion) -> float:
        output = call.usage.output_tokens if call.usage else 0
        return self.first_token_ms + self.output_token_ms * output


# Bedrock's models differ by an order of magnitude, hence the wide range. The emulator, on this
# machine, answers at once.
PACES: Mapping[Length, Pace] = {
    "short": Pace(300.0, 5.0),
    "likely": Pace(800.0, 15.0),
    "long": Pace(3000.0, 50.0),
}
EMULATED_PACE = Pace(5.0, 0.0)


def dry_run(plan: Plan, environ: Mapping[str, str]) -> dict[str, Json]:
    """The document of a dry run. Raises `UsageError` if a store is sure to be unusable."""
    config = plan.config
    check_stores([store for store in (open_folder(config), open_bucket(config)) if store])
    emulated = config.offline or _is_on_this_machine(environ)
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
            _seconds(rehearsal, EMULATED_PACE if emulated else PACES[length]),
        )
        for length, rehearsal in played.items()
    }
    forecast = Forecast(expected=expected, counted=tuple(scales), emulated=emulated)
    return dry_run_document(config, plan.benchmark.name, plan.episode, forecast, prices=plan.prices)


def _is_on_this_machine(environ: Mapping[str, str]) -> bool:
    """Whether models are called at an endpoint of this machine: there, an emulator answers."""
    url = next((environ[name] for name in ENDPOINTS if environ.get(name)), "")
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


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


def _seconds(rehearsal: Rehearsal, pace: Pace) -> float:
    """The critical path: tutor and student in turn, and the last verdict."""
    in_turn = [*rehearsal.calls["tutor"], *rehearsal.calls["student"]]
    last = rehearsal.calls["judge"][-1:]
    return sum(map(pace.call_ms, [*in_turn, *last])) / 1000
