"""Mutated programs for a data set: of all that one operator makes, the one that runs most alike."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.execution.dataset.operators import Mutant, mutants
from socratic_bench.benchmarks.execution.dataset.rows import digest
from socratic_bench.benchmarks.execution.literals import LiteralError, Value, compare, parse_literal
from socratic_bench.benchmarks.execution.problem import Mutation, Problem
from socratic_bench.benchmarks.execution.sandbox.client import Execution, Sandbox

# Of a long program, a part is tried, chosen by the seed.
MOST_TRIED = 200


class Mutated(Struct, frozen=True, kw_only=True):
    """What became of a problem, and how many mutations were tried. `reason`: why none was made."""

    problem: Problem
    n_candidates: int = 0
    n_valid: int = 0
    reason: str | None = None


class _Candidate(Struct, frozen=True):
    """A mutation that gives literals, and how alike it runs: by lines, and by the ways taken."""

    number: int
    mutant: Mutant
    outputs: tuple[str, ...]
    line_similarity: float
    arc_similarity: float


def mutate(problems: Iterable[Problem], sandbox: Sandbox, seed: int) -> list[Mutated]:
    """Each with a mutation, where there is one."""
    return [_mutated(problem, sandbox, seed) for problem in problems]


def _mutated(problem: Problem, sandbox: Sandbox, seed: int) -> Mutated:
    bare = replace(problem, mutated_code=None, mutated_outputs=None, mutation=None)
    bare = replace(bare, sha256=digest(bare))
    originals = sandbox.execute(problem.code, problem.inputs, is_traced=True)
    values = _steady_values(originals)
    if values is None or not _same(values, _values(problem.outputs)):
        return Mutated(problem=bare, reason="its stored outputs are not what it gives")
    tried = _tried(problem, seed)
    runs = sandbox.execute_each(
        [mutant.code for _, mutant in tried], problem.inputs, is_traced=True
    )
    valid = [
        _candidate(number, mutant, run, originals[0])
        for (number, mutant), run in zip(tried, runs, strict=True)
        if _is_valid(run, values)
    ]
    valid.sort(key=lambda one: _rank(one, problem.id, seed))
    found = Mutated(problem=bare, n_candidates=len(tried), n_valid=len(valid))
    for candidate in valid:
        if _steady_values(sandbox.execute(candidate.mutant.code, problem.inputs)) is not None:
            return replace(found, problem=_with(bare, candidate))
    return replace(found, reason="no operator makes other outputs that are literals")


def _tried(problem: Problem, seed: int) -> list[tuple[int, Mutant]]:
    """All mutations with their numbers, from 1; of too many, those that the seed chooses."""
    known = [*enumerate(mutants(problem.code), start=1)]
    chosen = sorted(known, key=lambda one: _drawn(seed, problem.id, one[0]))[:MOST_TRIED]
    return sorted(chosen, key=lambda one: one[0])


def _with(problem: Problem, candidate: _Candidate) -> Problem:
    mutation = Mutation(
        mutation_type=candidate.mutant.mutation_type,
        mutation_id=candidate.number,
        coverage_similarity=round(candidate.line_similarity, 4),
    )
    made = replace(
        problem,
        mutated_code=candidate.mutant.code,
        mutated_outputs=candidate.outputs,
        mutation=mutation,
    )
    return replace(made, sha256=digest(made))


def _candidate(number: int, mutant: Mutant, run: Execution, original: Execution) -> _Candidate:
    return _Candidate(
        number,
        mutant,
        tuple(case.text or "" for case in run.cases),
        _jaccard(run.lines, original.lines),
        _jaccard(run.arcs, original.arcs),
    )


def _jaccard(left: frozenset[object], right: frozenset[object]) -> float:
    """|A and B| / |A or B|; 1 for two empty sets (Jaccard, 1901)."""
    union = left | right
    return len(left & right) / len(union) if union else 1.0


def _rank(one: _Candidate, name: str, seed: int) -> tuple[float, float, str, str]:
    """The most alike first. Of those that are equally alike, the seed chooses a kind of operator
    and then one of that kind, so that kinds with many places are not chosen the more.
    """
    return (
        -one.line_similarity,
        -one.arc_similarity,
        _drawn(seed, name, one.mutant.mutation_type),
        _drawn(seed, name, one.number),
    )


def _drawn(seed: int, *what: object) -> str:
    return sha256(repr((seed, *what)).encode()).hexdigest()


def _is_valid(run: Execution, originals: Sequence[Value]) -> bool:
    """Whether it ends with literals, of which one or more are others than the original's."""
    values = _run_values(run)
    return values is not None and run.n_left == 0 and not _same(values, originals)


def _steady_values(runs: Sequence[Execution]) -> Sequence[Value] | None:
    """The values that all runs give; `None` if they differ or one of them gives none."""
    found = [_run_values(run) for run in runs]
    known = [one for one in found if one is not None]
    is_steady = len(known) == len(found) and all(_same(one, known[0]) for one in known)
    return known[0] if is_steady else None


def _run_values(run: Execution) -> Sequence[Value] | None:
    texts = [None if case.holds else case.text for case in run.cases]
    if run.outcome != "ok" or None in texts:
        return None
    return _values([text for text in texts if text is not None])


def _values(texts: Sequence[str]) -> Sequence[Value] | None:
    try:
        return [parse_literal(text) for text in texts]
    except LiteralError:
        return None


def _same(left: Sequence[Value], right: Sequence[Value] | None) -> bool:
    """Whether all are equal."""
    if right is None or len(left) != len(right):
        return False
    return all(compare(one, other) == "equal" for one, other in zip(left, right, strict=True))
