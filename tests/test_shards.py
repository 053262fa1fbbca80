"""Shards of a sweep: which runs each one plays, its part of the limits, and all together."""

import fcntl
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from werkzeug.serving import make_server

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.errors import UsageError
from socratic_bench.studies.sweep.shards import ENGINES, Shard, ShardWord
from tests.command import Outcome, account, begin, environment, run
from tests.resuming import Service

MODELS = ("emulator.socratic-v1:0", "emulator.lecturer-v1:0")
WORDS = (
    *("sweep", "--models", *MODELS, "--scenarios", "ai-ethics", "career-change"),
    *("--turns", "2", "--seed", "7", "--judge-model", "emulator.judge-v1:0"),
    *("--no-prompt-cache", "--quiet"),
)
TWICE = ("--repeats", "2")
N_CELLS = 8
# What differs between processes that play the same, and between stores.
APART = ("sweep_id", "runs", "timestamps", "pace", "output_artifacts", "s3_artifacts")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with closing(Service()) as service:
        yield service


def sweep(service: Service, folder: Path, *words: str) -> Outcome:
    return run(*WORDS, *TWICE, *words, "-o", str(folder), env=account(service.url, *MODELS))


def figures(document: Mapping[str, Any]) -> dict[str, Any]:
    runs = [{**cell, "run_id": None} for cell in document["runs"]]
    return {**{k: v for k, v in document.items() if k not in APART}, "runs": runs}


# --- which shard ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "variables", "shard"),
    [
        ("0/1", {}, Shard(0, 1)),
        ("3/4", {"JOB_COMPLETION_INDEX": "1"}, Shard(3, 4)),
        ("auto/4", {"AWS_BATCH_JOB_ARRAY_INDEX": "3"}, Shard(3, 4)),
        ("auto/4", {"JOB_COMPLETION_INDEX": "0"}, Shard(0, 4)),
        ("auto/4", {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "1"}, Shard(2, 4)),
        (
            "auto",
            {
                "SLURM_ARRAY_TASK_ID": "2",
                "SLURM_ARRAY_TASK_COUNT": "3",
                "SLURM_ARRAY_TASK_MIN": "0",
            },
            Shard(2, 3),
        ),
    ],
)
def test_a_shard_is_given_or_is_that_of_the_engine(word, variables, shard):
    parsed = ShardWord.parse(word)

    assert parsed
    assert parsed.resolve(variables) == shard


@pytest.mark.parametrize("word", ["", "1", "4/4", "-1/4", "0/0", "a/4", "auto/0", "auto/x", "1/"])
def test_no_other_word_is_a_shard(word):
    assert ShardWord.parse(word) is None


@pytest.mark.parametrize(
    ("word", "variables", "message"),
    [
        ("auto", {}, "none of AWS_BATCH_JOB_ARRAY_INDEX, JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK"),
        ("auto", {"JOB_COMPLETION_INDEX": "1"}, "the number of shards is unknown"),
        (
            "auto",
            {
                "SLURM_ARRAY_TASK_ID": "3",
                "SLURM_ARRAY_TASK_COUNT": "2",
                "SLURM_ARRAY_TASK_MIN": "3",
            },
            "Tasks do not begin at 0",
        ),
        ("auto/4", {"JOB_COMPLETION_INDEX": "4"}, "is '4', but must be 0 to 3"),
    ],
)
def test_a_shard_that_no_engine_tells_is_refused(word, variables, message):
    parsed = ShardWord.parse(word)

    assert parsed
    with pytest.raises(UsageError) as refused:
        parsed.resolve(variables)
    assert message in refused.value.message


def test_the_variables_of_an_engine_reach_the_command(tmp_path):
    words = ("sweep", "--offline", "--models", *MODELS, "--scenarios", "ai-ethics", "--turns", "1")
    for index in (0, 1):
        env = environment(**{ENGINES[1].index: str(index)})
        outcome = run(*words, "--shard", "auto/2", "--seed", "1", "-o", str(tmp_path), env=env)

        assert outcome.exit_code == 0, outcome.stderr
        assert [cell["axes"]["model"] for cell in outcome.document["runs"]] == [MODELS[index]]
        assert outcome.document["shard"]["index"] == index


# --- its part of the limits -----------------------------------------------------------------------


def test_a_shard_gets_its_part_of_every_limit(service, tmp_path):
    service.reset()
    outcome = sweep(
        service,
        tmp_path,
        *("--shard", "1/3", "--shards-at-once", "2", "--max-connections", "9"),
        *("--target-rpm", "1001", f"{MODELS[1]}=5000", "--target-tpm", "900001"),
        *("--max-cost-usd", "8"),
    )

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.document["shard"] == {
        "index": 1,
        "count": 3,
        "at_once": 2,
        "n_runs_of_sweep": N_CELLS,
        "max_connections": 4,
        "target_rpm": {"*": 500, MODELS[1]: 2500},
        "target_tpm": {"*": 450000},
        "max_cost_usd": 3.0,
    }
    assert outcome.document["n_runs"] == 3
    assert {row["target_rpm"] for row in outcome.document["pace"]} == {500, 2500}


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--target-rpm", "3"), ("--target-tpm", "3"), ("--max-connections", "3")],
)
def test_a_limit_that_cannot_be_divided_is_refused(flag, value, service, tmp_path):
    outcome = sweep(service, tmp_path, "--shard", "0/4", flag, value)

    assert outcome.exit_code == 2
    assert f"{flag} of 3 cannot be divided among 4 shards" in outcome.stderr


def test_a_part_of_the_budget_that_pays_for_no_run_is_refused_before_any_call(service, tmp_path):
    service.reset()
    outcome = sweep(service, tmp_path, "--shard", "0/4", "--max-cost-usd", "0.02")

    assert (outcome.exit_code, outcome.document["end_reason"]) == (6, "budget")
    assert "pays for 0 of 2 runs" in outcome.stderr
    assert service.requests == []


def test_shards_together_spend_no_more_than_the_budget(service, tmp_path):
    service.reset()
    limit_usd = 0.36  # a request of the judge could cost 0.12
    shards = [
        sweep(service, tmp_path, "--shard", f"{i}/2", "--max-cost-usd", str(limit_usd)).document
        for i in (0, 1, 0)  # the first one once more: what it had counts
    ]
    collected = run("sweep", "collect", str(tmp_path)).document

    assert [shard["end_reason"] for shard in shards] == ["budget"] * 3
    assert 0 < shards[0]["spent_usd"] <= shards[2]["spent_usd"] <= limit_usd / 2
    assert collected["cost_usd"] <= collected["spent_usd"] <= limit_usd
    assert 0 < collected["n_completed"] < N_CELLS


# --- together -------------------------------------------------------------------------------------


def test_shards_together_are_what_one_process_plays(service, tmp_path):
    service.reset()
    whole = sweep(service, tmp_path / "whole", "--fail-under", "overall_score=9").document
    env = account(service.url, *MODELS)
    words = (*WORDS, *TWICE, "--fail-under", "overall_score=9", "-o", str(tmp_path / "parts"))
    processes = [begin(*words, "--shard", f"{i}/3", env=env) for i in range(3)]
    outputs = [process.communicate() for process in processes]
    again = [
        run("sweep", "collect", str(tmp_path / name), "--html", str(tmp_path / f"{name}.html"))
        for name in ("whole", "parts")
    ]

    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert [outcome.exit_code for outcome in again] == [5, 5]
    assert [figures(outcome.document) for outcome in again] == [figures(whole)] * 2
    assert all((tmp_path / f"{name}.html").stat().st_size for name in ("whole", "parts"))
    assert len({*(tmp_path / "parts" / "sweeps").glob("sweep-*")}) == 1


def test_a_sweep_that_is_not_whole_says_what_is_missing(service, tmp_path):
    service.reset(faults=("access_denied:role=tutor:model=lecturer",))
    shard = sweep(service, tmp_path, "--shard", "0/2", "--max-attempts", "1")
    status = run("sweep", "status", str(tmp_path))
    collected = run("sweep", "collect", str(tmp_path))

    counts = {
        key: status.document[f"n_{key}"]
        for key in ("runs", "completed", "running", "failed", "missing")
    }
    n_failed = shard.document["n_failed"]
    assert 0 < n_failed < 4
    assert counts == {
        "runs": N_CELLS,
        "completed": 4 - n_failed,
        "running": 0,
        "failed": n_failed,
        "missing": 4,
    }
    assert (status.exit_code, collected.exit_code) == (4, 4)
    assert [run["repeat"] for run in status.document["missing"]] == [1, 1, 2, 2]
    assert len(status.document["failed"]) == n_failed
    assert (collected.document["n_completed"], collected.document["n_missing"]) == (
        4 - n_failed,
        4,
    )
    assert collected.document["error"]["code"] == "missing_runs"

    service.reset()
    whole = sweep(service, tmp_path, "--resume", "--retry-failed")
    assert (whole.exit_code, whole.document["n_completed"]) == (0, N_CELLS)
    assert run("sweep", "status", str(tmp_path)).exit_code == 0


def test_a_run_that_a_living_process_plays_is_left_to_it(service, tmp_path):
    service.reset(faults=("hang:role=judge:ms=600000",))
    late = sweep(service, tmp_path, "--shard", "0/2", "--max-connections", "4", "--deadline", "1")
    assert (late.exit_code, late.document["end_reason"]) == (7, "deadline")
    journal = min((tmp_path / "journal" / "runs").glob("*.jsonl"))
    service.reset()
    with journal.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = journal.read_bytes()
        status = run("sweep", "status", str(tmp_path)).document
        held = sweep(service, tmp_path, "--shard", "0/2", "--retry-failed")

        assert journal.read_bytes() == before
        assert [u["run_id"] for u in status["unfinished"] if u["is_running"]] == [journal.stem]
        assert (held.exit_code, held.document["n_completed"]) == (4, 3)
    again = sweep(service, tmp_path, "--shard", "0/2", "--retry-failed")
    assert (again.exit_code, again.document["n_completed"]) == (0, 4)


# --- one bucket, and one quota --------------------------------------------------------------------


@pytest.fixture
def s3_url() -> Iterator[str]:
    """S3 as moto plays it, one request at a time: by itself it checks a condition and then puts."""
    from moto.server import DomainDispatcherApplication, create_backend_app

    application, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def one_at_a_time(*request: Any) -> Any:
        with lock:
            return [*application(*request)]

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_processes_of_one_shard_share_a_bucket_and_play_every_run_once(service, s3_url):
    """Two processes of the same shard race for each run."""
    service.reset(latency_ms=200)
    env = account(service.url, *MODELS, AWS_ENDPOINT_URL_S3=s3_url, RUNNER_S3_BUCKET="sweeps")
    s3 = botocore.session.get_session().create_client(
        "s3",
        endpoint_url=s3_url,
        region_name="us-east-1",
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )
    s3.create_bucket(Bucket="sweeps")
    words = (*WORDS, "--shard", "0/1")
    processes = [begin(*words, env=env) for _ in range(2)]
    outputs = [process.communicate() for process in processes]
    last = run(*words, env=env)
    keys = [entry["Key"] for page in _pages(s3) for entry in page.get("Contents", ())]
    answered = Counter(
        (key.split("/")[2], json.dumps(entry["key"]))
        for key in keys
        if key.startswith("journal/runs/") and not key.endswith("lease.json")
        for entry in [json.loads(s3.get_object(Bucket="sweeps", Key=key)["Body"].read())["entry"]]
        if entry["kind"] == "answered"
    )
    s3.close()

    assert {process.returncode for process in processes} <= {0, 4}, outputs
    assert (last.exit_code, last.document["n_completed"]) == (0, 4), last.stderr
    assert len({key for key in keys if key.startswith("sweeps/") and "sweep.json" in key}) == 1
    assert len([key for key in keys if key.startswith("curated/runs/")]) == 4
    assert {*answered.values()} == {1}


def _pages(s3: Any) -> Iterator[Any]:
    yield from s3.get_paginator("list_objects_v2").paginate(Bucket="sweeps")


@pytest.mark.torture
def test_three_processes_share_a_quota_that_nobody_knows(tmp_path):
    """At most 3 % of the requests are refused."""
    with Emulator(Settings(latency_ms=300, requests_per_minute=1200)) as emulator:
        env = account(emulator.url, MODELS[0])
        words = (
            *("sweep", "--models", MODELS[0], "--scenarios", "ai-ethics", "career-change"),
            *("--repeats", "96", "--turns", "10", "--seed", "7", "--quiet", "-o", str(tmp_path)),
            *("--judge-model", "emulator.judge-v1:0", "--max-connections", "192"),
        )
        processes = [begin(*words, "--shard", f"{i}/3", env=env) for i in range(3)]
        outputs = [process.communicate() for process in processes]
        requests = [r for r in emulator.requests if r.operation.startswith("Converse")]
    refused = sum(request.status == 429 for request in requests)

    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert len(requests) > 1200
    assert refused / len(requests) <= 0.03
