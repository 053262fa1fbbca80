"""The keys that the benchmark golden adds to documents: metrics, items, tasks, and failures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any, Self

from msgspec import Struct, field

from socratic_bench.benchmarks.golden.checks import CheckResult
from socratic_bench.benchmarks.golden.items import GoldenTurn, Item, Variant
from socratic_bench.benchmarks.golden.judging import PassMark, Result
from socratic_bench.benchmarks.golden.metrics import PROCESSED, checks_share, passes_of_all
from socratic_bench.benchmarks.golden.optimising import ROLE, OptimizationEntry
from socratic_bench.benchmarks.golden.rows import DataSet
from socratic_bench.benchmarks.golden.settings import PassRule, Settings
from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.documents.document import FIGURE_PLACES, Amount, Count, Sha256, Share
from socratic_bench.documents.run import RunResult
from socratic_bench.ports.benchmark import Sample
from socratic_bench.ports.parts import Actor, Part, Parts
from socratic_bench.settings import MOST_TURNS, CoreConfig, part_of
from socratic_bench.statistics.intervals import clustered, wilson_interval
from socratic_bench.turns import Dimension, Turn, Unscored
from socratic_bench.types import doc

SHOWN_ROWS, SHOWN_CHARACTERS = 3, 200
Temperature = Annotated[float | None, doc("temperature that was asked for; null: the model's own")]


class GoldenSample(Sample, frozen=True, kw_only=True):
    """All calls of a run, and their data set."""

    items: tuple[Item, ...]
    mark: PassMark
    data: DataSet


Passing = Annotated[Share | None, doc("share of items; null without one")]
Score = Annotated[float | None, doc("mean, 1 to 5; null without a verdict")]


class HeadlinePart(Part, frozen=True, kw_only=True):
    """The metrics at the top level of the document and in its short form."""

    success_rate: Annotated[Passing, doc("passed, of the processed items")] = None
    success_rate_of_all: Annotated[Passing, doc("passed, of all that were to be asked")] = None

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Self:
        return cls(**{name: source.get(name) for name in cls.__struct_fields__})


class MetricsPart(HeadlinePart, frozen=True, kw_only=True):
    """Shares of items, and means of dimensions; null where no item has one."""

    weighted_success_rate: Annotated[Passing, doc("passed, by the weights of items")] = None
    refused: Annotated[Passing, doc("refused by the model")] = None
    truncated: Annotated[Passing, doc("cut off by a limit of tokens")] = None
    checks_met: Annotated[Passing, doc("checks that are met, mean over items")] = None
    criteria_met: Annotated[
        float | None, doc("share of the weight of criteria that is met, mean over items")
    ] = None
    correctness: Score = None
    completeness: Score = None
    relevance: Score = None
    format: Score = None
    coherence: Score = None
    following_instructions: Score = None


class TurnPart(Part, frozen=True, kw_only=True):
    """The item of a turn, and what became of it."""

    item_id: Annotated[str, doc("id of the row, or its number")]
    task_type: Annotated[str, doc("task of the item")]
    round: Annotated[Count, doc("index of the asking of the item, from 0")]
    variant: Annotated[Variant, doc("whether the prompt was optimised")]
    prompt: Annotated[str, doc("prompt that was sent, optimised or as the data set has it")]
    not_optimized: Annotated[
        str | None, doc("why an optimised prompt is missing; null if it is not")
    ]
    temperature: Temperature
    weight: Annotated[Amount, doc("weight of the item")]
    golden_answer: Annotated[str | None, doc("golden answer; null if there is none")]
    result: Annotated[Result, doc("what became of it; unprocessed: no judge could score it")]
    failed_by: Annotated[
        list[str], doc("dimensions under the threshold, criteria, and kinds of checks")
    ]
    checks: Annotated[list[CheckResult], doc("its checks, in their order")]
    dimensions: Annotated[
        list[Dimension], doc("dimensions of its own, beside those of every item")
    ] = field(default_factory=list)
    checks_met: Annotated[Share | None, doc("share of checks that are met; null without checks")]
    criteria_met: Annotated[
        float | None, doc("share of the weight of criteria that is met; null without any")
    ]

    @classmethod
    def of(cls, source: Turn) -> Self:
        turn = GoldenTurn.of(source)
        row, share = turn.item.row, checks_share(turn)
        return cls(
            item_id=row.id,
            task_type=row.task_type,
            round=turn.item.round,
            variant=turn.item.variant,
            prompt=turn.prompt,
            not_optimized=turn.optimised.refusal if turn.optimised else None,
            temperature=turn.item.config.temperature,
            weight=row.weight,
            golden_answer=row.golden_answer,
            result=turn.result,
            failed_by=turn.faults,
            checks=[*turn.checks],
            dimensions=[*row.dimensions],
            checks_met=None if share is None else round(share, FIGURE_PLACES),
            criteria_met=_rounded(turn.criteria_met),
        )


class Rate(Struct, frozen=True, kw_only=True):
    """A rate of passing with Wilson's interval, clustered by item."""

    value: Annotated[Share | None, doc("share; null without any")]
    low: Annotated[float | None, doc("lower limit at 95 %; null for a single item")]
    high: Annotated[float | None, doc("upper limit at 95 %; null for a single item")]
    passed: Annotated[Count, doc("how many passed")]
    n: Annotated[Count, doc("of how many")]
    n_items: Annotated[Count, doc("of how many items they are")]

    @classmethod
    def of(cls, passes: Iterable[tuple[str, bool]]) -> Rate:
        """The rate over pairs of an item's id and whether it passed."""
        by_item: dict[str, list[float]] = defaultdict(list)
        for item, is_passed in passes:
            by_item[item].append(float(is_passed))
        if not by_item:
            return cls(value=None, low=None, high=None, passed=0, n=0, n_items=0)
        mean = clustered([*by_item.values()])
        interval = wilson_interval(mean)
        return cls(
            value=round(mean.mean, FIGURE_PLACES),
            low=_rounded(max(0.0, interval.low)) if interval else None,
            high=_rounded(min(1.0, interval.high)) if interval else None,
            passed=int(sum(map(sum, by_item.values()))),
            n=mean.n,
            n_items=mean.n_clusters,
        )


class TaskEntry(Struct, frozen=True, kw_only=True):
    """The items of one task at one temperature, with or without optimised prompts."""

    task_type: Annotated[str, doc("task")]
    temperature: Temperature
    variant: Annotated[Variant, doc("whether prompts were optimised")]
    success: Annotated[Rate, doc("rate of passing over the processed ones")]
    n: Annotated[Count, doc("replies")]
    cost_usd: Annotated[
        Amount | None, doc("USD of a reply of the model under test, mean; null if unknown")
    ]
    latency_ms: Annotated[Amount | None, doc("milliseconds to the last byte, mean")]
    ttft_ms: Annotated[Amount | None, doc("milliseconds to the first content, mean")]
    first_text_ms: Annotated[
        Amount | None, doc("milliseconds to the first text, after any reasoning, mean")
    ]
    output_tokens_per_s: Annotated[Amount | None, doc("output tokens a second, mean")]


class Unprocessed(Struct, frozen=True, kw_only=True):
    """A reply that was neither passed nor failed, or an item without a reply."""

    turn: Annotated[Count, doc("index of the turn")]
    item_id: Annotated[str, doc("id of the item")]
    reason: Annotated[str, doc("why, in one word")]
    message: Annotated[str | None, doc("why, in a sentence; null: it was never answered")]


class DatasetEntry(Struct, frozen=True, kw_only=True):
    """The data set of the items."""

    place: Annotated[str, doc("shipped, a file, or hf:OWNER/NAME")]
    sha256: Annotated[Sha256, doc("sha256 of its files")]
    rows: Annotated[Count, doc("number of rows")]


class RunPart(Part, frozen=True, kw_only=True):
    """The rates of passing, by task too, and what failed or was not processed."""

    dataset: Annotated[DatasetEntry | None, doc("data set of the items; null if not read")] = None
    success: Annotated[Rate | None, doc("rate of passing over the processed items")] = None
    success_of_all: Annotated[
        Rate | None, doc("rate of passing over all that were to be asked")
    ] = None
    tasks: Annotated[list[TaskEntry], doc("figures by task, temperature and variant")] = field(
        default_factory=list
    )
    optimization: Annotated[
        OptimizationEntry | None, doc("what optimising prompts has changed; null if none were")
    ] = None
    failed_by: Annotated[
        dict[str, Count],
        doc("by dimension, criteria and kind of check: how many of `success` failed by it"),
    ] = field(default_factory=dict)
    unprocessed: Annotated[
        list[Unprocessed], doc("what resuming the run asks for again, or no judge could score")
    ] = field(default_factory=list)

    @classmethod
    def of(cls, source: RunResult) -> Self:
        sample = source.opening
        assert isinstance(sample, GoldenSample)  # noqa: S101 -- this benchmark has no others
        turns = [GoldenTurn.of(turn) for turn in source.turns]
        # Where items are asked with both prompts, rates are those of the originals.
        variant = sample.items[0].variant
        processed = [t for t in turns if t.result in PROCESSED and t.item.variant == variant]
        of_all = [*passes_of_all(sample.items, sample.mark, turns)]
        data = sample.data
        is_judged = any(turn.result != "unjudged" for turn in turns)
        return cls(
            dataset=DatasetEntry(place=data.place, sha256=data.sha256, rows=data.n_rows),
            success=Rate.of(map(_passing, processed)) if is_judged else None,
            success_of_all=Rate.of(of_all) if of_all else None,
            tasks=[*_tasks(source, turns)],
            optimization=OptimizationEntry.of(turns),
            failed_by=dict(Counter(name for turn in processed for name in turn.faults)),
            unprocessed=[*_unprocessed(sample.items, turns)],
        )


class FirstRow(Struct, frozen=True, kw_only=True):
    """One of the first rows, as it was read."""

    item_id: Annotated[str, doc("id of the row, or its number")]
    prompt: Annotated[str, doc("beginning of its prompt")]
    golden_answer: Annotated[str | None, doc("beginning of its golden answer")]
    task_type: Annotated[str, doc("task")]
    has_image: Annotated[bool, doc("whether an image is shown")]


class DryRunPart(Part, frozen=True, kw_only=True):
    """What was read of the data set, to see whether the columns are the right ones."""

    columns: Annotated[list[str], doc("columns, or keys, of the data set")] = field(
        default_factory=list
    )
    first_rows: Annotated[list[FirstRow], doc("the first three rows, as they were read")] = field(
        default_factory=list
    )

    @classmethod
    def of(cls, source: GoldenSample) -> Self:
        rows = source.data.rows[:SHOWN_ROWS]
        return cls(
            columns=[*source.data.columns],
            first_rows=[
                FirstRow(
                    item_id=row.id,
                    prompt=row.prompt[:SHOWN_CHARACTERS],
                    golden_answer=row.golden_answer and row.golden_answer[:SHOWN_CHARACTERS],
                    task_type=row.task_type,
                    has_image=row.image is not None,
                )
                for row in rows
            ],
        )


class ThresholdsPart(Part, frozen=True, kw_only=True):
    """What passes."""

    pass_threshold: Annotated[Amount | None, doc("what each dimension must reach, of 1 to 5")] = (
        None
    )
    pass_rule: Annotated[PassRule | None, doc("whose scores must reach it")] = None

    @classmethod
    def of(cls, source: CoreConfig) -> Self:
        settings = part_of(source, Settings)
        return cls(pass_threshold=settings.pass_threshold, pass_rule=settings.pass_rule)


PARTS = Parts(
    metrics=MetricsPart,
    headline=HeadlinePart,
    run=RunPart,
    thresholds=ThresholdsPart,
    dry_run=DryRunPart,
    turn=TurnPart,
    actors=(Actor("model", "model"), Actor(ROLE, "optimizer_model")),
    max_turns=MOST_TURNS,
)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, FIGURE_PLACES)


def _passing(turn: GoldenTurn) -> tuple[str, bool]:
    return turn.item.row.id, turn.result == "passed"


def _tasks(result: RunResult, turns: Sequence[GoldenTurn]) -> Iterator[TaskEntry]:
    billing = Billing.of(result.config, result.parts, result.models, result.prices)
    role = result.parts.tested
    is_priced = billing.prices(role) is not None
    groups: dict[tuple[str, float | None, Variant], list[GoldenTurn]] = defaultdict(list)
    for turn in turns:
        item = turn.item
        groups[item.row.task_type, item.config.temperature, item.variant].append(turn)
    for (task, temperature, variant), of_task in groups.items():
        replies = [turn.reply for turn in of_task if turn.reply.attempts]
        usd = role_usd(billing, role, replies) if is_priced and replies else None
        yield TaskEntry(
            task_type=task,
            temperature=temperature,
            variant=variant,
            success=Rate.of(_passing(turn) for turn in of_task if turn.result in PROCESSED),
            n=len(of_task),
            cost_usd=None if usd is None else usd / len(replies),
            latency_ms=_mean(reply.latency_ms for reply in replies),
            ttft_ms=_mean(reply.ttft_ms for reply in replies),
            first_text_ms=_mean(reply.first_text_ms for reply in replies),
            output_tokens_per_s=_mean(reply.output_tokens_per_s for reply in replies),
        )


def _mean(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return round(fmean(measured), FIGURE_PLACES) if measured else None


def _unprocessed(items: Sequence[Item], turns: Sequence[GoldenTurn]) -> Iterator[Unprocessed]:
    by_index = {turn.index: turn for turn in turns}
    for index, item in enumerate(items):
        turn = by_index.get(index)
        outcome = turn.outcome if turn else None
        if turn and turn.result != "unprocessed":
            continue
        why = outcome if isinstance(outcome, Unscored) else None
        reason = why.reason if why else "run_ended" if turn else "missing"
        yield Unprocessed(
            turn=index, item_id=item.row.id, reason=reason, message=why.message if why else None
        )
