"""The places of a program where another operator can stand, and the program with it there.

Only the operator's own characters are replaced. A program that is written anew from its tree would
be laid out in another way, which tells the two programs apart.
"""

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

_Position = tuple[int, int]  # line from 1, column in characters from 0
_OTHERS: Mapping[str, tuple[MutationType, tuple[str, ...]]] = {
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


class Mutant(Struct, frozen=True):
    """A mutated program: which kind of operator was replaced, at which character of the source."""

    mutation_type: MutationType
    at: int
    before: str
    after: str
    code: str


def mutants(code: str) -> list[Mutant]:
    """All of them, in the order of the source; none for a source that cannot be read.

    Whether they are programs is not looked at.
    """
    if "\r" in code.replace("\r\n", ""):
        return []  # to Python the end of a line, to hardly anything else
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd escapes, which are the program's own
        try:
            tree = ast.parse(code)
            tokens = _Tokens(code)
        except (SyntaxError, ValueError, MemoryError, RecursionError, tokenize.TokenError):
            return []
        found = {(at, after): kind for at, after, kind in _replaced(tree, tokens)}
        return [tokens.mutant(at, after, kind) for (at, after), kind in sorted(found.items())]


class _Tokens:
    """A source's tokens by where they stand."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._lines = code.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        found = tokenize.generate_tokens(io.StringIO(code, newline="").readline)
        self._text_at = {self._offset(one.start): one.string for one in found if one.string}
        self._places = sorted(self._text_at)

    def between(self, left: ast.AST, right: ast.AST) -> Iterator[tuple[int, str]]:
        """The tokens between two expressions, but for parentheses around these."""
        begin, end = self.end_of(left), self.start_of(right)
        for at in self._places[bisect_left(self._places, begin) : bisect_left(self._places, end)]:
            if self._text_at[at] in _OTHERS:
                yield at, self._text_at[at]

    def start_of(self, node: ast.AST) -> int:
        return self._offset(self._position(node.lineno, node.col_offset))  # type: ignore[attr-defined]

    def end_of(self, node: ast.AST) -> int:
        return self._offset(self._position(node.end_lineno, node.end_col_offset))  # type: ignore[attr-defined]

    def text_at(self, at: int) -> str:
        return self._text_at.get(at, "")

    def mutant(self, at: int, after: str, kind: MutationType) -> Mutant:
        before = self._text_at[at]
        code = self._code[:at] + after + self._code[at + len(before) :]
        return Mutant(kind, at, before, after, code)

    def _position(self, line: int, column_bytes: int) -> _Position:
        """Trees count columns in bytes of UTF-8, tokens in characters."""
        text = self._lines[line - 1].encode()[:column_bytes]
        return line, len(text.decode())

    def _offset(self, position: _Position) -> int:
        line, column = position
        return self._starts[line - 1] + column


def _replaced(tree: ast.AST, tokens: _Tokens) -> Iterator[tuple[int, str, MutationType]]:
    for node in _nodes(tree):
        for at, before in _operators(node, tokens):
            kind, others = _OTHERS[before]
            yield from ((at, after, kind) for after in others)
        yield from _numbers(node, tokens)


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All but those within f-strings, whose places are not known in every version of Python."""
    if isinstance(tree, ast.JoinedStr):
        return
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _nodes(child)


def _operators(node: ast.AST, tokens: _Tokens) -> Iterator[tuple[int, str]]:
    """Where an operator or a word of this node stands, and which it is."""
    match node:
        case ast.BinOp(left=left, right=right) | ast.AugAssign(target=left, value=right):
            yield from tokens.between(left, right)
        case ast.Compare(left=left, comparators=others):
            yield from _pairs([left, *others], tokens)
        case ast.BoolOp(values=values):
            yield from _pairs(values, tokens)
        case ast.Break() | ast.Continue() | ast.Constant(value=True | False):
            at = tokens.start_of(node)
            if tokens.text_at(at) in _OTHERS:
                yield at, tokens.text_at(at)
        case _:
            pass


def _pairs(nodes: Sequence[ast.AST], tokens: _Tokens) -> Iterator[tuple[int, str]]:
    for left, right in pairwise(nodes):
        yield from tokens.between(left, right)


def _numbers(node: ast.AST, tokens: _Tokens) -> Iterator[tuple[int, str, MutationType]]:
    """One more and one less than a number of the source that is written in plain digits."""
    if not (isinstance(node, ast.Constant) and type(node.value) is int):
        return
    at = tokens.start_of(node)
    if tokens.text_at(at) == str(node.value):
        yield at, str(node.value + 1), "number"
        if node.value > 0:
            yield at, str(node.value - 1), "number"


# Mutated programs for a data set: of all that one operator makes, the one that runs most alike.

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


# A data set as a file.

Row = Mapping[str, Any]
_OUTPUT, _OUTPUTS = "mutated_output", "mutated_outputs"
_OPTIONS = orjson.OPT_NON_STR_KEYS


def write_rows(rows: Sequence[Row], path: str) -> str:
    """Writes JSON Lines to a new file; its sha256. Raises `ArtifactError`."""
    # Tables hold values that JSON has not, such as decimal numbers and bytes.
    content = b"".join(orjson.dumps(row, default=str, option=_OPTIONS) + b"\n" for row in rows)
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
    is_text = outputs is not None and len(outputs) == 1 and not _has_lists(row)
    found = {
        "mutated_code": problem.mutated_code,
        _OUTPUTS if _OUTPUTS in row else _OUTPUT: outputs[0] if outputs and is_text else outputs,
        "has_mutation": problem.mutated_code is not None,
        "mutation_info": asdict(problem.mutation) if problem.mutation else None,
    }
    kept = {name: value for name, value in row.items() if name not in (_OUTPUT, _OUTPUTS)}
    return {**kept, **found}


def _has_lists(row: Row) -> bool:
    """Whether calls or outputs are lists there."""
    names = ("input", "inputs", "output", "outputs", "correct_condition")
    return any(isinstance(row.get(name), list) for name in names)
