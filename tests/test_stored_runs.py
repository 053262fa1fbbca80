"""Runs that commit d4dcf85 stored are read by every command over stored runs, and resumed.

The files in tests/data/stored_runs are that commit's and are never made again: a complete dialogue
with pressure and a jury, a run of the benchmark execution that its budget cut short, and a sweep of
two models.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.encoding import loaded, read
from socratic_bench.documents.files import TurnFile
from socratic_bench.errors import UsageError
from socratic_bench.runs import earlier_config
from socratic_bench.settings import Gate
from socratic_bench.studies.rows import read_document, run_row, validate_run
from tests.command import run

STORED = Path(__file__).parent / "data" / "stored_runs"
(DIALOGUE,) = (STORED / "socratic").glob("curated/runs/*.json")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A copy of the stored runs that a command may add to."""
    return shutil.copytree(STORED, tmp_path / "stored")


def run_id(folder: Path) -> str:
    (journal,) = folder.glob("journal/runs/*.jsonl")
    return journal.stem


@pytest.mark.parametrize(
    ("command", "n_runs"),
    [
        (("compare", "{}/sweep"), 2),
        (("report", "{}/sweep", "{}/socratic", "--csv", "{}/csv"), 3),
        (("judge", "{}/sweep", "--judge-model", "emulator.judge-v1:0", "--offline"), 2),
        (("judge", "{}/socratic", "--judge-model", "emulator.judge-v1:0", "--offline"), 1),
    ],
)
def test_each_command_over_stored_runs_reads_them(command, n_runs, stored):
    outcome = run(*(word.format(stored) for word in command))

    assert (outcome.exit_code, outcome.document["n_runs"]) == (0, n_runs), outcome.stderr


def test_a_metric_has_its_name_of_today(stored):
    outcome = run("compare", str(stored / "sweep"))

    assert "turns_held" in outcome.document["contenders"][0]["survival"]
    assert b"sustained" not in outcome.stdout


def test_a_gate_has_its_metric_s_name_of_today(stored):
    (journal,) = (stored / "socratic").glob("journal/runs/*.jsonl")
    header = json.loads(journal.read_bytes().splitlines()[0])
    header["config"]["gates"] = [["sustained_half_life", 3.0]]

    assert earlier_config([header]).gates == (Gate("turns_held", 3.0),)


def test_what_people_said_keeps_an_earlier_name():
    texts = ['He said "sustained_half_life" twice.', "sustained_half_life is a word"]

    assert loaded(json.dumps(texts).encode(), "turn.json") == texts


def test_show_draws_a_stored_dialogue(stored):
    curated = json.loads(DIALOGUE.read_bytes())
    outcome = run("show", run_id(stored / "socratic"), "--output-dir", str(stored / "socratic"))

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.document["value"] == curated["overall_score"]
    assert len(outcome.document["turns"]) == curated["n_turns"]


def test_a_run_that_was_cut_short_is_resumed_and_no_answer_is_paid_for_twice(stored):
    folder = stored / "execution"
    before = raw_files(folder)
    outcome = run(
        *("resume", run_id(folder), "--output-dir", str(folder)),
        *("--max-cost-usd", "1", "--offline"),
    )
    document = json.loads(outcome.stdout)

    assert (outcome.exit_code, document["status"]) == (0, "completed"), outcome.stderr
    assert "3 calls" in outcome.stderr
    assert (len(before), len(raw_files(folder))) == (3, 6)
    assert before.items() <= raw_files(folder).items()


def test_a_dialogue_whose_texts_have_changed_since_is_not_resumed(stored):
    """The student's texts are newer than the run, so its next turn would be another student's."""
    folder = stored / "socratic"
    outcome = run(
        *("resume", run_id(folder), "--output-dir", str(folder), "--turns", "3", "--offline"),
        *("--judge-model", "emulator.judge-v1:0"),  # its jurors were simulated by that commit only
    )

    assert outcome.exit_code == 2
    assert "The pressure has other contents than when it began." in outcome.stderr


def raw_files(folder: Path) -> dict[str, Any]:
    return {path.name: json.loads(path.read_bytes()) for path in folder.glob("raw/runs/*/*.json")}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"turn": "3"}, "turn: Expected `int`, got `str`."),
        ({"tokens": {"input": -1, "output": 2}}, "tokens.input: Expected `int` >= 0."),
        ({"attempts": [{}]}, "attempts[0]: Object missing required field `started_at`."),
    ],
)
def test_what_is_wrong_in_a_stored_file_is_named_with_file_and_path(change, reason):
    (path,) = (STORED / "socratic").glob("raw/runs/*/turn_000.json")
    damaged = json.loads(path.read_bytes()) | change

    with pytest.raises(UsageError) as refused:
        read(json.dumps(damaged).encode(), TurnFile, "runs/turn_000.json")

    assert refused.value.problems == (f"runs/turn_000.json: {reason}",)


def wrong_values(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each place in a document, in lists only the first, with a value of a wrong type for it."""
    below = value.items() if isinstance(value, dict) else [*enumerate(value or ())][:1]
    for key, item in below:
        if isinstance(item, dict | list):
            yield (*at, key), "word"
            yield from wrong_values(item, (*at, key))
        elif item is not None:  # its type is unknown
            yield (*at, key), 5 if isinstance(item, str) else [1]


def test_a_value_of_a_wrong_type_anywhere_in_a_stored_run_is_refused():
    """Whether a comparison or a report uses the value or not."""
    body = DIALOGUE.read_bytes()
    benchmark = load_benchmark("socratic")
    accepted = []

    def read_row(body):
        document = read_document(body, "run.json")
        validate_run(document, benchmark, "run.json")
        run_row(document, benchmark, source="", files={})

    for place, value in wrong_values(json.loads(body)):
        document = json.loads(body)
        reduce(getitem, place[:-1], document)[place[-1]] = value
        with suppress(UsageError):
            read_row(json.dumps(document).encode())
            accepted.append(place)

    read_row(body)
    assert accepted == []


DAMAGED = {
    "cost": (5, "cost: Expected `object | null`, got `int`."),
    "usage": ({"total": {"calls": "many"}}, "usage[...].calls: Expected `int`, got `str`."),
    "timestamps": ("noon", "timestamps: Expected `object`, got `str`."),
    "metrics": ({"usefulness": "much"}, "metrics.usefulness: Expected `float | null`, got `str`."),
    "benchmark": (
        "nope",
        "benchmark: No benchmark 'nope'; available: execution, golden, optimisation, socratic.",
    ),
}


@pytest.mark.parametrize("command", ["compare", "report", "show", "judge"])
def test_each_command_over_stored_runs_names_file_and_path(command, tmp_path):
    flags = {
        "report": ("--csv", str(tmp_path / "csv")),
        "judge": ("--judge-model", "emulator.judge-v1:0", "--offline"),
    }
    for name, (value, message) in DAMAGED.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({**json.loads(DIALOGUE.read_bytes()), name: value}))
        outcome = run(command, str(path), *flags.get(command, ()))

        assert outcome.exit_code == 2
        assert f"{path}: {message}" in outcome.stderr
