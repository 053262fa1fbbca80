"""Mutated programs for a data set: of all that one operator makes, the one that runs most alike.

Only the operator's own characters are replaced. A program that is written anew from its tree would
be laid out in another way, which tells the two programs apart.
"""

from __future__ import annotations

import ast
import io
import os
import tokenize
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any, Literal

import orjson
from msgspec import Struct
from msgspec.structs import asdict, replace

from socratic_bench.benchmarks.execution.dataset.rows import digest
from socratic_bench.benchmarks.execution.items import Mutation, Problem
from socratic_bench.benchmarks.execution.literals import LiteralError, Value, compare, parse_literal
from socratic_bench.benchmarks.execution.sandbox.client import Execution, Sandbox
from socratic_bench.errors import ArtifactError

MutationType = Literal["arithmetic", "relational", "logical", "keyword", "number"]
Row = Mapping[str, Any]

# Of the mutations of a long program so many are tried, chosen by the seed.
MAX_CANDIDATES = 200

_OUTPUT, _OUTPUTS = "mutated_output", "mutated_outputs"
# The operators and words that may stand in the place of each.
_REPLACEMENTS: Mapping[str, tuple[MutationType, tuple[str, ...]]] = {
    "+": ("arithmetic", ("-", "*")),
    "-": ("arithmetic", ("+",)),
    "*": ("arithmetic", ("+", "//")),
    "/": ("arithmetic", ("*", "//")),
    "//": ("arithmetic", ("*", "%")),
    "%": ("arithmetic", ("//", "*")),
    "**": ("arithmetic", ("*",)),
    "+=": ("arithmetic", ("-=",)),
    "-=": ("arithmetic", ("+=",)),
    "*=": ("arithmetic", ("+=",)),
    "//=": ("arithmetic", ("*=", "%=")),
    "%=": ("arithmetic", ("//=",)),
    "<": ("relational", ("<=",)),
    "<=": ("relational", ("<",)),
    ">": ("relational", (">=",)),
    ">=": ("relational", (">",)),
    "==": ("relational", ("!=",)),
    "!=": ("relational", ("==",)),
    "and": ("logical", ("or",)),
    "or": ("logical", ("and",)),
    "break": ("keyword", ("continue",)),
    "continue": ("keyword", ("break",)),
    "True": ("keyword", ("False",)),
    "False": ("keyword", ("True",)),
}


class Mutated(Struct, frozen=True, kw_only=True):
    """A problem with its new mutation or the reason for none; how many were tried and valid."""

    problem: Problem
    n_candidates: int = 0
    n_valid: int = 0
    reason: str | None = None


def mutate(problems: Iterable[Problem], sandbox: Sandbox, seed: int) -> list[Mutated]:
    """Each problem with a mutation, if there is a valid one. The seed chooses among equal ones."""
    return [_mutate_problem(problem, sandbox, seed) for problem in problems]


class _Candidate(Struct, frozen=True):
    """A valid mutation: its number, outputs, and how alike it runs, by lines and by jumps."""

    number: int
    mutant: Mutant
    outputs: tuple[str, ...]
    line_similarity: float
    arc_similarity: float

    @classmethod
    def of(cls, number: int, mutant: Mutant, run: Execution, original: Execution) -> _Candidate:
        return cls(
            number,
            mutant,
            tuple(case.text or "" for case in run.cases),
            _jaccard(run.lines, original.lines),
            _jaccard(run.arcs, original.arcs),
        )


def _mutate_problem(problem: Problem, sandbox: Sandbox, seed: int) -> Mutated:
    bare = replace(problem, mutated_code=None, mutated_outputs=None, mutation=None)
    bare = replace(bare, sha256=digest(bare))
    originals = sandbox.execute(problem.code, problem.inputs, is_traced=True)
    values = _steady_values(originals)
    if values is None or not _are_equal(values, _parse_all(problem.outputs)):
        return Mutated(problem=bare, reason="its stored outputs are wrong")
    numbered = [*enumerate(mutants(problem.code), start=1)]
    numbered.sort(key=lambda pair: _sort_digest(seed, problem.id, pair[0]))
    numbered = sorted(numbered[:MAX_CANDIDATES], key=lambda pair: pair[0])
    runs = sandbox.execute_each(
        [mutant.code for _, mutant in numbered], problem.inputs, is_traced=True
    )
    candidates = [
        _Candidate.of(number, mutant, run, originals[0])
        for (number, mutant), run in zip(numbered, runs, strict=True)
        # It ends with literals, one or more of which differ from the original's.
        if (given := _run_values(run)) is not None
        and run.n_left == 0
        and not _are_equal(given, values)
    ]
    candidates.sort(key=lambda candidate: _rank(candidate, problem.id, seed))
    mutated = Mutated(problem=bare, n_candidates=len(numbered), n_valid=len(candidates))
    for candidate in candidates:
        if _steady_values(sandbox.execute(candidate.mutant.code, problem.inputs)) is not None:
            return replace(mutated, problem=_with_mutation(bare, candidate))
    return replace(mutated, reason="no mutation changes an output to another literal")


def _with_mutation(problem: Problem, candidate: _Candidate) -> Problem:
    mutation = Mutation(
        mutation_type=candidate.mutant.mutation_type,
        mutation_id=candidate.number,
        coverage_similarity=round(candidate.line_similarity, 4),
    )
    mutated = replace(
        problem,
        mutated_code=candidate.mutant.code,
        mutated_outputs=candidate.outputs,
        mutation=mutation,
    )
    return replace(mutated, sha256=digest(mutated))


def _jaccard(left: frozenset[object], right: frozenset[object]) -> float:
    """|A and B| / |A or B|; 1 for two empty sets (Jaccard, 1901)."""
    union = left | right
    return len(left & right) / len(union) if union else 1.0


def _rank(candidate: _Candidate, problem_id: str, seed: int) -> tuple[float, float, str, str]:
    """The most alike first; among equals the seed chooses a kind of operator, then a place."""
    return (
        -candidate.line_similarity,
        -candidate.arc_similarity,
        _sort_digest(seed, problem_id, candidate.mutant.mutation_type),
        _sort_digest(seed, problem_id, candidate.number),
    )


def _sort_digest(seed: int, *parts: object) -> str:
    return sha256(repr((seed, *parts)).encode()).hexdigest()


def _steady_values(runs: Sequence[Execution]) -> Sequence[Value] | None:
    """The values that all runs give; `None` if they differ or one of them gives none."""
    values_by_run = [_run_values(run) for run in runs]
    first = values_by_run[0]
    is_steady = all(values is not None and _are_equal(values, first) for values in values_by_run)
    return first if is_steady else None


def _run_values(run: Execution) -> Sequence[Value] | None:
    """The values of all calls; `None` if a call has none that is a literal."""
    texts = [None if case.holds else case.text for case in run.cases]
    if run.outcome != "ok" or None in texts:
        return None
    return _parse_all([text for text in texts if text is not None])


def _parse_all(texts: Sequence[str]) -> Sequence[Value] | None:
    try:
        return [parse_literal(text) for text in texts]
    except LiteralError:
        return None


def _are_equal(left: Sequence[Value], right: Sequence[Value] | None) -> bool:
    if right is None or len(left) != len(right):
        return False
    return all(compare(a, b) == "equal" for a, b in zip(left, right, strict=True))


class Mutant(Struct, frozen=True):
    """A mutated program: which kind of operator was replaced, at which character of the source."""

    mutation_type: MutationType
    at: int
    before: str
    after: str
    code: str


def mutants(code: str) -> list[Mutant]:
    """All mutations in the order of the source, valid or not; none of what cannot be read."""
    if "\r" in code.replace("\r\n", ""):
        return []  # to Python the end of a line, to hardly anything else
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd escapes, which are the program's own
        try:
            tree = ast.parse(code)
            tokens = _Tokens(code)
        except (SyntaxError, ValueError, MemoryError, RecursionError, tokenize.TokenError):
            return []
        kinds = {(at, after): kind for at, after, kind in _replacements(tree, tokens)}
        return [tokens.mutant(at, after, kind) for (at, after), kind in sorted(kinds.items())]


class _Tokens:
    """A source's tokens by their character offsets."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._lines = code.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        tokens = tokenize.generate_tokens(io.StringIO(code, newline="").readline)
        self._text_at = {
            self._offset(*token.start): token.string for token in tokens if token.string
        }
        self._offsets = sorted(self._text_at)

    def between(self, left: ast.AST, right: ast.AST) -> Iterator[tuple[int, str]]:
        """The operators between two expressions, with their offsets."""
        begin, end = self.end_of(left), self.start_of(right)
        first, last = bisect_left(self._offsets, begin), bisect_left(self._offsets, end)
        for at in self._offsets[first:last]:
            if self._text_at[at] in _REPLACEMENTS:
                yield at, self._text_at[at]

    def start_of(self, node: ast.AST) -> int:
        return self._node_offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end_of(self, node: ast.AST) -> int:
        return self._node_offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def text_at(self, at: int) -> str:
        return self._text_at.get(at, "")

    def mutant(self, at: int, after: str, kind: MutationType) -> Mutant:
        before = self._text_at[at]
        code = self._code[:at] + after + self._code[at + len(before) :]
        return Mutant(kind, at, before, after, code)

    def _node_offset(self, line: int, column_bytes: int) -> int:
        """Trees count columns in bytes of UTF-8, tokens in characters."""
        text = self._lines[line - 1].encode()[:column_bytes]
        return self._offset(line, len(text.decode()))

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column


def _replacements(tree: ast.AST, tokens: _Tokens) -> Iterator[tuple[int, str, MutationType]]:
    """Offset, new text and kind of each mutation."""
    for node in _nodes(tree):
        for at, before in _operators(node, tokens):
            kind, replacements = _REPLACEMENTS[before]
            yield from ((at, after, kind) for after in replacements)
        yield from _number_replacements(node, tokens)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All but those within f-strings, whose places are not known in every version of Python."""
    if isinstance(tree, ast.JoinedStr):
        return
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _nodes(child)


def _operators(node: ast.AST, tokens: _Tokens) -> Iterator[tuple[int, str]]:
    """The operators and words of a node that can be replaced, with their offsets."""
    match node:
        case ast.BinOp(left=left, right=right) | ast.AugAssign(target=left, value=right):
            yield from tokens.between(left, right)
        case ast.Compare(left=left, comparators=comparators):
            for first, second in pairwise([left, *comparators]):
                yield from tokens.between(first, second)
        case ast.BoolOp(values=values):
            for first, second in pairwise(values):
                yield from tokens.between(first, second)
        case ast.Break() | ast.Continue() | ast.Constant(value=True | False):
            at = tokens.start_of(node)
            if tokens.text_at(at) in _REPLACEMENTS:
                yield at, tokens.text_at(at)
        case _:
            pass


def _number_replacements(node: ast.AST, tokens: _Tokens) -> Iterator[tuple[int, str, MutationType]]:
    """One more and one less than a number of the source that is written in plain digits."""
    if not (isinstance(node, ast.Constant) and type(node.value) is int):
        return
    at = tokens.start_of(node)
    if tokens.text_at(at) == str(node.value):
        yield at, str(node.value + 1), "number"
        if node.value > 0:
            yield at, str(node.value - 1), "number"


def write_rows(rows: Sequence[Row], path: str) -> str:
    """Write JSON Lines to a new file; returns its sha256. Raises `ArtifactError`."""
    # Tables hold values that JSON has not, such as decimal numbers and bytes.
    option = orjson.OPT_NON_STR_KEYS
    content = b"".join(orjson.dumps(row, default=str, option=option) + b"\n" for row in rows)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be written: {error.strerror}.", hint="Name another file."
        ) from error
    return sha256(content).hexdigest()


def mutated_row(row: Row, problem: Problem) -> Row:
    """A row with the problem's mutation in place of its own, and all else as it was."""
    outputs = problem.mutated_outputs
    columns = ("input", "inputs", "output", "outputs", "correct_condition")
    has_lists = any(isinstance(row.get(column), list) for column in columns)
    is_text = outputs is not None and len(outputs) == 1 and not has_lists
    mutation = {
        "mutated_code": problem.mutated_code,
        _OUTPUTS if _OUTPUTS in row else _OUTPUT: outputs[0] if outputs and is_text else outputs,
        "has_mutation": problem.mutated_code is not None,
        "mutation_info": asdict(problem.mutation) if problem.mutation else None,
    }
    unchanged = {name: value for name, value in row.items() if name not in (_OUTPUT, _OUTPUTS)}
    return {**unchanged, **mutation}
