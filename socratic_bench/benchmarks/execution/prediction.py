"""The figures of prediction: OC, MC, OR, MR and what stands beside them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated

from msgspec import Struct, field

from socratic_bench.benchmarks.execution.items import PROGRAMS, Item, Problem
from socratic_bench.benchmarks.execution.outcomes import (
    OUTCOMES,
    Cases,
    Figure,
    Gap,
    ItemOutcome,
    Readings,
    by_problem,
    counts,
    gap,
    share,
    with_program,
)
from socratic_bench.documents.scalars import Count, keys
from socratic_bench.types import doc

# Lines of code up to which a problem counts to a group.
LINES = (5, 10, 20)


class Shown(Struct, frozen=True, kw_only=True):
    """Of one program of each problem, the original or the mutated one."""

    correct: Annotated[
        Figure, doc("generations all of whose answers are right, of the readable ones")
    ]
    reversion: Annotated[
        Figure,
        doc(
            "readable generations all of whose answers, where the programs' outputs "
            "differ, are the other program's output"
        ),
    ]
    pass_at_1: Annotated[
        Figure, doc("generations all of whose answers are right, of all that were played")
    ]
    correct_cases: Annotated[Figure, doc("right answers, of the readable ones")]
    reversion_cases: Annotated[
        Figure, doc("the other program's output, of readable answers where it differs")
    ]
    outcomes: Annotated[dict[str, Count], keys(OUTCOMES), doc("calls with each outcome")]
    missing: Annotated[Count, doc("calls without an outcome: nobody answered them")]


class Slice(Struct, frozen=True, kw_only=True):
    """The problems that have something in common."""

    by: Annotated[str, doc("difficulty, mutation_type or lines")]
    value: Annotated[str, doc("what they have in common")]
    n_problems: Annotated[Count, doc("how many they are")]
    oc: Annotated[Figure, doc("right on the original program")]
    mc: Annotated[Figure, doc("right on the mutated program")]
    or_: Annotated[Figure, doc("the mutated program's output on the original one")] = field(
        name="or"
    )
    mr: Annotated[Figure, doc("the original program's output on the mutated one")]


class Prediction(Struct, frozen=True, kw_only=True):
    """What prediction came to."""

    n_problems: Annotated[Count, doc("problems that were asked")]
    n_generations: Annotated[Count, doc("times that each was asked")]
    original: Annotated[Shown, doc("with the original program: OC and OR")]
    mutated: Annotated[Shown, doc("with the mutated program: MC and MR")]
    correct_gap: Annotated[Gap, doc("OC less MC within problems")]
    skipped_reversion: Annotated[Count, doc("problems in which no case can tell a reversion")]
    slices: Annotated[list[Slice], doc("the same of problems that are alike")]


class Generation(Struct, frozen=True):
    """All cases of a problem, asked once of one program; those that are missing lack."""

    problem: str
    cases: Readings

    @property
    def is_played(self) -> bool:
        return len(self.cases) == self.cases[0].n_cases

    @property
    def is_readable(self) -> bool:
        return self.is_played and all(one.is_whole for one in self.cases)

    @property
    def is_right(self) -> bool:
        return self.is_played and all(one.is_right for one in self.cases)

    @property
    def can_revert(self) -> bool:
        return self.is_readable and any(one.can_revert for one in self.cases)

    @property
    def is_reversion(self) -> bool:
        return all(one.is_reversion for one in self.cases if one.can_revert)


def shown(some: Readings, n_items: int) -> Shown:
    """Of the calls with one program, of `n_items` that were to be made."""
    whole = [one for one in some if one.is_whole]
    told = [one for one in whole if one.can_revert]
    return Shown(
        correct=share(correct_of(some)),
        reversion=share(reversion_of(some)),
        pass_at_1=share(passed_of(some)),
        correct_cases=share(by_problem(whole, lambda one: one.is_right)),
        reversion_cases=share(by_problem(told, lambda one: one.is_reversion)),
        outcomes=counts(some),
        missing=n_items - len(some),
    )


def correct_of(some: Readings) -> Cases:
    """By problem, whether a readable generation is right."""
    return _each(some, lambda one: one.is_readable, lambda one: one.is_right)


def reversion_of(some: Readings) -> Cases:
    """By problem, whether a readable generation that can tell is a reversion."""
    return _each(some, lambda one: one.can_revert, lambda one: one.is_reversion)


def passed_of(some: Readings) -> Cases:
    """By problem, whether a generation is right, readable or not."""
    return _each(some, lambda one: one.is_played, lambda one: one.is_right)


def prediction(some: Readings, items: Sequence[Item]) -> Prediction:
    """Of all calls of prediction; `items` are those that were to be made."""
    problems = {one.problem.id: one.problem for one in items}
    n_items = Counter(one.program for one in items)
    tellable = {one.problem.id for one in items if one.can_revert}
    original, mutated = (with_program(some, name) for name in PROGRAMS)
    return Prediction(
        n_problems=len(problems),
        n_generations=len({one.round for one in items}),
        original=shown(original, n_items["original"]),
        mutated=shown(mutated, n_items["mutated"]),
        correct_gap=gap(correct_of(original), correct_of(mutated)),
        skipped_reversion=len(problems) - len(tellable),
        slices=[*_slices(some, [*problems.values()])],
    )


def _slices(some: Readings, problems: Sequence[Problem]) -> Iterator[Slice]:
    for by, value_of in SLICED_BY.items():
        groups: dict[str, set[str]] = defaultdict(set)
        for problem in problems:
            if (value := value_of(problem)) is not None:
                groups[value].add(problem.id)
        for value, ids in sorted(groups.items()):
            yield _slice(by, value, len(ids), [one for one in some if one.problem in ids])


def _slice(by: str, value: str, n_problems: int, some: Readings) -> Slice:
    original, mutated = (with_program(some, name) for name in PROGRAMS)
    return Slice(
        by=by,
        value=value,
        n_problems=n_problems,
        oc=share(correct_of(original)),
        mc=share(correct_of(mutated)),
        or_=share(reversion_of(original)),
        mr=share(reversion_of(mutated)),
    )


def _lines(problem: Problem) -> str:
    n = problem.n_lines
    if n is None:
        n = sum(bool(line.strip()) for line in problem.code.splitlines())
    low = 1
    for high in LINES:
        if n <= high:
            return f"{low:02d} to {high:02d}"
        low = high + 1
    return f"{low} or more"


SLICED_BY: Mapping[str, Callable[[Problem], str | None]] = {
    "difficulty": lambda problem: problem.difficulty,
    "mutation_type": lambda problem: problem.mutation.mutation_type if problem.mutation else None,
    "lines": _lines,
}


def _each(
    some: Readings, counts_in: Callable[[Generation], bool], is_so: Callable[[Generation], bool]
) -> Cases:
    made: dict[tuple[str, int], list[ItemOutcome]] = defaultdict(list)
    for one in some:
        made[one.problem, one.round].append(one)
    found: dict[str, list[bool]] = defaultdict(list)
    for (problem, _), cases in made.items():
        generation = Generation(problem, cases)
        if counts_in(generation):
            found[problem].append(is_so(generation))
    return found
