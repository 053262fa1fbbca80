"""Engines that play shards: their files keep to the table of exit codes, which is played."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from socratic_bench.errors import ENDINGS, EXIT_GATE
from tests.command import ROOT, account
from tests.engine_runs import (
    AGAIN,
    MODELS,
    NEVER_AGAIN,
    ArrayEngine,
    assert_played_once,
    batch_definition,
    batch_verdict,
    kubernetes_job,
    kubernetes_verdict,
    plan,
    shard_words,
)
from tests.resuming import Service

SCRIPT = ROOT / "deploy" / "slurm" / "sweep.sbatch"
CODES = (*NEVER_AGAIN, *AGAIN)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with closing(Service()) as service:
        yield service


# --- one table ------------------------------------------------------------------------------------


def test_every_exit_code_of_the_command_is_in_the_table():
    codes = {ending.exit_code for ending in ENDINGS.values()} | {EXIT_GATE, 129, 137, 143}

    assert codes == {*CODES}


def test_the_page_has_the_table():
    page = (ROOT / "docs" / "engines.md").read_text()
    never, again = (
        {int(code) for code in re.findall(r"\d+", re.search(pattern, page)[1])}  # type: ignore[index]
        for pattern in (r"\| no \| ([\d, ]+)", r"\| yes \| ([\d, ]+)")
    )

    assert (never, again) == ({*NEVER_AGAIN}, {*AGAIN})


@pytest.mark.parametrize("code", CODES)
def test_kubernetes_and_batch_keep_to_the_table(code):
    expected = "again" if code in AGAIN else "fail" if code else "done"

    assert kubernetes_verdict(kubernetes_job(), code, 1) == expected
    assert batch_verdict(batch_definition(), code, 1) == expected


def test_attempts_are_bounded_alike():
    for code in AGAIN:
        assert [kubernetes_verdict(kubernetes_job(), code, n) for n in (4, 5)] == ["again", "fail"]
        assert [batch_verdict(batch_definition(), code, n) for n in (4, 5)] == ["again", "fail"]


def test_the_last_rule_of_batch_is_exit_on_anything():
    rules = batch_definition()["retryStrategy"]["evaluateOnExit"]

    assert len(rules) <= 5
    assert rules[-1] == {"onReason": "*", "action": "EXIT"}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("n_restarts", [0, 3, 4])
def test_slurm_keeps_to_the_table(code, n_restarts, tmp_path):
    """The script with a command that ends so, and Slurm's requeue written down."""
    (tmp_path / "scontrol").write_text('#!/bin/sh\necho "$@" >> requeued\n')
    (tmp_path / "scontrol").chmod(0o755)
    variables = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "RUNNER": "runner",
        "SLURM_JOB_NAME": "s",
        "SLURM_ARRAY_JOB_ID": "7",
        "SLURM_ARRAY_TASK_ID": "2",
        "SLURM_RESTART_COUNT": str(n_restarts),
    }
    (tmp_path / "runner").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "runner").chmod(0o755)
    ended = subprocess.run(["bash", str(SCRIPT)], cwd=tmp_path, env=variables, check=False)
    requeued = tmp_path / "requeued"
    is_requeued = code in AGAIN and n_restarts < 4

    assert ended.returncode == code
    assert requeued.exists() == is_requeued
    assert not is_requeued or requeued.read_text() == "requeue 7_2\n"


# --- played ---------------------------------------------------------------------------------------


def test_an_indexed_job_plays_every_run_once_although_pods_are_killed(service, tmp_path):
    spec = kubernetes_job()
    words = spec["template"]["spec"]["containers"][0]["args"]
    play(service, tmp_path, "JOB_COMPLETION_INDEX", words, lambda *a: kubernetes_verdict(spec, *a))


def test_an_array_of_batch_plays_every_run_once_although_children_are_killed(service, tmp_path):
    definition = batch_definition()
    job = json.loads((ROOT / "deploy" / "aws-batch" / "array-job.json").read_text())
    command = job["containerOverrides"]["command"]
    at = command.index("--shard")
    words = [*command[:at], "=".join(command[at : at + 2]), *command[at + 2 :]]
    play(
        service,
        tmp_path,
        "AWS_BATCH_JOB_ARRAY_INDEX",
        words,
        lambda *a: batch_verdict(definition, *a),
    )


def play(service: Service, tmp_path: Path, variable, words, judge) -> None:
    service.reset(latency_ms=150)
    path, out = plan(tmp_path, scenarios=["ai-ethics"], repeats=3), tmp_path / "out"
    engine = ArrayEngine(
        variable=variable,
        judge=judge,
        words=shard_words(words, path, out, count=3),
        env=account(service.url, *MODELS),
        count=3,
        at_once=3,
    )
    engine.play(n_kills=2, seed=3, every_s=1.0)

    assert engine.failed == []
    assert sum(map(len, engine.ended.values())) > 3
    assert all(seconds < 5 for seconds in engine.terminated_s)
    assert_played_once(service, path, out, n_cells=6)


# --- the AWS commands of the page, as moto answers them -------------------------------------------


def test_the_aws_commands_of_the_page_are_accepted(monkeypatch):
    """All but the invocation of the function, which moto would run in a container."""
    from moto import mock_aws

    page = (ROOT / "docs" / "engines.md").read_text().replace("\\\n", " ")
    commands = [shlex.split(line) for line in re.findall(r"^aws .*$", page, re.MULTILINE)]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.chdir(ROOT)
    with mock_aws(config={"batch": {"use_docker": False}, "lambda": {"use_docker": False}}):
        session = botocore.session.get_session()
        queue = _make_queue(session)
        session.create_client("s3").create_bucket(Bucket="BUCKET")
        played = []
        for _, service, operation, *words in commands:
            if service in ("lambda", "cloudformation"):
                continue
            options = dict(zip(words[::2], words[1::2], strict=True))
            parameters = {_parameter(name): _value(value) for name, value in options.items()}
            given = parameters.pop("CliInputJson", None)
            parameters = json.loads(given) if given else parameters
            if "jobQueue" in parameters:
                parameters["jobQueue"] = queue
            client = session.create_client(service.removesuffix("api"))
            played.append(operation)
            getattr(client, operation.replace("-", "_"))(**parameters)
        jobs = session.create_client("batch").list_jobs(jobQueue=queue)["jobSummaryList"]

    assert played == [
        *("create-role", "put-role-policy", "put-bucket-policy"),
        *("register-job-definition", "submit-job"),
    ]
    assert len(jobs) == 1 + 40


def test_the_numbers_of_shards_agree_in_each_file():
    job = json.loads((ROOT / "deploy" / "aws-batch" / "array-job.json").read_text())
    command = job["containerOverrides"]["command"]
    spec = kubernetes_job()
    args = spec["template"]["spec"]["containers"][0]["args"]

    assert command[command.index("--shard") + 1] == f"auto/{job['arrayProperties']['size']}"
    assert f"--shard=auto/{spec['completions']}" in args
    assert f"--shards-at-once={spec['parallelism']}" in args


def _make_queue(session: Any) -> str:
    """A queue as an account has it, without machines."""
    iam, ec2, batch = map(session.create_client, ("iam", "ec2", "batch"))
    role = iam.create_role(RoleName="batch", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    network = ec2.describe_subnets()["Subnets"][0]
    groups = ec2.describe_security_groups()["SecurityGroups"]
    environment = batch.create_compute_environment(
        computeEnvironmentName="sweeps",
        type="MANAGED",
        state="ENABLED",
        serviceRole=role,
        computeResources={
            "type": "FARGATE",
            "maxvCpus": 20,
            "subnets": [network["SubnetId"]],
            "securityGroupIds": [groups[0]["GroupId"]],
        },
    )
    return str(
        batch.create_job_queue(
            jobQueueName="sweeps",
            state="ENABLED",
            priority=1,
            computeEnvironmentOrder=[
                {"order": 1, "computeEnvironment": environment["computeEnvironmentArn"]}
            ],
        )["jobQueueArn"]
    )


def _parameter(flag: str) -> str:
    """The SDK's name of a flag of the AWS command."""
    return "".join(word.capitalize() for word in flag.removeprefix("--").split("-"))


def _value(text: str) -> str:
    path = text.removeprefix("file://")
    return text if path == text else (ROOT / path).read_text()
