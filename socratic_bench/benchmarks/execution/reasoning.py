"""Levels of reasoning side by side: figures, tokens, money, time, and differences to the lowest."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Struct

from socratic_bench.benchmarks.execution.answers import ExecutionTurn
from socratic_bench.benchmarks.execution.items import LEVELS, Item, Program, sentence
from socratic_bench.benchmarks.execution.outcomes import Cases, Gap, Readings, gap, with_program
from socratic_bench.benchmarks.execution.prediction import Shown, correct_of, reversion_of, shown
from socratic_bench.benchmarks.execution.sampling import level_tokens
from socratic_bench.benchmarks.execution.settings import Level, Settings
from socratic_bench.documents.scalars import Amount, Count
from socratic_bench.documents.usage import sum_usage
from socratic_bench.types import doc

Turns = Sequence[ExecutionTurn]
# What a level's calls have cost, in USD; `None` if that is not known.
Priced = Callable[[Turns], float | None]


class LevelGaps(Struct, frozen=True, kw_only=True):
    """A level's figures less those of the lowest one, within problems."""

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
    original: Annotated[Shown, doc("with the original program: OC and OR")]
    mutated: Annotated[Shown, doc("with the mutated program: MC and MR")]
    to_lowest: Annotated[LevelGaps | None, doc("less the lowest level; null of that itself")]
    mean_output_tokens: Annotated[
        Amount | None, doc("output tokens of one reply; null if not known")
    ]
    mean_latency_ms: Annotated[Amount | None, doc("milliseconds of one reply; null without any")]
    cost_usd: Annotated[Amount | None, doc("USD of its calls; null if not known")]


def levels(
    turns: Turns, items: Sequence[Item], settings: Settings, priced: Priced
) -> list[LevelEntry]:
    """Each level, the lowest one first."""
    return [_entry(level, turns, items, settings, priced) for level in LEVELS]


def _entry(
    level: Level, turns: Turns, items: Sequence[Item], settings: Settings, priced: Priced
) -> LevelEntry:
    own = [one for one in turns if one.item.level == level]
    read = [one.reading for one in own]
    asked = Counter(one.program for one in items if one.level == level)
    usages = [turn.reply.usage for turn in own]
    used = None if None in usages else sum_usage(usages)
    return LevelEntry(
        level=level,
        sentence=sentence(level),
        thinking_budget_tokens=level_tokens(settings, level),
        original=shown(with_program(read, "original"), asked["original"]),
        mutated=shown(with_program(read, "mutated"), asked["mutated"]),
        to_lowest=None if level == LEVELS[0] else _gaps(turns, read),
        mean_output_tokens=round(used.output_tokens / len(own), 2) if used and own else None,
        mean_latency_ms=_mean([turn.reply.latency_ms for turn in own]),
        cost_usd=priced(own),
    )


def _gaps(turns: Turns, own: Readings) -> LevelGaps:
    lowest = [one.reading for one in turns if one.item.level == LEVELS[0]]

    def between(of: Callable[[Readings], Cases], program: Program) -> Gap:
        return gap(of(with_program(own, program)), of(with_program(lowest, program)))

    return LevelGaps(
        oc=between(correct_of, "original"),
        mc=between(correct_of, "mutated"),
        mr=between(reversion_of, "mutated"),
    )


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 2) if values else None
