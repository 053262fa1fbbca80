"""Python literals: read from replies and data sets, and compared.

A literal is what `ast.literal_eval` takes, and besides `set()`, `nan`, `inf`, `math.nan`,
`float('inf')` and the like. Nothing is evaluated, and texts have a bound.
"""

import ast
import math
import threading
import warnings
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Literal, TypeVar

MAX_CHARACTERS = 65_536
Comparison = Literal["equal", "shape_mismatch", "different"]
# A literal's value: numbers, texts, bytes, None, ..., and lists, tuples, sets, dicts of them.
Value = object

Tree = TypeVar("Tree", bound=ast.mod)

# Python's filters of warnings belong to the process.
_warnings_lock = threading.Lock()


class LiteralError(ValueError):
    """The text is no Python literal, or too long or too deep to be read."""


def parse_literal(text: str) -> Value:
    """The value of a literal. Raises `LiteralError`."""
    return _evaluate(_parse(ast.Expression, text))


def parse_answer(text: str) -> Value:
    """The value of a literal, or of the right side of `[assert] call == literal[, message]`."""
    body = _parse(ast.Module, text).body
    statement = body[0] if len(body) == 1 else None
    if isinstance(statement, ast.Assert):
        return _evaluate(_right_side(statement.test))
    if isinstance(statement, ast.Expr):
        is_comparison = isinstance(statement.value, ast.Compare)
        return _evaluate(_right_side(statement.value) if is_comparison else statement.value)
    raise LiteralError("it is neither a literal nor an assertion")


def is_literal(text: str) -> bool:
    try:
        parse_literal(text)
    except LiteralError:
        return False
    return True


def compare(answer: Value, expected: Value) -> Comparison:
    """Whether two literals have the same value.

    A bool equals no number, an int equals a float of its value, nan equals nan, and sets and dicts
    have no order. Those that differ only by lists in the place of tuples are a "shape_mismatch".
    """
    if _key(answer, is_strict=True) == _key(expected, is_strict=True):
        return "equal"
    if _key(answer, is_strict=False) == _key(expected, is_strict=False):
        return "shape_mismatch"
    return "different"


def parse_python(kind: type[Tree], text: str) -> Tree:
    """The tree of a program, `ast.Module`, or an `ast.Expression`; no warning is printed."""
    with _warnings_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text, mode="exec" if kind is ast.Module else "eval")
    assert isinstance(tree, kind)  # noqa: S101 -- the mode says it
    return tree


def _parse(kind: type[Tree], text: str) -> Tree:
    if len(text) > MAX_CHARACTERS:
        raise LiteralError(f"it has more than {MAX_CHARACTERS} characters")
    try:
        return parse_python(kind, text.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it cannot be read"
        raise LiteralError(f"it is not Python: {reason}") from error


def _right_side(node: ast.AST) -> ast.AST:
    match node:
        case ast.Compare(ops=[ast.Eq()], comparators=[right]):
            return right
        case _:
            raise LiteralError("it asserts no equality")


def _evaluate(node: ast.AST) -> Value:
    try:
        value: Value = ast.literal_eval(_AsConstants().visit(node))
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise LiteralError("it is not a literal") from error
    return value


class _AsConstants(ast.NodeTransformer):
    """Replaces nan and inf, in any of their spellings, and numbers with signs by their values."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        match node:
            case ast.Attribute(value=ast.Name(id="math"), attr="nan" | "inf" as name):
                return ast.Constant(float(name))
            case _:
                return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))]):
                with suppress(ValueError):
                    value = float(text)
                    return node if math.isfinite(value) or node.keywords else ast.Constant(value)
                return node
            case _:
                return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.UnaryOp(
                op=ast.UAdd() | ast.USub() as sign,
                operand=ast.Constant(value=int() | float() | complex() as value),
            ) if not isinstance(value, bool):
                return ast.Constant(-value if isinstance(sign, ast.USub) else value)
            case _:
                return node


def _key(value: Value, *, is_strict: bool) -> Hashable:
    """A key that is the same for equal literals only."""
    match value:
        case bool() | None:
            return value.__class__.__name__, value
        case float() | int() | complex():
            return "number", _number_key(value)
        case list() | tuple():
            kind = type(value).__name__ if is_strict else "sequence"
            return kind, tuple(_keys(value, is_strict=is_strict))
        case set():
            return "set", frozenset(_keys(value, is_strict=is_strict))
        case dict():
            keys, values = (_keys(part, is_strict=is_strict) for part in (value, value.values()))
            return "dict", frozenset(zip(keys, values, strict=True))
        case _:
            return type(value).__name__, str(value) if value is ... else value


def _keys(values: Iterable[Value], *, is_strict: bool) -> Iterator[Hashable]:
    return (_key(value, is_strict=is_strict) for value in values)


def _number_key(value: Any) -> Hashable:  # noqa: ANN401 -- any number
    if isinstance(value, complex):
        parts = (_number_key(value.real), _number_key(value.imag))
        return parts if value.imag else parts[0]
    key: Hashable = "nan" if value != value else value  # noqa: PLR0124 -- as nan alone does
    return key
