"""Data sets of programs: what is read of files, folders and the Hub, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from socratic_bench.benchmarks.execution.dataset.reading import read_problems
from socratic_bench.benchmarks.execution.settings import SHIPPED
from socratic_bench.errors import UsageError
from tests.command import ROOT, environment

ROW = {
    "id": "gap",
    "function_name": "gap",
    "code": "def gap(a, b):\n    return a - b\n",
    "input": ["gap(3, 1)", "gap(b=2, a=2)"],
    "output": ["2", "0"],
    "mutated_code": "def gap(a, b):\n    return a + b\n",
    "mutated_output": ["4", "4"],
    "has_mutation": True,
    "mutation_info": {"mutation_type": "arithmetic", "mutation_id": 3, "coverage_similarity": 1.0},
    "question_id": 12,
    "contest_id": "week-1",
    "contest_date": "2026-01-04",
    "difficulty": "easy",
    "metrics": {"loc": 2, "coverage": 1.0},
}
SINGLE = {
    **ROW,
    "id": "single",
    "input": "gap(3, 1)",
    "output": "2",
    "mutated_output": "4",
    "mutation_info": None,
    "metrics": None,
    "question_id": None,
}
UNMUTATED = {**SINGLE, "id": "plain", "mutated_code": None, "mutated_output": None}
BLANK = {**SINGLE, "id": "blank", "mutated_code": " \n", "mutated_output": None}


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def written(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(*rows))
    return str(path)


def parquet(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    source = written(path.with_suffix(".source.jsonl"), *rows)
    with duckdb.connect() as connection:
        connection.sql(f"copy (from read_json('{source}')) to '{path}' (format parquet)")
    Path(source).unlink()
    return str(path)


def mistakes(place, **how):
    with pytest.raises(UsageError) as raised:
        read_problems(place, **how)
    return raised.value.problems


def test_a_row_becomes_a_problem(tmp_path):
    (problem,) = read_problems(written(tmp_path / "rows.jsonl", ROW)).problems

    assert (problem.id, problem.function_name, problem.code) == ("gap", "gap", ROW["code"])
    assert (problem.inputs, problem.outputs) == (tuple(ROW["input"]), ("2", "0"))
    assert (problem.mutated_code, problem.mutated_outputs) == (ROW["mutated_code"], ("4", "4"))
    assert (problem.mutation.mutation_type, problem.mutation.mutation_id) == ("arithmetic", 3)
    assert (problem.difficulty, problem.n_lines) == ("easy", 2)


def test_the_other_names_of_columns_and_the_condition_are_read(tmp_path):
    other = {
        "id": 7,
        "original_code": ROW["code"],
        "correct_condition": ["gap(x := 3, 1) == 2", "assert gap('==', [(1, 2)]) == (0,)"],
        "mutated_code": ROW["mutated_code"],
        "mutated_outputs": ["4", "(4,)"],
    }
    (problem,) = read_problems(written(tmp_path / "rows.jsonl", other)).problems

    assert (problem.id, problem.function_name) == ("7", "gap")
    assert problem.inputs == ("gap(x := 3, 1)", "gap('==', [(1, 2)])")
    assert problem.outputs == ("2", "(0,)")


def test_one_data_set_is_the_same_in_every_form(tmp_path):
    rows = (ROW, {**ROW, "id": "second"}, {**ROW, "id": "third"})
    (tmp_path / "array.json").write_text(json.dumps(rows))
    places = [
        written(tmp_path / "rows.jsonl", *rows),
        str(tmp_path / "array.json"),
        parquet(tmp_path / "rows.parquet", *rows),
    ]
    parquet(tmp_path / "folder" / "data" / "train-00000-of-00002.parquet", *rows[:2])
    parquet(tmp_path / "folder" / "data" / "train-00001-of-00002.parquet", rows[2])
    parquet(tmp_path / "folder" / "data" / "test-00000-of-00001.parquet", {**ROW, "id": "other"})
    (tmp_path / "folder" / "README.md").write_text("# A data set\n")
    read = [read_problems(place).problems for place in [*places, str(tmp_path / "folder")]]

    assert read[1:] == read[:1] * 3
    (other,) = read_problems(str(tmp_path / "folder"), split="test").problems
    assert other.id == "other"


def test_rows_without_a_mutation_are_dropped_and_named(tmp_path):
    place = written(tmp_path / "rows.jsonl", ROW, UNMUTATED, SINGLE, BLANK)
    data, whole = read_problems(place), read_problems(place, include_missing_mutations=True)

    assert ([problem.id for problem in data.problems], data.n_rows) == (["gap", "single"], 4)
    assert (data.dropped, whole.dropped) == (("plain", "blank"), ())
    assert [problem.mutated_code is None for problem in whole.problems] == [
        False,
        True,
        False,
        True,
    ]
    assert "none of its 1 rows has a mutation" in mistakes(written(tmp_path / "u", UNMUTATED))[0]


def test_every_mistake_of_every_row_is_told_at_once(tmp_path):
    place = written(
        tmp_path / "rows.jsonl",
        {**ROW, "id": None, "code": 5, "output": ["2", "gap"]},
        {**ROW, "mutated_output": "4", "metrics": {"loc": -1}, "difficulty": ["easy"]},
        {**ROW, "id": "x" * 300, "mutated_code": "x" * 70_000, "input": []},
        ["no", "object"],
        {"id": "empty"},
        {**ROW, "output": ["1"], "correct_condition": "no comparison", "question_id": 1.5},
        {**SINGLE, "mutated_output": None, "mutation_info": {"coverage_similarity": 2}},
        {**ROW, "id": "twice"},
        {**ROW, "id": "twice"},
    )
    messages = [mistake.removeprefix(f"{place}: ") for mistake in mistakes(place)]

    assert messages == [
        "row 1: code: Expected `str`, got `int`.",
        "row 1: id: missing.",
        "row 1: output: number 2 is not a Python literal: it is not a literal.",
        "row 2 (gap): difficulty: Expected `str`, got `array`.",
        "row 2 (gap): metrics.loc: Expected `int` >= 0.",
        "row 2 (gap): mutated_output: a single one for 2 inputs.",
        f"row 3 ({'x' * 60}): id: Expected `str` of length <= 200.",
        f"row 3 ({'x' * 60}): input: Expected `array` of length >= 1.",
        f"row 3 ({'x' * 60}): mutated_code: Expected `str` of length <= 65536.",
        "row 4: the row is not an object.",
        "row 5 (empty): input: missing.",
        "row 5 (empty): output: missing.",
        "row 5 (empty): code: missing or blank.",
        "row 6 (gap): question_id: Expected `int`, got `float`.",
        "row 6 (gap): output: 1 for 2 inputs.",
        "row 7 (single): mutation_info.coverage_similarity: Expected `float` <= 1.0.",
        "row 7 (single): mutated_output: missing, though there is mutated_code.",
        "2 rows have the id 'twice'.",
    ]


def test_what_every_row_lacks_is_told_once(tmp_path):
    rows = [{"id": name, "code": ROW["code"], "text": "x"} for name in "abc"]
    messages = mistakes(written(tmp_path / "rows.jsonl", *rows, {**rows[0], "id": "d", "code": 5}))

    assert [message.partition(": ")[2] for message in messages] == [
        "every row: input: missing.",
        "every row: output: missing.",
        "row 4 (d): code: Expected `str`, got `int`.",
    ]


def test_outputs_that_are_no_literals_are_read_where_they_need_not_be(tmp_path):
    place = written(tmp_path / "rows.jsonl", {**ROW, "output": ["<gap>", "0"]})

    assert "number 1 is not a Python literal" in mistakes(place)[0]
    assert read_problems(place, needs_literals=False).problems[0].outputs == ("<gap>", "0")


def test_hostile_files_are_refused_by_name(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nan.jsonl").write_text(lines(ROW) + '{"id": NaN}\n{"id": \n')
    (tmp_path / "no.parquet").write_text("PAR1 no table")
    (tmp_path / "none.jsonl").write_text("\n")
    (tmp_path / "surrogate.jsonl").write_text('{"id": "\\ud800"}')
    with (tmp_path / "huge.jsonl").open("wb") as file:
        file.truncate(300 * 2**20)
    (tmp_path / "folder").mkdir()
    nan, bomb = tmp_path / "nan.parquet", tmp_path / "bomb*.parquet"
    with duckdb.connect() as connection:
        many = "select 'a' as id, repeat('x', 1000000) as code from range(5000)"
        connection.sql(f"copy ({many}) to '{bomb}'")
        connection.sql(f"copy (select 'nan'::double as id, 'x' as code) to '{nan}'")

    messages = {
        name: " ".join(mistakes(str(tmp_path / name)))
        for name in [
            *("pipe", "nan.jsonl", "no.parquet", "none.jsonl", "surrogate.jsonl", "huge.jsonl"),
            *("folder", "nan.parquet", "missing", "bomb*.parquet"),
        ]
    }

    assert "not a regular file" in messages["pipe"]
    assert "line 2 is not valid JSON" in messages["nan.jsonl"]
    assert "line 3 is not valid JSON" in messages["nan.jsonl"]
    assert "it is not a Parquet file" in messages["no.parquet"]
    assert "it has no rows" in messages["none.jsonl"]
    assert "line 1 is not valid JSON" in messages["surrogate.jsonl"]
    assert "it has more than" in messages["huge.jsonl"]
    assert "it has no files of Parquet" in messages["folder"]
    assert "row 1: id: nan is not a number." in messages["nan.parquet"]
    assert "cannot be read: No such file" in messages["missing"]
    assert "bytes of text" in messages["bomb*.parquet"]
    assert bomb.stat().st_size < 2**20


CACHED = """
import sys
from socratic_bench.benchmarks.execution.dataset.reading import read_problems
from socratic_bench.errors import BenchError
try:
    found = read_problems(*sys.argv[1:2], **({"split": sys.argv[2]} if sys.argv[2:] else {}))
    print([one.id for one in found.problems], found.revision, found.split)
except BenchError as error:
    print(type(error).__name__, error.message, error.hint)
"""


def cached(place, *split, blocked=(), **variables):
    """What is read in a process of its own: huggingface_hub looks at its variables once."""
    shut = "".join(f"import sys; sys.modules[{name!r}] = None\n" for name in blocked)
    done = subprocess.run(
        [sys.executable, "-c", shut + CACHED, place, *split],
        env=environment(**variables),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_data_set_of_the_hub_is_read_from_its_cache(tmp_path):
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder = tmp_path / "hub" / "datasets--someone--programs"
    parquet(folder / "snapshots" / commit / "data" / "train-00000-of-00001.parquet", ROW)
    written(folder / "snapshots" / commit / "extra.jsonl", {**ROW, "id": "extra"})
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "hub")}

    assert cached("hf:someone/programs", **offline) == f"['gap'] {commit} train"
    assert "no split 'dev'; available: train" in cached("hf:someone/programs", "dev", **offline)
    assert "it is not in the cache" in cached("hf:someone/others", **offline)
    assert "this is not OWNER/NAME" in cached("hf:a/b/c", **offline)


def test_a_hub_that_does_not_answer_is_no_mistake_of_the_user_s(tmp_path):
    where = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_CACHE": str(tmp_path)}

    assert cached("hf:someone/programs", **where).startswith("ArtifactError hf:someone/programs")


def test_without_the_extra_it_is_said_what_to_install(tmp_path):
    place = parquet(tmp_path / "rows.parquet", ROW)

    assert "socratic-runner[tables]" in cached(place, blocked=["duckdb"])
    assert "socratic-runner[tables]" in cached("hf:a/b", blocked=["huggingface_hub"])


def test_the_shipped_problems_are_24_and_varied():
    data = read_problems(SHIPPED)

    assert (len(data.problems), data.dropped) == (24, ())
    assert {problem.difficulty for problem in data.problems} == {"easy", "medium", "hard"}
