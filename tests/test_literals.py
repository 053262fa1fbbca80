"""Python literals as answers: what is read, and which are equal."""

import ast
import math
import threading
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from socratic_bench.benchmarks.execution.literals import (
    MAX_CHARACTERS,
    LiteralError,
    compare,
    is_literal,
    parse_answer,
    parse_literal,
)

SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.binary(max_size=5)),
    *(st.floats(), st.complex_numbers(allow_nan=False, allow_infinity=False)),
)
KEYS = st.recursive(SCALARS, lambda below: st.lists(below, max_size=3).map(tuple), max_leaves=3)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.one_of(
        st.lists(below, max_size=4),
        st.lists(below, max_size=4).map(tuple),
        st.sets(KEYS, max_size=4),
        st.dictionaries(KEYS, below, max_size=4),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_what_python_prints_is_read_back_as_equal(value):
    assert compare(parse_literal(repr(value)), value) == "equal"
    assert compare(parse_answer(f"assert f(x=[(1, 2)]) == {value!r}"), value) == "equal"


@given(VALUES, VALUES)
def test_comparing_is_symmetric_and_follows_python_where_it_knows_no_better(left, right):
    comparison = compare(left, right)

    assert comparison == compare(right, left)
    if "True" not in repr((left, right)) and "False" not in repr((left, right)):
        assume("nan" not in repr((left, right)))
        assert (comparison == "equal") == (left == right)


@given(st.text())
def test_any_text_is_a_literal_or_refused(text):
    for read in (parse_literal, parse_answer):
        with suppress(LiteralError):
            value = read(text)
            assert compare(value, value) == "equal"


@given(VALUES)
def test_what_literal_eval_takes_is_taken_too(value):
    text = repr(value)
    try:
        expected = ast.literal_eval(text)
    except ValueError:
        return  # nan, inf, set()
    assert compare(parse_literal(text), expected) == "equal"


EQUAL = [
    *[("1", "1.0"), ("1", "1"), ("-0.0", "0"), ("10**1"[:2], "0xA"), ("1_000", "1000.0")],
    *[("nan", "float('nan')"), ("math.inf", "float('Infinity')"), ("-inf", "float('-inf')")],
    *[("--1", "+1"), ("1e400", "inf"), ("[nan, [nan]]", "[float('nan'), [nan]]")],
    *[("{1, 2}", "{2, 1, 1}"), ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1.0}"), ("set()", "set()")],
    *[("1, 2", "(1, 2)"), ("'a' 'b'", '"ab"'), ("r'\\d'", "'\\\\d'"), ("'\\d'", "r'\\d'")],
    *[("1-2j", "(1 - 2j)"), ("-1+0j", "-1"), ("...", "Ellipsis"[:0] or "...")],
    *[("{(1, (2,)): {3}}", "{(1.0, (2,)): {3.0}}"), ("b'\\x61'", "b'a'")],
]
SHAPES = [("[1, 2]", "(1, 2)"), ("{'a': [(1,)]}", "{'a': ([1],)}"), ("[]", "()")]
DIFFERENT = [
    *[("True", "1"), ("0", "False"), ("{True}", "{1}"), ("{1: 2}", "{True: 2}"), ("None", "0")],
    *[("[1]", "[True]"), ("'1'", "1"), ("b'a'", "'a'"), ("{}", "set()"), ("(1)", "(1,)")],
    *[("0.1", "0.1000000001"), ("nan", "inf"), ("[1, 2]", "[2, 1]"), ("{1: 2}", "{1: 3}")],
    *[("9007199254740993", "9007199254740992.0"), ("9" * 400, "inf"), ("{1}", "[1]")],
]


@pytest.mark.parametrize(
    ("comparison", "pairs"),
    [("equal", EQUAL), ("shape_mismatch", SHAPES), ("different", DIFFERENT)],
)
def test_values_are_compared_by_what_they_are(comparison, pairs):
    compared = [(*pair, compare(*map(parse_literal, pair))) for pair in pairs]

    assert compared == [(*pair, comparison) for pair in pairs]


def test_an_answer_may_be_an_assertion_or_a_literal():
    texts = [
        *["assert f(x=[(1, 2)]) == 5", "f(1) == 5", "5", "  assert f(')') == 5  # done"],
        *["assert f() == 5, 'a message'", "assert f(\n  1\n) == (\n  5\n)", "5;"],
    ]

    assert [parse_answer(text) for text in texts] == [5] * len(texts)


NONE = [
    *["", "x", "f(1)", "1 + 1", "not 1", "[x]", "[*[1]]", "{**{}}", "f'{1}'", "[1 for _ in 'a']"],
    *["-True", "-'a'", "1 if 1 else 2", "__import__('os')", "float('1')", "float()", "set([1])"],
    *[
        "{[1]: 2}",
        "{[]}",
        "(1",
        "1 2",
        "lambda: 1",
        "1 + 2j + 3j",
        "2j + 1",
        "a.nan",
        "\0",
        "\ud800",
    ],
    *[
        "assert 1",
        "assert f() == 1 == 1",
        "assert f() != 1",
        "x = 1",
        "1\n2",
        "assert (y := 1) == x",
    ],
]
# Each in itself short, and the ruin of a reader that counts no levels.
BOMBS = [
    *["(" * 5000, "[" * 150 + "]" * 150 + "[" * 5000, "-" * 60_000 + "1", "not " * 9000 + "1"],
    *[
        "1+" * 30_000 + "1",
        "9" * 5000,
        "x" + ".a" * 20_000,
        "x" + "[0]" * 20_000,
        "1**" * 9000 + "1",
    ],
    *["'" + "a" * MAX_CHARACTERS + "'", "9**9**9**9", "[0] * 10**10", "'a' * 10**10"],
]


@pytest.mark.parametrize("text", [*NONE, *BOMBS], ids=lambda text: ascii(text)[:20])
def test_what_is_no_literal_is_told_so_and_nothing_is_evaluated(text):
    for read in (parse_literal, parse_answer):
        with pytest.raises(LiteralError):
            read(text)
    assert not is_literal(text)


def test_as_deep_as_python_itself_reads_is_read_in_any_thread():
    deep = "[" * 199 + "0" + "]" * 199
    comparisons: list[str] = []
    thread = threading.Thread(
        target=lambda: comparisons.append(compare(parse_literal(deep), parse_literal(deep)))
    )
    thread.start()
    thread.join()

    assert comparisons == ["equal"]
    assert compare(parse_literal(deep), parse_literal(deep.replace("0", "1"))) == "different"


def test_a_large_value_is_compared_in_time_of_its_length():
    text = str([{n: (n, str(n))} for n in range(2500)])

    assert len(text) < MAX_CHARACTERS
    assert compare(parse_literal(text), parse_literal(text)) == "equal"
    assert math.isnan(parse_literal("nan"))
