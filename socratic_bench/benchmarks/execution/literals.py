"""Python literals: read from replies and data sets, and compared.

A literal is what `ast.literal_eval` takes, and besides `set()`, `nan`, `inf`, `math.nan`,
`float('inf')` and the like. Nothing is evaluated, and texts have a bound.
"""

import ast
import math
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

MAX_CHARACTERS = 65_536
# The arguments of `float(...)` that have no literal, without sign and in lower case.
_SPECIAL_FLOATS = {"inf": math.inf, "infinity": math.inf, "nan": math.nan}
_COLLECTIONS: Mapping[type[ast.AST], Callable[[list[object]], object]] = {
    ast.List: list,
    ast.Tuple: tuple,
    ast.Set: set,
}

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
    """The value of a literal, or of the right side of `[assert] call == literal[, message]`.

    Raises `LiteralError`.
    """
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
    """The tree of a program, `ast.Module`, or of an `ast.Expression`. Raises as `ast.parse` does.

    Warnings, such as those of odd escapes, are not printed.
    """
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
        raise LiteralError(f"it is no Python: {reason}") from error


def _right_side(node: ast.AST) -> ast.AST:
    match node:
        case ast.Compare(ops=[ast.Eq()], comparators=[right]):
            return right
        case _:
            raise LiteralError("it asserts no equality")


def _evaluate(node: ast.AST) -> Value:
    try:
        return _value(node.body if isinstance(node, ast.Expression) else node)
    except (TypeError, RecursionError, OverflowError) as error:
        raise LiteralError("it is no literal: a value cannot be built of it") from error


def _value(node: ast.AST) -> Value:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return _COLLECTIONS[type(node)]([_value(item) for item in items])
        case ast.Dict(keys=keys, values=values):
            return {_dict_key(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case ast.UnaryOp() | ast.BinOp():
            return _number(node)
        case _:
            return _special_value(node)


def _dict_key(node: ast.AST | None) -> Value:
    if node is None:
        raise LiteralError("it is no literal: it unpacks another one")
    return _value(node)


def _number(node: ast.AST) -> int | float | complex:
    """A number with any signs before it, or a complex one such as `1 - 2j`."""
    sign = 1
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        sign, node = (-sign if isinstance(node.op, ast.USub) else sign), node.operand
    if isinstance(node, ast.BinOp) and sign == 1:
        return _complex(node)
    value = _value(node) if isinstance(node, ast.Constant) else _special_value(node)
    if isinstance(value, bool) or not isinstance(value, int | float | complex):
        raise LiteralError("it is no literal: a sign stands before what is no number")
    return -value if sign < 0 else value


def _complex(node: ast.BinOp) -> complex:
    real = None if isinstance(node.left, ast.BinOp) else _number(node.left)
    imaginary = node.right.value if isinstance(node.right, ast.Constant) else None
    if isinstance(imaginary, complex) and isinstance(real, int | float):
        match node.op:
            case ast.Add():
                return real + imaginary
            case ast.Sub():
                return real - imaginary
            case _:
                pass
    raise LiteralError("it is no literal: it has an operator")


def _special_value(node: ast.AST) -> Value:
    """An empty set, or a float that is no literal of Python's: inf or nan."""
    match node:
        case ast.Call(func=ast.Name(id="set"), args=[], keywords=[]):
            return set()
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))], keywords=[]):
            return _special_float(text.strip())
        case ast.Name(id="nan" | "inf" as name):
            return _SPECIAL_FLOATS[name]
        case ast.Attribute(value=ast.Name(id="math"), attr="nan" | "inf" as name):
            return _SPECIAL_FLOATS[name]
        case _:
            raise LiteralError(f"it is no literal: it has a {type(node).__name__}")


def _special_float(text: str) -> float:
    name = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    value = _SPECIAL_FLOATS.get(name.lower())
    if value is None:
        raise LiteralError(
            "it is no literal: float() is called with something else than inf or nan"
        )
    return -value if text.startswith("-") else value


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
