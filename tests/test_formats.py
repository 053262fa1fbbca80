"""Exports that need no other tool: tables with schemas, the data set of scenarios."""

import csv
import json
from hashlib import sha256

import jsonschema
import pytest

from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids
from tests.command import ROOT, assert_valid, run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("exported"))
    words = ("--offline", "--model", "emulator.drift-5-v1:0", "--turns", "2", "--quiet")
    for name in ("career-change", "milk-price"):
        assert run(*words, "--scenario", name, "-o", folder).exit_code == 0
    return folder


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_every_row_fits_the_schema_beside_it(runs, tmp_path, form):
    outcome = run("export", runs, "--format", form, "--out", str(tmp_path), "--quiet")
    assert outcome.exit_code == 0
    assert_valid("export", outcome.document)
    assert {*outcome.document["written"]} == {str(path) for path in tmp_path.iterdir()}
    for name, n_rows in (("runs", 2), ("turns", 4), ("verdicts", 4)):
        schema = json.loads((tmp_path / f"{name}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        assert [entry for entry in schema["properties"].values() if not entry["description"]] == []
        text = (tmp_path / f"{name}.{form}").read_text()
        if form == "csv":
            rows = [*csv.DictReader(text.splitlines())]
            assert [*rows[0]] == schema["required"]
        else:
            rows = [json.loads(line) for line in text.splitlines()]
            for row in rows:
                jsonschema.validate(row, schema)
        assert len(rows) == n_rows


def test_mistakes_and_missing_packages_say_what_to_do(runs, tmp_path):
    unknown = run("export", runs, "--format", "excel", "--quiet")
    assert unknown.exit_code == 2
    assert "--format must be one of inspect, mlflow, jsonl, csv, parquet" in unknown.stderr
    assert "--out DIR is required" in run("export", runs, "--format", "csv").stderr
    for form in ("inspect", "mlflow"):  # neither is ever beside the checks
        missing = run("export", runs, "--format", form, "--out", str(tmp_path / "x"))
        assert missing.exit_code == 2
        assert f'pip install "socratic-runner[{form}]"' in missing.stderr
    log = tmp_path / "log.eval"
    log.write_bytes(b"")
    assert "socratic-runner[inspect]" in run("judge", str(log), "--offline").stderr


def test_the_data_set_of_scenarios_has_rows_card_hashes_and_licence(tmp_path):
    folder = tmp_path / "scenarios"
    assert run("scenarios", "--export", str(folder)).exit_code == 0
    rows = [json.loads(line) for line in (folder / "scenarios.jsonl").read_text().splitlines()]
    assert {row["id"] for row in rows} == {*builtin_ids()} - {"custom"}
    for row in rows:
        assert sha256((folder / f"toml/{row['id']}.toml").read_bytes()).hexdigest() == row["sha256"]
    sums = dict(
        line.split("  ")[::-1] for line in (folder / "sha256sums.txt").read_text().splitlines()
    )
    written = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert {name.strip() for name in sums} == written - {"sha256sums.txt"}
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    card = (folder / "README.md").read_text()
    assert f"{len(rows)} scenarios" in card
    assert [name for name in rows[0] if f"`{name}`" not in card] == []
