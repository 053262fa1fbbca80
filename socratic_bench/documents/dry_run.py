"""The document of a dry run: expected usage, cost and time, their range, and the assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from socratic_bench.catalogue.prices import PriceSource, PriceTable
from socratic_bench.documents.cost import Billing, CostEntry, role_usd
from socratic_bench.documents.document import (
    TIME_PLACES,
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


class Expectation(Struct, frozen=True):
    """A run as it is expected if replies have a certain length; `refusal` is what ends it early,
    `lacks_closing` tells that a budget has no room for the closing verdict.
    """

    turns: Sequence[Turn]
    calls: Mapping[Role, Sequence[Completion]]
    episode_result: EpisodeResult
    duration_s: float
    refusal: BenchError | None
    lacks_closing: bool = False

    @property
    def tallies(self) -> dict[Role, RoleUsage]:
        return {role: RoleUsage(completions=tuple(calls)) for role, calls in self.calls.items()}


ExpectedUsage = Annotated[
    dict[str, Annotated[CallUsage, doc("of the role, or of all roles")]],
    keys("roles and total"),
    doc("tokens and calls that are expected"),
]


class Sent(Struct, frozen=True, kw_only=True):
    """Requests of the dry run itself, none of which calls a model."""

    count_tokens: Annotated[Count, doc("has the service count tokens")]
    emulator_pace: Annotated[
        Count, doc("asks an endpoint that is not the service's own if it is the emulator")
    ]
    bucket: Annotated[Count, doc("looks whether the bucket is there")]


class Forecast(Struct, frozen=True, kw_only=True):
    """Expectations by the length of replies. `counted` names the models whose tokens the service
    has counted; `emulated`: an emulator answers for all models; `sent`: by this and earlier ones.
    """

    expected: Mapping[Length, Expectation]
    counted: Sequence[str]
    emulated: bool
    sent: Sent


class Bound(Struct, frozen=True, kw_only=True):
    """What a run would take if replies are of one length."""

    usage: Annotated[CallUsage, doc("tokens and calls of all roles")]
    cost_usd: Annotated[Amount | None, doc("USD in total; null if a price is not known")]
    duration_seconds: Annotated[Amount, doc("seconds that it would take")]

    @classmethod
    def of(cls, billing: Billing, expectation: Expectation) -> Bound:
        cost = CostEntry.of(billing, expectation.tallies)
        total = cost.roles["total"] if cost else None
        return cls(
            usage=CallUsage.of_all([*expectation.tallies.values()]),
            cost_usd=total.total_usd if total else None,
            duration_seconds=round(expectation.duration_s, TIME_PLACES),
        )


class BudgetCheck(Struct, frozen=True, kw_only=True):
    """Whether a budget is enough."""

    max_cost_usd: Annotated[float, Meta(gt=0, description="USD, the budget")]
    covers_high: Annotated[bool, doc("whether it covers the high cost")]

    @classmethod
    def of(cls, config: CoreConfig, high: Expectation) -> BudgetCheck | None:
        if config.max_cost_usd is None:
            return None
        covers = high.episode_result.end_reason != "budget" and not high.lacks_closing
        return cls(max_cost_usd=config.max_cost_usd, covers_high=covers)


class DeadlineCheck(Struct, frozen=True, kw_only=True):
    """Whether a deadline is late enough."""

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
    """Output tokens of one call on average, and how they are known."""

    source: Annotated[
        Literal["emulator", "assumed"], doc("emulator: what the simulated model says is known")
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
    """What the estimate is based on; roles without a model are left out."""

    replies: Annotated[
        dict[str, Annotated[Replies, doc("output tokens of one call on average")]],
        keys("some roles"),
        doc("how long replies are, by role"),
    ]
    token_counts: Annotated[
        dict[
            str,
            Annotated[
                Literal["counted", "estimated"],
                doc("counted: scaled by CountTokens of the largest request"),
            ],
        ],
        keys("some roles"),
        doc("how input tokens are known, by role"),
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


class DryRunDocument(Document, frozen=True, kw_only=True):
    """What a run would take."""

    kind: Literal["dry_run"] = "dry_run"
    benchmark: BenchmarkName
    model: Model
    sample: Annotated[Part, part("sample", is_known=True)] = field(
        name="*sample", default_factory=Part
    )
    prompt: Annotated[str, doc("what is said first to the model under test")]
    others: Annotated[
        dict[str, Annotated[str | None, doc("its model; null: no model takes this part")]],
        keys("settings of others"),
    ] = field(name="*others", default_factory=dict)
    judge_model: Annotated[str | None, doc("the judge model; null without one")]
    jurors: Annotated[list[ExpectedJuror], doc("what each judge model would take")]
    seed: SeedEntry
    n_turns: Annotated[Count, doc("turns that are expected to be played")]
    end_reason: Annotated[str, doc("how the run is expected to end")]
    error: Annotated[
        ErrorEntry | None,
        doc("what the emulator is known to refuse, and ends the run; exit code 3"),
    ]
    usage: ExpectedUsage
    cost: Annotated[
        CostEntry | None,
        doc("USD by role and in total; null if no price is known for any model in use"),
    ]
    duration_seconds: Annotated[
        Amount, doc("the run's critical path: its actors in turn, and the last verdict")
    ]
    low: Annotated[Bound, doc("if replies are short and models quick")]
    high: Annotated[Bound, doc("if replies are long and models slow")]
    budget: Annotated[BudgetCheck | None, doc("if it is enough; null without --max-cost-usd")]
    deadline: Annotated[DeadlineCheck | None, doc("if it is late enough; null without --deadline")]
    sent: Annotated[Sent, doc("requests of the dry run itself")]
    assumptions: Annotated[Assumptions, doc("what the estimate goes by")]

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
        judging = {length: one.calls[JUDGE] for length, one in forecast.expected.items()}
        return cls(
            benchmark=benchmark.name,
            model=config.model,
            sample=parts.sample.of(episode.opening),
            prompt=episode.opening.prompt,
            others={one.setting: models[one.name] for one in parts.actors[1:]},
            judge_model=models[JUDGE],
            jurors=[
                ExpectedJuror.of(one, billing, judging) for one in config.jurors if models[JUDGE]
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
            sent=forecast.sent,
            assumptions=Assumptions.of(models, forecast),
        )


def _mean_output(calls: Sequence[Completion]) -> float | None:
    usage = sum_usage([call.usage for call in calls])
    return round(usage.output_tokens / len(calls), 1) if usage and calls else None


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


# What each juror of a run would take.

Usd = Annotated[Amount | None, doc("USD; null if a price is not known")]


class ExpectedJuror(Struct, frozen=True, kw_only=True):
    """Calls, tokens and money of one juror."""

    model: Model
    usage: Annotated[CallUsage, doc("its tokens and calls, as expected")]
    cost_usd: Annotated[Usd, doc("USD as expected; null if a price is not known")]
    low_usd: Annotated[Usd, doc("USD if replies are short; null as above")]
    high_usd: Annotated[Usd, doc("USD if replies are long; null as above")]

    @classmethod
    def of(
        cls, model_id: str, billing: Billing, calls: Mapping[Length, Sequence[Completion]]
    ) -> ExpectedJuror:
        """By the judge's calls, if replies have a length, of which its own count."""
        own = {
            length: [call for call in made if call.model_id == model_id]
            for length, made in calls.items()
        }
        return cls(
            model=model_id,
            usage=CallUsage.of_all([RoleUsage(completions=tuple(own["likely"]))]),
            cost_usd=role_usd(billing, JUDGE, own["likely"]),
            low_usd=role_usd(billing, JUDGE, own["short"]),
            high_usd=role_usd(billing, JUDGE, own["long"]),
        )


# The document of a sweep's dry run: what all its cells would take, together and by axis.

PerMinute = Annotated[int, Meta(ge=1)]


class Extent(Struct, frozen=True, kw_only=True):
    """What cells would take if replies are of one length."""

    usage: Annotated[CallUsage, doc("tokens and calls of all roles")]
    cost_usd: CostUsd
    duration_seconds: Annotated[Amount, doc("seconds that they would take")]


class ExpectedGroup(Struct, frozen=True, kw_only=True):
    """The cells that have one value of an axis."""

    value: Annotated[Value, doc("of the axis; null: the setting's default")]
    n_cells: Annotated[Count, doc("cells that there are")]
    usage: Annotated[CallUsage, doc("tokens and calls of all roles, as expected")]
    cost_usd: CostUsd
    low_usd: Annotated[CostUsd, doc("USD if replies are short; null as above")]
    high_usd: Annotated[CostUsd, doc("USD if replies are long; null as above")]


class ExpectedThroughput(Struct, frozen=True, kw_only=True):
    """What a model would be sent in a region, by all actors."""

    model: Model
    region: Annotated[str | None, doc("where it is asked; null if none is set")]
    requests: Annotated[Count, doc("requests, as expected")]
    tokens: Annotated[Count, doc("input and output tokens, as expected")]
    target_rpm: Annotated[PerMinute | None, doc("the most requests in any minute; null: no target")]
    target_tpm: Annotated[PerMinute | None, doc("the most tokens in any minute; null: no target")]
    seconds_at_targets: Annotated[
        Amount | None, doc("seconds until the last is sent at the targets; null: none")
    ]


class CachingSaves(Struct, frozen=True, kw_only=True):
    """USD with prompt caching and without, as expected."""

    with_usd: Annotated[CostUsd, doc("USD with prompt caching; null as above")]
    without_usd: Annotated[CostUsd, doc("USD with --no-prompt-cache; null as above")]


class FlexSaves(Struct, frozen=True, kw_only=True):
    """What the tier flex would make of the calls of the models under test; it may be slower."""

    cost_usd: Annotated[
        CostUsd, doc("USD in all, if flex served those that have a price for it; null: none has")
    ]
    unpriced: Annotated[list[str], doc("models under test without a known price at flex")]


class SweepBudget(Struct, frozen=True, kw_only=True):
    """Whether a budget is enough."""

    max_cost_usd: Annotated[float, Meta(gt=0, description="USD, the budget")]
    spent_usd: Annotated[Amount, doc("USD that cells cost which ended before")]
    covers_expected: Annotated[bool, doc("whether the rest covers the expected cost")]
    covers_high: Annotated[bool, doc("whether the rest covers the high cost")]


class SweepDeadline(Struct, frozen=True, kw_only=True):
    """Whether a deadline is late enough."""

    deadline_s: Annotated[float, Meta(gt=0, description="seconds, the deadline")]
    covers_expected: Annotated[bool, doc("whether it covers the expected time")]
    covers_high: Annotated[bool, doc("whether it covers the longest time")]


class RefusedCells(Struct, frozen=True, kw_only=True):
    """Cells that are known to be refused by a model."""

    axes: AxisValues
    n_cells: Annotated[Count, doc("cells of these values")]
    error: Annotated[ErrorEntry, doc("what is refused, and what to do")]


BoundBy = Literal["max_connections", "longest_cell", "process", "targets"]


class SweepDryRun(Document, frozen=True, kw_only=True):
    """What a sweep would take."""

    kind: Literal["sweep_dry_run"] = "sweep_dry_run"
    benchmark: BenchmarkName
    axes: Annotated[dict[str, list[Value]], doc("the settings that differ, with all their values")]
    repeats: Annotated[int, Meta(ge=1, description="times that each cell is played")]
    seed: Annotated[Seed, doc("given, or drawn: from which the seeds of cells follow")]
    n_cells: Annotated[Count, doc("cells that would be played; with --resume those left")]
    n_forecast: Annotated[Count, doc("cells that were forecast; repeats count as these")]
    end_reason: Annotated[
        EndReason | None, doc("what is expected to end the sweep early; null: nothing")
    ]
    error: Annotated[
        ErrorEntry | None, doc("the first refusal that is known of, exit code 3; null without any")
    ]
    usage: ExpectedUsage
    cost_usd: Annotated[
        dict[str, Annotated[CostUsd, doc("USD; null if a price is not known")]],
        keys("roles and total"),
        doc("USD that are expected, by role and in total"),
    ]
    cost_by_model: Annotated[
        dict[str, Annotated[dict[str, CostUsd], doc("USD by the model's id")]],
        keys("roles"),
        doc("USD that are expected, by role and by the model that is asked"),
    ]
    duration_seconds: Annotated[Amount, doc("seconds that are expected")]
    bound_by: Annotated[BoundBy, doc("what the expected time depends on most")]
    low: Annotated[Extent, doc("if replies are short and models quick")]
    high: Annotated[Extent, doc("if replies are long and models slow")]
    groups: Annotated[
        dict[str, list[ExpectedGroup]],
        doc("by axis: the cells of each of its values, in their order"),
    ]
    models: Annotated[
        list[ExpectedThroughput], doc("what each model would be sent, in each region")
    ]
    caching: Annotated[CachingSaves, doc("what prompt caching makes of it")]
    flex: Annotated[FlexSaves, doc("what the service tier flex would make of it")]
    budget: Annotated[SweepBudget | None, doc("if it is enough; null without --max-cost-usd")]
    deadline: Annotated[SweepDeadline | None, doc("if it is late enough; null without --deadline")]
    refused: Annotated[list[RefusedCells], doc("cells that a model would refuse")]
    stand_in: Annotated[bool, doc("whether amounts are no bill: the emulator, or made-up prices")]
    prices: Annotated[
        list[PriceSource], doc("where the prices come from; the first that knows a model counts")
    ]
    sent: Annotated[Sent, doc("requests of the dry run itself")]
    assumptions: Annotated[list[str], doc("what the estimate goes by")]


ASSUMPTIONS = (
    "Each kind of cell is forecast once, by its first repeat, as the dry run of a run is.",
    "Cells are played from their first turn on; those that ended, by the sweep's index, are not.",
    "What several cells have in common of a model's instructions is written to its cache once.",
    (
        "The time is the longest of these: the cells in their order, and their requests, as many "
        "at once as are allowed; every model's requests and tokens at its targets; and some 200 "
        "calls a second."
    ),
    "At flex, calls may take longer, by how much is not known.",
)
