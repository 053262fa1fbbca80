"""The document of a dry run: what is expected, between what bounds, and on which assumptions."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from socratic_bench.config import RunConfig
from socratic_bench.documents.clock import seconds
from socratic_bench.documents.cost import Billing, cost_entry
from socratic_bench.documents.run import SCHEMA_VERSION, describe
from socratic_bench.documents.tally import Tally, sum_usage, usage_fields
from socratic_bench.errors import BenchError
from socratic_bench.ports import Episode, Finale, Length
from socratic_bench.pricing.rates import Terms
from socratic_bench.pricing.table import PriceTable, builtin_prices
from socratic_bench.types import ROLES, Completion, Json, Role, Turn


class Expectation(Struct, frozen=True):
    """A run as it is expected if replies have a certain length; `refusal` is what ends it early."""

    turns: Sequence[Turn]
    calls: Mapping[Role, Sequence[Completion]]
    finale: Finale
    duration_s: float
    refusal: BenchError | None

    @property
    def tallies(self) -> dict[Role, Tally]:
        return {role: Tally(completions=tuple(self.calls[role])) for role in ROLES}


class Sent(Struct, frozen=True, kw_only=True):
    """How many requests a dry run has sent itself: to count tokens, to learn whether an endpoint is
    the emulator, to see whether the bucket is there. None of them calls a model.
    """

    count_tokens: int
    emulator_pace: int
    bucket: int


class Forecast(Struct, frozen=True, kw_only=True):
    """Expectations by the length of replies. `counted` names the models whose tokens the service
    has counted; `emulated`: an emulator answers for all models.
    """

    expected: Mapping[Length, Expectation]
    counted: Sequence[str]
    emulated: bool
    sent: Sent


def dry_run_document(
    config: RunConfig,
    benchmark: str,
    episode: Episode,
    forecast: Forecast,
    *,
    prices: PriceTable | None,
) -> dict[str, Json]:
    """See `socratic-runner schema dry_run` for the meaning of each key."""
    judge = config.judge_model if episode.rubric else None
    models: dict[Role, str | None] = {
        "tutor": config.model,
        "student": config.student_model,
        "judge": judge,
    }
    billing = Billing(
        models=models,
        table=prices or builtin_prices(),
        region=config.region,
        offline=config.offline,
        tutor_terms=Terms(config.service_tier, config.latency_profile),
    )
    likely = forecast.expected["likely"]
    bounds = {name: _bound(billing, forecast.expected[length]) for name, length in BOUNDS.items()}
    return {
        "kind": "dry_run",
        "schema_version": SCHEMA_VERSION,
        "benchmark": benchmark,
        "model": config.model,
        "scenario": episode.opening.scenario,
        "prompt": episode.opening.prompt,
        "student_model": config.student_model,
        "judge_model": judge,
        "seed": config.seed,
        "n_turns": sum(not turn.replayed for turn in likely.turns),
        "end_reason": likely.finale.end_reason,
        "error": describe(likely.refusal) if likely.refusal else None,
        "usage": _usage(likely),
        "cost": cost_entry(billing, likely.tallies),
        "duration_seconds": seconds(likely.duration_s),
        **bounds,
        "budget": _budget(config, forecast.expected["long"]),
        "deadline": _deadline(config, forecast.expected),
        "sent": {
            "count_tokens": forecast.sent.count_tokens,
            "emulator_pace": forecast.sent.emulator_pace,
            "bucket": forecast.sent.bucket,
        },
        "assumptions": _assumptions(models, forecast),
    }


BOUNDS: Mapping[str, Length] = {"low": "short", "high": "long"}


def _usage(expectation: Expectation) -> dict[str, Json]:
    tallies = expectation.tallies
    return {
        **{role: _tokens([tallies[role]]) for role in ROLES},
        "total": _tokens(list(tallies.values())),
    }


def _tokens(tallies: Sequence[Tally]) -> dict[str, Json]:
    return {
        **usage_fields(sum_usage([tally.usage for tally in tallies])),
        "calls": sum(len(tally.completions) for tally in tallies),
    }


def _bound(billing: Billing, expectation: Expectation) -> dict[str, Json]:
    cost = cost_entry(billing, expectation.tallies)
    total = cost["total"] if cost else None
    return {
        "usage": _tokens(list(expectation.tallies.values())),
        "cost_usd": total["total_usd"] if isinstance(total, dict) else None,
        "duration_seconds": seconds(expectation.duration_s),
    }


def _budget(config: RunConfig, high: Expectation) -> dict[str, Json] | None:
    if config.max_cost_usd is None:
        return None
    return {
        "max_cost_usd": config.max_cost_usd,
        "covers_high": high.finale.end_reason != "budget",
    }


def _deadline(config: RunConfig, expected: Mapping[Length, Expectation]) -> dict[str, Json] | None:
    if config.deadline_s is None:
        return None
    return {
        "deadline_s": config.deadline_s,
        "covers_expected": expected["likely"].finale.end_reason != "deadline",
        "covers_high": expected["long"].finale.end_reason != "deadline",
    }


def _assumptions(models: Mapping[Role, str | None], forecast: Forecast) -> dict[str, Json]:
    used = {role: model for role, model in models.items() if model}
    return {
        "replies": {role: _replies(role, forecast) for role in used},
        "token_counts": {
            role: "counted" if model in forecast.counted else "estimated"
            for role, model in used.items()
        },
        "notes": list(NOTES),
    }


def _replies(role: Role, forecast: Forecast) -> dict[str, Json]:
    """Output tokens of one call on average, and how they are known."""
    return {
        "source": "emulator" if forecast.emulated else "assumed",
        "low_tokens": _mean_output(forecast.expected["short"].calls[role]),
        "tokens": _mean_output(forecast.expected["likely"].calls[role]),
        "high_tokens": _mean_output(forecast.expected["long"].calls[role]),
    }


def _mean_output(calls: Sequence[Completion]) -> float | None:
    usage = sum_usage([call.usage for call in calls])
    return round(usage.output_tokens / len(calls), 1) if usage and calls else None


NOTES = (
    (
        "All turns are played from the first one on, whatever an earlier process has done, unless "
        "the student leaves, budget or deadline are used up, or the emulator refuses."
    ),
    "Every call is answered at the first attempt, and every verdict can be read.",
    (
        "All models at an endpoint that says it is the emulator reply as the emulator does; other "
        "models reply with texts of an assumed length, and nothing is known of what they refuse."
    ),
    "A cache entry outlives the time between two turns.",
)
