"""Config files of runs and sweeps (`--config`, `init`), and what `list` finds."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from cli.config_file import below_variables
from tests.command import assert_valid, environment, run

DRIFT = "emulator.drift-5-v1:0"
CONFIG = f'model = "{DRIFT}"\nscenario = "milk-price"\nturns = 3\noffline = true\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(CONFIG)
    return path


def n_turns(*words: str, **variables: str) -> int:
    n: int = run(*words, "--no-judge", env=environment(**variables)).document["n_turns"]
    return n


def test_a_flag_counts_before_a_variable_and_that_before_the_file(config):
    words, variable = ("--config", str(config)), {"RUNNER_DEFAULT_TURNS": "2"}

    assert n_turns(*words) == 3
    assert n_turns(*words, **variable) == 2
    assert n_turns(*words, "--turns", "1", **variable) == 1


def test_a_sweep_reads_a_file_in_the_same_order(tmp_path, monkeypatch):
    plan = tmp_path / "sweep.toml"
    plan.write_text(
        f'models = ["{DRIFT}"]\nscenarios = ["milk-price"]\nturns = 2\noffline = true\n'
    )
    words = ("--dry-run", "--no-judge")
    by_flag, by_place = (
        run("sweep", *given, *words).document for given in (("--config", str(plan)), (str(plan),))
    )
    monkeypatch.setenv("RUNNER_DEFAULT_TURNS", "1")

    assert by_flag["axes"] == by_place["axes"] == {"model": [DRIFT], "scenario": ["milk-price"]}
    assert below_variables({"turns": "2", "models": ["a"]}) == {"models": ["a"]}
    assert "two config files" in run("sweep", str(plan), "--config", str(plan)).stderr


def test_mistakes_in_a_file_are_reported_with_the_others(config):
    config.write_text(f'{CONFIG}turn = 3\nmodels = ["a"]\ntemperature = "x"\n')
    outcome = run("--config", str(config), "--top-p", "2")

    assert outcome.exit_code == 2
    for text in ("turn: unknown key; did you mean turns?", "models: unknown key", "--top-p is 2"):
        assert text in outcome.stderr
    assert "cannot be read" in run("--config", str(config.with_name("none.toml"))).stderr


@pytest.mark.parametrize(("kind", "begin"), [("run", ("--config",)), ("sweep", ("sweep",))])
def test_init_writes_a_file_that_runs(kind, begin, tmp_path):
    path = tmp_path / "mine.toml"
    written, again = (run("init", kind, str(path)) for _ in "ab")
    outcome = run(*begin, str(path), "--turns", "1", "--dry-run", "-o", str(tmp_path))
    lines = [line.removeprefix("# ") for line in path.read_text().splitlines() if " = " in line]

    assert_valid("config", written.document)
    assert (written.exit_code, again.exit_code, outcome.exit_code) == (0, 2, 0), outcome.stderr
    assert f"{path} exists" in again.stderr
    assert len(lines) > 60
    for line in lines:  # every comment is TOML, once a number stands for its form
        assert tomllib.loads(re.sub(r"(?<= = )\[?[A-Z]+\]?(?=  #)", "1", line))


def test_list_has_runs_and_sweeps_with_what_is_known(tmp_path, config):
    folder = ("-o", str(tmp_path / "out"))
    done = run("--config", str(config), "--turns", "1", *folder).document
    grid = (
        "--models",
        DRIFT,
        "emulator.socratic-v1:0",
        "--scenarios",
        "milk-price",
        "--turns",
        "1",
    )
    sweep = run("sweep", *grid, "--offline", *folder).document
    begun = f"run-{'0' * 26}"
    raw, journals = (tmp_path / "out" / name / "runs" for name in ("raw", "journal"))
    shutil.copytree(raw / done["run_id"], raw / begun)
    shutil.copy(journals / f"{done['run_id']}.jsonl", journals / f"{begun}.jsonl")
    outcome = run("list", str(tmp_path / "out"))
    listed = outcome.document

    assert_valid("list", listed)
    assert [(one["run_id"], one["status"], one["score"]) for one in listed["runs"]] == [
        (done["run_id"], "completed", done["overall_score"]),
        (begun, "incomplete", None),
    ]
    assert {one["model"] for one in listed["runs"]} == {DRIFT}
    (row,) = listed["sweeps"]
    assert (row["sweep_id"], row["status"], row["n_runs"]) == (sweep["sweep_id"], "completed", 2)
    assert row["cost_usd"] == pytest.approx(sweep["cost_usd"])
    assert sweep["sweep_id"] in outcome.stderr
    variable = environment(RUNNER_OUTPUT_DIR=str(tmp_path / "out"))
    assert run("list", env=variable).document["runs"] == listed["runs"]
    assert "Missing argument PLACE" in run("list").stderr


def test_model_ids_may_be_separated_by_commas():
    ids = ("a.one-v1:0", "us.b.two-v1:0")
    document = run("models", env=environment(BEDROCK_MODEL_IDS=", ".join(ids))).document

    assert [one["model_id"] for one in document["models"]] == [*ids]


def test_endpoint_and_profile_are_those_of_the_flags(tmp_path):
    (tmp_path / "config").write_text("[profile team]\nregion = eu-west-1\n")
    env = environment(
        BEDROCK_MODEL_IDS="a.one-v1:0",
        AWS_CONFIG_FILE=str(tmp_path / "config"),
        AWS_ACCESS_KEY_ID="AKIAEXAMPLE",
        AWS_SECRET_ACCESS_KEY="example",
    )
    words = ("--model", "a.one-v1:0", "--prompt", "Hi?", "--turns", "1", "--no-judge", "--dry-run")
    outcome = run(*words, "--profile", "team", "--endpoint-url", "http://127.0.0.1:9", env=env)

    assert "No region" not in outcome.stderr
    assert "No region" in run(*words, env=env).stderr
