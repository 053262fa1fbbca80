"""`dataset mutate`: one operator is replaced, all else stays byte for byte, and it runs alike."""

import ast
import difflib
import json

import pytest

from socratic_bench.benchmarks.execution.dataset.mutate import mutants
from tests.command import ROOT, run
from tests.test_dataset_reading import ROW, UNMUTATED, written
from tests.test_dataset_verify import SHIPPED_FILE, verified

# Each place of another operator, with all that could mislead one who looks for it.
ODD = '''\
def odd(a, b=(1,)):  # 1 + 2 < 3 and True
    """1 + 2"""
    ä = "größe + 1"; c = (a) + (  # - a comment
        len(ä)); d = f"{a + 1}"
    while not (a < c and a != 0x10) or b is None:\t
        a += 2 ; continue
    return [a , -1 , c//2 , 1_000, d , a**2, True]
'''
KINDS = {
    "arithmetic": ["+", "+=", "//", "**"],
    "relational": ["<", "!="],
    "logical": ["and", "or"],
    "keyword": ["True", "continue"],
    "number": ["1", "2", "1", "2", "2"],
}


def mutated(place, output, *words):
    outcome = run("dataset", "mutate", place, "--output", str(output), "--timeout", "1", *words)
    document = json.loads(outcome.stdout)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    return outcome, document, rows


def test_every_operator_is_found_and_nothing_else():
    mutations = mutants(ODD)
    places = {kind: [] for kind in KINDS}
    for _, before, kind in sorted({(m.at, m.before, m.mutation_type) for m in mutations}):
        places[kind].append(before)

    assert {kind: sorted(words) for kind, words in places.items()} == {
        kind: sorted(words) for kind, words in KINDS.items()
    }


@pytest.mark.parametrize("code", [ODD, ODD.replace("\n", "\r\n")])
def test_only_the_operator_s_own_characters_change(code):
    mutations = mutants(code)

    assert len(mutations) > 15
    for mutant in mutations:
        end = mutant.at + len(mutant.before)
        assert mutant.code == code[: mutant.at] + mutant.after + code[end:]
        assert code[mutant.at :].startswith(mutant.before)
        ast.parse(mutant.code)


def test_what_is_no_program_has_no_operators():
    for code in ("def f(:", "x = (", "\0", "a +\r b", "(" * 5000, "-" * 60_000 + "1"):
        assert mutants(code) == []


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mutate")
    branches = {
        **UNMUTATED,
        "id": "branches",
        "function_name": "sign",
        # A mutation of the condition goes another way; one of the sum goes the same.
        "code": "def sign(x):\n    y = x + 3\n    if y == 4:\n        return y\n    return 'no'\n",
        "input": ["sign(1)", "sign(2)"],
        "output": ["4", "'no'"],
        "question_id": 77,
        "author": {"name": "Ä", "ids": [1, None]},
    }
    other = {
        "original_code": UNMUTATED["code"],
        "correct_condition": ["gap(3, 1) == 2"],
        "id": 7,
        "licence": "CC0",
    }
    endless = {
        **UNMUTATED,
        "id": "endless",
        "code": "def f():\n    while True:\n        break\n    return [None]\n",
        "input": "f()",
        "output": "[None]",
    }
    wrong = {**UNMUTATED, "id": "wrong", "output": "99"}
    place = written(folder / "rows.jsonl", ROW, branches, endless, wrong, other)
    return (*mutated(place, folder / "made.jsonl"), [ROW, branches, endless, wrong, other])


def test_what_is_written_is_verified(made, tmp_path):
    outcome, document, rows, _ = made
    place = written(tmp_path / "right.jsonl", *(row for row in rows if row["id"] != "wrong"))
    code, verification, _ = verified(place)

    assert (outcome.exit_code, code, verification["ok"]) == (0, 0, True)
    assert [row["sha256"] for row in verification["rows"][:2]] == [
        row["sha256"] for row in document["rows"][:2]
    ]


def test_each_row_says_what_became_of_it(made):
    outcome, document, rows, _ = made
    complete, branches, endless, wrong, _ = document["rows"]

    assert (complete["made"], complete["reason"]) == (False, "it has one already")
    assert rows[0] == {**ROW}
    assert (branches["made"], branches["coverage_similarity"]) == (True, 1.0)
    assert branches["n_candidates"] >= branches["n_valid"] > 1
    assert (endless["made"], endless["n_valid"]) == (False, 0)
    assert wrong["reason"] == "its stored outputs are wrong"
    assert (document["n_made"], document["n_without"]) == (2, 2)
    assert "wrong: no mutation: its stored outputs" in outcome.stderr


def test_all_other_columns_are_as_they_were(made):
    """Under the names that they have there."""
    _, _, rows, before = made
    mutation_columns = {"mutated_code", "mutated_output", "has_mutation", "mutation_info"}

    for row, was in zip(rows, before, strict=True):
        unchanged = {name: value for name, value in row.items() if name not in mutation_columns}
        assert unchanged == {
            name: value for name, value in was.items() if name not in mutation_columns
        }
    assert [row["has_mutation"] for row in rows] == [True, True, False, False, True]
    assert [type(row["mutated_output"]) for row in rows[2:]] == [type(None), type(None), list]


def test_the_mutation_is_one_operator_and_takes_the_same_way(made):
    row = made[2][1]
    matcher = difflib.SequenceMatcher(None, row["code"], row["mutated_code"], autojunk=False)
    changed = [opcode for opcode in matcher.get_opcodes() if opcode[0] != "equal"]

    assert len(changed) == 1
    assert row["mutated_output"] != row["output"]
    assert (row["has_mutation"], row["question_id"], row["input"]) == (
        True,
        77,
        ["sign(1)", "sign(2)"],
    )
    assert row["mutation_info"]["mutation_type"] in KINDS


def test_one_seed_chooses_the_same_and_others_do_not_all(tmp_path):
    lines = (ROOT / SHIPPED_FILE).read_text().splitlines(keepends=True)
    (tmp_path / "some.jsonl").write_text("".join(lines[:2]))
    place, words = str(tmp_path / "some.jsonl"), ("--replace", "--quiet")
    chosen = [
        mutated(place, tmp_path / f"{n}.jsonl", "--seed", str(seed), *words)[2]
        for n, seed in enumerate((1, 1, 2))
    ]

    assert chosen[0] == chosen[1] != chosen[2]
    assert all(row["mutated_code"] for row in chosen[0])


def test_a_file_that_is_there_is_left_alone(tmp_path):
    there = tmp_path / "there.jsonl"
    there.write_text("mine")
    outcome = run("dataset", "mutate", "shipped", "--output", str(there))

    assert (outcome.exit_code, there.read_text()) == (2, "mine")
    assert "there.jsonl exists" in json.loads(outcome.stdout)["error"]["message"]
