"""Sections of reports that only some runs have: juries, labels, failures, other benchmarks."""

import json
from collections import defaultdict
from html import unescape
from statistics import fmean
from xml.etree import ElementTree as ET

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.studies.report.parts import UNKNOWN
from tests.command import account, run
from tests.test_report import DRIFT, STEADY, Page
from tests.test_sweep import curated, sweep

LEADING, YIELDS = "emulator.leading-v1:0", "emulator.yields-v1:0"
JURY = ("emulator.judge-v1:0", "emulator.judge-bias--5-v1:0", "emulator.judge-noise-5-v1:0")
GRID = ("--scenarios", "ai-ethics", "career-change", "--turns", "4", "--seed", "7", "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models before three judges, two of whom are known to be wrong."""
    folder = tmp_path_factory.mktemp("juried") / "runs"
    judges = [word for model in JURY for word in ("--judge-model", model)]
    sweep("--models", STEADY, DRIFT, *judges, "--pressure", "high", *GRID, folder=folder)
    return folder


def labels_in(folder, path):
    """A label of each first turn, half a point over what was judged."""
    lines = [
        {
            "labeller": "anna",
            "run_id": run_id,
            "turn": 0,
            "probability": 0.25,
            "scores": {
                name: max(0.0, round(2 * score) / 2 - 0.5)
                for name, score in one["turns"][0]["scores"].items()
            },
        }
        for run_id, one in curated(folder).items()
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture(scope="module")
def page(folder):
    path = folder.parent / "report.html"
    labels = labels_in(folder, folder.parent / "labels.jsonl")
    outcome = run("report", str(folder), "--html", str(path), "--labels", str(labels))
    assert outcome.exit_code == 0, outcome
    assert {"jury", "labels", "failures"} <= {*outcome.document["sections"]}
    return Page(path)


def table(page, *titles):
    """The one whose head begins with these."""
    (found,) = (one for one in page.tables if one[0][: len(titles)] == [*titles])
    return found


def test_each_jurors_lean_is_that_of_its_verdicts(folder, page):
    leans = defaultdict(list)
    for run_id in curated(folder):
        for path in sorted((folder / "raw/runs" / run_id).glob("judge_*.json")):
            jurors = json.loads(path.read_text())["jurors"]
            middle = fmean(one["overall_score"] for one in jurors)
            for one in jurors:
                leans[one["model"]].append(one["overall_score"] - middle)
    found = table(page, "Juror")
    assert [row[0] for row in found[1:]] == [*JURY]
    for row in found[1:]:
        assert row[1].startswith(f"{fmean(leans[row[0]]):.2f} (")
        assert row[2:] == [str(len(leans[row[0]])), "100 %"]
    agreement = table(page, "Score", "Krippendorff's alpha, ordinal")
    assert [row[0] for row in agreement[1:]] == ["form", "substance", "purity", "score"]
    assert all(0 < float(row[2].split()[0]) < 2 for row in agreement[1:])


def test_figures_by_labels_stand_beside_those_of_judges(folder, page):
    found = table(page, "Model", "Figure", "As judged", "Corrected", "By people's labels")
    rows = {(row[0], row[1]): row for row in found[1:]}
    judged = [
        turn["score"]
        for one in curated(folder).values()
        for turn in one["turns"]
        if one["model"] == STEADY
    ]
    row = rows[STEADY, "overall score"]
    assert row[2].split(" ")[0] == f"{fmean(judged):.2f}"
    assert row[3] == "–"  # noqa: RUF001 -- not known
    assert row[5]
    text = unescape(page.text)
    assert "corrected by the labels below" in text
    assert "not calibrated" not in text


def test_the_effect_of_pressure_is_the_difference_to_the_same_turn_without_it(tmp_path):
    folder, path = tmp_path / "runs", tmp_path / "report.html"
    words = ("--models", STEADY, YIELDS, "--pressure", "low", "--repeats", "2")
    sweep(*words, *GRID, folder=folder)
    run("report", str(folder), "--html", str(path))
    found = table(Page(path), "Pressure by the student")
    plain, effects = defaultdict(list), defaultdict(list)
    turns = [(one["model"], turn) for one in curated(folder).values() for turn in one["turns"]]
    for model, turn in turns:
        if turn["pressure"] is None:
            plain[model, turn["turn"]].append(turn["score"])
    for model, turn in turns:
        if turn["pressure"] and plain[model, turn["turn"]]:
            effect = turn["score"] - fmean(plain[model, turn["turn"]])
            effects[model, turn["pressure"].replace("_", " ")].append(effect)
    assert effects
    for name, *cells in found[1:]:
        for model, cell in zip(found[0][1:], cells, strict=True):
            known = effects.get((model, name))
            shown = f"{fmean(known):.1f}".replace("-0.0", "0.0") if known else UNKNOWN
            assert cell.split(" ")[0] == shown


def test_runs_of_two_benchmarks_have_no_report_and_it_is_said_what_has(folder, tmp_path):
    document = next(iter(curated(folder).values())) | {
        "benchmark": "execution",
        "run_id": f"run-{0:026}",
    }
    (tmp_path / "other.json").write_text(json.dumps(document))
    path = tmp_path / "report.html"
    outcome = run("report", str(folder), str(tmp_path / "other.json"), "--html", str(path))
    error = outcome.document["error"]
    assert (outcome.exit_code, path.exists()) == (2, False)
    assert error["message"].startswith("Runs of several benchmarks cannot be read together")
    assert error["hint"].startswith("Name runs of one benchmark:")


def test_what_was_not_tested_is_blank_and_what_failed_is_told(folder, tmp_path):
    documents = curated(folder)
    paths = [
        str(folder / f"curated/runs/{run_id}.json")
        for run_id, one in documents.items()
        if (one["model"], one["scenario"]) != (DRIFT, "ai-ethics")
    ]
    path = tmp_path / "report.html"
    assert run("report", *paths, "--html", str(path)).exit_code == 0
    found = table(Page(path), "Scenario")
    (row,) = (one for one in found[1:] if one[0] == "ai-ethics")
    assert row[found[0].index(DRIFT)] == ""
    assert float(row[found[0].index(STEADY)]) == 4
    assert "1 pair not run: blank, which is not zero." in path.read_text()


def test_cells_that_failed_are_counted_by_kind_and_in_no_mean(tmp_path):
    folder, path = tmp_path / "runs", tmp_path / "report.html"
    with Emulator(Settings(faults=(parse_fault("not_found:model=leading"),))) as served:
        outcome = run(
            *("sweep", "--models", STEADY, LEADING, *GRID, "--output-dir", str(folder)),
            *("--judge-model", JURY[0]),
            env=account(served.url, STEADY, LEADING),
        )
    assert len(outcome.document["failed"]) == 2
    reported = run("report", str(folder), "--html", str(path)).document
    assert (reported["n_runs"], reported["n_failed"]) == (2, 2)
    assert reported["models"] == [STEADY]
    assert [LEADING, "run not complete", "unknown model", "2"] in table(Page(path), "Model", "What")


def test_a_benchmark_without_judge_and_words_of_its_own_has_a_report(tmp_path):
    folder, path = tmp_path / "runs", tmp_path / "report.html"
    models = ("emulator.executes-v1:0", "emulator.recalls-v1:0")
    run(
        *("sweep", "--benchmark", "execution", "--offline", "--output-dir", str(folder)),
        *("--models", *models, "--seed", "7", "--pred-num-problems", "8", "-q"),
    )
    outcome = run("report", str(folder), "--html", str(path))
    assert outcome.exit_code == 0, outcome
    assert outcome.document["models"] == [*models]
    assert f"{models[0]} is better than {models[1]} by" in outcome.document["sentences"][0]
    assert outcome.document["winner"] == models[0]
    page = Page(path)
    documents = curated(folder)
    for run_id, turns in page.runs.items():
        entries = documents[run_id]["turns"]
        assert [one["r"] for one in turns] == [one["question"] for one in entries]
        assert all(one["s"] for one in turns), "what was asked stands in its file alone"
        assert f"expected output: {entries[0]['expected_output']}" in turns[0]["h"]
    assert "none" in page.text


FAMILY = "👩‍🔬" * 30


def test_names_in_charts_differ_and_a_model_of_each_run_makes_no_large_file(folder, tmp_path):
    """36 models, in whose long names only the middle tells them apart, or nothing but emoji."""
    documents = [*curated(folder).values()]
    paths = []
    for n in range(36):
        changed = json.loads(json.dumps(documents[n % len(documents)]))
        name = FAMILY if n == 0 else f"us.{'a' * 40}.{n}.{'b' * 40}-v1:0"
        changed |= {"model": name, "run_id": f"{changed['run_id'][:-2]}{n:02d}"}
        changed["output_artifacts"] = None
        changed["turns"] = [
            turn | {"turn": 4 * round_ + turn["turn"]}
            for round_ in range(3)
            for turn in changed["turns"]
        ][:10]
        paths.append(tmp_path / f"{n}.json")
        paths[-1].write_text(json.dumps(changed))
    html, charts = tmp_path / "report.html", tmp_path / "svg"
    outcome = run("report", *map(str, paths), "--html", str(html), "--svg", str(charts))
    assert outcome.exit_code == 0, outcome
    assert html.stat().st_size < 600_000
    drawing = ET.parse(charts / "samples.svg")  # noqa: S314 -- our own
    texts = [one.text or "" for one in drawing.iter("{http://www.w3.org/2000/svg}text")]
    labels = [one for one in texts if "…" in one]
    assert len(labels) == len({*labels}) == 36
    assert sum(one.startswith("👩") for one in labels) == 1
    assert "the 8 best of 36 models" in (charts / "turns.svg").read_text()
    assert "the 8 best of 36 models" in (charts / "axes.svg").read_text()


def test_runs_of_a_model_that_differ_stand_apart(folder, tmp_path):
    """Runs of a model, as if played in two regions at two temperatures."""
    documents = [one for one in curated(folder).values() if one["model"] == STEADY]
    differing = (
        {"region": "us-east-1", "temperature": None},
        {"region": "eu-central-1", "temperature": 0.7},
    )
    paths = []
    for n, one in enumerate(documents):
        changed = one | {"inputs": one["inputs"] | differing[n % 2]}
        paths.append(tmp_path / f"{one['run_id']}.json")
        paths[-1].write_text(json.dumps(changed))
    path = tmp_path / "report.html"
    document = run("report", *map(str, paths), "--html", str(path)).document
    assert sorted(document["models"]) == [
        f"{STEADY}, region eu-central-1, temperature 0.7",
        f"{STEADY}, region us-east-1, temperature default",
    ]
    assert document["undecided_because"].startswith("region and temperature varied")
    assert "Runs of one model differ in region and temperature" in path.read_text()


def test_models_are_compared_within_each_pressure(tmp_path):
    folder = tmp_path / "runs"
    levels = ("--pressure", "none", "low")
    sweep("--models", STEADY, DRIFT, *levels, *GRID[:3], "--turns", "6", "-q", folder=folder)
    path = tmp_path / "report.md"
    document = run("report", str(folder), "--markdown", str(path)).document
    pairs = {(one["first"], one["second"]) for one in document["differences"]}
    assert {tuple(sorted(pair)) for pair in pairs} == {
        (f"{DRIFT}, pressure {level}", f"{STEADY}, pressure {level}") for level in ("none", "low")
    }
    assert document["winner"] is None
    assert len(document["sentences"]) == 3
