"""The metrics of a run: plain rates by name, for gates, sweeps and comparisons."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from socratic_bench.benchmarks.execution import prediction
from socratic_bench.benchmarks.execution.choice import choice_cases
from socratic_bench.benchmarks.execution.items import PROGRAMS, Item
from socratic_bench.benchmarks.execution.outcomes import (
    Cases,
    Outcomes,
    cases_by_problem,
    gap,
    outcomes_in,
    rate,
    with_program,
)
from socratic_bench.ports.benchmark import MetricInfo, rate_metric

METRICS = (
    rate_metric("oc", "Right on the original program"),
    rate_metric("mc", "Right on the mutated program"),
    rate_metric("or", "Mutated output on the original program", higher_is_better=False),
    rate_metric("mr", "Original output on the mutated program", higher_is_better=False),
    MetricInfo(name="oc_less_mc", title="OC less MC", low=-1, high=1, higher_is_better=False),
    rate_metric("oc_pass_at_1", "Original program: right, of all generations"),
    rate_metric("mc_pass_at_1", "Mutated program: right, of all generations"),
    rate_metric("answered", "Readable answers"),
    rate_metric("truncated", "Replies cut off", higher_is_better=False),
    rate_metric("preference", "Choices of the original program"),
    rate_metric("choice_correct", "Right after a choice"),
    rate_metric("choice_oc", "Right after choosing the original"),
    rate_metric("choice_mc", "Right after choosing the mutated one"),
    rate_metric("choice_or", "Mutated output after choosing the original", higher_is_better=False),
    rate_metric(
        "choice_mr", "Original output after choosing the mutated one", higher_is_better=False
    ),
    rate_metric("position_bias", "Choices of the program shown first"),
    rate_metric("order_consistency", "Same program in both orders"),
    rate_metric("control_position_bias", "Choices of A between equal programs"),
)


def summarise(outcomes: Outcomes) -> dict[str, float | None]:
    """Every metric; those of a task that was not played are null."""
    cases = _cases_by_metric(outcomes)
    rates = {name: rate(of_metric).value for name, of_metric in cases.items()}
    return {**rates, "oc_less_mc": gap(cases["oc"], cases["mc"]).mean}


def metrics_by_problem(document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Every metric by problem, of the document of a complete run."""
    cases = _cases_by_metric([*outcomes_in(document)])
    rates = {
        name: {
            problem: sum(values) / len(values) for problem, values in of_metric.items() if values
        }
        for name, of_metric in cases.items()
    }
    oc, mc = rates["oc"], rates["mc"]
    gaps = {problem: oc[problem] - mc[problem] for problem in oc if problem in mc}
    return {**rates, "oc_less_mc": gaps}


def n_problems_by_metric(items: Sequence[Item]) -> dict[str, int]:
    """The number of problems that each metric can be of; unreadable replies may leave fewer."""
    programs = {
        (item.kind, item.program, item.problem.id) for item in items if item.kind != "reasoning"
    }
    predicted = Counter(program for kind, program, _ in programs if kind == "prediction")
    n_choice, n_control = (
        len({problem for item_kind, _, problem in programs if item_kind == kind})
        for kind in ("choice", "control")
    )
    n_problems = {
        **dict.fromkeys(("oc", "or", "oc_pass_at_1"), predicted["original"]),
        **dict.fromkeys(("mc", "mr", "oc_less_mc", "mc_pass_at_1"), predicted["mutated"]),
        **dict.fromkeys(("answered", "truncated"), len({problem for *_, problem in programs})),
        "control_position_bias": n_control,
    }
    return {metric.name: n_problems.get(metric.name, n_choice) for metric in METRICS}


def _cases_by_metric(outcomes: Outcomes) -> dict[str, Cases]:
    of_tasks = [outcome for outcome in outcomes if outcome.kind != "reasoning"]
    predicted = [outcome for outcome in outcomes if outcome.kind == "prediction"]
    original, mutated = (with_program(predicted, program) for program in PROGRAMS)
    return {
        "oc": prediction.correct_cases(original),
        "mc": prediction.correct_cases(mutated),
        "or": prediction.reversion_cases(original),
        "mr": prediction.reversion_cases(mutated),
        "oc_pass_at_1": prediction.pass_cases(original),
        "mc_pass_at_1": prediction.pass_cases(mutated),
        "answered": cases_by_problem(of_tasks, lambda outcome: outcome.is_readable),
        "truncated": cases_by_problem(of_tasks, lambda outcome: outcome.outcome == "truncated"),
        **choice_cases(outcomes),
    }
