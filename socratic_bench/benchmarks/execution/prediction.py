"""The figures of prediction: OC, MC, OR, MR and related rates, by problems and by reasoning."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Annotated

from msgspec import Struct, field

from socratic_bench.benchmarks.execution.answers import ExecutionTurn
from socratic_bench.benchmarks.execution.items import (
    LEVELS,
    PROGRAMS,
    Item,
    Problem,
    Program,
    reasoning_sentence,
)
from socratic_bench.benchmarks.execution.outcomes import (
    OUTCOMES,
    Cases,
    Figure,
    Gap,
    ItemOutcome,
    Outcomes,
    count_outcomes,
    gap,
    rate,
    reverted_cases,
    right_cases,
    with_program,
)
from socratic_bench.benchmarks.execution.sampling import level_tokens
from socratic_bench.benchmarks.execution.settings import Level, Settings
from socratic_bench.documents.document import Amount, Count, keys
from socratic_bench.documents.usage import sum_usage
from socratic_bench.types import doc

# Upper limits, in lines of code, of the groups of problems by length.
GROUP_LINES = (5, 10, 20)


class ProgramFigures(Struct, frozen=True, kw_only=True):
    """Figures of one program of each problem, the original or the mutated one."""

    correct: Annotated[Figure, doc("readable generations with only correct answers")]
    reversion: Annotated[
        Figure,
        doc(
            "readable generations all of whose answers, where the programs' outputs "
            "differ, are the other program's output"
        ),
    ]
    pass_at_1: Annotated[
        Figure, doc("generations with only correct answers, unreadable ones counted as wrong")
    ]
    correct_cases: Annotated[Figure, doc("right answers, of the readable ones")]
    reversion_cases: Annotated[
        Figure, doc("the other program's output, of readable answers where it differs")
    ]
    outcomes: Annotated[dict[str, Count], keys(OUTCOMES), doc("calls with each outcome")]
    missing: Annotated[Count, doc("calls that got no answer")]


class Slice(Struct, frozen=True, kw_only=True):
    """Figures of the problems that have a property in common."""

    by: Annotated[str, doc("difficulty, mutation_type or lines")]
    value: Annotated[str, doc("value that the group shares")]
    n_problems: Annotated[Count, doc("number of problems")]
    oc: Annotated[Figure, doc("right on the original program")]
    mc: Annotated[Figure, doc("right on the mutated program")]
    or_: Annotated[Figure, doc("the mutated program's output on the original one")] = field(
        name="or"
    )
    mr: Annotated[Figure, doc("the original program's output on the mutated one")]


class Prediction(Struct, frozen=True, kw_only=True):
    """All figures of prediction."""

    n_problems: Annotated[Count, doc("problems in the run")]
    n_generations: Annotated[Count, doc("generations for each problem")]
    original: Annotated[ProgramFigures, doc("with the original program: OC and OR")]
    mutated: Annotated[ProgramFigures, doc("with the mutated program: MC and MR")]
    correct_gap: Annotated[Gap, doc("OC minus MC within problems")]
    skipped_reversion: Annotated[
        Count, doc("problems whose outputs do not differ, so that no reversion can be seen")
    ]
    slices: Annotated[list[Slice], doc("the same by group of similar problems")]


def prediction(outcomes: Outcomes, items: Sequence[Item]) -> Prediction:
    """The figures of prediction; `items` are all calls that were to be made."""
    problems = {item.problem.id: item.problem for item in items}
    n_items = Counter(item.program for item in items)
    revertible = {item.problem.id for item in items if item.can_revert}
    original, mutated = (with_program(outcomes, program) for program in PROGRAMS)
    return Prediction(
        n_problems=len(problems),
        n_generations=len({item.round for item in items}),
        original=program_figures(original, n_items["original"]),
        mutated=program_figures(mutated, n_items["mutated"]),
        correct_gap=gap(correct_cases(original), correct_cases(mutated)),
        skipped_reversion=len(problems) - len(revertible),
        slices=[*_slices(outcomes, [*problems.values()])],
    )


def program_figures(outcomes: Outcomes, n_items: int) -> ProgramFigures:
    """The figures of the calls with one program, of `n_items` that were to be made."""
    readable = [outcome for outcome in outcomes if outcome.is_readable]
    return ProgramFigures(
        correct=rate(correct_cases(outcomes)),
        reversion=rate(reversion_cases(outcomes)),
        pass_at_1=rate(pass_cases(outcomes)),
        correct_cases=rate(right_cases(readable)),
        reversion_cases=rate(reverted_cases(readable)),
        outcomes=count_outcomes(outcomes),
        missing=n_items - len(outcomes),
    )


def correct_cases(outcomes: Outcomes) -> Cases:
    """By problem, whether a readable generation is right."""
    readable = [cases for cases in _generations(outcomes) if _are_readable(cases)]
    return _by_problem(readable, lambda case: case.is_right)


def reversion_cases(outcomes: Outcomes) -> Cases:
    """By problem, whether a readable generation that can revert is a reversion."""
    readable = [cases for cases in _generations(outcomes) if _are_readable(cases)]
    revertible = [[case for case in cases if case.can_revert] for cases in readable]
    return _by_problem(filter(None, revertible), lambda case: case.is_reversion)


def pass_cases(outcomes: Outcomes) -> Cases:
    """By problem, whether a generation is right, readable or not."""
    return _by_problem(_generations(outcomes), lambda case: case.is_right)


def _generations(outcomes: Outcomes) -> Iterator[Outcomes]:
    """All outcomes of a problem and program by generation, without those that miss a case."""
    generations: dict[tuple[str, int], list[ItemOutcome]] = defaultdict(list)
    for outcome in outcomes:
        generations[outcome.problem, outcome.round].append(outcome)
    yield from (cases for cases in generations.values() if len(cases) == cases[0].n_cases)


def _are_readable(cases: Outcomes) -> bool:
    return all(case.is_readable for case in cases)


def _by_problem(
    generations: Iterable[Outcomes], is_so: Callable[[ItemOutcome], bool]
) -> dict[str, list[bool]]:
    """By problem, whether something holds of every case of a generation."""
    holds: dict[str, list[bool]] = defaultdict(list)
    for cases in generations:
        holds[cases[0].problem].append(all(map(is_so, cases)))
    return holds


def _slices(outcomes: Outcomes, problems: Sequence[Problem]) -> Iterator[Slice]:
    for by, value_of in SLICED_BY.items():
        groups: dict[str, set[str]] = defaultdict(set)
        for problem in problems:
            if (value := value_of(problem)) is not None:
                groups[value].add(problem.id)
        for value, ids in sorted(groups.items()):
            in_group = [outcome for outcome in outcomes if outcome.problem in ids]
            original, mutated = (with_program(in_group, program) for program in PROGRAMS)
            yield Slice(
                by=by,
                value=value,
                n_problems=len(ids),
                oc=rate(correct_cases(original)),
                mc=rate(correct_cases(mutated)),
                or_=rate(reversion_cases(original)),
                mr=rate(reversion_cases(mutated)),
            )


def _line_group(problem: Problem) -> str:
    n_lines = problem.n_lines
    if n_lines is None:
        n_lines = sum(bool(line.strip()) for line in problem.code.splitlines())
    low = 1
    for high in GROUP_LINES:
        if n_lines <= high:
            return f"{low:02d} to {high:02d}"
        low = high + 1
    return f"{low} or more"


SLICED_BY: Mapping[str, Callable[[Problem], str | None]] = {
    "difficulty": lambda problem: problem.difficulty,
    "mutation_type": lambda problem: problem.mutation.mutation_type if problem.mutation else None,
    "lines": _line_group,
}


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
    sentence: Annotated[str, doc("reasoning level of the prompt")]
    thinking_budget_tokens: Annotated[
        Count | None,
        doc(
            "the budget of thinking, by which a model with levels of effort is asked "
            "for that of this name; null: it is not asked to think"
        ),
    ]
    original: Annotated[ProgramFigures, doc("with the original program: OC and OR")]
    mutated: Annotated[ProgramFigures, doc("with the mutated program: MC and MR")]
    to_lowest: Annotated[
        LevelGaps | None, doc("difference from the lowest level; null for the lowest")
    ]
    mean_output_tokens: Annotated[
        Amount | None, doc("output tokens of one reply; null if not known")
    ]
    mean_latency_ms: Annotated[Amount | None, doc("milliseconds of one reply; null without any")]
    cost_usd: Annotated[Amount | None, doc("USD of its calls; null if not known")]


def level_entry(
    level: Level, turns: Turns, items: Sequence[Item], settings: Settings, cost_usd: TurnsCost
) -> LevelEntry:
    """The figures of a level; `turns` and `items` are those of all levels."""
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
        mean_latency_ms=(
            round(fmean(turn.reply.latency_ms for turn in at_level), 2) if at_level else None
        ),
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
