"""What pipelines get: JUnit files, GitHub's summary and annotations, the action, examples."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from socratic_bench.studies.formats.checks import Check, Checks
from socratic_bench.studies.formats.github import MAX_BYTES, annotations_of, summary_of
from socratic_bench.studies.formats.junit import write_junit
from tests.command import ROOT, environment, run

STEADY, DRIFT = "emulator.socratic-v1:0", "emulator.drift-5-v1:0"
GRID = ("--scenarios", "career-change", "milk-price", "--turns", "6", "--seed", "7", "--quiet")
PAGE = (ROOT / "docs/ci.md").read_text()
EXAMPLES = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def cases(path):
    suite = ET.parse(path).getroot().find("testsuite")  # noqa: S314 -- our own file
    by_name = {(c.get("classname"), c.get("name")): c for c in suite}
    assert len(by_name) == len(suite) == int(suite.get("tests"))
    return suite, by_name


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """A sweep with a gate that one of two models misses: its folder, JUnit file and summary."""
    folder = tmp_path_factory.mktemp("night")
    out, junit, summary = (folder / name for name in ("runs", "junit.xml", "summary.md"))
    summary.write_text("earlier step\n")
    outcome = run(
        *("sweep", "--offline", "--models", STEADY, DRIFT, *GRID, "--output-dir", str(out)),
        *("--fail-under", "overall_score=9", "--junit", str(junit), "--github-summary"),
        env=environment(GITHUB_STEP_SUMMARY=str(summary)),
    )
    assert outcome.exit_code == 5
    return out, junit, summary, outcome


def test_a_sweep_has_a_case_for_each_run_and_gate_and_quotes_the_lapse(night):
    out, junit, summary, outcome = night
    suite, by_name = cases(junit)
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "1", "0")
    assert all(case.find("failure") is None for (_, name), case in by_name.items() if "run" in name)
    failure = by_name[DRIFT, "overall_score >= 9"].find("failure")
    assert failure.get("message").startswith(f"overall_score of {DRIFT} is ")
    documents = [json.loads(file.read_bytes()) for file in (out / "curated/runs").iterdir()]
    lapses = [
        turn["reply"]
        for d in documents
        for turn in d["turns"]
        if d["model"] == DRIFT and turn["score"] < d["thresholds"]["half_life"]
    ]
    assert any(reply in failure.text for reply in lapses)
    text = summary.read_text()
    assert text.startswith("earlier step\n## socratic-runner: 1 of 6 checks failed")
    assert f"| {STEADY} | 2/2 |" in text
    assert any(reply in text for reply in lapses)
    annotations = [line for line in outcome.stderr.splitlines() if line.startswith("::")]
    title = f"overall_score >= 9 of {DRIFT}".replace(":", "%3A")
    assert [line.partition("::overall")[0] for line in annotations] == [f"::error title={title}"]


def test_a_run_that_could_not_start_is_an_error_of_its_file(tmp_path):
    junit = tmp_path / "junit.xml"
    outcome = run("--offline", "--model", "emulator.nobody-v9:0", "--junit", str(junit), "--quiet")
    assert outcome.exit_code == 2
    suite, by_name = cases(junit)
    assert suite.get("errors") == "1"
    assert "emulator.nobody-v9:0" in by_name["emulator.nobody-v9:0", "start"].find("error").get(
        "message"
    )


@pytest.mark.parametrize(
    "command", [("--offline", "--model", STEADY), ("sweep",), ("compare", "x")]
)
def test_places_that_cannot_be_written_are_refused_before_anything_is_called(command, tmp_path):
    missing = str(tmp_path / "no" / "junit.xml")
    outcome = run(*command, "--junit", missing, "--github-summary", "--quiet")
    assert outcome.exit_code == 2
    assert f"--junit {missing} names no file" in outcome.stderr
    assert "GITHUB_STEP_SUMMARY" in outcome.stderr


def test_a_summary_stays_within_githubs_limit_and_says_what_it_left_out():
    reason = "<b>|@all \x07 [x](y) " + "long " * 300
    checks = [
        Check(
            group="m", name=f"gate {n}", outcome="failed", reason=reason, quote="```\n" + "q" * 999
        )
        for n in range(900)
    ]
    text = summary_of(Checks(title="sweep", checks=checks))
    assert len(text.encode()) <= MAX_BYTES
    assert re.search(r"\d+ more parts are left out", text)
    assert not re.search(r"<b>|@all|\x07|\[x\]", text)
    assert summary_of(Checks(title="sweep", checks=checks), 10) == ""
    assert len([*annotations_of(Checks(title="s", checks=checks))]) == 10


def test_annotations_and_junit_hold_any_text(tmp_path):
    check = Check(group="a,b", name="x: y", outcome="failed", reason="50 %\nof\x00 it")
    checks = Checks(title="t", checks=[check])
    line = next(annotations_of(checks))
    assert line.startswith("::error title=x%3A y of a%2Cb::50 %25%0Aof")
    write_junit(checks, str(tmp_path / "j.xml"))
    assert "50 %" in cases(tmp_path / "j.xml")[1]["a,b", "x: y"].find("failure").get("message")


def test_only_a_drop_that_its_interval_does_not_cover_fails_a_comparison(tmp_path):
    """Of the same model again there is none, and of a worse one there is."""
    before, junit = tmp_path / "before", tmp_path / "drop.xml"
    scenarios = (
        *("career-change", "milk-price", "ai-ethics"),
        *("giraffe-necks", "time-management", "honest-friend"),
    )
    grid = ("--scenarios", *scenarios, "--turns", "8", "--seed", "7", "--quiet", "-o")
    run("sweep", "--offline", "--models", STEADY, *grid, str(before))
    for model, code in ((STEADY, 0), (DRIFT, 5)):
        run("sweep", "--offline", "--models", model, *grid, str(tmp_path / model))
        compared = run(
            *("compare", str(tmp_path / model), "--baseline", str(before), "--quiet"),
            *("--max-drop", "overall_score.high=0", "--max-drop", "turns_held.high=0"),
            *("--junit", str(junit)),
        )
        assert compared.exit_code == code, compared.stderr
        _, by_name = cases(junit)
        (name,) = (name for name in by_name if name[1] == "drop of overall_score.high <= 0")
        assert name[0].startswith(model)
        assert (by_name[name].find("failure") is None) == (code == 0)
        held = next(test for (_, gate), test in by_name.items() if "turns_held" in gate)
        assert (held.find("failure") is None) == (code == 0)  # no run of the steady model lapses


def test_the_action_runs_its_words_and_no_command_in_them(tmp_path):
    """The steps of action.yml as a runner does them for `uses: ./`; the program says its words."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    program = tmp_path / "socratic-runner"
    program.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    program.chmod(0o755)
    inputs = {
        **{name: value.get("default", "") for name, value in action["inputs"].items()},
        "arguments": "run --prompt 'two words' $(touch x) --turns 3",
    }
    env = {name: _filled(value, inputs) for name, value in step["env"].items()}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    subprocess.run(shell, env={**env, "PATH": path}, cwd=tmp_path, check=True)
    words = json.loads((tmp_path / "socratic-runner.json").read_text())
    expected = ["run", "--prompt", "two words", "$(touch", "x)", "--turns", "3"]
    assert words == [*expected, "--junit", "socratic-runner.xml", "--github-summary"]
    assert not (tmp_path / "x").exists()
    # Half of the words would be another command, perhaps without its budget.
    (tmp_path / "socratic-runner.json").unlink()
    env["ARGUMENTS"] = "run --prompt I'm stuck --max-cost-usd 1"
    mistaken = subprocess.run(
        shell, check=False, env={**env, "PATH": path}, cwd=tmp_path, capture_output=True
    )
    assert mistaken.returncode
    assert b"quote" in mistaken.stderr
    assert not (tmp_path / "socratic-runner.json").exists()


def _filled(text, inputs):
    return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match[1]], text)


def test_the_action_installs_locks_that_are_there():
    step = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][1]
    assert "--require-hashes" in step["run"]
    assert Path(ROOT / "requirements-stats.txt").exists()


def test_the_nightly_example_finds_the_last_night_and_compares_with_it(tmp_path):
    nightly = next(example for example in EXAMPLES if example.get("name") == "nightly")
    find, sweep, compare = nightly["jobs"]["compare"]["steps"][-3:]
    aws = tmp_path / "aws"
    today = subprocess.check_output(["date", "-u", "+%F"], text=True).strip()
    nights = ("2026-01-02", "2026-01-03", today)
    listing = "\n".join(f"                           PRE {night}/" for night in nights)
    aws.write_text(f"#!/bin/sh\ncat <<'END'\n{listing}\nEND\n")
    aws.chmod(0o755)
    variables = tmp_path / "variables"
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "GITHUB_ENV": str(variables)}
    shell = ["bash", "--noprofile", "--norc", "-e", "-c"]  # as GitHub does by default
    subprocess.run([*shell, find["run"]], env={**env, **nightly["env"]}, check=True)
    assert variables.read_text() == f"TODAY={today}\nLAST=2026-01-03\n"
    # The flags of both commands exist.
    for words in (sweep["with"]["arguments"].split(), compare["run"].split()[1:]):
        flags = {word for word in words if word.startswith("--")}
        help_text = run(words[0], "--help", "all").stdout.decode()
        assert [flag for flag in flags if flag not in help_text] == []
