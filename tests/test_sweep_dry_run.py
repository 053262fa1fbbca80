"""What a sweep's dry run predicts is what the sweep then takes, and nothing is called for it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.emulator import Emulator
from tests.command import CLAUDE, LLAMA, Outcome, account, assert_valid, run

STEADY, DRIFTING, JUDGE = (
    "emulator.socratic-v1:0",
    "emulator.drift-5-v1:0",
    "emulator.judge-v1:0",
)
SCENARIOS = ("career-change", "ai-ethics")
GRID = ("--models", STEADY, DRIFTING, "--scenarios", *SCENARIOS, "--turns", "3", "--seed", "7")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def predicted(*words: str, folder: Path, env: dict[str, str] | None = None) -> Outcome:
    outcome = run("sweep", *words, "-o", str(folder / "runs"), "--dry-run", env=env)
    assert_valid("sweep_dry_run", outcome.document)
    assert not folder.joinpath("runs").exists() or not [*folder.joinpath("runs").iterdir()]
    return outcome


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """With a target of all models, one of the judge's, and a budget."""
    return predicted(
        *("--offline", *GRID, "--repeats", "2", "--max-cost-usd", "0.15"),
        *("--target-rpm", "30", "--target-rpm", f"{JUDGE}=10", "--target-tpm", f"{DRIFTING}=1500"),
        folder=tmp_path_factory.mktemp("told"),
    )


def test_what_is_predicted_happens(told, tmp_path):
    happened = run("sweep", "--offline", *GRID, "--repeats", "2", "-o", str(tmp_path)).document
    expected = told.document

    assert told.exit_code == 0
    assert (expected["n_runs"], expected["n_forecast"]) == (happened["n_runs"], 4) == (8, 4)
    assert expected["axes"] == happened["axes"]
    assert expected["usage"]["total"]["calls"] == happened["usage"]["calls"]
    for kind in TOKENS:
        found = happened["usage"][kind]
        assert expected["usage"]["total"][kind] == pytest.approx(found, rel=0.05), kind
    # The judge's instructions are written to the cache by the first cell alone.
    writes = expected["usage"]["judge"]["cache_write_tokens"]
    assert writes == happened["usage"]["cache_write_tokens"]
    assert expected["cost_usd"]["total"] == pytest.approx(happened["cost_usd"], rel=0.05)


def test_groups_and_roles_add_up(told):
    document = told.document

    total = document["cost_usd"]["total"]
    assert sum(document["cost_usd"][role] for role in ("tutor", "student", "judge")) == (
        pytest.approx(total)
    )
    for groups in document["groups"].values():
        assert [group["n_runs"] for group in groups] == [4, 4]
        assert sum(group["cost_usd"] for group in groups) == pytest.approx(total)
        calls = sum(group["usage"]["calls"] for group in groups)
        assert calls == document["usage"]["total"]["calls"]
    # What an emulator says is known.
    assert document["low"]["cost_usd"] == document["high"]["cost_usd"] == total


def test_the_time_is_that_of_the_slowest_target(told):
    document = told.document
    models = {one["model"]: one for one in document["models"]}
    requests = {model: one["requests"] for model, one in models.items()}
    rpm = {model: one["target_rpm"] for model, one in models.items()}
    # Slots are a hundredth further apart than the target.
    slot_s = {model: 60 * 1.01 / rpm[model] for model in models}
    at_rpm = {model: slot_s[model] * (requests[model] - 1) for model in models}

    assert requests == {STEADY: 12, DRIFTING: 12, JUDGE: 32}
    assert rpm == {STEADY: 30, DRIFTING: 30, JUDGE: 10}
    assert [models[m]["target_tpm"] for m in (STEADY, DRIFTING, JUDGE)] == [None, 1500, None]
    # The tokens of the first minute need not wait.
    at_tpm = 60 * (models[DRIFTING]["tokens"] / 1500 - 1)
    assert at_tpm > at_rpm[DRIFTING]
    for model, seconds in {**at_rpm, DRIFTING: at_tpm}.items():
        assert models[model]["seconds_at_targets"] == pytest.approx(seconds, abs=0.01)
    assert document["bound_by"] == "targets"
    assert document["duration_seconds"] == models[JUDGE]["seconds_at_targets"]
    assert f"{JUDGE}: 3 min 8 s at 10 requests a minute" in told.stderr


def test_a_budget_is_held_against_the_cost(told):
    total = told.document["cost_usd"]["total"]

    assert total > 0.15
    assert told.document["budget"] == {
        "max_cost_usd": 0.15,
        "spent_usd": 0,
        "n_paid": 0,  # a verdict alone may cost 0.12 USD
        "covers_expected": False,
        "covers_high": False,
    }
    assert told.document["end_reason"] == "budget"
    assert "the budget covers only 0 of 8 runs" in told.stderr


PLAN = f"""
scenarios = "career-change"
turns = 3
seed = 7
offline = true

[[models]]
id = "{STEADY}"
region = "eu-west-1"
prices.default = {{input = 1000, output = 0}}
prices.flex = {{input = 500, output = 0}}

[[models]]
id = "{DRIFTING}"
prices.default = {{input = 100, output = 0}}
"""


def test_it_says_what_caching_and_flex_would_make_of_it(told, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = str(tmp_path / "plan.toml")
    both = predicted(plan, "--target-rpm", "6000", folder=tmp_path)
    one = predicted(plan, "--models", STEADY, "--no-prompt-cache", folder=tmp_path)

    caching = told.document["caching"]
    assert caching["with_usd"] == told.document["cost_usd"]["total"] < caching["without_usd"]
    document = one.document
    n_input = document["usage"]["tutor"]["input_tokens"]
    judge_usd = document["cost_usd"]["judge"]
    assert document["cost_usd"]["tutor"] == pytest.approx(n_input / 1000)
    assert document["flex"]["unpriced"] == []
    assert document["flex"]["cost_usd"] == pytest.approx(n_input / 2000 + judge_usd)
    assert document["caching"]["without_usd"] == document["cost_usd"]["total"]
    # The tutor's dialogue is too short to be cached.
    saved = document["caching"]["without_usd"] - document["caching"]["with_usd"]
    assert 0 < saved < judge_usd

    # A model without a price at flex stays as it was asked for.
    flex = both.document["flex"]
    saved = both.document["cost_usd"]["total"] - flex["cost_usd"]
    assert saved == pytest.approx(n_input / 2000)
    assert flex["unpriced"] == [DRIFTING]
    assert f" USD (no price for {DRIFTING}), maybe slower" in both.stderr
    for region in ("eu-west-1", "us-east-1"):  # what has a limit of its own in each
        assert re.search(
            f"^{JUDGE} in {region}: [0-9.]+ s at 6,000 requests", both.stderr, re.MULTILINE
        )


def test_a_limit_bounds_what_is_forecast_and_no_store_is_needed_for_it():
    document = run("sweep", "--offline", *GRID, "--limit", "3", "--dry-run").document

    assert (document["n_runs"], document["n_forecast"]) == (3, 3)
    assert document["usage"]["total"]["calls"] == 3 * 7


def test_what_has_ended_is_not_forecast_again_and_its_cost_is_spent(tmp_path):
    words = ("sweep", "--offline", *GRID[:-2], "-o", str(tmp_path), "--max-cost-usd", "1")
    begun = run(*words, "--limit", "3").document
    rest = run(*words, "--resume", "--dry-run").document
    files = sorted(tmp_path.rglob("*.json*"))
    whole = run(*words, "--resume").document
    nothing = run(*words, "--resume", "--dry-run").document

    assert (rest["n_runs"], rest["seed"]) == (1, begun["seed"])
    assert rest["usage"]["total"]["calls"] == whole["usage"]["calls"] - begun["usage"]["calls"]
    assert rest["budget"]["spent_usd"] == pytest.approx(begun["cost_usd"])
    assert files == [path for path in files if path.exists()]
    assert (nothing["n_runs"], nothing["cost_usd"]["total"], nothing["groups"]["model"]) == (
        0,
        0,
        [],
    )
    assert_valid("sweep_dry_run", nothing)


def test_a_model_that_refuses_is_named_and_the_others_are_forecast(tmp_path):
    outcome = predicted(
        *("--offline", "--models", STEADY, "emulator.picky-v1:0", "--turns", "2", "--repeats", "2"),
        *("--scenarios", "ai-ethics", "--temperatures", "0.5"),
        folder=tmp_path,
    )
    document = outcome.document

    assert outcome.exit_code == 3
    (refused,) = document["refused"]
    assert refused["axes"]["model"] == "emulator.picky-v1:0"
    assert refused["n_runs"] == 2
    assert refused["error"] == document["error"]
    assert "--temperatures" in refused["error"]["message"]
    assert "2 runs would be refused. " in outcome.stderr
    calls = {one["model"]: one["requests"] for one in document["models"]}
    assert calls[STEADY] == 4


def test_an_endpoint_is_asked_once_and_all_runs_share_what_it_says(tmp_path):
    with Emulator() as emulator:
        document = predicted(
            *("--models", CLAUDE, LLAMA, "--judge-model", CLAUDE, "--scenarios", *SCENARIOS),
            *("--turns", "2", "--max-connections", "1"),
            folder=tmp_path,
            env=account(emulator.url, CLAUDE, LLAMA),
        ).document

    assert (document["n_forecast"], document["sent"]["emulator_pace"]) == (4, 1)
    assert document["bound_by"] == "max_connections"
    # Claude is asked as a judge, too, and its own questions count.
    calls = {one["model"]: one["requests"] for one in document["models"]}
    assert calls == {CLAUDE: 4 + 4 * 3, LLAMA: 4}


def test_a_budget_without_a_price_is_refused_as_that_of_a_run_is(tmp_path):
    env = account("http://127.0.0.1:9", "made.up-model-v1:0")
    words = ("--models", "made.up-model-v1:0", "--scenarios", "ai-ethics", "--max-cost-usd", "1")
    outcome = run("sweep", *words, "-o", str(tmp_path / "runs"), "--dry-run", env=env)

    assert outcome.exit_code == 2
    assert (
        "--max-cost-usd needs the price of --models made.up-model-v1:0"
        in (outcome.document["error"]["message"])
    )


def test_a_range_and_a_deadline_of_models_that_nobody_knows(tmp_path):
    env = account("http://127.0.0.1:9", CLAUDE)
    document: dict[str, Any] = predicted(
        *("--models", CLAUDE, "--scenarios", "ai-ethics", "--turns", "2", "--repeats", "2"),
        *("--deadline", "8"),
        folder=tmp_path,
        env=env,
    ).document

    low, high = document["low"], document["high"]
    assert low["cost_usd"] < document["cost_usd"]["total"] < high["cost_usd"]
    assert low["duration_seconds"] < document["duration_seconds"] < high["duration_seconds"]
    assert document["deadline"]["covers_high"] is False
    assert json.dumps(document["assumptions"])
