"""The figures of choice: which of two programs a model prefers, and how well it then answers."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from socratic_bench.benchmarks.execution.items import PROGRAMS, Item, Kind
from socratic_bench.benchmarks.execution.outcomes import (
    OUTCOMES,
    Cases,
    Figure,
    ItemOutcome,
    Outcomes,
    cases_by_problem,
    count_outcomes,
    rate,
    reverted_cases,
    right_cases,
    with_program,
)
from socratic_bench.documents.document import Count, keys
from socratic_bench.types import doc


class ChosenFigures(Struct, frozen=True, kw_only=True):
    """Figures of the decisions for one program, the original or the mutated one."""

    correct: Annotated[Figure, doc("right answers, of the decisions for it")]
    reversion: Annotated[
        Figure, doc("the other program's output, of the decisions for it where it differs")
    ]


class Control(Struct, frozen=True, kw_only=True):
    """Decisions between two equal programs: a difference from one half is due to their position."""

    position_bias: Annotated[Figure, doc("decisions for A, of the readable ones")]
    correct: Annotated[Figure, doc("right answers, of the readable ones")]
    outcomes: Annotated[dict[str, Count], keys(OUTCOMES), doc("decisions with each outcome")]
    missing: Annotated[Count, doc("decisions without an outcome")]


class Choice(Struct, frozen=True, kw_only=True):
    """All figures of choice; all but `outcomes` and `missing` are of readable decisions."""

    n_problems: Annotated[Count, doc("problems in the run")]
    n_runs: Annotated[Count, doc("decisions on each case of a problem")]
    preference: Annotated[Figure, doc("decisions for the original program")]
    preference_as_a: Annotated[Figure, doc("the same, where the original is A")]
    preference_as_b: Annotated[Figure, doc("the same, where the original is B")]
    correct: Annotated[Figure, doc("right answers, whichever program was chosen")]
    original: Annotated[ChosenFigures, doc("of decisions for the original: OC and OR")]
    mutated: Annotated[ChosenFigures, doc("of decisions for the mutated one: MC and MR")]
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


def choice(outcomes: Outcomes, items: Sequence[Item]) -> Choice:
    """The figures of choice and of its control; `items` are all calls that were to be made."""
    choice_items = [item for item in items if item.kind == "choice"]
    decisions = [outcome for outcome in outcomes if outcome.kind == "choice"]
    cases = choice_cases(outcomes)
    as_a, as_b = (
        _preference(with_program(_readable(outcomes, "choice"), program)) for program in PROGRAMS
    )
    return Choice(
        n_problems=len({item.problem.id for item in choice_items}),
        n_runs=len({item.round for item in choice_items}),
        preference=rate(cases["preference"]),
        preference_as_a=rate(as_a),
        preference_as_b=rate(as_b),
        correct=rate(cases["choice_correct"]),
        original=ChosenFigures(
            correct=rate(cases["choice_oc"]), reversion=rate(cases["choice_or"])
        ),
        mutated=ChosenFigures(correct=rate(cases["choice_mc"]), reversion=rate(cases["choice_mr"])),
        position_bias=rate(cases["position_bias"]),
        order_consistency=rate(cases["order_consistency"]),
        outcomes=count_outcomes(decisions),
        missing=len(choice_items) - len(decisions),
        control=_control(outcomes, items),
    )


def choice_cases(outcomes: Outcomes) -> dict[str, Cases]:
    """By metric and problem, what holds of the readable decisions of choice and of its control."""
    readable = _readable(outcomes, "choice")
    for_original, for_mutated = (
        [decision for decision in readable if decision.target_program == program]
        for program in PROGRAMS
    )
    return {
        "preference": _preference(readable),
        "choice_correct": right_cases(readable),
        "choice_oc": right_cases(for_original),
        "choice_mc": right_cases(for_mutated),
        "choice_or": reverted_cases(for_original),
        "choice_mr": reverted_cases(for_mutated),
        "position_bias": _chose_a(readable),
        "order_consistency": _consistency(readable),
        "control_position_bias": _chose_a(_readable(outcomes, "control")),
    }


def _readable(outcomes: Outcomes, kind: Kind) -> Outcomes:
    return [outcome for outcome in outcomes if outcome.kind == kind and outcome.is_readable]


def _preference(readable: Outcomes) -> Cases:
    return cases_by_problem(readable, lambda decision: decision.target_program == "original")


def _chose_a(readable: Outcomes) -> Cases:
    return cases_by_problem(readable, lambda decision: decision.chosen == "A")


def _consistency(readable: Outcomes) -> Cases:
    """By problem, whether the n-th decisions in each order, of one case, are for one program."""
    by_case: dict[tuple[str, int], list[ItemOutcome]] = defaultdict(list)
    for decision in sorted(readable, key=lambda decision: decision.round):
        by_case[decision.problem, decision.case].append(decision)
    cases: dict[str, list[bool]] = defaultdict(list)
    for (problem, _), decisions in by_case.items():
        orders = (with_program(decisions, program) for program in PROGRAMS)
        cases[problem] += [
            first.target_program == second.target_program
            for first, second in zip(*orders, strict=False)
        ]
    return cases


def _control(outcomes: Outcomes, items: Sequence[Item]) -> Control | None:
    n_items = sum(item.kind == "control" for item in items)
    decisions = [outcome for outcome in outcomes if outcome.kind == "control"]
    readable = _readable(outcomes, "control")
    if not n_items:
        return None
    return Control(
        position_bias=rate(_chose_a(readable)),
        correct=rate(right_cases(readable)),
        outcomes=count_outcomes(decisions),
        missing=n_items - len(decisions),
    )
