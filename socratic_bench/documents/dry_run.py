"""The estimates of a dry run, of one run and of a sweep: usage, cost, time and assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from socratic_bench.catalogue.prices import BATCH, PriceSource, PriceTable
from socratic_bench.documents.cost import Billing, CostEntry, role_usd
from socratic_bench.documents.document import (
    TIME_PLACES,
    USD_PLACES,
    Amount,
    BenchmarkName,
    Count,
    Document,
    ErrorEntry,
    Model,
    Seed,
    SeedEntry,
    keys,
    part,
)
from socratic_bench.documents.sweep import AxisValues, CostUsd, Value
from socratic_bench.documents.usage import CallUsage, RoleUsage, sum_usage
from socratic_bench.errors import BenchError
from socratic_bench.ports.benchmark import Benchmark, Episode, EpisodeResult, Length
from socratic_bench.ports.parts import Part
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn
from socratic_bench.types import JUDGE, Completion, EndReason, Role, doc

# Printed with the estimate of a run.
NOTES = (
    (
        "All turns are played from the first one on, whatever an earlier process has done, unless "
        "another actor ends it, budget or deadline are used up, or the emulator refuses."
    ),
    "Every call is answered at the first attempt, and every verdict can be read.",
    (
        "All models at an endpoint that says it is the emulator reply as the emulator does; other "
        "models reply with texts of an assumed length, and nothing is known of what they refuse."
    ),
    "A cache entry outlives the time between two turns.",
)
# Printed with the estimate of a sweep.
ASSUMPTIONS = (
    "Each combination of settings is estimated once, by its first repeat.",
    "Runs that ended, by the sweep's index, are left out; all others start at their first turn.",
    "What several runs have in common of a model's instructions is written to its cache once.",
    (
        "The time is the longest of these: the runs in their order, and their requests, as many "
        "at once as are allowed; every model's requests and tokens at its targets; and some 200 "
        "calls a second."
    ),
    "At flex, calls may take longer, by how much is not known.",
)

Usd = Annotated[Amount | None, doc("USD; null if a price is unknown")]
PerMinute = Annotated[int, Meta(ge=1)]
ExpectedUsage = Annotated[
    dict[str, Annotated[CallUsage, doc("of the role, or of all roles")]],
    keys("roles and total"),
    doc("expected tokens and calls"),
]


class Expectation(Struct, frozen=True):
    """The expected course of a run, if replies have a certain length.

    Attributes:
        refusal: what ends the run early.
        lacks_closing: whether the budget has no room for the closing verdict.
        largest_usd: the most that one request can cost; 0 without a budget.
    """

    turns: Sequence[Turn]
    calls: Mapping[Role, Sequence[Completion]]
    episode_result: EpisodeResult
    duration_s: float
    refusal: BenchError | None
    lacks_closing: bool = False
    largest_usd: float = 0.0

    @property
    def tallies(self) -> dict[Role, RoleUsage]:
        return {role: RoleUsage(completions=tuple(calls)) for role, calls in self.calls.items()}


class Sent(Struct, frozen=True, kw_only=True):
    """Requests that the dry run itself sent; none calls a model."""

    count_tokens: Annotated[Count, doc("asked the service to count tokens")]
    emulator_pace: Annotated[Count, doc("asked a custom endpoint whether it is the emulator")]
    bucket: Annotated[Count, doc("looked whether the bucket exists")]


class Forecast(Struct, frozen=True, kw_only=True):
    """Expectations by the length of replies.

    Attributes:
        counted: models whose tokens the service has counted.
        emulated: whether an emulator answers for all models.
        sent: requests of this dry run and of earlier ones that it reuses.
    """

    expected: Mapping[Length, Expectation]
    counted: Sequence[str]
    emulated: bool
    sent: Sent


class Bound(Struct, frozen=True, kw_only=True):
    """Estimate of a run, or of cells, for one length of replies."""

    usage: Annotated[CallUsage, doc("tokens and calls of all roles")]
    cost_usd: Annotated[Amount | None, doc("USD in total; null if a price is unknown")]
    duration_seconds: Annotated[Amount, doc("expected seconds")]

    @classmethod
    def of(cls, billing: Billing, expectation: Expectation) -> Bound:
        cost = CostEntry.of(billing, expectation.tallies)
        total = cost.roles["total"] if cost else None
        return cls(
            usage=CallUsage.of_all([*expectation.tallies.values()]),
            cost_usd=total.total_usd if total else None,
            duration_seconds=round(expectation.duration_s, TIME_PLACES),
        )


class ViaPrices(Struct, frozen=True, kw_only=True):
    """What a role's calls are expected to cost, by the way in which they are made."""

    now_usd: Usd
    flex_usd: Annotated[Amount | None, doc("USD at the tier flex; null if it has no price")]
    batch_usd: Annotated[
        Amount | None,
        doc(
            "USD in batch jobs, where nothing is cached; null: no price, or calls depend on others"
        ),
    ]
    cheaper: Annotated[Literal["now", "batch"], doc("what `auto` takes where a batch is possible")]

    @classmethod
    def by_role(
        cls, billing: Billing, expectation: Expectation, benchmark: Benchmark
    ) -> dict[Role, ViaPrices]:
        """The prices of all roles; a batch is for calls on whose answers no other call depends."""
        single = {JUDGE, benchmark.cast.tested} if benchmark.has_single_calls else {JUDGE}
        return {
            role: cls._of(billing, role, calls, has_batch=role in single)
            for role, calls in expectation.calls.items()
        }

    @classmethod
    def sum(cls, prices: Sequence[tuple[ViaPrices, int]]) -> ViaPrices:
        """Those of several kinds of runs, with their numbers."""
        usd = {
            name: round(sum(n * getattr(price, name) for price, n in prices), USD_PLACES)
            for name in ("now_usd", "flex_usd", "batch_usd")
            if all(getattr(price, name) is not None for price, _ in prices)
        }
        return cls._cheaper(usd.get("now_usd"), usd.get("flex_usd"), usd.get("batch_usd"))

    @classmethod
    def _of(
        cls, billing: Billing, role: Role, calls: Sequence[Completion], *, has_batch: bool
    ) -> ViaPrices:
        now_usd = role_usd(billing, role, calls)
        flex_usd = role_usd(billing, role, [replace(c, served_tier="flex") for c in calls])
        in_batch = [
            replace(c, served_tier=BATCH, usage=c.usage and c.usage.uncached) for c in calls
        ]
        batch_usd = role_usd(billing, role, in_batch) if has_batch else None
        return cls._cheaper(now_usd, flex_usd, batch_usd)

    @classmethod
    def _cheaper(cls, now_usd: Usd, flex_usd: Usd, batch_usd: Usd) -> ViaPrices:
        is_batch = batch_usd is not None and now_usd is not None and batch_usd < now_usd
        cheaper: Literal["now", "batch"] = "batch" if is_batch else "now"
        return cls(now_usd=now_usd, flex_usd=flex_usd, batch_usd=batch_usd, cheaper=cheaper)

    @property
    def words(self) -> str:
        """Both prices for people."""
        usd = [
            "an unknown price" if value is None else f"{value:.6f} USD"
            for value in (self.now_usd, self.batch_usd)
        ]
        return f"expected are {usd[0]} on demand, cached, and {usd[1]} in a batch"


class BudgetCheck(Struct, frozen=True, kw_only=True):
    """Whether the budget is enough."""

    max_cost_usd: Annotated[float, Meta(gt=0, description="USD, the budget")]
    covers_high: Annotated[bool, doc("whether it covers the high cost")]

    @classmethod
    def of(cls, config: CoreConfig, high: Expectation) -> BudgetCheck | None:
        if config.max_cost_usd is None:
            return None
        covers = high.episode_result.end_reason != "budget" and not high.lacks_closing
        return cls(max_cost_usd=config.max_cost_usd, covers_high=covers)


class DeadlineCheck(Struct, frozen=True, kw_only=True):
    """Whether the deadline is late enough."""

    deadline_s: Annotated[float, Meta(gt=0, description="seconds, the deadline")]
    covers_expected: Annotated[bool, doc("whether it covers the expected time")]
    covers_high: Annotated[bool, doc("whether it covers the longest time")]

    @classmethod
    def of(cls, config: CoreConfig, expected: Mapping[Length, Expectation]) -> DeadlineCheck | None:
        if config.deadline_s is None:
            return None
        return cls(
            deadline_s=config.deadline_s,
            covers_expected=expected["likely"].episode_result.end_reason != "deadline",
            covers_high=expected["long"].episode_result.end_reason != "deadline",
        )


class Replies(Struct, frozen=True, kw_only=True):
    """Mean output tokens of a call, and their source."""

    source: Annotated[
        Literal["emulator", "assumed"],
        doc("emulator: the length of a simulated model's replies is known"),
    ]
    low_tokens: Annotated[Amount | None, doc("if replies are short; null: no calls")]
    tokens: Annotated[Amount | None, doc("as expected; null: no calls")]
    high_tokens: Annotated[Amount | None, doc("if replies are long; null: no calls")]

    @classmethod
    def of(cls, role: Role, forecast: Forecast) -> Replies:
        return cls(
            source="emulator" if forecast.emulated else "assumed",
            low_tokens=_mean_output(forecast.expected["short"].calls[role]),
            tokens=_mean_output(forecast.expected["likely"].calls[role]),
            high_tokens=_mean_output(forecast.expected["long"].calls[role]),
        )


class Assumptions(Struct, frozen=True, kw_only=True):
    """What the estimate assumes; roles without a model are left out."""

    replies: Annotated[
        dict[str, Annotated[Replies, doc("mean output tokens of a call")]],
        keys("some roles"),
        doc("length of replies, by role"),
    ]
    token_counts: Annotated[
        dict[
            str,
            Annotated[
                Literal["counted", "estimated"],
                doc("counted: scaled to CountTokens of the largest request"),
            ],
        ],
        keys("some roles"),
        doc("source of input tokens, by role"),
    ]
    notes: Annotated[list[str], doc("the other assumptions, a sentence each")]

    @classmethod
    def of(cls, models: Mapping[Role, str | None], forecast: Forecast) -> Assumptions:
        used = {role: model for role, model in models.items() if model}
        return cls(
            replies={role: Replies.of(role, forecast) for role in used},
            token_counts={
                role: "counted" if {*model.split("+")} <= {*forecast.counted} else "estimated"
                for role, model in used.items()
            },
            notes=list(NOTES),
        )


class ExpectedJuror(Struct, frozen=True, kw_only=True):
    """Estimate of one juror's calls."""

    model: Model
    usage: Annotated[CallUsage, doc("its expected tokens and calls")]
    cost_usd: Annotated[Usd, doc("expected USD; null if a price is unknown")]
    low_usd: Annotated[Usd, doc("USD if replies are short; null as above")]
    high_usd: Annotated[Usd, doc("USD if replies are long; null as above")]

    @classmethod
    def of(
        cls, model_id: str, billing: Billing, calls: Mapping[Length, Sequence[Completion]]
    ) -> ExpectedJuror:
        """The estimate from all calls of the jury, by the length of replies."""
        by_length = {
            length: [call for call in of_jury if call.model_id == model_id]
            for length, of_jury in calls.items()
        }
        return cls(
            model=model_id,
            usage=CallUsage.of_all([RoleUsage(completions=tuple(by_length["likely"]))]),
            cost_usd=role_usd(billing, JUDGE, by_length["likely"]),
            low_usd=role_usd(billing, JUDGE, by_length["short"]),
            high_usd=role_usd(billing, JUDGE, by_length["long"]),
        )


class DryRunDocument(Document, frozen=True, kw_only=True):
    """Estimate of a run."""

    kind: Literal["dry_run"] = "dry_run"
    benchmark: BenchmarkName
    model: Model
    sample: Annotated[Part, part("sample", is_known=True)] = field(
        name="*sample", default_factory=Part
    )
    prompt: Annotated[str, doc("the first message to the model under test")]
    benchmark_keys: Annotated[Part, part("dry_run")] = field(
        name="*benchmark_keys", default_factory=Part
    )
    other_models: Annotated[
        dict[str, Annotated[str | None, doc("its model; null: no model has this role")]],
        keys("settings of others"),
    ] = field(name="*other_models", default_factory=dict)
    judge_model: Annotated[str | None, doc("the judge model; null without one")]
    jurors: Annotated[list[ExpectedJuror], doc("estimate of each judge model")]
    seed: SeedEntry
    n_turns: Annotated[Count, doc("expected turns")]
    end_reason: Annotated[str, doc("how the run is expected to end")]
    error: Annotated[
        ErrorEntry | None,
        doc("request that the emulator is known to refuse, which ends the run; exit code 3"),
    ]
    usage: ExpectedUsage
    cost: Annotated[
        CostEntry | None,
        doc("USD by role and in total; null if no price is known for any model in use"),
    ]
    duration_seconds: Annotated[
        Amount, doc("seconds of the critical path: the roles in turn, and the last verdict")
    ]
    low: Annotated[Bound, doc("if replies are short and models quick")]
    high: Annotated[Bound, doc("if replies are long and models slow")]
    budget: Annotated[BudgetCheck | None, doc("whether it is enough; null without --max-cost-usd")]
    deadline: Annotated[
        DeadlineCheck | None, doc("whether it is late enough; null without --deadline")
    ]
    via: Annotated[
        dict[str, Annotated[ViaPrices, doc("USD of its calls")]],
        keys("roles"),
        doc("what calls cost on demand, at the tier flex and in batches, by role"),
    ]
    sent: Annotated[Sent, doc("requests that the dry run itself sent")]
    assumptions: Annotated[Assumptions, doc("assumptions of the estimate")]

    @classmethod
    def of(
        cls,
        config: CoreConfig,
        benchmark: Benchmark,
        episode: Episode,
        forecast: Forecast,
        *,
        models: Mapping[Role, str | None],
        prices: PriceTable | None,
    ) -> DryRunDocument:
        parts = benchmark.parts
        billing = Billing.of(config, parts, models, prices)
        likely = forecast.expected["likely"]
        tallies = likely.tallies
        judge_calls = {length: run.calls[JUDGE] for length, run in forecast.expected.items()}
        return cls(
            benchmark=benchmark.name,
            model=config.model,
            sample=parts.sample.of(episode.opening),
            prompt=episode.opening.prompt,
            benchmark_keys=parts.dry_run.of(episode.opening),
            other_models={actor.setting: models[actor.name] for actor in parts.actors[1:]},
            judge_model=models[JUDGE],
            jurors=[
                ExpectedJuror.of(juror, billing, judge_calls)
                for juror in config.jurors
                if models[JUDGE]
            ],
            seed=config.seed,
            n_turns=sum(not turn.replayed for turn in likely.turns),
            end_reason=likely.episode_result.end_reason,
            error=ErrorEntry.of(likely.refusal) if likely.refusal else None,
            usage=CallUsage.by_role(tallies),
            cost=CostEntry.of(billing, tallies),
            duration_seconds=round(likely.duration_s, TIME_PLACES),
            low=Bound.of(billing, forecast.expected["short"]),
            high=Bound.of(billing, forecast.expected["long"]),
            budget=BudgetCheck.of(config, forecast.expected["long"]),
            deadline=DeadlineCheck.of(config, forecast.expected),
            via=ViaPrices.by_role(billing, likely, benchmark),
            sent=forecast.sent,
            assumptions=Assumptions.of(models, forecast),
        )


class ExpectedGroup(Struct, frozen=True, kw_only=True):
    """The runs that have one value of an axis."""

    value: Annotated[Value, doc("value of the axis; null: the default")]
    n_runs: Annotated[Count, doc("number of runs")]
    usage: Annotated[CallUsage, doc("expected tokens and calls of all roles")]
    cost_usd: CostUsd
    low_usd: Annotated[CostUsd, doc("USD if replies are short; null as above")]
    high_usd: Annotated[CostUsd, doc("USD if replies are long; null as above")]


class ExpectedThroughput(Struct, frozen=True, kw_only=True):
    """Requests of all roles to a model in a region."""

    model: Model
    region: Annotated[str | None, doc("region of the calls; null if none is set")]
    requests: Annotated[Count, doc("expected requests")]
    tokens: Annotated[Count, doc("expected input and output tokens")]
    target_rpm: Annotated[PerMinute | None, doc("limit of requests in any minute; null: no target")]
    target_tpm: Annotated[PerMinute | None, doc("limit of tokens in any minute; null: no target")]
    seconds_at_targets: Annotated[
        Amount | None, doc("seconds until all are sent at the targets; null: none")
    ]


class CachingSaves(Struct, frozen=True, kw_only=True):
    """Expected USD with prompt caching and without."""

    with_usd: Annotated[CostUsd, doc("USD with prompt caching; null as above")]
    without_usd: Annotated[CostUsd, doc("USD with --no-prompt-cache; null as above")]


class FlexSaves(Struct, frozen=True, kw_only=True):
    """Expected USD if the models under test used the service tier flex, which may be slower."""

    cost_usd: Annotated[
        CostUsd, doc("USD in total, with flex for models that have a price for it; null: none has")
    ]
    unpriced: Annotated[list[str], doc("models under test without a known price at flex")]


class SweepBudget(Struct, frozen=True, kw_only=True):
    """Whether the budget is enough."""

    max_cost_usd: Annotated[float, Meta(gt=0, description="USD, the budget")]
    spent_usd: Annotated[Amount, doc("USD that earlier processes have spent, at most")]
    n_paid: Annotated[Count, doc("of these runs, how many the rest is expected to cover")]
    covers_expected: Annotated[bool, doc("whether the rest covers the expected cost")]
    covers_high: Annotated[bool, doc("whether the rest covers the high cost")]


class RefusedCells(Struct, frozen=True, kw_only=True):
    """Runs that a model is known to refuse."""

    axes: AxisValues
    n_runs: Annotated[Count, doc("runs with these values")]
    error: Annotated[ErrorEntry, doc("what is refused, and what to do about it")]


BoundBy = Literal["max_connections", "longest_run", "process", "targets"]


class SweepDryRun(Document, frozen=True, kw_only=True):
    """Estimate of a sweep."""

    kind: Literal["sweep_dry_run"] = "sweep_dry_run"
    benchmark: BenchmarkName
    axes: Annotated[dict[str, list[Value]], doc("the settings that vary, with all their values")]
    repeats: Annotated[int, Meta(ge=1, description="runs of each combination")]
    seed: Annotated[Seed, doc("seed, given or drawn, from which the seeds of runs follow")]
    n_runs: Annotated[Count, doc("runs to do; with --resume, those that are left")]
    n_forecast: Annotated[Count, doc("runs that were estimated; repeats are taken to be the same")]
    end_reason: Annotated[
        EndReason | None, doc("what will end the sweep early; null: nothing is expected to")
    ]
    error: Annotated[ErrorEntry | None, doc("the first known refusal; exit code 3; null: none")]
    usage: ExpectedUsage
    cost_usd: Annotated[
        dict[str, Annotated[CostUsd, doc("USD; null if a price is unknown")]],
        keys("roles and total"),
        doc("expected USD, by role and in total"),
    ]
    cost_by_model: Annotated[
        dict[str, Annotated[dict[str, CostUsd], doc("USD by model id")]],
        keys("roles"),
        doc("expected USD, by role and model"),
    ]
    duration_seconds: Annotated[Amount, doc("expected seconds")]
    bound_by: Annotated[BoundBy, doc("what limits the expected time most")]
    low: Annotated[Bound, doc("if replies are short and models quick")]
    high: Annotated[Bound, doc("if replies are long and models slow")]
    groups: Annotated[
        dict[str, list[ExpectedGroup]], doc("by axis: the runs of each value, in order")
    ]
    models: Annotated[list[ExpectedThroughput], doc("requests to each model in each region")]
    caching: Annotated[CachingSaves, doc("effect of prompt caching")]
    flex: Annotated[FlexSaves, doc("effect of the service tier flex")]
    via: Annotated[
        dict[str, Annotated[ViaPrices, doc("USD of its calls")]],
        keys("roles"),
        doc("what calls cost on demand, at the tier flex and in batches, by role"),
    ]
    budget: Annotated[SweepBudget | None, doc("whether it is enough; null without --max-cost-usd")]
    deadline: Annotated[
        DeadlineCheck | None, doc("whether it is late enough; null without --deadline")
    ]
    refused: Annotated[list[RefusedCells], doc("runs that a model would refuse")]
    stand_in: Annotated[bool, doc("true if nothing is billed: the emulator, or made-up prices")]
    prices: Annotated[
        list[PriceSource], doc("sources of the prices; the first that lists a model is used")
    ]
    sent: Annotated[Sent, doc("requests that the dry run itself sent")]
    assumptions: Annotated[list[str], doc("assumptions of the estimate")]


def _mean_output(calls: Sequence[Completion]) -> float | None:
    usage = sum_usage([call.usage for call in calls])
    return round(usage.output_tokens / len(calls), 1) if usage and calls else None
