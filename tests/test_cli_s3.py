"""Runs while S3 is slow, failing, gone, elsewhere or refusing."""

import json
import subprocess
import threading
from typing import Any

import pytest

from tests.command import OFFLINE, assert_valid, begin, daily, environment, printed, run
from tests.fakes import FakeBedrock, Said, Sent, relayed, xml

KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
TURNS = 3
PLAYED = (*OFFLINE, "--turns", str(TURNS), "--seed", "7")
WORDS = (*PLAYED, "--max-attempts", "2")
DOWN = xml(503, "ServiceUnavailable")


def kept(client: Any, bucket: str) -> dict[str, Any]:
    """The artifacts in the bucket, without the journal."""
    rows = client.list_objects_v2(Bucket=bucket).get("Contents", [])
    keys = [row["Key"] for row in rows if not row["Key"].startswith("journal/")]
    return {
        key: json.loads(client.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in keys
    }


def names(run_id: str) -> set[str]:
    parts = [f"{kind}_{n:03d}.json" for kind in ("turn", "judge") for n in range(TURNS)]
    return {f"raw/runs/{run_id}/{name}" for name in (*parts, "closing_verdict.json")}


def start(url: str, bucket: str, *words: str, tries: int = 2) -> subprocess.Popen[bytes]:
    env = environment(AWS_ENDPOINT_URL_S3=url, **KEYS)
    return begin(*PLAYED, "--max-attempts", str(tries), "--s3-bucket", bucket, *words, env=env)


def await_turns(process: subprocess.Popen[bytes]) -> None:
    """The whole dialogue has been played and judged."""
    assert process.stderr
    while not process.stderr.readline()[5:].startswith(f"turn   {TURNS - 1}".encode()):
        assert process.poll() is None


@pytest.mark.parametrize("folder", [True, False], ids=["with a folder", "in memory"])
def test_a_bucket_that_is_gone_during_the_dialogue_gets_all_when_it_is_back(
    client, bucket, moto_url, tmp_path, folder
):
    up = threading.Event()
    with relayed(moto_url, lambda _: None if up.is_set() else DOWN) as s3:
        words = ("--output-dir", str(tmp_path)) if folder else ()
        # The tries after the dialogue are many, for the bucket comes back only then.
        process = start(s3.url, bucket, *words, tries=100)
        await_turns(process)
        assert kept(client, bucket) == {}
        up.set()
        stdout, _ = process.communicate()

    document = printed(stdout)
    assert process.returncode == 0
    run_id = document["run_id"]
    found = kept(client, bucket)
    assert set(found) == {*names(run_id), f"curated/runs/{run_id}.json"}
    if folder:
        files = {p for p in tmp_path.rglob("*.json") if "journal" not in p.name}
        on_disk = {str(p.relative_to(tmp_path)): json.loads(p.read_bytes()) for p in files}
        assert on_disk == found


def broken_off(s3: FakeBedrock) -> Said:
    s3.drop_connections()
    return DOWN


@pytest.mark.parametrize("fault", ["503", "reset", "nobody"])
def test_a_bucket_that_stays_away_is_exit_4_with_a_count(tmp_path, fault):
    with FakeBedrock({"": [DOWN]}) as s3:
        url = s3.url
        if fault == "nobody":
            s3.close()
        if fault == "reset":
            s3.scripts[""] = lambda _: broken_off(s3)
        outcome = run(
            *WORDS,
            *("--s3-bucket", "a-bucket", "--output-dir", str(tmp_path)),
            env=environment(AWS_ENDPOINT_URL_S3=url, **KEYS),
        )
    document = outcome.document

    assert_valid("run", document)
    assert (outcome.exit_code, document["end_reason"]) == (4, "artifacts")
    assert (document["status"], document["n_turns"]) == ("partial", TURNS)
    assert document["error"]["message"].split()[1:4] == ["artifacts", "are", "missing."]
    assert int(document["error"]["message"].split()[0]) >= 2 * TURNS
    assert document["error"]["retryable"] is True
    assert document["s3_artifacts"]["curated"] is None
    on_disk = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")}
    assert names(document["run_id"]) <= on_disk
    assert not any(name.startswith("curated/") for name in on_disk)


def test_without_any_store_that_holds_the_journal_the_document_carries_it(tmp_path):
    with FakeBedrock({"": [DOWN]}) as s3:
        env = environment(AWS_ENDPOINT_URL_S3=s3.url, **KEYS)
        alone = run(*WORDS, "--s3-bucket", "a-bucket", env=env)
        beside = run(*WORDS, "--s3-bucket", "a-bucket", "--output-dir", str(tmp_path), env=env)

    assert (alone.exit_code, beside.exit_code) == (4, 4)
    assert "--resume-from FILE" in alone.document["error"]["hint"]
    run_id = beside.document["run_id"]
    assert f"socratic-runner resume {run_id}" in beside.document["error"]["hint"]
    assert beside.document["journal"] is None
    partial = tmp_path / "partial.json"
    partial.write_bytes(alone.stdout)
    resumed = run("--offline", "--resume-from", str(partial), env=environment())
    assert (resumed.exit_code, resumed.document["n_turns"]) == (0, TURNS)
    assert resumed.document["run_id"] == alone.document["run_id"]


def test_each_write_gets_the_attempts_that_were_asked_for_and_no_more():
    """Whatever the SDK's own settings say: no other retry stands behind ours."""
    with FakeBedrock({"": [DOWN]}) as s3:
        env = environment(AWS_ENDPOINT_URL_S3=s3.url, AWS_MAX_ATTEMPTS="9", **KEYS)
        outcome = run(*WORDS, "--s3-bucket", "a-bucket", env=env)

    assert outcome.exit_code == 4
    puts = [sent.path for sent in s3.sent if sent.method == "PUT" and "/raw/" in sent.path]
    last = [puts.count(path) for path in set(puts) if "judge_002" in path]
    # At most two once the dialogue is over, and perhaps one before.
    assert last
    assert last[0] <= 3


def test_one_write_that_fails_for_good_leaves_no_curated_file(client, bucket, moto_url):
    def refuse(sent: Sent) -> Said | None:
        return xml(403, "AccessDenied") if "turn_001" in sent.path else None

    with relayed(moto_url, refuse) as s3:
        env = environment(AWS_ENDPOINT_URL_S3=s3.url, **KEYS)
        outcome = run(*WORDS, "--s3-bucket", bucket, env=env)
    run_id = outcome.document["run_id"]

    assert (outcome.exit_code, outcome.document["end_reason"]) == (4, "artifacts")
    assert outcome.document["error"]["message"].startswith("1 artifact is missing. ")
    assert f"s3://{bucket}/raw/runs/{run_id}/turn_001.json" in outcome.document["error"]["message"]
    assert set(kept(client, bucket)) == names(run_id) - {f"raw/runs/{run_id}/turn_001.json"}


def test_a_slow_bucket_does_not_slow_the_dialogue(client, bucket, moto_url):
    """No write is answered before the last turn has been judged."""
    dialogue_ended = threading.Event()

    def wait(sent: Sent) -> Said | None:
        if sent.method == "PUT":
            dialogue_ended.wait()
        return None

    with relayed(moto_url, wait) as s3:
        process = start(s3.url, bucket)
        await_turns(process)
        assert kept(client, bucket) == {}
        dialogue_ended.set()
        stdout, _ = process.communicate()

    assert process.returncode == 0
    run_id = printed(stdout)["run_id"]
    assert set(kept(client, bucket)) == {*names(run_id), f"curated/runs/{run_id}.json"}


def test_a_bucket_in_another_region_is_used_and_said(client, bucket, moto_url):
    def elsewhere(sent: Sent) -> Said | None:
        if "/eu-west-1/s3/" in sent.headers["Authorization"]:
            return None
        return xml(301, "PermanentRedirect", x_amz_bucket_region="eu-west-1")

    with relayed(moto_url, elsewhere) as s3:
        env = environment(AWS_ENDPOINT_URL_S3=s3.url, **KEYS)
        outcome = run(*WORDS, "--s3-bucket", bucket, env=env)
    notice = f"The bucket {bucket} is in eu-west-1, not in us-east-1: S3 is asked there."

    assert outcome.exit_code == 0
    assert outcome.document["notices"] == [notice]
    assert notice in outcome.stderr
    assert f"curated/runs/{outcome.document['run_id']}.json" in kept(client, bucket)


WHO = "arn:aws:iam::111122223333:user/teacher"
REFUSALS: dict[str, tuple[Said, str]] = {
    "no access": (
        xml(403, "AccessDenied", f"User: {WHO} is not authorized to perform: s3:PutObject on x"),
        f"Allow {WHO} s3:PutObject on s3://a-bucket/",
    ),
    "no key": (xml(400, "KMS.NotFoundException", "Key 'alias/mine' does not exist"), "alias/mine"),
    "no leave for the key": (
        xml(403, "AccessDenied", f"User: {WHO} is not authorized to perform: kms:GenerateDataKey"),
        f"Allow {WHO} kms:GenerateDataKey on the KMS key alias/mine",
    ),
    "expired credentials": (xml(400, "ExpiredToken"), "The credentials for S3 have expired"),
    "no bucket after all": (xml(404, "NoSuchBucket"), "aws s3 mb s3://a-bucket"),
}


@pytest.mark.parametrize("name", daily(REFUSALS, "no access", "no key"))
def test_a_refusal_is_exit_4_with_a_hint_that_helps(name):
    """The check before the run is denied, so that only the writes find out."""
    said, words = REFUSALS[name]

    def answer(sent: Sent) -> Said:
        return Said(b"", 403) if sent.method == "HEAD" else said

    with FakeBedrock({"": answer}) as s3:
        env = environment(AWS_ENDPOINT_URL_S3=s3.url, **KEYS)
        kms = ("--s3-kms-key-id", "alias/mine")
        outcome = run(*WORDS, "--s3-bucket", "a-bucket", *kms, env=env)

    assert (outcome.exit_code, outcome.document["end_reason"]) == (4, "artifacts")
    assert words in outcome.document["error"]["hint"]
    assert words in outcome.stderr
