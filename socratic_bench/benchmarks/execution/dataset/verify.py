"""Compares stored outputs with what programs give, executed under several hash seeds."""

from collections.abc import Iterable, Iterator, Sequence

from socratic_bench.benchmarks.execution.dataset.document import (
    Fault,
    FindingEntry,
    VerifiedRow,
    Which,
)
from socratic_bench.benchmarks.execution.items import Problem
from socratic_bench.benchmarks.execution.literals import (
    LiteralError,
    compare,
    is_literal,
    parse_literal,
)
from socratic_bench.benchmarks.execution.sandbox.client import Case, Execution, Sandbox

MAX_TEXT_CHARACTERS = 200
_MESSAGES: dict[Fault, str] = {
    "timeout": "it did not end in time",
    "output": "it printed too much, or its value is too long",
    "memory": "it needs more memory than it may have",
    "crashed": "it crashed the interpreter",
    "no_result": "it ended the process, or closed its files, before it gave a value",
    "processes": "it left processes, which were killed",
}
_OTHER_SHAPE = "the stored output has lists where the program returns tuples, or the reverse."
_OTHER_VALUE = "its output differs from the stored one."
_REFUSED = " (programs have no processes, sockets, signals or files)"


def verify(problems: Iterable[Problem], sandbox: Sandbox) -> list[VerifiedRow]:
    """A row for each problem, with all that is wrong with it."""
    return [_verify_problem(problem, sandbox) for problem in problems]


def _verify_problem(problem: Problem, sandbox: Sandbox) -> VerifiedRow:
    runs = sandbox.execute(problem.code, problem.inputs)
    findings = [*_findings("original", problem.outputs, runs)]
    if problem.mutated_code is not None:
        runs = sandbox.execute(problem.mutated_code, problem.inputs)
        findings += _findings("mutated", problem.mutated_outputs or (), runs)
    return VerifiedRow(id=problem.id, sha256=problem.sha256, ok=not findings, findings=findings)


def _findings(
    which: Which, stored: Sequence[str], runs: Sequence[Execution]
) -> Iterator[FindingEntry]:
    faults: list[Fault] = [
        "no_result" if run.outcome == "abandoned" else run.outcome
        for run in runs
        if run.outcome != "ok"
    ]
    faults += ["processes"] * any(run.n_left for run in runs)
    for fault in dict.fromkeys(faults):
        message = f"{_MESSAGES[fault]}."
        yield FindingEntry(
            program=which, fault=fault, case=None, message=message, stored=None, found=[]
        )
    finished = [run for run in runs if run.outcome == "ok"]
    for index, text in enumerate(stored):
        cases = [run.cases[index] for run in finished if index < len(run.cases)]
        given = [_excerpt(case) for case in cases]
        for fault, message in _faults(text, cases):
            yield FindingEntry(
                program=which,
                fault=fault,
                case=index,
                message=message,
                stored=text[:MAX_TEXT_CHARACTERS],
                found=given,
            )


def _faults(stored: str, cases: Sequence[Case]) -> Iterator[tuple[Fault, str]]:
    """The faults of one call, by what its runs gave, with messages."""
    if not is_literal(stored):
        yield "stored_not_literal", "the stored output is not a Python literal."
    failed = next((case for case in cases if case.text is None), None)
    if failed:
        yield _failure(failed)
    values = []
    for case in (case for case in cases if case.text is not None):
        if case.holds:
            yield "not_literal", f"its output is not a Python literal: it holds a {case.holds}."
            return
        try:
            values.append(parse_literal(case.text or ""))
        except LiteralError:
            yield "not_literal", "its output is not a Python literal."
            return
    if any(compare(value, values[0]) != "equal" for value in values[1:]):
        yield "nondeterministic", "its output differs between runs."
    elif values and is_literal(stored) and compare(parse_literal(stored), values[0]) != "equal":
        is_shape = compare(parse_literal(stored), values[0]) == "shape_mismatch"
        yield "wrong_output", _OTHER_SHAPE if is_shape else _OTHER_VALUE


def _failure(case: Case) -> tuple[Fault, str]:
    if case.error is None:
        return "output", f"{_MESSAGES['output']}."
    if case.error == "MemoryError":
        return "memory", f"{_MESSAGES['memory']}."
    refused = _REFUSED if case.error == "PermissionError" else ""
    return "error", f"it raises {_excerpt(case)}{refused}."


def _excerpt(case: Case) -> str:
    """The beginning of a call's value or error."""
    if case.error is not None:
        return f"{case.error}: {case.message}"[:MAX_TEXT_CHARACTERS]
    return "" if case.text is None else case.text[:MAX_TEXT_CHARACTERS]
