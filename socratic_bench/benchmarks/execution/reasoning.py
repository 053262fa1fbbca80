"""Levels of reasoning compared: figures, tokens, cost, latency, and differences to the lowest."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Struct

from socratic_bench.benchmarks.execution.answers import ExecutionTurn
from socratic_bench.benchmarks.execution.items import LEVELS, Item, Program, reasoning_sentence
from socratic_bench.benchmarks.execution.outcomes import Cases, Gap, Outcomes, gap, with_program
from socratic_bench.benchmarks.execution.prediction import (
    ProgramFigures,
    correct_cases,
    program_figures,
    reversion_cases,
)
from socratic_bench.benchmarks.execution.sampling import level_tokens
from socratic_bench.benchmarks.execution.settings import Level, Settings
from socratic_bench.documents.document import Amount, Count
from socratic_bench.documents.usage import sum_usage
from socratic_bench.types import doc

Turns = Sequence[ExecutionTurn]
# The cost of turns, in USD; `None` if it is not known.
TurnsCost = Callable[[Turns], float | None]


class LevelGaps(Struct, frozen=True, kw_only=True):
    """A level's figures minus those of the lowest one, within problems."""

    oc: Annotated[Gap, doc("right on the original program")]
    mc: Annotated[Gap, doc("right on the mutated program")]
    mr: Annotated[Gap, doc("the original program's output on the mutated one")]


class LevelEntry(Struct, frozen=True, kw_only=True):
    """One level of reasoning."""

    level: Annotated[Level, doc("its name")]
    sentence: Annotated[str, doc("how the model is asked to reason")]
    thinking_budget_tokens: Annotated[
        Count | None,
        doc(
            "the budget of thinking, by which a model with levels of effort is asked "
            "for that of this name; null: it is not asked to think"
        ),
    ]
    original: Annotated[ProgramFigures, doc("with the original program: OC and OR")]
    mutated: Annotated[ProgramFigures, doc("with the mutated program: MC and MR")]
    to_lowest: Annotated[LevelGaps | None, doc("less the lowest level; null of that itself")]
    mean_output_tokens: Annotated[
        Amount | None, doc("output tokens of one reply; null if not known")
    ]
    mean_latency_ms: Annotated[Amount | None, doc("milliseconds of one reply; null without any")]
    cost_usd: Annotated[Amount | None, doc("USD of its calls; null if not known")]


def levels(
    turns: Turns, items: Sequence[Item], settings: Settings, cost_usd: TurnsCost
) -> list[LevelEntry]:
    """An entry for each level, the lowest one first."""
    return [_entry(level, turns, items, settings, cost_usd) for level in LEVELS]


def _entry(
    level: Level, turns: Turns, items: Sequence[Item], settings: Settings, cost_usd: TurnsCost
) -> LevelEntry:
    at_level = [turn for turn in turns if turn.item.level == level]
    outcomes = [turn.item_outcome for turn in at_level]
    n_items = Counter(item.program for item in items if item.level == level)
    usages = [turn.reply.usage for turn in at_level]
    usage = None if None in usages else sum_usage(usages)
    return LevelEntry(
        level=level,
        sentence=reasoning_sentence(level),
        thinking_budget_tokens=level_tokens(settings, level),
        original=program_figures(with_program(outcomes, "original"), n_items["original"]),
        mutated=program_figures(with_program(outcomes, "mutated"), n_items["mutated"]),
        to_lowest=None if level == LEVELS[0] else _gaps_to_lowest(turns, outcomes),
        mean_output_tokens=(
            round(usage.output_tokens / len(at_level), 2) if usage and at_level else None
        ),
        mean_latency_ms=_mean([turn.reply.latency_ms for turn in at_level]),
        cost_usd=cost_usd(at_level),
    )


def _gaps_to_lowest(turns: Turns, outcomes: Outcomes) -> LevelGaps:
    lowest = [turn.item_outcome for turn in turns if turn.item.level == LEVELS[0]]

    def difference(cases_of: Callable[[Outcomes], Cases], program: Program) -> Gap:
        return gap(
            cases_of(with_program(outcomes, program)), cases_of(with_program(lowest, program))
        )

    return LevelGaps(
        oc=difference(correct_cases, "original"),
        mc=difference(correct_cases, "mutated"),
        mr=difference(reversion_cases, "mutated"),
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 2) if values else None
