"""The figures of choice: which of two programs a model prefers, and what comes of it."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from socratic_bench.benchmarks.execution.items import PROGRAMS, Item, Program
from socratic_bench.benchmarks.execution.outcomes import (
    OUTCOMES,
    Cases,
    Figure,
    ItemOutcome,
    Readings,
    by_problem,
    counts,
    share,
    with_program,
)
from socratic_bench.documents.scalars import Count, keys
from socratic_bench.types import doc


class Picked(Struct, frozen=True, kw_only=True):
    """Of the decisions for one program, the original or the mutated one."""

    correct: Annotated[Figure, doc("right answers, of the decisions for it")]
    reversion: Annotated[
        Figure, doc("the other program's output, of the decisions for it where it differs")
    ]


class Control(Struct, frozen=True, kw_only=True):
    """Decisions between two equal programs: what differs from a half there is their position."""

    position_bias: Annotated[Figure, doc("decisions for A, of the readable ones")]
    correct: Annotated[Figure, doc("right answers, of the readable ones")]
    outcomes: Annotated[dict[str, Count], keys(OUTCOMES), doc("decisions with each outcome")]
    missing: Annotated[Count, doc("decisions without an outcome")]


class Choice(Struct, frozen=True, kw_only=True):
    """What choice came to; all but `outcomes` and `missing` is of readable decisions."""

    n_problems: Annotated[Count, doc("problems that were asked")]
    n_runs: Annotated[Count, doc("decisions on each case of a problem")]
    preference: Annotated[Figure, doc("decisions for the original program")]
    preference_as_a: Annotated[Figure, doc("the same, where the original is A")]
    preference_as_b: Annotated[Figure, doc("the same, where the original is B")]
    correct: Annotated[Figure, doc("right answers, whichever program was chosen")]
    original: Annotated[Picked, doc("of decisions for the original: OC and OR")]
    mutated: Annotated[Picked, doc("of decisions for the mutated one: MC and MR")]
    position_bias: Annotated[Figure, doc("decisions for A")]
    order_consistency: Annotated[
        Figure,
        doc("pairs of decisions on one case, one in each order, that are for the same program"),
    ]
    outcomes: Annotated[dict[str, Count], keys(OUTCOMES), doc("decisions with each outcome")]
    missing: Annotated[Count, doc("decisions without an outcome")]
    control: Annotated[
        Control | None, doc("between two equal programs; null if none was asked for")
    ]


def choice(some: Readings, items: Sequence[Item]) -> Choice:
    """Of all calls of choice and of its control; `items` are those that were to be made."""
    asked = [one for one in items if one.kind == "choice"]
    played = [one for one in some if one.kind == "choice"]
    whole = [one for one in played if one.is_whole]
    by_order = {program: with_program(whole, program) for program in PROGRAMS}
    return Choice(
        n_problems=len({one.problem.id for one in asked}),
        n_runs=len({one.round for one in asked}),
        preference=share(preferred_of(whole)),
        preference_as_a=share(preferred_of(by_order["original"])),
        preference_as_b=share(preferred_of(by_order["mutated"])),
        correct=share(right_of(whole)),
        original=_picked(whole, "original"),
        mutated=_picked(whole, "mutated"),
        position_bias=share(first_of(whole)),
        order_consistency=share(consistent_of(whole)),
        outcomes=counts(played),
        missing=len(asked) - len(played),
        control=_control(some, items),
    )


def preferred_of(whole: Readings) -> Cases:
    """By problem, whether a decision is for the original program."""
    return by_problem(whole, lambda one: one.about == "original")


def first_of(whole: Readings) -> Cases:
    """By problem, whether a decision is for A."""
    return by_problem(whole, lambda one: one.chosen == "A")


def right_of(whole: Readings) -> Cases:
    """By problem, whether the answer is right."""
    return by_problem(whole, lambda one: one.is_right)


def reverted_of(whole: Readings) -> Cases:
    """By problem, whether an answer that can tell is the other program's output."""
    return by_problem((one for one in whole if one.can_revert), lambda one: one.is_reversion)


def consistent_of(whole: Readings) -> Cases:
    """By problem, whether the decisions of a case agree, two by two: the first in one order with
    the first in the other.
    """
    found: dict[tuple[str, int], list[ItemOutcome]] = defaultdict(list)
    for one in sorted(whole, key=lambda one: one.round):
        found[one.problem, one.case].append(one)
    agree: dict[str, list[bool]] = defaultdict(list)
    for (name, _), some in found.items():
        orders = (with_program(some, program) for program in PROGRAMS)
        pairs = zip(*orders, strict=False)
        agree[name] += [one.about == another.about for one, another in pairs]
    return agree


def decided_for(whole: Readings, program: Program) -> Readings:
    """The decisions for a program."""
    return [one for one in whole if one.about == program]


def _control(some: Readings, items: Sequence[Item]) -> Control | None:
    n_asked = sum(one.kind == "control" for one in items)
    played = [one for one in some if one.kind == "control"]
    whole = [one for one in played if one.is_whole]
    if not n_asked:
        return None
    return Control(
        position_bias=share(first_of(whole)),
        correct=share(right_of(whole)),
        outcomes=counts(played),
        missing=n_asked - len(played),
    )


def _picked(whole: Readings, program: Program) -> Picked:
    of_it = decided_for(whole, program)
    return Picked(correct=share(right_of(of_it)), reversion=share(reverted_of(of_it)))
