"""A sweep through the command: its cells, its document, and how it goes on."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import ROOT, Outcome, account, assert_valid, environment, run
from tests.test_resume import Service

STEADY, LECTURER = "emulator.socratic-v1:0", "emulator.lecturer-v1:0"
SCENARIOS = ("ai-ethics", "career-change")
GRID = ("--models", STEADY, LECTURER, "--scenarios", *SCENARIOS, "--turns", "2", "--seed", "7")


def sweep(*words: str, folder: Path | None = None) -> Outcome:
    place = ("--output-dir", str(folder)) if folder else ()
    return run("sweep", "--offline", *words, *place)


def curated(folder: Path) -> dict[str, dict[str, Any]]:
    paths = (folder / "curated" / "runs").glob("*.json")
    return {path.stem: json.loads(path.read_bytes()) for path in paths}


def rows(folder: Path) -> list[dict[str, Any]]:
    """What the index holds, in the order in which it was written."""
    paths = sorted(folder.glob("sweeps/*/cells/*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def begin(*words: str, folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "cli", "sweep", "--offline", *words, "-o", str(folder)]
    return subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE)


def wait_for_turns(process: "subprocess.Popen[bytes]", folder: Path, name: str) -> None:
    """Until two runs have a file of that name."""
    while len(list(folder.glob(f"raw/runs/*/{name}"))) < 2:
        assert process.poll() is None
        time.sleep(0.02)


def repeated_calls(folder: Path) -> list[str]:
    """Calls that were answered more than once, by the runs' journals."""
    found = []
    for path in folder.glob("journal/runs/*.jsonl"):
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        answered = [json.dumps(e["key"]) for e in entries if e["kind"] == "answered"]
        found += [key for key in answered if answered.count(key) > 1]
        assert answered
    return found


def journalled_usd(folder: Path) -> float:
    """What all answered calls cost, by the runs' journals and the prices of the models table."""
    usd = 0.0
    for path in folder.glob("journal/runs/*.jsonl"):
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        for entry in entries:
            if entry["kind"] == "answered":
                used = entry["completion"]["usage"]
                usd += used["output_tokens"] * 15e-6
                usd += (used["input_tokens"] - used["cache_read_tokens"]) * 3e-6
    return usd


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    folder = tmp_path_factory.mktemp("sweep")
    return folder, sweep(*GRID, "--repeats", "2", folder=folder)


class TestDocument:
    def test_each_combination_is_an_ordinary_run(self, played):
        folder, outcome = played
        runs = curated(folder)
        asked = sorted((doc["model"], doc["scenario"]) for doc in runs.values())

        assert (outcome.exit_code, outcome.document["status"]) == (0, "completed")
        assert_valid("sweep", outcome.document)
        assert asked == sorted((m, s) for m in (STEADY, LECTURER) for s in SCENARIOS * 2)
        for document in runs.values():
            assert_valid("curated", document)

    def test_groups_are_the_means_of_their_runs_the_best_first(self, played):
        folder, outcome = played
        groups = outcome.document["groups"]
        assert [group["value"] for group in groups["model"]] == [STEADY, LECTURER]
        for axis, key in (("model", "model"), ("scenario", "scenario")):
            for group in groups[axis]:
                docs = [doc for doc in curated(folder).values() if doc[key] == group["value"]]
                scores = [doc["metrics"]["overall_score"] for doc in docs]
                mean = group["metrics"]["overall_score"]
                assert mean["mean"] == pytest.approx(sum(scores) / 4)
                assert mean["n"] == 4
                costs = [doc["cost"]["total"]["total_usd"] for doc in docs]
                assert group["cost_usd"] == pytest.approx(sum(costs))
                assert group["usage"]["calls"] == sum(d["usage"]["total"]["calls"] for d in docs)

    def test_seeds_follow_from_sample_and_repeat_never_from_the_model(self, played):
        folder, _ = played
        seeds: dict[tuple[str, int], set[str]] = {}
        for doc in curated(folder).values():
            seeds.setdefault((doc["scenario"], doc["seed"]), set()).add(doc["model"])

        assert len(seeds) == 4
        assert all(models == {STEADY, LECTURER} for models in seeds.values())

    def test_cells_have_the_same_keys_and_runs_wherever_and_however_fast(self, played, tmp_path):
        _, outcome = played
        other = sweep(*GRID, "--repeats", "2", "--max-connections", "1", folder=tmp_path)

        def keys(found: Outcome) -> list[tuple[str, float]]:
            return [(cell["cell"], cell["value"]) for cell in found.document["cells"]]

        assert keys(other) == keys(outcome)

    def test_each_beginning_of_the_order_is_balanced(self, played):
        cells = [cell["axes"] for cell in played[1].document["cells"]]

        for n in (2, 4, 6):
            models = [cell["model"] for cell in cells[:n]]
            assert models.count(STEADY) == models.count(LECTURER)
        assert [cell["scenario"] for cell in cells[:4]] == [s for s in SCENARIOS for _ in "ab"]
        assert {cells[0]["model"], cells[2]["model"]} == {STEADY, LECTURER}


class TestGoingOn:
    def test_what_has_ended_is_not_played_again_and_new_cells_are(self, played):
        folder, outcome = played
        again = sweep(*GRID, "--repeats", "2", "--resume", folder=folder)
        n_rows = len(rows(folder))
        more = sweep(*GRID, "--repeats", "3", "--resume", folder=folder)

        assert again.document["cells"] == outcome.document["cells"]
        assert again.document["sweep_id"] == more.document["sweep_id"]
        assert more.document["cells"][:8] == outcome.document["cells"]
        assert (n_rows, len(rows(folder)), len(curated(folder))) == (8, 12, 12)

    def test_rows_that_are_lost_are_read_from_the_runs(self, tmp_path):
        first = sweep(*GRID, folder=tmp_path)
        for path in tmp_path.glob("sweeps/*/cells/*.jsonl"):
            path.write_text("{}\nrubbish")
        again = sweep(*GRID, "--resume", folder=tmp_path)

        assert again.document["cells"] == first.document["cells"]
        assert again.document["groups"] == first.document["groups"]
        assert len(curated(tmp_path)) == 4

    @pytest.mark.parametrize("torn", [b"", b'{"kind":"run","vers'])
    def test_a_cell_that_was_killed_before_its_first_entry_begins(self, tmp_path, torn):
        first = sweep(*GRID, folder=tmp_path)
        cell = first.document["cells"][1]
        for path in tmp_path.glob("sweeps/*/cells/*.jsonl"):
            path.unlink()
        (tmp_path / "curated" / "runs" / f"{cell['run_id']}.json").unlink()
        (tmp_path / "journal" / "runs" / f"{cell['run_id']}.jsonl").write_bytes(torn)
        again = sweep(*GRID, "--resume", folder=tmp_path)

        assert (again.exit_code, again.document["cells"]) == (0, first.document["cells"])

    def test_a_limit_leaves_the_rest_for_later(self, tmp_path):
        some = sweep(*GRID, "--limit", "3", folder=tmp_path)
        rest = sweep(*GRID, "--resume", folder=tmp_path)

        assert (some.exit_code, some.document["status"]) == (4, "partial")
        assert (some.document["n_completed"], some.document["n_missing"]) == (3, 1)
        assert some.document["error"]["code"] == "missing_cells"
        untested = [group["metrics"] for group in some.document["groups"]["model"]]
        assert all("overall_score" in metrics for metrics in untested)
        assert (rest.exit_code, rest.document["n_completed"]) == (0, 4)

    def test_a_signal_ends_it_and_what_was_under_way_goes_on(self, tmp_path):
        words = [*GRID[:-4], "--turns", "30", "--max-connections", "2"]
        process = begin(*words, folder=tmp_path)
        wait_for_turns(process, tmp_path, "turn_005.json")
        process.send_signal(signal.SIGINT)
        document = json.loads(process.communicate()[0])
        begun = {path.name for path in tmp_path.glob("raw/runs/*")}
        again = sweep(*words, "--resume", folder=tmp_path)

        assert (process.returncode, document["end_reason"]) == (130, "interrupted")
        assert document["n_completed"] + document["n_missing"] == document["n_cells"]
        assert (again.exit_code, again.document["n_completed"]) == (0, 4)
        assert begun <= {cell["run_id"] for cell in again.document["cells"]}
        assert repeated_calls(tmp_path) == []

    def test_two_processes_do_not_play_one_sweep(self, tmp_path):
        words = (*GRID[:-4], "--turns", "60", "--seed", "7")
        process = begin(*words, folder=tmp_path)
        wait_for_turns(process, tmp_path, "turn_001.json")
        second = sweep(*words, "--resume", folder=tmp_path)
        process.kill()
        process.communicate()

        assert (second.exit_code, second.document["end_reason"]) == (2, "usage")
        assert "is being played by another process" in second.document["error"]["message"]


class TestProcesses:
    def test_several_play_the_same_sweep(self, played, tmp_path):
        outcome = sweep(*GRID, "--repeats", "2", "--processes", "2", folder=tmp_path)

        assert outcome.exit_code == 0
        assert outcome.document["groups"].keys() == played[1].document["groups"].keys()
        for one, other in zip(outcome.document["cells"], played[1].document["cells"], strict=True):
            assert (one["cell"], one["value"]) == (other["cell"], other["value"])

    def test_cells_of_one_that_is_killed_are_played_by_others(self, tmp_path):
        words = [*GRID[:-4], "--turns", "40", "--processes", "2", "--max-connections", "2"]
        process = begin(*words, folder=tmp_path)
        wait_for_turns(process, tmp_path, "turn_003.json")
        children = Path(f"/proc/{process.pid}/task").glob("*/children")
        ids = [int(word) for path in children for word in path.read_text().split()]
        killed = [one for one in ids if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
        os.kill(killed[0], signal.SIGKILL)
        document = json.loads(process.communicate()[0])

        assert (process.returncode, document["n_completed"]) == (0, 4)
        assert "A process of the sweep ended with -9" in " ".join(document["notices"])
        assert repeated_calls(tmp_path) == []

    def test_a_signal_ends_all_of_them(self, tmp_path):
        words = [*GRID[:-4], "--turns", "60", "--processes", "2", "--max-connections", "2"]
        process = begin(*words, folder=tmp_path)
        wait_for_turns(process, tmp_path, "turn_003.json")
        process.send_signal(signal.SIGTERM)
        document = json.loads(process.communicate()[0])

        assert (process.returncode, document["end_reason"]) == (143, "interrupted")
        assert document["n_missing"] > 0


class TestLimits:
    @pytest.mark.parametrize("processes", ["1", "2"])
    def test_all_cells_together_keep_to_one_budget(self, tmp_path, processes):
        words = (*GRID, "--repeats", "3", "--processes", processes)
        short = sweep(*words, "--max-cost-usd", "0.25", folder=tmp_path)
        spent = sum(row["cost_usd"] for row in rows(tmp_path))
        rest = sweep(*words, "--max-cost-usd", "9", "--resume", folder=tmp_path)

        assert (short.exit_code, short.document["end_reason"]) == (6, "budget")
        assert 0 < short.document["n_completed"] < 12
        assert "The budget of 0.25 USD" in short.document["error"]["message"]
        assert short.document["error"]["hint"] == (
            "Raise --max-cost-usd. Go on with the same command and --resume."
        )
        assert short.document["cost_usd"] == pytest.approx(spent)
        assert rest.document["spent_usd"] == pytest.approx(rest.document["cost_usd"])
        assert "with cells under way" not in rest.stderr
        assert spent <= 0.25
        assert (rest.exit_code, rest.document["n_completed"]) == (0, 12)
        assert repeated_calls(tmp_path) == []

    def test_what_earlier_processes_spent_counts(self, tmp_path):
        without = sweep(*GRID, folder=tmp_path)
        more = sweep(*GRID, "--repeats", "2", "--max-cost-usd", "0.1", "--resume", folder=tmp_path)

        assert without.document["spent_usd"] is None
        assert (more.exit_code, more.document["n_completed"]) == (6, 4)

    @pytest.mark.parametrize("processes", ["1", "2"])
    def test_so_does_what_cells_cost_that_were_under_way_then(self, tmp_path, processes):
        limit_usd, grid = "0.08", (*GRID, "--repeats", "6", "--processes", processes)
        first = sweep(*grid, "--max-cost-usd", limit_usd, folder=tmp_path)
        spent = journalled_usd(tmp_path)
        words = (*grid, "--max-connections", processes, "--resume")
        again = sweep(*words, "--max-cost-usd", limit_usd, folder=tmp_path)

        assert (first.exit_code, first.document["n_completed"]) == (6, 0)
        assert spent <= first.document["spent_usd"] <= 0.08
        assert f"at most {first.document['spent_usd']:.4f} USD with cells under way" in first.stderr
        assert first.document["spent_usd"] <= again.document["spent_usd"] <= 0.08
        assert (again.exit_code, again.document["end_reason"]) == (6, "budget")
        told = re.search(
            "budget of 0.08 USD.* up to ([0-9.]+) USD", again.document["error"]["message"]
        )
        assert told
        assert float(told[1]) >= spent
        assert spent <= journalled_usd(tmp_path) <= 0.08

    def test_no_more_requests_are_under_way_than_connections(self, tmp_path):
        service = Service()
        service.reset(latency_ms=40)
        words = ("sweep", *GRID, "--judge-model", "emulator.judge-v1:0", "--max-connections", "3")
        outcome = run(*words, "-o", str(tmp_path), env=account(service.url, STEADY, LECTURER))
        connections = {request.connection for request in service.requests}
        service.close()

        assert outcome.exit_code == 0
        assert len(connections) == 3

    def test_targets_stand_beside_what_was_reached(self, tmp_path):
        words = ("--target-rpm", "6000", "--target-rpm", f"{LECTURER}=9000")
        outcome = sweep(*GRID, *words, "--target-tpm", "9000000", folder=tmp_path)
        pace = {entry["model"]: entry for entry in outcome.document["pace"]}
        usage = outcome.document["usage"]

        assert pace[STEADY]["target_rpm"] == 6000
        assert pace[LECTURER]["target_rpm"] == 9000
        assert pace[LECTURER]["target_tpm"] == 9000000
        assert pace["emulator.judge-v1:0"]["target_rpm"] == 6000
        assert sum(entry["requests"] for entry in pace.values()) == usage["attempts"]

    def test_a_model_that_answers_nothing_is_stopped_and_the_others_go_on(self, tmp_path):
        faults = (parse_fault(f"unavailable:model={LECTURER}"),)
        with Emulator(Settings(faults=faults)) as emulator:
            outcome = run(
                *("sweep", *GRID, "--judge-model", "emulator.judge-v1:0", "--stall", "0.02"),
                *("--output-dir", str(tmp_path)),
                env=account(emulator.url, STEADY, LECTURER),
            )
        document = outcome.document

        assert (outcome.exit_code, document["n_completed"]) == (4, 2)
        assert {one["error"]["code"] for one in document["failed"]} == {"stalled"}
        assert f"{LECTURER} in us-east-1 was stopped" in outcome.stderr
        pace = {entry["model"]: entry["stalled"] for entry in document["pace"]}
        assert pace == {STEADY: False, LECTURER: True, "emulator.judge-v1:0": False}

    def test_a_reply_that_no_minute_has_room_for_is_a_mistake(self, tmp_path):
        outcome = sweep(*GRID, "--target-tpm", "1000", "--target-rpm", "0", folder=tmp_path)

        assert outcome.exit_code == 2
        assert "--max-tokens of 1024 is more than" in outcome.document["error"]["message"]
        assert "--target-rpm takes N or MODEL=N" in outcome.document["error"]["message"]


class TestMistakes:
    def test_all_are_told_before_anything_is_played(self, tmp_path):
        outcome = sweep(
            *("--models", STEADY, "no-such-model", "--scenarios", "carer-change", "--turns", "x"),
            *("--temperatures", "0.5", "warm", "7", "--repeats", "0", "--retry-failed"),
            folder=tmp_path,
        )
        message = outcome.document["error"]["message"]

        assert (outcome.exit_code, outcome.document["end_reason"]) == (2, "usage")
        for part in (
            "'no-such-model'",
            "'carer-change'; did you mean career-change?",
            "--turns is 'x', which is no whole number.",
            "--temperatures is 'warm', which is no number.",
            "--temperatures is 7",
            "--repeats is 0",
            "--retry-failed is given without --resume.",
        ):
            assert part in message
        assert list(tmp_path.iterdir()) == []

    def test_a_sweep_is_kept_somewhere(self):
        outcome = sweep(*GRID)

        assert outcome.exit_code == 2
        assert "give --output-dir or --s3-bucket" in outcome.document["error"]["message"]

    def test_a_value_twice_is_a_mistake(self, tmp_path):
        outcome = sweep("--models", STEADY, STEADY, "--scenarios", "ai-ethics", folder=tmp_path)

        assert "--models names" in outcome.document["error"]["message"]

    def test_a_limit_that_would_hold_nothing_or_two_of_the_same_are_mistakes(self, tmp_path):
        words = (*GRID, "--target-rpm", "60", "--target-tpm", f"{STEADY}=90000")
        judge, twice = "emulator.judge-v1:0=60", ("--target-rpm", "90")
        typo = sweep(*words, "--target-rpm", "emulator.socratic=60", "--dry-run", folder=tmp_path)
        both = sweep(*words, *twice, "--target-rpm", judge, "--dry-run", folder=tmp_path)

        assert (typo.exit_code, both.exit_code) == (2, 2)
        assert typo.document["error"]["message"] == (
            "--target-rpm names 'emulator.socratic', which no cell calls. They call "
            "emulator.judge-v1:0, emulator.lecturer-v1:0, emulator.socratic-v1:0."
        )
        assert both.document["error"]["message"] == (
            "--target-rpm is given more than once for models in general: keep one."
        )

    def test_that_no_model_is_named_is_told_once(self, tmp_path):
        outcome = sweep("--scenarios", "ai-ethics", folder=tmp_path)

        assert outcome.document["error"]["message"] == (
            "No models to test: give --models with one Bedrock model id or more."
        )


class TestBucket:
    """A sweep that only a bucket keeps."""

    @pytest.fixture
    def variables(self, moto_url: str) -> dict[str, str]:
        keys = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
        return environment(AWS_ENDPOINT_URL_S3=moto_url, **keys)

    def test_it_goes_on_from_there(self, client, bucket, variables):
        words = ("sweep", "--offline", *GRID, "--s3-bucket", bucket, "--s3-prefix", "team")
        some = run(*words, "--limit", "3", env=variables)
        keys = _keys(client, bucket)
        rest = run(*words, "--resume", env=variables)

        assert (some.exit_code, some.document["n_missing"]) == (4, 1)
        assert (rest.exit_code, rest.document["n_completed"]) == (0, 4)
        assert rest.document["sweep_id"] == some.document["sweep_id"]
        place = rest.document["s3_artifacts"]["index"]
        assert place == f"s3://{bucket}/team/sweeps/{rest.document['sweep_id']}/cells/"
        assert sum(key.startswith("team/curated/runs/") for key in keys) == 3
        assert set(keys) <= set(_keys(client, bucket))

    def test_a_budget_counts_what_its_cells_under_way_have_cost(self, bucket, variables):
        words = ("sweep", "--offline", *GRID, "--s3-bucket", bucket, "--max-cost-usd", "0.08")
        spent = []
        for more in ((), ("--resume", "--max-connections", "1")):
            message = run(*words, *more, env=variables).document["error"]["message"]
            told = re.search("budget of 0.08 USD.* up to ([0-9.]+) USD", message)
            assert told
            spent.append(float(told[1]))

        assert 0 < spent[0] <= spent[1]

    def test_what_its_index_lacks_is_read_from_the_runs(self, client, bucket, variables):
        words = ("sweep", "--offline", *GRID, "--s3-bucket", bucket)
        first = run(*words, env=variables)
        for key in _keys(client, bucket):
            if "/cells/" in key:
                client.delete_object(Bucket=bucket, Key=key)
        curated_keys = [key for key in _keys(client, bucket) if key.startswith("curated/")]
        again = run(*words, "--resume", env=variables)

        assert again.document["cells"] == first.document["cells"]
        assert len(curated_keys) == 4
        assert any("/cells/" in key for key in _keys(client, bucket))

    def test_one_under_way_goes_on_by_the_call(self, client, bucket, variables):
        words = [*GRID[:-4], "--turns", "25", "--max-connections", "2", "--s3-bucket", bucket]
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "sweep", "--offline", *words],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
        )
        while sum(key.endswith("turn_004.json") for key in _keys(client, bucket)) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        before = {key.split("/")[2] for key in _keys(client, bucket) if key.startswith("raw/")}
        again = run("sweep", "--offline", *words, "--resume", env=variables)
        after = {key.split("/")[2] for key in _keys(client, bucket) if key.startswith("raw/")}

        assert (again.exit_code, again.document["n_completed"]) == (0, 4)
        assert before <= after
        assert len(after) == 4


def _keys(client: Any, bucket: str) -> list[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [row["Key"] for page in pages for row in page.get("Contents", ())]
