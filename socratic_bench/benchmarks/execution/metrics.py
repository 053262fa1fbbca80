"""The metrics of a run: plain shares by name, for gates, sweeps and comparisons."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from socratic_bench.benchmarks.execution.choice import (
    consistent_of,
    decided_for,
    first_of,
    preferred_of,
    reverted_of,
    right_of,
)
from socratic_bench.benchmarks.execution.items import PROGRAMS, Item
from socratic_bench.benchmarks.execution.outcomes import (
    Cases,
    Readings,
    by_problem,
    gap,
    readings_in,
    with_program,
)
from socratic_bench.benchmarks.execution.prediction import correct_of, passed_of, reversion_of
from socratic_bench.documents.scalars import FIGURE_PLACES
from socratic_bench.ports.benchmark import MetricInfo


def _rate(name: str, title: str, *, higher_is_better: bool = True) -> MetricInfo:
    return MetricInfo(
        name=name, title=title, low=0, high=1, is_rate=True, higher_is_better=higher_is_better
    )


METRICS = (
    _rate("oc", "Right on the original program"),
    _rate("mc", "Right on the mutated program"),
    _rate("or", "Mutated output on the original program", higher_is_better=False),
    _rate("mr", "Original output on the mutated program", higher_is_better=False),
    MetricInfo(name="oc_less_mc", title="OC less MC", low=-1, high=1, higher_is_better=False),
    _rate("oc_pass_at_1", "Original program: right, of all generations"),
    _rate("mc_pass_at_1", "Mutated program: right, of all generations"),
    _rate("answered", "Readable answers"),
    _rate("truncated", "Replies cut off", higher_is_better=False),
    _rate("preference", "Choices of the original program"),
    _rate("choice_correct", "Right after a choice"),
    _rate("choice_oc", "Right after choosing the original"),
    _rate("choice_mc", "Right after choosing the mutated one"),
    _rate("choice_or", "Mutated output after choosing the original", higher_is_better=False),
    _rate("choice_mr", "Original output after choosing the mutated one", higher_is_better=False),
    _rate("position_bias", "Choices of the program shown first"),
    _rate("order_consistency", "Same program in both orders"),
    _rate("control_position_bias", "Choices of A between equal programs"),
)


def summarise(some: Readings) -> dict[str, float | None]:
    """Every metric; those of a task that was not played are null."""
    cases = cases_of(some)
    told = {
        name: _rounded([one for few in found.values() for one in few])
        for name, found in cases.items()
    }
    return {**told, "oc_less_mc": gap(cases["oc"], cases["mc"]).mean}


def by_problem_of(document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Every metric by problem, of the document of a complete run."""
    cases = cases_of([*readings_in(document)])
    told = {
        name: {problem: sum(few) / len(few) for problem, few in found.items() if few}
        for name, found in cases.items()
    }
    both = [problem for problem in told["oc"] if problem in told["mc"]]
    gaps = {problem: told["oc"][problem] - told["mc"][problem] for problem in both}
    return {**told, "oc_less_mc": gaps}


def n_problems_of(items: Sequence[Item]) -> dict[str, int]:
    """Of how many problems each metric can be, by what is asked; replies may leave fewer."""
    asked = {(one.kind, one.program, one.problem.id) for one in items if one.kind != "reasoning"}
    predicted = Counter(program for kind, program, _ in asked if kind == "prediction")
    choice, control = (
        len({problem for kind, _, problem in asked if kind == wanted})
        for wanted in ("choice", "control")
    )
    known = {
        **dict.fromkeys(("oc", "or", "oc_pass_at_1"), predicted["original"]),
        **dict.fromkeys(("mc", "mr", "oc_less_mc", "mc_pass_at_1"), predicted["mutated"]),
        **dict.fromkeys(("answered", "truncated"), len({problem for *_, problem in asked})),
        "control_position_bias": control,
    }
    return {one.name: known.get(one.name, choice) for one in METRICS}


def cases_of(some: Readings) -> dict[str, Cases]:
    """What is so or not, by metric and problem."""
    of_task = [one for one in some if one.kind != "reasoning"]
    predicted = [one for one in some if one.kind == "prediction"]
    original, mutated = (with_program(predicted, program) for program in PROGRAMS)
    decided = [one for one in some if one.kind == "choice" and one.is_whole]
    control = [one for one in some if one.kind == "control" and one.is_whole]
    for_original, for_mutated = (decided_for(decided, program) for program in PROGRAMS)
    return {
        "oc": correct_of(original),
        "mc": correct_of(mutated),
        "or": reversion_of(original),
        "mr": reversion_of(mutated),
        "oc_pass_at_1": passed_of(original),
        "mc_pass_at_1": passed_of(mutated),
        "answered": by_problem(of_task, lambda one: one.is_whole),
        "truncated": by_problem(of_task, lambda one: one.outcome == "truncated"),
        "preference": preferred_of(decided),
        "choice_correct": right_of(decided),
        "choice_oc": right_of(for_original),
        "choice_mc": right_of(for_mutated),
        "choice_or": reverted_of(for_original),
        "choice_mr": reverted_of(for_mutated),
        "position_bias": first_of(decided),
        "order_consistency": consistent_of(decided),
        "control_position_bias": first_of(control),
    }


def _rounded(found: Sequence[bool]) -> float | None:
    return round(sum(found) / len(found), FIGURE_PLACES) if found else None
