"""Stores that lie, lose what they had, or hold what no run wrote: nothing is lost in silence."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from tests.command import Outcome, account, assert_valid, environment, run
from tests.fakes import FakeBedrock, Said, Sent, relayed
from tests.test_resume import TUTOR, WORDS, Service, assert_refused
from tests.test_stored_runs import LATE, STORED

KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
OFFLINE = ("--offline", *WORDS, "--turns", "2", "--seed", "7", "--max-attempts", "2")
HTML = Said(b"<html><body>Welcome! Please log in.</body></html>", content_type="text/html")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


@pytest.fixture(scope="module")
def client(moto_url: str) -> Iterator[Any]:
    session = boto3.Session("AKIATESTKEY", "secret", region_name="us-east-1")
    with closing(session.client("s3", endpoint_url=moto_url)) as client:
        yield client


@pytest.fixture
def bucket(client: Any) -> str:
    name = f"bucket-{uuid4().hex}"
    client.create_bucket(Bucket=name)
    return name


def play(url: str, *words: str) -> Outcome:
    return run(*OFFLINE, *words, env=environment(AWS_ENDPOINT_URL_S3=url, **KEYS))


def assert_unkept(outcome: Outcome) -> None:
    """The run says that its store lacks something, and keeps all of it in the document."""
    document = outcome.document
    assert_valid("run", document)
    assert (outcome.exit_code, document["status"], document["end_reason"]) == (
        4,
        "partial",
        "artifacts",
    )


ANSWERS = {
    "HTML": lambda _: HTML,
    "nothing": lambda _: Said(b""),
    "an empty ETag": lambda _: Said(b"", headers={"ETag": ""}),
    "another checksum": lambda _: Said(
        b"", headers={"ETag": '"a"', "x-amz-checksum-sha256": "A" * 43 + "="}
    ),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_put_counts_only_if_the_answer_shows_it(tmp_path, answer):
    with FakeBedrock({"": ANSWERS[answer]}) as s3:
        outcome = play(s3.url, "--s3-bucket", "a-bucket")
    document = outcome.document

    assert_unkept(outcome)
    assert (document["n_turns"], document["s3_artifacts"]["curated"]) == (2, None)
    assert document["error"]["hint"].startswith("Go on with this document")
    (tmp_path / "cut.json").write_bytes(outcome.stdout)
    again = run("--offline", "--resume-from", str(tmp_path / "cut.json"))
    assert (again.exit_code, again.document["run_id"]) == (0, document["run_id"])


@pytest.mark.parametrize("word", ["resume", "--resume"])
def test_html_is_no_list_of_runs(word):
    """To begin a new run would be to pay for one that is there a second time."""
    with FakeBedrock({"": lambda _: HTML}) as s3:
        env = environment(AWS_ENDPOINT_URL_S3=s3.url, **KEYS)
        words = (*OFFLINE, "--resume") if word == "--resume" else ("resume", "run-1")
        outcome = run(*words, "--s3-bucket", "a-bucket", env=env)

    assert (outcome.exit_code, outcome.document["turns"]) == (4, [])
    assert "does not answer as S3" in outcome.stderr


# --- prefixes ---


def test_a_prefix_may_be_as_long_as_the_keys_of_a_run_leave_room(client, bucket, moto_url):
    prefix = "/".join(["p" * 200] * 5)[:941]
    outcome = play(moto_url, "--s3-bucket", bucket, "--s3-prefix", prefix)
    rows = client.list_objects_v2(Bucket=bucket)["Contents"]

    assert outcome.exit_code == 0, outcome.stderr
    assert max(len(row["Key"]) for row in rows) == 1024


@pytest.mark.parametrize("prefix", ["p" * 942, "é" * 471 + "/a", "p" * 5000], ids=len)
@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--turns", "0")], ids=str)
def test_a_longer_one_is_a_mistake_before_any_call(prefix, more):
    with FakeBedrock() as s3:
        outcome = play(s3.url, "--s3-bucket", "a-bucket", "--s3-prefix", prefix, *more)

    assert_refused(outcome, "The S3 prefix has")
    assert s3.sent == []
    assert more != ("--turns", "0") or "--turns is 0" in outcome.stderr


def test_a_run_is_not_looked_for_below_a_longer_one():
    with FakeBedrock() as s3:
        env = environment(AWS_ENDPOINT_URL_S3=s3.url, **KEYS)
        store = ("--s3-bucket", "a-bucket", "--s3-prefix", "p" * 942)
        outcome = run("resume", "run-1", *store, env=env)

    assert_refused(outcome, "The S3 prefix has")
    assert s3.sent == []


# --- what lies where a run's own files should be ---


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def enormous(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


PLANTED = [fifo, device, enormous]
# Who reads such a thing without a bound ends by one of these.
BOUNDED = (
    "sh",
    "-c",
    'ulimit -v 4000000; exec timeout 120 "$@"',
    "sh",
    sys.executable,
    "-m",
    "cli",
)


def stored_folder(tmp_path: Path, kind: str) -> tuple[Path, str]:
    shutil.copytree(STORED / kind / "folder", tmp_path / "out")
    (journal,) = (tmp_path / "out").glob("journal/runs/*.jsonl")
    return journal, journal.stem


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("how", ["resume", "--resume"])
def test_a_journal_that_is_no_plain_file_is_refused_by_name(service, tmp_path, plant, how):
    service.reset()
    journal, run_id = stored_folder(tmp_path, "cut-folder")
    beginning = journal.read_bytes()
    journal.unlink()
    plant(journal)
    if plant is enormous:
        with journal.open("r+b") as file:
            file.write(beginning)
    store = ("--output-dir", str(tmp_path / "out"))
    words = ("resume", run_id) if how == "resume" else (*WORDS, "--turns", "4", "--resume")
    outcome = run(*words, *store, env=account(service.url, TUTOR), entry=BOUNDED)

    assert str(journal) in outcome.stderr
    if how == "--resume" and plant is not enormous:
        # It may be anybody's: it is passed over, and that is said.
        assert "is passed over: it is no regular file" in outcome.stderr
        assert outcome.exit_code == 0
    else:
        assert_refused(outcome, "it has more than" if plant is enormous else "no regular file")
        assert service.requests == []


@pytest.mark.parametrize("plant", PLANTED)
def test_a_document_that_is_no_plain_file_is_refused_by_name(tmp_path, plant):
    plant(tmp_path / "cut.json")
    outcome = run("--resume-from", str(tmp_path / "cut.json"), entry=BOUNDED)

    assert_refused(outcome, f"{tmp_path}/cut.json cannot be read")


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("name", ["raw/runs/{}/turn_001.json", "curated/runs/{}.json"])
def test_an_artifact_that_is_no_plain_file_is_refused_by_name(service, tmp_path, plant, name):
    service.reset()
    _, run_id = stored_folder(tmp_path, "finished-folder")
    path = tmp_path / "out" / name.format(run_id)
    path.unlink()
    plant(path)
    store = ("--output-dir", str(tmp_path / "out"))
    outcome = run("resume", run_id, *store, env=account(service.url, TUTOR), entry=BOUNDED)

    assert_unkept(outcome)
    assert str(path) in outcome.document["error"]["message"]
    assert service.requests == []


@pytest.mark.parametrize(
    "what", ["listed", "read", pytest.param("endless", marks=pytest.mark.torture)]
)
def test_an_enormous_object_is_refused_by_name(service, client, bucket, moto_url, what):
    """One says so when it is listed, one only when it is read, and one never ends its list."""
    service.reset()
    objects = STORED / "cut-bucket" / "bucket"
    for path in objects.rglob("*"):
        if path.is_file():
            key = str(path.relative_to(objects))
            client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
    (run_id,) = (path.name for path in objects.glob("journal/runs/*"))

    def lie(sent: Sent) -> Said | None:
        if what == "read" and sent.method == "GET" and "/000003.json" in sent.path:
            return Said(b"{", headers={"ETag": '"a"', "Content-Length": str(2**40)})
        if what == "listed" and "list-type" in sent.path:
            row = f"<Contents><Key>journal/runs/{run_id}/000000.json</Key><Size>{2**40}</Size>"
            listed = f"<ListBucketResult><IsTruncated>false</IsTruncated>{row}</Contents>"
            return Said(f"{listed}</ListBucketResult>".encode(), content_type="application/xml")
        if what == "endless" and "list-type" in sent.path:
            rows = "".join(f"<Contents><Key>{uuid4()}</Key><Size>9</Size></Contents>" for _ in "ab")
            more = "<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>"
            listed = f"<ListBucketResult>{more}{rows}</ListBucketResult>"
            return Said(listed.encode(), content_type="application/xml")
        return None

    with relayed(moto_url, lie, headers=LATE) as s3:
        env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=s3.url)
        outcome = run("resume", run_id, "--s3-bucket", bucket, env=env)

    assert outcome.exit_code == (2 if what == "listed" else 4)
    assert f"s3://{bucket}/journal/runs/{run_id}/" in outcome.stderr
    assert "more than" in outcome.stderr
    assert service.requests == []
