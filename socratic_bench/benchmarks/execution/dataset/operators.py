"""The places of a program where another operator can stand, and the program with it there.

Only the operator's own characters are replaced. A program that is written anew from its tree would
be laid out in another way, which tells the two programs apart.
"""

import ast
import io
import tokenize
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

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
