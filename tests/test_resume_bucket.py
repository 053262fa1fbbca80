"""A run that only a bucket knows of goes on from there, in one process at a time."""

import json
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import boto3
import pytest

from tests.command import account, assert_valid, daily, run
from tests.resuming import (
    BOTH,
    TUTOR,
    WORDS,
    Service,
    assert_refused,
    bodies,
    comparable,
    cut_short,
    n_answered,
    start,
    wait_for_calls,
)


@pytest.fixture
def service():
    service = Service()
    yield service
    service.close()


@contextmanager
def s3_of(moto_url: str) -> Iterator[Any]:
    client = boto3.client(
        "s3",
        endpoint_url=moto_url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    yield client
    client.close()


@pytest.fixture
def bucket(moto_url):
    """An empty bucket of moto's server, and its objects' keys."""
    name = f"bucket-{uuid4().hex}"
    with s3_of(moto_url) as client:
        client.create_bucket(Bucket=name)
        yield name, lambda: [row["Key"] for row in client.list_objects_v2(Bucket=name)["Contents"]]


def test_attempts_are_at_least_so_many_once_the_folder_is_lost(service, bucket, moto_url, tmp_path):
    """The folder alone noted what was under way; with a budget the bucket does, too."""
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    for budget in ((), ("--max-cost-usd", "5")):
        stores = ("--s3-bucket", bucket[0], "--output-dir", str(tmp_path / str(len(budget))))
        run_id = cut_short(service, *stores, *budget, env=env)
        resumed = run("resume", run_id, "--s3-bucket", bucket[0], *budget, env=env)
        told = [text for text in resumed.document["notices"] if text.startswith("At least so many")]

        assert resumed.exit_code == 0
        assert len(told) == (0 if budget else 1)


def entries_of(moto_url: str, name: str) -> list[dict[str, Any]]:
    """Those of the one journal in the bucket."""
    with s3_of(moto_url) as client:
        rows = client.list_objects_v2(Bucket=name).get("Contents", [])
        places = [
            row["Key"] for row in rows if re.search(r"/journal/runs/.*/\d+\.json$", row["Key"])
        ]
        bodies = [client.get_object(Bucket=name, Key=key)["Body"].read() for key in places]
    return [json.loads(body)["entry"] for body in bodies]


def cut(service: Service, env: dict[str, str], *words: str, calls: int, number: int) -> bytes:
    """Start a run, end it by a signal after some calls, and return what it printed."""
    service.reset(latency_ms=40)
    process = start(*words, env=env)
    wait_for_calls(service, calls)
    process.send_signal(number)
    printed, _ = process.communicate()
    return printed


@pytest.mark.parametrize("how", daily(["resume", "--resume"], first=1))
def test_an_interrupted_run_goes_on_from_the_bucket(service, bucket, moto_url, how):
    name, keys = bucket
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    words = (*BOTH, "--turns", "5", "--seed", "3")
    whole = run(*words, env=env).document
    expected = bodies(service)
    store = ("--s3-bucket", name, "--s3-prefix", "team/a")
    service.reset(faults=["hang:role=tutor:after=3:ms=600000"])
    process = start(*words, *store, env=env)
    wait_for_calls(service, 10)  # the last is never answered
    while n_answered(entries_of(moto_url, name)) < 9:  # three turns, and the student's next words
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    (run_id,) = {key.split("/")[4] for key in keys() if "/journal/runs/" in key}
    service.reset()
    again = ("resume", run_id, *store) if how == "resume" else (*words, *store, "--resume")
    outcome = run(*again, env=env)

    assert (outcome.exit_code, outcome.document["run_id"]) == (0, run_id)
    assert_valid("run", outcome.document)
    assert comparable(outcome.document) == comparable(whole)
    assert bodies(service).total() == expected.total() - 9
    n_files = Counter(key.split("/")[2] for key in keys())
    # Five turns, five verdicts, and the closing one.
    assert (n_files["raw"], n_files["curated"]) == (11, 1)
    service.reset()
    assert run(*again, env=env).stdout == outcome.stdout
    assert service.requests == []


def test_folder_and_bucket_know_the_same_run(service, bucket, moto_url, tmp_path):
    """What one of them lacks, it gets from the other."""
    name, keys = bucket
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    words = (*WORDS, "--turns", "3", "--seed", "3")
    folder, there = ("--output-dir", str(tmp_path)), ("--s3-bucket", name)
    cut(service, env, *words, *folder, calls=3, number=signal.SIGKILL)
    service.reset()
    whole = run(*words, *folder, *there, "--resume", env=env)
    assert whole.exit_code == 0
    assert len([key for key in keys() if key.startswith("raw/")]) == 6
    service.reset()
    alone = run(*words, *there, "--resume", env=env)

    assert comparable(alone.document) == comparable(whole.document)
    assert alone.document["run_id"] == whole.document["run_id"]
    assert service.requests == []


def test_a_complete_run_whose_curated_file_is_gone_is_delivered_again(service, bucket, moto_url):
    name, keys = bucket
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    words = (*WORDS, "--turns", "2", "--s3-bucket", name, "--resume")
    first = run(*words, env=env)
    before = keys()
    with s3_of(moto_url) as client:
        for key in before:
            if key.startswith(("curated/", "raw/")):
                client.delete_object(Bucket=name, Key=key)
    service.reset()
    second = run(*words, env=env)

    assert second.stdout == first.stdout
    assert set(before) <= set(keys())
    assert service.requests == []


def test_a_run_that_goes_on_elsewhere_is_refused(service, bucket, moto_url):
    name, keys = bucket
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    words = (*WORDS, "--turns", "9", "--s3-bucket", name, "--resume")
    service.reset(faults=["hang:role=tutor:after=1:ms=600000"])
    process = start(*words, env=env)
    wait_for_calls(service, 3)
    while not any(key.endswith("000002.json") for key in keys()):
        time.sleep(0.1)
    outcome = run(*words, env=env)
    process.send_signal(signal.SIGINT)
    process.communicate()

    assert_refused(outcome, f"process {process.pid}")


def test_what_a_bucket_does_not_hold_is_said(service, bucket, moto_url):
    name, _ = bucket
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    run_id = "run-01K9ZN5V2E3T4R5Y6U7J8K9M0N"
    outcome = run("resume", run_id, "--s3-bucket", name, env=env)

    assert_refused(outcome, f"There is no run {run_id} in s3://{name}/")


def test_a_bucket_that_is_not_there_is_said(service, moto_url):
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    outcome = run("resume", "run-1", "--s3-bucket", "no-such-bucket-here", env=env)

    assert_refused(outcome, "no-such-bucket-here")


def test_what_was_encrypted_with_a_key_stays_so(service, bucket, moto_url):
    name, keys = bucket
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    key_id = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    words = (*WORDS, "--turns", "3", "--s3-bucket", name, "--s3-kms-key-id", key_id)
    service.reset(faults=["access_denied:role=tutor:after=1"])
    broken = run(*words, env=env)
    assert f"--s3-kms-key-id {key_id}" in broken.stderr
    service.reset()
    again = run("resume", broken.document["run_id"], "--s3-bucket", name, env=env)

    assert again.exit_code == 0
    with s3_of(moto_url) as client:
        used = {client.head_object(Bucket=name, Key=key).get("SSEKMSKeyId") for key in keys()}
    assert used == {key_id}
