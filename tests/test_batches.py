"""Batch inference: golden items and their verdicts as jobs, on the emulator and moto's S3."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import Outcome, account, run
from tests.golden_runs import JUDGE, data_set, model, row

SECOND = "emulator.judge-strict-v1:0"
ROLE = "arn:aws:iam::123456789012:role/batch"
N_ITEMS = 240


class Endpoint:
    """An emulator beside moto's S3, and runs against both."""

    def __init__(self, emulator: Emulator, moto_url: str, bucket: str, folder: Path) -> None:
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

    def golden(self, *words: str, n_items: int = N_ITEMS, jurors: Sequence[str] = (JUDGE, SECOND)) -> Outcome:
        rows = [row(f"item-{number}") for number in range(n_items)]
        dataset = data_set(self.folder / f"{n_items}.jsonl", *rows)
        base = ("--benchmark", "golden", "--model", model("right"), "--dataset", dataset)
        judges = [word for juror in jurors for word in ("--judge-model", juror)]
        return run(*base, *judges, "--seed", "1", *words, env=self.env)

    def operations(self) -> Counter[str]:
        return Counter(request.operation for request in self.emulator.requests)


@pytest.fixture
def endpoint(
    moto_url: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        return Endpoint(emulator, moto_url, bucket, tmp_path)

    yield start
    for emulator in endpoints:
        emulator.__exit__(None, None, None)


def document(outcome: Outcome, exit_code: int = 0) -> Any:
    assert outcome.exit_code == exit_code, outcome.stderr
    return json.loads(outcome.stdout)


BATCH = ("--via", "batch", "--judge-via", "batch")


def test_items_and_their_verdicts_go_through_three_jobs_at_half_the_price(endpoint):
    service = endpoint()

    batch = document(service.golden(*BATCH))

    operations = service.operations()
    assert operations["CreateModelInvocationJob"] == 3
    assert operations["BatchRecord"] == 3 * N_ITEMS
    assert operations["Converse"] + operations["ConverseStream"] == 0
    assert batch["metrics"]["success_rate"] == 1.0
