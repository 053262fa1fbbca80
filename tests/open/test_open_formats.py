"""What we write is opened by each format's own program, and what these write is read by us.

Run by `make test-open`, in an environment of its own.
"""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEADY, DRIFT, JUDGE = "emulator.socratic-v1:0", "emulator.drift-5-v1:0", "emulator.judge-v1:0"
SCENARIOS = ("career-change", "milk-price")


def runner(*words, exit_code=0, cwd=ROOT):
    """The document that the command prints."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env = {**clean, "PYTHONPATH": str(ROOT), "AWS_EC2_METADATA_DISABLED": "true"}
    command = [sys.executable, "-m", "cli", *map(str, words)]
    outcome = subprocess.run(command, env=env, cwd=cwd, capture_output=True, check=False)
    assert outcome.returncode == exit_code, outcome.stderr.decode()
    return json.loads(outcome.stdout)


def stored(folder):
    files = sorted((Path(folder) / "curated/runs").glob("*.json"))
    return [json.loads(file.read_bytes()) for file in files]


def words_of(document):
    """The messages of a run in their order."""
    words = [text for turn in document["turns"] for text in (turn["student"], turn["reply"])]
    closing = document["student"]["closing"]
    return [text for text in (*words, closing) if text]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Two models in two scenarios, twice: the folder, and the JUnit file."""
    folder = tmp_path_factory.mktemp("sweep")
    runner(
        *("sweep", "--offline", "--models", STEADY, DRIFT, "--scenarios", *SCENARIOS),
        *("--turns", "3", "--repeats", "2", "--seed", "7", "--quiet", "-o", folder / "runs"),
        *("--junit", folder / "junit.xml", "--fail-under", "overall_score=9.9"),
        exit_code=5,
    )
    return folder / "runs", folder / "junit.xml"


def test_inspect_reads_our_logs_and_they_are_judged_again(sweep, tmp_path):
    from inspect_ai.log import read_eval_log

    runs = {document["run_id"]: document for document in stored(sweep[0])}
    written = runner("export", sweep[0], "--format", "inspect", "--out", tmp_path)["written"]
    assert len(written) == 2
    n_samples = 0
    for path in written:
        log = read_eval_log(path)
        assert (log.status, log.version) == ("success", 2)
        assert log.eval.config.epochs == 2
        assert {(sample.id, sample.epoch) for sample in log.samples} == {
            (name, epoch) for name in SCENARIOS for epoch in (1, 2)
        }
        for sample in log.samples:
            run = runs[sample.metadata["run_id"]]
            assert [message.text for message in sample.messages] == words_of(run)
            score = sample.scores[JUDGE].value["overall_score"]
            assert score == pytest.approx(run["metrics"]["overall_score"], abs=0.01)
            n_samples += 1
    assert n_samples == len(runs)
    log_file, imported = written[0], tmp_path / "imported"
    runner("judge", log_file, "--offline", "--judge-model", JUDGE, "-o", imported, "--quiet")
    again = stored(imported)
    log = read_eval_log(log_file)
    assert sorted(map(words_of, again)) == sorted(
        [message.text for message in sample.messages] for sample in log.samples
    )
    assert {document["scenario"] for document in again} == {*SCENARIOS}


def grader_output(messages, tools, *_):
    """A verdict by the tool that the judge is given, whatever its rubric asks for."""
    from inspect_ai.model import ModelOutput

    arguments = {}
    for name, schema in tools[0].parameters.properties.items():
        arguments[name] = _value(schema, messages)
    return counted(ModelOutput.for_tool_call("mockllm/grader", tools[0].name, arguments))


def counted(output):
    """With its tokens: inspect_ai would count them by a table from the network."""
    from inspect_ai.model import ModelUsage

    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return output


def _value(schema, messages):
    kind = schema.type[0] if isinstance(schema.type, list) else schema.type
    if kind in ("number", "integer"):
        return 2
    if kind == "array":
        return []
    if kind == "object":
        return {name: _value(inner, messages) for name, inner in (schema.properties or {}).items()}
    return "What makes you think so?" if kind == "string" else None


def test_inspect_plays_the_task_and_its_log_is_judged_again(tmp_path):
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import ModelOutput, get_model

    from socratic_bench.studies.formats.inspect_task import socratic

    reply = "What makes you think so?"
    tutor = get_model(
        "mockllm/tutor",
        custom_outputs=lambda *_: counted(ModelOutput.from_content("mockllm/tutor", reply)),
    )
    grader = get_model("mockllm/grader", custom_outputs=grader_output)
    (log,) = inspect_eval(
        socratic(scenarios="career-change", turns=3),
        model=tutor,
        model_roles={"grader": grader},
        log_dir=str(tmp_path / "logs"),
        display="none",
    )
    assert log.status == "success", log.error
    (sample,) = log.samples
    assert [message.role for message in sample.messages] == ["user", "assistant"] * 3
    assert sample.messages[1].text == reply
    assert sample.scores["judge_dialogue"].value["overall_score"] == 6, sample.scores
    imported = tmp_path / "imported"
    words = ("--offline", "--judge-model", JUDGE, "-o", imported, "--quiet")
    runner("judge", log.location.removeprefix("file://"), *words)
    (document,) = stored(imported)
    assert words_of(document) == [message.text for message in sample.messages]
    assert document["model"] == "imported/mockllm-tutor"
    assert document["scenario"] == "career-change"


def test_the_installed_package_brings_the_task(tmp_path):
    """`inspect` finds it by its name, as Inspect Evals would list it."""
    from inspect_ai.log import read_eval_log

    inspect = Path(sys.executable).with_name("inspect")
    words = ("eval", "socratic_bench/socratic", "--model", "mockllm/model", "--no-score")
    more = ("-T", "scenarios=career-change", "-T", "turns=1", "--display", "none")
    subprocess.run([inspect, *words, *more], cwd=tmp_path, check=True)
    (file,) = (tmp_path / "logs").glob("*.eval")
    assert read_eval_log(str(file), header_only=True).eval.task == "socratic_bench/socratic"


def test_mlflow_has_a_run_for_each_and_the_report_once(sweep, tmp_path):
    import mlflow

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    words = ("export", sweep[0], "--format", "mlflow", "--out", uri, "--quiet")
    first = runner(*words, cwd=tmp_path)["written"]  # where MLflow puts artifacts
    assert runner(*words, cwd=tmp_path)["written"] == []
    mlflow.set_tracking_uri(uri)
    experiment = mlflow.get_experiment_by_name("socratic-runner")
    found = mlflow.search_runs([experiment.experiment_id], output_format="list")
    assert {run.info.run_id for run in found} == {*first}
    by_id = {run.data.tags.get("socratic.run_id"): run for run in found}
    for document in stored(sweep[0]):
        run = by_id[document["run_id"]]
        score = document["metrics"]["overall_score"]
        assert run.data.metrics["overall_score"] == pytest.approx(score)
        assert run.data.params["scenario"] == document["scenario"]
    parent = by_id[None]
    (artifact,) = mlflow.MlflowClient(uri).list_artifacts(parent.info.run_id)
    assert artifact.path == "report.md"


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_tables_are_read_with_their_schemas(sweep, tmp_path, form):
    import jsonschema
    import pyarrow.parquet

    runner("export", sweep[0], "--format", form, "--out", tmp_path, "--quiet")
    for name, n_rows in (("runs", 8), ("turns", 24), ("verdicts", 24)):
        schema = json.loads((tmp_path / f"{name}.schema.json").read_text())
        file = tmp_path / f"{name}.{form}"
        if form == "jsonl":
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            for row in rows:
                jsonschema.validate(row, schema)
            assert len(rows) == n_rows
        elif form == "csv":
            with file.open(newline="") as lines:
                rows = [*csv.DictReader(lines)]
            assert (len(rows), [*rows[0]]) == (n_rows, schema["required"])
        else:
            table = pyarrow.parquet.read_table(file)
            assert (table.num_rows, table.column_names) == (n_rows, schema["required"])


def test_the_data_set_of_scenarios_loads(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    folder = tmp_path / "scenarios"
    listed = runner("scenarios", "--export", folder)["scenarios"]
    data = datasets.load_dataset(str(folder), split="train")
    assert sorted(data["id"]) == sorted(row["id"] for row in listed)
    subprocess.run(["sha256sum", "--check", "--quiet", "sha256sums.txt"], cwd=folder, check=True)
    assert (folder / "README.md").read_text().startswith("---\nlicense: mit\n")


def test_junitparser_reads_the_checks(sweep):
    from junitparser import JUnitXml

    suite = next(iter(JUnitXml.fromfile(str(sweep[1]))))
    assert (suite.tests, suite.errors) == (10, 0)
    assert suite.failures == len([case for case in suite if not case.is_passed])


def test_workflows_action_and_citation_are_valid(tmp_path):
    """By the schemas of their owners, which check-jsonschema has with it."""
    page = (ROOT / "docs/ci.md").read_text()
    files = []
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)):
        files.append(tmp_path / f"{number}.yml")
        files[-1].write_text(text)
    *workflows, gitlab = files
    for schema, checked in (
        ("github-workflows", workflows),
        ("gitlab-ci", [gitlab]),
        ("github-actions", [ROOT / "action.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ):
        command = [Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema"]
        more = ["--force-filetype", "yaml"] if schema.startswith("citation") else []
        subprocess.run([*command, f"vendor.{schema}", *more, *checked], check=True)
