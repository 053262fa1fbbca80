"""The keys that the benchmark optimisation adds to documents: metrics, items, funnel, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from msgspec import Meta, Struct, field
from msgspec.structs import asdict

from socratic_bench.benchmarks.optimisation.agent import Prediction, StopReason
from socratic_bench.benchmarks.optimisation.evidence import Evidence
from socratic_bench.benchmarks.optimisation.isolation import Level
from socratic_bench.benchmarks.optimisation.measuring import (
    Performance,
    Ratio,
    Sample,
    Verdict,
)
from socratic_bench.benchmarks.optimisation.outcomes import (
    FUNNEL,
    MOST_RATIO,
    Correctness,
    ItemResult,
    PatchStatus,
    Whose,
    whose_failure,
)
from socratic_bench.benchmarks.optimisation.settings import MOST_STEPS
from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.documents.document import FIGURE_PLACES, Amount, Count, Share
from socratic_bench.documents.run import RunResult
from socratic_bench.documents.usage import cost_total, sum_usage
from socratic_bench.ports.benchmark import Sample as PlayedSample
from socratic_bench.ports.parts import Part, Parts
from socratic_bench.statistics.intervals import clustered, wilson_interval
from socratic_bench.turns import Turn
from socratic_bench.types import Completion, Role, doc

ItemShare = Annotated[Share | None, doc("share of items; null without one")]
MOST_PATCH_CHARACTERS = 30_000


class OptimisationTurn(Turn, frozen=True, kw_only=True):
    """An item that has ended, with all calls of its agent."""

    result: ItemResult
    agent_calls: tuple[Completion, ...] = ()
    message: str = ""
    prediction: Prediction = Prediction()
    n_steps: int = 0
    worked_s: float = 0.0
    patch: str = ""
    changed: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    trajectory: tuple[str, ...] = ()
    speed: Verdict | None = None
    evidence: tuple[Evidence, ...] = ()
    samples: tuple[Sample, ...] = ()
    metric: str = "seconds"

    @classmethod
    def of(cls, turn: Turn) -> OptimisationTurn:
        """A turn of this benchmark's episode, by its own type."""
        assert isinstance(turn, cls)  # noqa: S101 -- there are no other episodes
        return turn

    def calls(self, role: Role, *, tested: Role) -> tuple[Completion, ...]:
        return self.agent_calls if role == tested else ()


class OptimisationSample(PlayedSample, frozen=True, kw_only=True):
    """The items of a run; `unmeasurable` are those whose certificate says so."""

    item_ids: tuple[str, ...]
    level: Level
    agent: str
    unmeasurable: frozenset[str] = frozenset()


class HeadlinePart(Part, frozen=True, kw_only=True):
    """The metrics at the top level of the document and in its short form."""

    success_rate: Annotated[
        ItemShare,
        doc("items that pass their tests, are faster than the base, and at least .95 of the human"),
    ] = None
    success_rate_of_all: Annotated[
        ItemShare, doc("the same, of all planned items, lost ones included")
    ] = None
    speed_ratio: Annotated[
        Annotated[float, Meta(ge=0, le=MOST_RATIO)] | None,
        doc("human time by agent time, harmonic mean; a failure counts as no change"),
    ] = None

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Self:
        return cls(**{name: source.get(name) for name in cls.__struct_fields__})


class MetricsPart(HeadlinePart, frozen=True, kw_only=True):
    """Shares of items; null where no item has one."""

    patched: Annotated[ItemShare, doc("with a patch that is not empty")] = None
    applies: Annotated[ItemShare, doc("with a patch that applies and changes allowed files")] = None
    correct: Annotated[ItemShare, doc("of these, all expected tests pass")] = None
    improved: Annotated[ItemShare, doc("and it is faster than the base")] = None
    similar: Annotated[ItemShare, doc("and at least .95 as fast as the human's")] = None
    overclaimed: Annotated[
        ItemShare, doc("with a promise of more than 1.25 times the measured speed-up")
    ] = None


class TurnPart(Part, frozen=True, kw_only=True):
    """An item: its statuses, its speed, and how it came about."""

    item_id: Annotated[str, doc("id of the item")]
    task_text: Annotated[str, doc("text that the agent was given")]
    status: Annotated[str, doc("success or error, as the original pipeline counts them")]
    stop: Annotated[StopReason, doc("why the agent stopped")]
    message: Annotated[str, doc("what else is known of the item's end")]
    patch: Annotated[PatchStatus, doc("what became of its patch")]
    correctness: Annotated[
        Correctness | None, doc("what the tests say; null: nothing was to be tested")
    ]
    performance: Annotated[
        Performance | None, doc("against the human's patch; null: nothing was measured")
    ]
    improved: Annotated[
        bool | None, doc("faster than the base by more than the least effect; null: undecided")
    ]
    at_least_similar: Annotated[
        bool | None, doc("at least .95 as fast as the human's; null: undecided")
    ]
    is_success: Annotated[bool, doc("whether tests pass and both of these are true")]
    is_evaluated: Annotated[bool, doc("whether the patch was evaluated")]
    is_measurable: Annotated[
        bool, doc("false: the human's effect does not show here; it counts for no agent")
    ]
    is_lost: Annotated[
        bool, doc("true: the set-up, base or human failed, which says nothing of the agent")
    ] = False
    failed_by: Annotated[str | None, doc("first thing that it fails by; null: nothing")]
    whose_failure: Annotated[Whose | None, doc("who is to answer for it; null: nobody")]
    speedup: Annotated[Amount | None, doc("base time by agent time, median over rounds")]
    ratio: Annotated[Amount | None, doc("human time by agent time, median over rounds")]
    human_speedup: Annotated[Amount | None, doc("base time by human time, median over rounds")]
    over_base: Annotated[Ratio | None, doc("the speed-up with its interval")]
    over_human: Annotated[Ratio | None, doc("the ratio with its interval")]
    human_over_base: Annotated[Ratio | None, doc("the human's speed-up with its interval")]
    expected_speedup: Annotated[Amount | None, doc("what the agent promised; null: nothing")]
    cause: Annotated[str, doc("what the agent says it has done")]
    is_overclaimed: Annotated[
        bool | None, doc("whether it promised more than it kept; null: it promised nothing")
    ]
    evidence: Annotated[list[Evidence], doc("what looks like cheating")]
    n_steps: Annotated[Count, doc("answers of the model")]
    worked_s: Annotated[Amount, doc("seconds at work, without waits for throttled calls")]
    tokens: Annotated[Count | None, doc("tokens of all calls; null: not counted")]
    changed: Annotated[list[str], doc("files that the patch changes")]
    outside: Annotated[list[str], doc("files of these that the task does not allow")]
    skipped: Annotated[list[str], doc("files that git cannot hold, such as pipes")]
    diff: Annotated[str, doc("patch, cut after 30,000 characters")]
    trajectory: Annotated[list[str], doc("steps of the agent in short")]
    metric: Annotated[str, doc("what was measured: seconds or operations")]
    samples: Annotated[list[Sample], doc("measurements, in their order")]

    @classmethod
    def of(cls, source: Turn) -> Self:
        turn = OptimisationTurn.of(source)
        result, speed = turn.result, turn.speed
        usage = sum_usage([call.usage for call in turn.agent_calls])
        is_ok = result.stop == "finished" and result.patch != "empty"
        names = ItemResult.__struct_fields__
        own = {name: value for name, value in asdict(result).items() if name in names}
        own |= {name: _rounded(own[name]) for name in ("speedup", "ratio", "human_speedup")}
        return cls(
            **own,
            task_text=turn.prompt,
            status="success" if is_ok else "error",
            message=turn.message,
            is_success=result.is_success,
            failed_by=result.failure,
            whose_failure=whose_failure(result),
            over_base=speed.over_base if speed else None,
            over_human=speed.over_human if speed else None,
            human_over_base=speed.human_over_base if speed else None,
            cause=turn.prediction.cause,
            is_overclaimed=result.is_overclaimed,
            evidence=[*turn.evidence],
            n_steps=turn.n_steps,
            worked_s=turn.worked_s,
            tokens=usage.input_tokens + usage.output_tokens if usage else None,
            changed=[*turn.changed],
            outside=[*turn.outside],
            skipped=[*turn.skipped],
            diff=turn.patch,
            trajectory=[*turn.trajectory],
            metric=turn.metric,
            samples=[*turn.samples],
        )


class Rate(Struct, frozen=True, kw_only=True):
    """A share of items with Wilson's interval."""

    value: Annotated[Share | None, doc("the share; null of none")]
    low: Annotated[float | None, doc("lower limit at 95 %; null for a single item")]
    high: Annotated[float | None, doc("upper limit at 95 %; null for a single item")]

    @classmethod
    def of(cls, n: int, of: int) -> Rate:
        if not of:
            return cls(value=None, low=None, high=None)
        interval = wilson_interval(clustered([[float(index < n)] for index in range(of)]))
        return cls(
            value=round(n / of, FIGURE_PLACES),
            low=round(max(0.0, interval.low), FIGURE_PLACES) if interval else None,
            high=round(min(1.0, interval.high), FIGURE_PLACES) if interval else None,
        )


class FunnelStep(Struct, frozen=True, kw_only=True):
    """How many items have come so far."""

    step: Annotated[str, doc("name of the step; each needs those before it")]
    n: Annotated[Count, doc("items that have passed it")]
    of_all: Annotated[Rate, doc("of all planned items that can be measured")]
    of_ended: Annotated[Rate, doc("without items that infrastructure or the task has lost")]


class LostItem(Struct, frozen=True, kw_only=True):
    """An item without a result, which a resumed run plays or goes on with."""

    turn: Annotated[Count, doc("index of the item")]
    item_id: Annotated[str, doc("id of the item")]


class RunPart(Part, frozen=True, kw_only=True):
    """The funnel, failures, costs, and what is pending."""

    agent: Annotated[str | None, doc("agent that played; null if the run never started")] = None
    isolation: Annotated[Level | None, doc("how its commands were kept apart")] = None
    n_planned: Annotated[Count, doc("items of the plan")] = 0
    unmeasurable: Annotated[
        list[str], doc("items in which the human's effect does not show; they count for no agent")
    ] = field(default_factory=list)
    funnel: Annotated[list[FunnelStep], doc("how far items came")] = field(default_factory=list)
    failed_by: Annotated[dict[str, Count], doc("by the first thing failed, how many")] = field(
        default_factory=dict
    )
    failures_of: Annotated[
        dict[str, Count], doc("by agent, task and infrastructure, how many are theirs")
    ] = field(default_factory=dict)
    n_evidence: Annotated[Count, doc("items with evidence of cheating")] = 0
    item_costs: Annotated[
        dict[str, float | None], doc("USD of the calls for an item, by its id; null: no price")
    ] = field(default_factory=dict)
    cost_usd_per_item: Annotated[Amount | None, doc("USD of an item, mean; null: no price")] = None
    cost_usd_per_success: Annotated[
        Amount | None, doc("USD of all items by true successes; null: no price, or no success")
    ] = None
    pending: Annotated[list[LostItem], doc("items without a result")] = field(default_factory=list)

    @classmethod
    def of(cls, source: RunResult) -> Self:
        sample = source.opening
        assert isinstance(sample, OptimisationSample)  # noqa: S101 -- there are no others
        turns = [OptimisationTurn.of(turn) for turn in source.turns]
        results = [turn.result for turn in turns if turn.result.is_measurable]
        played = {turn.index for turn in turns}
        pending = [
            LostItem(turn=index, item_id=item_id)
            for index, item_id in enumerate(sample.item_ids)
            if index not in played
        ]
        failures = Counter(filter(None, (result.failure for result in results)))
        whose = Counter(filter(None, (whose_failure(turn.result) for turn in turns)))
        n_success = sum(result.is_success for result in results)
        item_costs = {turn.result.item_id: _cost(source, turn) for turn in turns}
        costs = cost_total(item_costs.values()) if item_costs else None
        return cls(
            agent=sample.agent,
            isolation=sample.level,
            n_planned=len(sample.item_ids),
            unmeasurable=sorted(sample.unmeasurable),
            funnel=funnel_of(results, len(sample.item_ids) - len(sample.unmeasurable)),
            failed_by=dict(failures),
            failures_of={**whose, **({"infrastructure": len(pending)} if pending else {})},
            n_evidence=sum(bool(turn.evidence) for turn in turns),
            item_costs=item_costs,
            cost_usd_per_item=_rounded(costs / len(turns)) if costs is not None and turns else None,
            cost_usd_per_success=(
                _rounded(costs / n_success) if costs is not None and n_success else None
            ),
            pending=pending,
        )


def funnel_of(results: Sequence[ItemResult], n_planned: int) -> list[FunnelStep]:
    """How many of the items have passed each step."""
    ended = [result for result in results if not result.is_lost]
    n_ended = len(ended)
    counts = Counter(
        name for result in ended for name, passed in result.has_passed.items() if passed
    )
    return [
        FunnelStep(
            step=name,
            n=counts[name],
            of_all=Rate.of(counts[name], n_planned),
            of_ended=Rate.of(counts[name], n_ended),
        )
        for name in FUNNEL
    ]


PARTS = Parts(
    metrics=MetricsPart,
    headline=HeadlinePart,
    run=RunPart,
    turn=TurnPart,
    max_turns=MOST_STEPS,
)


def _cost(result: RunResult, turn: OptimisationTurn) -> float | None:
    """USD of all calls of an item's agent."""
    billing = Billing.of(result.config, result.parts, result.models, result.prices)
    role = result.parts.tested
    return None if billing.prices(role) is None else role_usd(billing, role, turn.agent_calls)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, FIGURE_PLACES)
