"""A sweep whose turns a jury scores: by a plan, with its agreement, its look and its forecast."""

import json
from collections import Counter

import krippendorff
import pytest

from tests.command import ROOT, assert_valid, environment, run

PLAIN, HARSH = "emulator.judge-v1:0", "emulator.judge-bias--10-v1:0"
NOISY = "emulator.judge-noise-8-v1:0"
JURY = [PLAIN, HARSH, NOISY]
TUTORS = ["emulator.socratic-v1:0", "emulator.drift-5-v1:0"]
PLAN = f"""
models = {json.dumps(TUTORS)}
scenarios = ["ai-ethics", "time-management"]
turns = 3
seed = 7
offline = true
judge_model = {json.dumps(JURY)}
jury_rule = "median"
no_prompt_cache = true
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jury")
    file = folder / "plan.toml"
    file.write_text(PLAN)
    return file, folder / "out"


@pytest.fixture(scope="module")
def prices(plan):
    """Each juror has a rate of its own, and no tutor one as high."""
    rates = {
        **dict.fromkeys(TUTORS, (1, 2)),
        **dict(zip(JURY, ((30, 50), (7, 110), (13, 170)), strict=True)),
    }
    models = {name: {"default": {"input": i, "output": o}} for name, (i, o) in rates.items()}
    file = plan[0].with_name("prices.json")
    file.write_text(json.dumps({"models": models, "source": {"name": "ours"}}))
    return str(file)


@pytest.fixture(scope="module")
def played(plan, prices):
    file, out = plan
    outcome = run("sweep", str(file), "--output-dir", str(out), "--prices", prices)
    assert outcome.exit_code == 0, outcome.document["error"]
    assert_valid("sweep", outcome.document)
    return outcome


def verdicts(out):
    return [json.loads(path.read_bytes()) for path in sorted(out.glob("raw/runs/*/judge_*.json"))]


def test_agreement_is_that_of_all_stored_verdicts(plan, played):
    found, files = played.document["agreement"], verdicts(plan[1])
    assert len(files) == 4 * 3
    for name in ("form", "substance", "purity"):
        ratings = [
            [file["jurors"][at]["scores"].get(name) for file in files] for at in range(len(JURY))
        ]
        alpha = krippendorff.alpha(reliability_data=ratings, level_of_measurement="ordinal")
        assert found[name]["alpha"] == pytest.approx(alpha, abs=1e-4)
        distances = [
            abs(one[n] - other[n])
            for at, one in enumerate(ratings)
            for other in ratings[at + 1 :]
            for n in range(len(files))
        ]
        error = sum(distances) / len(distances)
        assert found[name]["absolute_error"] == pytest.approx(error, abs=1e-4)
        assert (found[name]["n_jurors"], found[name]["n_turns"]) == (3, 12)
    assert found["overall_score"]["absolute_error"] > 1
    assert "3 judges differ by" in played.stderr


def test_it_is_told_again_from_the_index(plan, played):
    again = run("sweep", str(plan[0]), "--output-dir", str(plan[1]), "--resume", "--quiet")
    assert again.document["agreement"] == played.document["agreement"]
    assert again.document["sweep_id"] == played.document["sweep_id"]


def test_another_jury_is_another_sweep(plan, played, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(
        PLAN.replace(json.dumps(JURY), json.dumps(JURY[:2])).replace("3\nseed", "1\nseed")
    )
    words = ("sweep", str(other), "--output-dir", str(plan[1]), "--resume", "--quiet")
    again = run(*words)
    assert again.document["sweep_id"] != played.document["sweep_id"]


def test_without_the_extra_alpha_is_null_and_the_error_is_not(plan, played, tmp_path):
    package = tmp_path / "krippendorff"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('not installed')")
    words = ("sweep", str(plan[0]), "--output-dir", str(plan[1]), "--resume")
    outcome = run(*words, env=environment(PYTHONPATH=f"{tmp_path}:{ROOT}"))
    for name, one in outcome.document["agreement"].items():
        assert one["alpha"] is None
        assert one["absolute_error"] == played.document["agreement"][name]["absolute_error"]
    assert "krippendorff" in outcome.stderr


def test_the_doctor_and_a_dry_run_know_each_juror(plan, played, prices):
    file, out = plan
    words = (str(file), "--output-dir", str(out.parent / "none"), "--prices", prices)
    looked = run("doctor", *words, "--quiet").document
    assert {one["model_id"] for one in looked["models"] if "judge" in one["roles"]} == {*JURY}
    outcome = run("sweep", *words, "--dry-run")
    told = outcome.document
    assert_valid("sweep_dry_run", told)
    requests = {one["model"]: one["requests"] for one in told["models"]}
    assert requests[PLAIN] == requests[HARSH] == requests[NOISY] == 4 * (3 + 1)

    expected, spent = told["cost_by_model"], Counter()
    for cell in played.document["runs"]:
        body = (out / f"curated/runs/{cell['run_id']}.json").read_bytes()
        by_model = json.loads(body)["cost"]["by_model"]
        for role, costs in by_model.items():
            spent.update({(role, model): cost["total_usd"] for model, cost in costs.items()})
    found = {(role, model): usd for role, costs in expected.items() for model, usd in costs.items()}
    assert found == pytest.approx(spent, rel=0.02)
    assert {model for role, model in found if role == "judge"} == {*JURY}
    for role, costs in expected.items():
        assert sum(costs.values()) == pytest.approx(told["cost_usd"][role], abs=1e-7)
    assert told["cost_usd"]["total"] == pytest.approx(played.document["cost_usd"], rel=0.02)
    for juror in JURY:
        assert f"{juror}: " in outcome.stderr


def test_mistakes_of_a_plan_are_told_by_its_keys(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(PLAN.replace(json.dumps(JURY), '["a", "a"]') + "quorum = 5\n")
    outcome = run("sweep", str(file), "--output-dir", str(tmp_path), "--quiet")
    message = outcome.document["error"]["message"]
    assert outcome.exit_code == 2
    assert "names a twice" in message
    assert "is 5, but 2 jurors could vote" in message
