"""A sweep whose stored files are damaged, missing or another run's: told by name, and restored."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command import Outcome, run

STEADY, LECTURER = "emulator.socratic-v1:0", "emulator.lecturer-v1:0"
GRID = (
    *("sweep", "--offline", "--models", STEADY, LECTURER, "--scenarios", "career-change"),
    *("--turns", "2", "--seed", "7", "--quiet"),
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("kept")
    outcome = run(*GRID, "-o", str(folder))
    assert outcome.exit_code == 0
    return folder, outcome.document


@pytest.fixture
def folder(kept: tuple[Path, dict[str, Any]], tmp_path: Path) -> Path:
    shutil.copytree(kept[0], tmp_path / "runs")
    return tmp_path / "runs"


def go_on(folder: Path) -> Outcome:
    return run(*GRID, "--resume", "-o", str(folder))


def run_of(document: dict[str, Any], model: str) -> str:
    [cell] = [cell for cell in document["runs"] if cell["axes"]["model"] == model]
    return str(cell["run_id"])


def journals(folder: Path) -> dict[str, int]:
    """How many answers each journal has."""
    return {
        path.name: path.read_bytes().count(b'"kind":"answered"')
        for path in folder.glob("journal/runs/*.jsonl")
    }


def without_place(body: bytes) -> dict[str, Any]:
    """A stored document without where it was stored first: the folder of these tests is a copy."""
    document: dict[str, Any] = json.loads(body)
    return {key: value for key, value in document.items() if key != "output_artifacts"}


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ["curated/runs/{}.json", "raw/runs/{}/turn_001.json"])
def test_a_damaged_file_is_restored_without_a_call(kept, folder, name, how):
    path = folder / name.format(run_of(kept[1], STEADY))
    whole, answers = path.read_bytes(), journals(folder)
    DAMAGES[how](path)
    again = go_on(folder)
    once_more = go_on(folder)

    assert again.exit_code == 0
    assert without_place(path.read_bytes()) == without_place(whole)
    assert journals(folder) == answers
    assert "1 complete run has missing or damaged files" in " ".join(again.document["notices"])
    assert path.name in " ".join(again.document["notices"])
    assert again.document["runs"] == kept[1]["runs"]
    assert once_more.document["notices"] == []


def test_files_that_are_all_gone_are_restored_without_a_call(kept, folder):
    names, answers = {*folder.glob("curated/runs/*.json")}, journals(folder)
    for name in ("curated", "raw"):
        shutil.rmtree(folder / name)
    again = go_on(folder)

    assert again.exit_code == 0
    assert {*folder.glob("curated/runs/*.json")} == names
    assert journals(folder) == answers
    assert again.document["runs"] == kept[1]["runs"]


def test_a_damaged_run_without_a_journal_is_said_to_be_played_again(kept, folder):
    name = run_of(kept[1], STEADY)
    (folder / f"raw/runs/{name}/turn_001.json").write_bytes(b"")
    (folder / f"journal/runs/{name}.jsonl").unlink()
    [notice] = go_on(folder).document["notices"]

    assert "played again, by new calls" in notice
    assert "restored" not in notice


@pytest.mark.parametrize(("before", "after"), [(STEADY, LECTURER), ('"n_turns":2', '"n_turns":1')])
def test_a_file_swapped_for_one_of_equal_size_is_restored(kept, folder, before, after):
    path = folder / f"curated/runs/{run_of(kept[1], STEADY)}.json"
    whole, answers = path.read_bytes(), journals(folder)
    path.write_bytes(whole.replace(before.encode(), after.encode()))
    swapped = path.read_bytes()
    again = go_on(folder)

    assert len(swapped) == len(whole)
    assert swapped != whole
    assert again.exit_code == 0
    assert without_place(path.read_bytes()) == without_place(whole)
    assert journals(folder) == answers
    assert path.name in " ".join(again.document["notices"])


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("name", ["curated/runs/{}.json", "raw/runs/{}/turn_001.json"])
def test_what_is_no_file_ends_the_sweep_by_name(kept, folder, name, make):
    path = folder / name.format(run_of(kept[1], STEADY))
    path.unlink()
    make(path)
    again = go_on(folder)

    assert again.exit_code == 4
    assert str(path) in again.document["error"]["message"]


def test_another_runs_document_is_refused_by_name_and_replayed(kept, folder):
    names = [run_of(kept[1], model) for model in (STEADY, LECTURER)]
    steady, lecturer = (folder / f"curated/runs/{name}.json" for name in names)
    whole = steady.read_bytes()
    shutil.copy(lecturer, steady)
    for words in (("compare",), ("report", "--html", str(folder / "out.html")), ("judge",)):
        refused = run(words[0], str(folder), "--quiet", *words[1:])
        message = refused.document["error"]["message"]
        assert refused.exit_code == 2, words
        assert f"{steady} holds another run's document" in message
    for path in folder.glob("sweeps/*/cells/*.jsonl"):
        path.unlink()
    again = go_on(folder)

    assert again.document["runs"] == kept[1]["runs"]
    assert without_place(steady.read_bytes()) == without_place(whole)


@pytest.mark.parametrize("key", ["model", "seed", "scenario"])
def test_what_differs_from_the_index_is_refused(kept, folder, key):
    path = folder / f"curated/runs/{run_of(kept[1], STEADY)}.json"
    document = json.loads(path.read_bytes())
    document[key] = 3 if key == "seed" else "another"
    path.write_text(json.dumps(document))
    refused = run("compare", str(folder), "--quiet")

    assert refused.exit_code == 2
    assert f"{key} is {document[key]!r}, not " in refused.document["error"]["message"]


def test_a_run_that_grew_by_itself_is_no_damage(kept, folder):
    name = run_of(kept[1], STEADY)
    grown = run("resume", name, "-o", str(folder), "--turns", "3", "--quiet")
    again = go_on(folder)

    assert grown.document["n_turns"] == 3
    assert (again.exit_code, again.document["notices"]) == (0, [])
    assert len(json.loads((folder / f"curated/runs/{name}.json").read_bytes())["turns"]) == 3


def test_half_written_files_are_removed(folder):
    [sweep] = folder.glob("sweeps/*")
    curated = next(folder.glob("curated/runs/*.json"))
    drafts = [
        sweep / ".sweep.json.5b00ed72",
        sweep / ".spending.json.5b00ed72",
        sweep / "cells" / ".01JD.jsonl.5b00ed72",
        curated.with_name(f".{curated.name}.5b00ed72"),
    ]
    for draft in drafts:
        draft.write_bytes(b"{")
    go_on(folder)

    assert [draft for draft in drafts if draft.exists()] == []


@pytest.mark.parametrize("is_metric", [False, True])
def test_scores_that_do_not_follow_from_the_verdicts_are_named(kept, folder, is_metric):
    path = folder / f"curated/runs/{run_of(kept[1], LECTURER)}.json"
    document = json.loads(path.read_bytes())
    if is_metric:
        document["metrics"]["overall_score"] = 9.5
    else:
        document["turns"][0]["scores"]["form"] = 2.5
    path.write_text(json.dumps(document))
    told = "overall_score is 9.5" if is_metric else "turn 0 has {'form': 2.5"
    report = run("report", "--html", str(folder / "out.html"), str(folder), "--quiet")
    validated = run("validate", str(path), "--quiet")

    assert report.exit_code == validated.exit_code == 2
    assert told in report.document["error"]["message"]
    assert told in " ".join(validated.document["files"][0]["problems"])
    assert run("validate", *map(str, folder.glob("curated/runs/*.json"))).document["n_problems"] > 0
