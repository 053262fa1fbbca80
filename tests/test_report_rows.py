"""What reports are made of: rows of stored runs."""

import json
import shutil

import pytest

from socratic_bench.errors import UsageError
from socratic_bench.studies.report.study import read_rows
from tests.test_sweep import curated, sweep

MODELS = ("emulator.socratic-v1:0", "emulator.drift-5-v1:0")
GRID = ("--scenarios", "ai-ethics", "career-change", "--turns", "3", "--seed", "7", "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reported") / "runs"
    sweep("--models", *MODELS, *GRID, folder=folder)
    return folder


def rows_of(*arguments):
    return read_rows([str(one) for one in arguments], lambda: "us-east-1")


def test_a_row_for_each_run_turn_and_verdict(folder):
    rows, documents = rows_of(folder), curated(folder)
    assert [run.run_id for run in rows.runs] == sorted(documents)
    assert (sorted(rows.models), rows.samples) == (sorted(MODELS), ["ai-ethics", "career-change"])
    for run in rows.runs:
        document = documents[run.run_id]
        assert run.at("student.mode") == "scripted"
        assert run.at("student.nothing.there") is None
        for turn, entry in zip(run.turns, document["turns"], strict=True):
            file = folder / "raw/runs" / run.run_id / f"judge_{turn.turn:03d}.json"
            verdict = json.loads(file.read_text())
            assert (turn.said, turn.reply) == (entry["student"], entry["question"])
            assert (turn.score, turn.scores) == (entry["score"], entry["scores"])
            assert turn.latency_ms == entry["latency"]["tutor"]["latency_ms"]
            (row,) = turn.verdicts
            assert (row.juror, row.score) == (verdict["judge_model"], verdict["overall_score"])
            assert (row.rationale, row.quotes) == (verdict["rationale"], verdict["quotes"])


def test_a_document_alone_has_the_same_row_while_its_folder_is_there(folder, tmp_path):
    run_id, document = min(curated(folder).items())
    alone = tmp_path / "run.json"
    alone.write_text(json.dumps(document))
    (row,) = rows_of(alone).runs
    (stored,) = (run for run in rows_of(folder).runs if run.run_id == run_id)
    assert row.turns == stored.turns
    alone.write_text(json.dumps(document | {"output_artifacts": None}))
    (row,) = rows_of(alone).runs
    assert [one.reply for one in row.turns] == [one.reply for one in stored.turns]
    assert {verdict.score for one in row.turns for verdict in one.verdicts} == {
        one.score for one in stored.turns
    }
    assert not any(verdict.rationale for one in row.turns for verdict in one.verdicts)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[]", "object"),
        ("{", "JSON|data|truncated"),
        ({"jurors": 7}, "jurors"),
        ({"usage": {"input_tokens": "many"}}, "usage.input_tokens: Expected `int"),
    ],
)
def test_a_broken_file_of_a_verdict_is_told_by_its_name(folder, tmp_path, content, why):
    copied = shutil.copytree(folder, tmp_path / "runs")
    run_id = min(curated(copied))
    path = copied / "raw/runs" / run_id / "judge_001.json"
    is_whole = isinstance(content, dict)
    path.write_text(json.dumps(json.loads(path.read_bytes()) | content) if is_whole else content)

    with pytest.raises(UsageError, match=rf"{run_id}/judge_001\.json.*({why})"):
        rows_of(copied)


def test_every_mistake_is_told_at_once(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError) as found:
        rows_of(tmp_path / "empty", tmp_path / "none")
    assert [*map(str, found.value.sentences)] == [
        f"{tmp_path}/empty has no complete run (curated/runs/*.json).",
        f"There is no file or folder {tmp_path}/none.",
    ]
    assert "socratic-runner resume. RUNS are output folders" in str(found.value.hint)
