"""Batch inference: golden items and their verdicts as jobs, on the emulator and moto's S3."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import COMMAND, Outcome, account, run
from tests.golden_runs import JUDGE, data_set, model, row

SECOND = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ROLE = "arn:aws:iam::123456789012:role/batch"
N_ITEMS = 240
FEW = 120  # enough for a job


class Endpoint:
    """An emulator beside moto's S3, and runs against both."""

    def __init__(
        self, emulator: Emulator, moto_url: str, bucket: str, folder: Path, client: Any
    ) -> None:
        self.client = client
        self.emulator = emulator
        self.bucket = bucket
        self.folder = folder
        self.env = account(
            emulator.url,
            model("right"),
            AWS_ENDPOINT_URL_BEDROCK=emulator.url,
            AWS_ENDPOINT_URL_S3=moto_url,
            BEDROCK_BATCH_ROLE_ARN=ROLE,
            BEDROCK_BATCH_S3=f"s3://{bucket}/jobs",
        )

    def golden(
        self,
        *words: str,
        n_items: int = N_ITEMS,
        jurors: Sequence[str] = (JUDGE, SECOND),
        entry: Sequence[str] = COMMAND,
    ) -> Outcome:
        # The emulator knows the 24 built-in items, two of them with pictures.
        repeats = ("--invocations", str(n_items // 24))
        base = ("--benchmark", "golden", "--model", model("right"), *repeats)
        if "--no-judge" in words:
            jurors = ()
        judges = [word for juror in jurors for word in ("--judge-model", juror)]
        return run(*base, *judges, "--seed", "1", *words, env=self.env, entry=entry)

    def jobs(self) -> list[Any]:
        """The jobs in the order of their submission."""
        keys = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "example"}
        place = {"region_name": "us-east-1", "endpoint_url": self.emulator.url}
        with closing(boto3.Session(**keys).client("bedrock", **place)) as bedrock:
            return list(bedrock.list_model_invocation_jobs()["invocationJobSummaries"])

    def manifest(self, job: Any) -> Any:
        """What the service counted of a job."""
        place = job["outputDataConfig"]["s3OutputDataConfig"]["s3Uri"].partition(self.bucket)[2]
        key = f"{place.strip('/')}/{job['jobArn'].rpartition('/')[2]}/manifest.json.out"
        body = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return json.loads(body)

    def operations(self) -> Counter[str]:
        return Counter(request.operation for request in self.emulator.requests)


@pytest.fixture
def endpoint(
    moto_url: str, bucket: str, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    endpoints = []

    def start(*faults: str) -> Endpoint:
        options = Settings(faults=tuple(map(parse_fault, faults)))
        emulator = Emulator(options)
        emulator.__enter__()
        endpoints.append(emulator)
        return Endpoint(emulator, moto_url, bucket, tmp_path, client)

    yield start
    for emulator in endpoints:
        emulator.__exit__(None, None, None)


def document(outcome: Outcome, exit_code: int = 0) -> Any:
    assert outcome.exit_code == exit_code, outcome.stderr
    return json.loads(outcome.stdout)


def killing(method: str) -> tuple[str, ...]:
    """The command, which dies as it is about to call a method of batch inference."""
    code = (
        "import os, signal, sys\n"
        "from socratic_bench.models.bedrock.batch import BedrockBatches\n"
        f"BedrockBatches.{method} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from cli.__main__ import main\n"
        "sys.exit(main())\n"
    )
    return (sys.executable, "-c", code)


BATCH = ("--via", "batch", "--judge-via", "batch")


FAST = ("--max-concurrency", "64")


def test_items_and_their_verdicts_go_through_three_jobs_at_half_the_price(endpoint):
    service = endpoint()

    batch = document(service.golden(*BATCH))
    operations = service.operations()
    arns = service.jobs()
    now = document(service.golden("--no-prompt-cache", *FAST))

    assert operations["CreateModelInvocationJob"] == 3
    assert operations["BatchRecord"] == 3 * N_ITEMS
    assert operations["Converse"] + operations["ConverseStream"] == 0
    assert batch["metrics"]["success_rate"] == now["metrics"]["success_rate"] == 1.0
    assert [job["status"] for job in arns] == ["Completed"] * 3
    # The tested model gets the same requests either way; a judge's lack its tool.
    assert batch["usage"]["model"]["input_tokens"] == now["usage"]["model"]["input_tokens"]
    assert batch["cost"]["model"]["total_usd"] == pytest.approx(
        now["cost"]["model"]["total_usd"] / 2, abs=1e-6
    )
    # By the endpoint's own log, at half of 3 and 15 USD per million tokens; a tenth more for us.
    usd = 0.0
    for job in arns:
        counts, share = service.manifest(job), 1.1 if job["modelId"] == SECOND else 1.0
        usd += (1.5 * counts["inputTokenCount"] + 7.5 * counts["outputTokenCount"]) * share / 1e6
    assert batch["cost"]["total"]["total_usd"] == pytest.approx(usd, abs=1e-5)


@pytest.mark.parametrize(
    ("fault", "status"),
    [("job_partial", "PartiallyCompleted"), ("job_expired", "Expired"), ("job_stopped", "Stopped")],
)
def test_half_a_job_is_collected_and_the_rest_asked_for_on_demand(endpoint, fault, status):
    service = endpoint(f"{fault}:model=right")

    found = document(service.golden("--via", "batch", "--no-judge", *FAST, n_items=FEW))

    assert service.jobs()[0]["status"] == status
    operations = service.operations()
    assert operations["BatchRecord"] == operations["ConverseStream"] == FEW / 2
    assert found["usage"]["model"]["calls"] == FEW
    assert any(f"ended as {status}: 60 of 120 records" in text for text in found["notices"])


def test_a_failed_job_and_failed_records_are_asked_for_on_demand(endpoint):
    service = endpoint("job_failed:model=right", "validation:model=judge-v1:count=7:op=BatchRecord")

    found = document(service.golden(*BATCH, *FAST, n_items=FEW, jurors=(JUDGE,)))

    operations = service.operations()
    assert [job["status"] for job in service.jobs()] == ["Failed", "PartiallyCompleted"]
    assert operations["BatchRecord"] == FEW
    assert operations["ConverseStream"] == FEW + 7
    assert found["metrics"]["success_rate"] == 1.0


def test_jobs_that_are_not_waited_for_are_collected_by_resuming(endpoint):
    service = endpoint()
    words = (*BATCH, "-o", str(service.folder / "runs"), "--resume")

    first = document(service.golden(*words, "--no-wait", n_items=FEW))
    again = document(service.golden(*words, "--no-wait", n_items=FEW))
    hint = again["error"]["hint"].partition("socratic-runner ")[2]
    last = document(run(*shlex.split(hint), env=service.env))

    assert (first["status"], first["end_reason"]) == ("partial", "batch_pending")
    assert hint.startswith(f"resume {first['run_id']}")
    assert again["run_id"] == first["run_id"] == last["run_id"]
    assert last["status"] == "completed"
    assert service.operations()["BatchRecord"] == 3 * FEW
    assert len(service.jobs()) == 3


@pytest.mark.parametrize("before", ["upload", "submit", "state"])
def test_a_kill_at_any_moment_leaves_one_job(endpoint, before):
    service = endpoint()
    words = ("--via", "batch", "--no-judge", "-o", str(service.folder / "runs"), "--resume")

    killed = service.golden(*words, n_items=FEW, entry=killing(before))
    last = document(service.golden(*words, n_items=FEW))

    assert killed.exit_code == -9
    assert last["status"] == "completed"
    assert len(service.jobs()) == 1
    assert service.operations()["BatchRecord"] == FEW


def test_too_few_records_are_asked_for_on_demand(endpoint):
    service = endpoint()

    found = document(service.golden("--via", "batch", "--no-judge", n_items=24))

    assert service.operations() == {"ConverseStream": 24}
    assert any("needs 100 records, and there are 24" in text for text in found["notices"])


def test_given_responses_are_judged_in_a_batch_and_not_asked_for(endpoint):
    service = endpoint()
    given = {"response": "Paris.", "modelIdentifier": model("right")}
    rows = [row(f"item-{number}", modelResponses=[given]) for number in range(100)]
    dataset = ("--dataset", data_set(service.folder / "given.jsonl", *rows))

    base = ("--benchmark", "golden", "--model", model("right"), "--judge-model", JUDGE)
    found = document(run(*base, *BATCH, *dataset, env=service.env))

    assert found["judge"]["judged_turns"] == 100
    assert [job["modelId"] for job in service.jobs()] == [JUDGE]


def test_a_budget_that_does_not_cover_the_job_submits_none(endpoint):
    service = endpoint()

    found = document(
        service.golden("--via", "batch", "--no-judge", "--max-cost-usd", "0.001"), exit_code=6
    )

    assert found["end_reason"] == "budget"
    assert not service.operations()


def test_auto_takes_a_batch_where_it_is_cheaper(endpoint):
    service = endpoint()

    found = document(service.golden("--via", "auto", "--no-judge", n_items=FEW))

    assert service.operations()["BatchRecord"] == FEW
    assert any("are made in a batch: expected are" in text for text in found["notices"])


def test_a_batch_of_what_depends_on_answers_is_refused(endpoint):
    service = endpoint()

    outcome = run("--via", "batch", "--prompt", "What is force?", env=service.env)

    assert outcome.exit_code == 2
    assert "each call depends on the answers before it" in outcome.stderr
    assert not service.operations()


def test_a_dry_run_prices_both_ways(endpoint):
    service = endpoint()

    found = document(service.golden("--dry-run", "--no-prompt-cache"))

    prices = found["via"]["model"]
    assert prices["batch_usd"] == pytest.approx(prices["now_usd"] / 2, abs=1e-5)
    assert prices["cheaper"] == "batch"
    assert prices["flex_usd"] == prices["batch_usd"]


def sweep(service: Endpoint, *words: str, entry: Sequence[str] = COMMAND) -> Outcome:
    """Two models of golden in a sweep that stores its runs; each has half a job of its own."""
    place = ("-o", str(service.folder / "sweep"), "--resume", "--quiet")
    models = ("--models", model("right"), model("wrong"))
    env = service.env | {"BEDROCK_MODEL_IDS": json.dumps([model("right"), model("wrong")])}
    judge = () if "--no-judge" in words else ("--judge-model", JUDGE)
    base = ("sweep", "--benchmark", "golden", *judge, "--seed", "1")
    return run(*base, *models, *place, *words, env=env, entry=entry)


def test_a_sweep_has_one_job_for_each_model(endpoint):
    service = endpoint()
    words = (*BATCH, "--invocations", "3", "--repeats", "2")

    pending = document(sweep(service, *words, "--no-wait"))
    status = run("sweep", "status", str(service.folder / "sweep"), env=service.env)
    found = document(sweep(service, *words))

    assert (pending["status"], pending["end_reason"]) == ("partial", "batch_pending")
    assert status.stderr.count("pending in a batch job") == 4
    assert [run["is_pending"] for run in json.loads(status.stdout)["unfinished"]] == [True] * 4
    assert found["status"] == "completed"
    jobs = service.jobs()
    assert Counter(job["modelId"] for job in jobs) == {
        model("right"): 1,
        model("wrong"): 1,
        JUDGE: 1,
    }
    assert service.operations()["BatchRecord"] == 2 * 144 + 288


@pytest.mark.parametrize("before", ["upload", "submit", "state"])
def test_a_killed_sweep_goes_on_with_its_jobs(endpoint, before):
    service = endpoint()
    words = ("--via", "batch", "--no-judge", "--invocations", "3", "--repeats", "2")

    killed = sweep(service, *words, entry=killing(before))
    found = document(sweep(service, *words))

    assert killed.exit_code == -9
    assert found["status"] == "completed"
    assert len(service.jobs()) == 2
    assert service.operations()["BatchRecord"] == 2 * 144


def test_a_socratic_sweep_with_auto_stays_on_demand(endpoint):
    service = endpoint()
    place = ("-o", str(service.folder / "sweep"), "--quiet", "--seed", "1")
    auto = ("--via", "auto", "--judge-via", "auto", "--turns", "5", "--repeats", "2")
    words = (
        "sweep",
        "--models",
        model("socratic"),
        "--scenarios",
        "ai-ethics",
        "--judge-model",
        JUDGE,
        *auto,
        *place,
    )
    env = service.env | {"BEDROCK_MODEL_IDS": json.dumps([model("socratic")])}

    found = document(run(*words, env=env))

    assert found["status"] == "completed"
    assert not service.jobs()
    assert service.operations()["ConverseStream"] >= 20


def test_stored_runs_are_judged_by_one_job(endpoint):
    service = endpoint()
    folder = str(service.folder / "sweep")
    axes = ("--models", model("socratic"), "--scenarios", "ai-ethics", "--no-judge")
    env = service.env | {"BEDROCK_MODEL_IDS": json.dumps([model("socratic")])}
    document(run("sweep", *axes, "--turns", "34", "--repeats", "3", "-o", folder, env=env))

    words = ("--judge-model", JUDGE, "--judge-via", "batch", "--quiet")
    judged = document(run("judge", folder, *words, env=service.env))

    assert len(judged["runs"]) == 3
    assert len(service.jobs()) == 1
    assert service.operations()["BatchRecord"] == 3 * 34


def test_verdicts_of_a_dialogue_may_go_by_a_batch(endpoint):
    service = endpoint()
    words = ("--model", model("socratic"), "--judge-model", JUDGE, "--judge-via", "batch")
    env = service.env | {"BEDROCK_MODEL_IDS": json.dumps([model("socratic")])}

    found = document(run(*words, "--seed", "1", "--turns", "3", "--prompt", "Why?", env=env))
    n_calls = sum(found["usage"][role]["calls"] for role in ("tutor", "judge"))

    assert found["judge"]["judged_turns"] == found["n_turns"] == 3
    assert any("needs 100 records" in text for text in found["notices"])
    assert service.operations().total() == n_calls >= 6


def test_what_a_batch_lacks_is_told_before_the_first_call(endpoint):
    service = endpoint()
    env = {k: v for k, v in service.env.items() if "BATCH" not in k}

    base = ("--benchmark", "golden", "--model", model("right"), "--via", "batch")
    bare = run(*base, env=env)
    shard = sweep(service, "--via", "batch", "--shard", "1/2")

    assert bare.exit_code == shard.exit_code == 2
    assert "--batch-role-arn" in bare.stderr
    assert "--batch-s3" in bare.stderr
    assert "--shard is not for --via" in shard.stderr
