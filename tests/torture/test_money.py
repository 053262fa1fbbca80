"""What a sweep may spend: over many processes, killed or not, in a folder and in a bucket."""

import json
import random
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.emulator.simulation import answer
from tests.command import Outcome, account, begin

STEADY, LECTURER, JUDGE = (
    *("emulator.socratic-v1:0", "emulator.lecturer-v1:0"),
    "emulator.judge-v1:0",
)
LATENCY_MS = 20
GRID = (
    *("sweep", "--models", STEADY, LECTURER, "--scenarios", "ai-ethics", "career-change"),
    *("--turns", "4", "--repeats", "3", "--seed", "7", "--judge-model", JUDGE),
    *("--max-tokens", "200", "--max-connections", "4", "--resume"),
)
N_INVOCATIONS = 14
# USD per million tokens of output; input costs nothing, so that the log alone tells the cost.
PRICES = (15.0, 40.0)
BUDGETS = (0.1, 0.25, 0.6)


class Ledger:
    """What the endpoint has answered, priced at what each process was told that it costs."""

    def __init__(self, folder: Path) -> None:
        self._emulator = Emulator(Settings(latency_ms=LATENCY_MS, keep_bodies=True))
        self.url = self._emulator.url
        self.usd = 0.0
        self._n_counted = 0
        self.price_files = [folder / f"prices-{usd:g}.json" for usd in PRICES]
        for usd, path in zip(PRICES, self.price_files, strict=True):
            rates = {"default": {"input": 0, "output": usd}}
            source = {"name": "test", "version": "1", "date": "2026-01-01"}
            models = dict.fromkeys((STEADY, LECTURER, JUDGE), rates)
            path.write_text(json.dumps({"source": source, "models": models}))

    def count(self, price: float) -> None:
        """Add what came in since."""
        records = [*self._emulator.requests]
        for record in records[self._n_counted :]:
            if record.model_id and record.status == 200 and record.body:
                _, tokens = answer(record.model_id, json.loads(record.body))
                self.usd += tokens * price / 1e6
        self._n_counted = len(records)

    def close(self) -> None:
        self._emulator.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path)
    yield ledger
    ledger.close()


def start(
    ledger: Ledger, store: Sequence[str], env: dict[str, str], budget: float, price: int
) -> subprocess.Popen[bytes]:
    words = ("--max-cost-usd", str(budget), "--prices", str(ledger.price_files[price]))
    return begin(*GRID, *words, *store, env=env)


def finish(process: subprocess.Popen[bytes]) -> Outcome:
    stdout, stderr = process.communicate(timeout=120)
    return Outcome(process.returncode, stdout, stderr.decode())


@pytest.fixture(params=["folder", "bucket"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, ledger: Ledger
) -> tuple[list[str], dict[str, str]]:
    """Flags of a store, and the environment in which it is reached."""
    env = account(ledger.url, STEADY, LECTURER)
    if request.param == "folder":
        return ["--output-dir", str(tmp_path / "runs")], env
    bucket = request.getfixturevalue("bucket")
    url = request.getfixturevalue("moto_url")
    return ["--s3-bucket", bucket], {**env, "AWS_ENDPOINT_URL_S3": url}


@pytest.mark.parametrize("budget", BUDGETS)
def test_what_was_spent_never_falls_and_never_exceeds_the_budget(
    ledger: Ledger, place: tuple[list[str], dict[str, str]], budget: float
) -> None:
    store, env = place
    chance = random.Random(int(budget * 100))
    told: list[dict[str, Any]] = []
    for n in range(N_INVOCATIONS):
        price = n % len(PRICES)
        process = start(ledger, store, env, budget, price)
        if n % 3 != 2:
            time.sleep(chance.uniform(0.5, 2.0))
            process.kill()
            process.communicate()
            time.sleep(2 * LATENCY_MS / 1000)
            ledger.count(PRICES[price])
        else:
            outcome = finish(process)
            ledger.count(PRICES[price])
            assert outcome.exit_code in (0, 6), outcome.stderr
            told.append(outcome.document)
            assert ledger.usd <= outcome.document["spent_usd"] + 1e-8
        assert ledger.usd <= budget
    spent = [document["spent_usd"] for document in told]
    assert spent == sorted(spent)
    assert all(usd <= budget + 1e-8 for usd in spent)
    if budget == BUDGETS[-1]:
        assert told[-1]["n_completed"] > 0


def test_two_processes_that_go_on_at_once_share_the_budget(
    ledger: Ledger, place: tuple[list[str], dict[str, str]]
) -> None:
    store, env = place
    first = start(ledger, store, env, 0.25, 0)
    time.sleep(1.5)
    first.kill()
    first.communicate()
    both = [start(ledger, store, env, 0.25, 0) for _ in range(2)]
    outcomes = [finish(process) for process in both]
    again = finish(start(ledger, store, env, 0.25, 0))
    ledger.count(PRICES[0])

    assert ledger.usd <= 0.25
    spent = [outcome.document.get("spent_usd") or 0.0 for outcome in (*outcomes, again)]
    assert max(spent) <= 0.25 + 1e-8
    assert ledger.usd <= spent[-1] + 1e-8
    assert spent[-1] >= max(spent[:-1])


def test_a_full_disk_ends_the_sweep_before_it_spends_what_it_cannot_note(
    ledger: Ledger, tmp_path: Path
) -> None:
    folder, env = tmp_path / "small", account(ledger.url, STEADY, LECTURER)
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)], check=False
    )
    if mounted.returncode:
        pytest.skip("needs to mount a small file system")
    try:
        spent = []
        for n in range(3):
            outcome = finish(start(ledger, ["-o", str(folder)], env, 0.6, 0))
            ledger.count(PRICES[0])
            assert outcome.exit_code == (4 if n == 0 else 2), outcome.stderr
            spent.append(outcome.document.get("spent_usd"))
            if n == 0:
                assert ledger.usd > 0
        [noted] = [json.loads(path.read_bytes()) for path in folder.glob("sweeps/*/spending.json")]
        assert ledger.usd <= sum(noted["spent_usd"].values()) + 1e-8
        assert ledger.usd <= 0.6
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        shutil.rmtree(folder)
    known = [usd for usd in spent if usd is not None]
    assert known == sorted(known)
    assert known == [] or known[-1] >= ledger.usd - 1e-8


@pytest.mark.parametrize("how", ["truncated", "empty", "missing"])
def test_a_damaged_bucket_is_restored_without_a_call(
    ledger: Ledger, client: Any, bucket: str, moto_url: str, how: str
) -> None:
    env = {**account(ledger.url, STEADY, LECTURER), "AWS_ENDPOINT_URL_S3": moto_url}
    store = ["--s3-bucket", bucket]
    whole = finish(start(ledger, store, env, 3, 0))
    ledger.count(PRICES[0])
    keys = [row["Key"] for row in client.list_objects_v2(Bucket=bucket)["Contents"]]
    damaged = [next(k for k in keys if k.startswith(start)) for start in ("curated/", "raw/")]
    bodies = {k: client.get_object(Bucket=bucket, Key=k)["Body"].read() for k in damaged}
    for key, body in bodies.items():
        if how == "missing":
            client.delete_object(Bucket=bucket, Key=key)
        else:
            content = body[: len(body) // 2] if how == "truncated" else b""
            client.put_object(Bucket=bucket, Key=key, Body=content)
    again = finish(start(ledger, store, env, 3, 0))
    ledger.count(PRICES[0])

    assert (whole.exit_code, again.exit_code) == (0, 0)
    told = " ".join(again.document["notices"])
    assert [key for key in damaged if key not in told] == [], told
    assert {k: client.get_object(Bucket=bucket, Key=k)["Body"].read() for k in damaged} == bodies
    assert again.document["runs"] == whole.document["runs"]
    assert again.document["usage"]["calls"] == whole.document["usage"]["calls"]
