"""Stores that lie, lose what they had, or hold what no run wrote: nothing is lost in silence."""

import hashlib
import os
import shutil
import sys
import threading
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.command import Outcome, account, assert_valid, daily, environment, run
from tests.fakes import KEPT, FakeBedrock, Said, Sent, relayed, xml
from tests.resuming import (
    BOTH,
    TUTOR,
    WORDS,
    Service,
    assert_refused,
    cut_short,
    start,
    store_run,
    wait_for_calls,
)

KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}
OFFLINE = ("--offline", *WORDS, "--turns", "2", "--seed", "7", "--max-attempts", "2")
# By the server's clock nobody has renewed any lease for long.
LATE = {"Date": "Sun, 22 Nov 2099 12:00:00 GMT"}
HTML = Said(b"<html><body>Welcome! Please log in.</body></html>", content_type="text/html")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


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


@pytest.mark.parametrize("answer", daily(ANSWERS, "HTML", "another checksum"))
def test_a_put_counts_only_if_the_answer_shows_it(tmp_path, answer):
    with FakeBedrock({"": ANSWERS[answer]}) as s3:
        outcome = play(s3.url, "--s3-bucket", "a-bucket")
    document = outcome.document

    assert_unkept(outcome)
    assert (document["n_turns"], document["s3_artifacts"]["curated"]) == (2, None)
    assert document["error"]["hint"].startswith("Resume from this document")
    (tmp_path / "cut.json").write_bytes(outcome.stdout)
    again = run("--offline", "--resume-from", str(tmp_path / "cut.json"))
    assert (again.exit_code, again.document["run_id"]) == (0, document["run_id"])


def told_of(body: bytes) -> dict[str, bytes]:
    """The checksums that a store may tell; CRC32C cannot be made with what is at hand."""
    hashes = {kind: hashlib.new(kind, body).digest() for kind in ("sha1", "sha256", "md5")}
    return {"crc32": zlib.crc32(body).to_bytes(4), "crc32c": bytes(4), **hashes}


@pytest.mark.parametrize("wrong", ["crc32", "sha1", None])
def test_a_put_counts_if_each_checksum_that_is_told_is_of_its_bytes(wrong):
    def keep(sent: Sent) -> Said:
        if sent.method != "PUT":
            return xml(403, "AccessDenied")
        sums = told_of(sent.raw) | ({wrong: told_of(b"")[wrong]} if wrong else {})
        told = {f"x-amz-checksum-{kind}": b64encode(made).decode() for kind, made in sums.items()}
        return Said(b"", headers={"ETag": '"a"', **told})

    with FakeBedrock({"": keep}) as s3:
        outcome = play(s3.url, "--s3-bucket", "a-bucket")

    if wrong:
        assert_unkept(outcome)
        assert "checksum of other bytes" in outcome.document["error"]["message"]
    else:
        assert (outcome.exit_code, outcome.document["status"]) == (0, "completed"), (
            outcome.document["error"]
        )


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

    assert outcome.exit_code == 0, outcome.document["error"]
    assert max(len(row["Key"]) for row in rows) == 1024


@pytest.mark.parametrize(
    "prefix", daily(["p" * 942, "é" * 471 + "/a", "p" * 5000], first=1), ids=len
)
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


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("how", ["resume", "--resume"])
def test_a_journal_that_is_no_plain_file_is_refused_by_name(service, tmp_path, plant, how):
    out, run_id = store_run(tmp_path, service, complete=False)
    (journal,) = out.glob("journal/runs/*.jsonl")
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
        assert "is skipped: it is not a regular file" in outcome.stderr
        assert outcome.exit_code == 0
    else:
        assert_refused(outcome, "it has more than" if plant is enormous else "not a regular file")
        assert service.requests == []


@pytest.mark.parametrize("plant", daily(PLANTED, device))
def test_a_document_that_is_no_plain_file_is_refused_by_name(tmp_path, plant):
    plant(tmp_path / "cut.json")
    outcome = run("--resume-from", str(tmp_path / "cut.json"), entry=BOUNDED)

    assert_refused(outcome, f"{tmp_path}/cut.json cannot be read")


@pytest.mark.parametrize("plant", daily(PLANTED, fifo))
@pytest.mark.parametrize("name", ["raw/runs/{}/turn_001.json", "curated/runs/{}.json"])
def test_an_artifact_that_is_no_plain_file_is_refused_by_name(service, tmp_path, plant, name):
    out, run_id = store_run(tmp_path, service, complete=True)
    path = out / name.format(run_id)
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
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    run_id = cut_short(service, "--s3-bucket", bucket, env=env)

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


# --- what others take away while a run is under way ---

TURNS = 3
PLAYED = (*WORDS, "--turns", str(TURNS), "--seed", "7", "--no-stream", "--max-attempts", "2")


class Thief:
    """Stands before Bedrock, and takes something away while the last turn is asked for."""

    def __init__(self, service: Service, is_there: Callable[[], bool], take: Callable[[], object]):
        service.reset()
        self.is_there, self.take = is_there, take
        self.n_tutor = 0
        self._relay = relayed(service.url, self._pass)

    def _pass(self, sent: Sent) -> None:
        if sent.model_id != TUTOR:
            return
        self.n_tutor += 1
        if self.n_tutor == TURNS:
            while not self.is_there():
                time.sleep(0.01)
            self.take()

    def rob(self, *words: str, **env: str) -> Outcome:
        with self._relay as bedrock:
            return run(*PLAYED, *words, env=account(bedrock.url, TUTOR, **env))


def reread(service: Service, outcome: Outcome, *words: str, **env: str) -> None:
    """What is stored is the whole run: it is read again without a call, and says the same."""
    service.reset()
    env = account(service.url, TUTOR, **env)
    again = run("resume", outcome.document["run_id"], *words, env=env)
    assert again.stdout == outcome.stdout
    assert service.requests == []


def in_folder(out: Path, kind: str) -> Path:
    patterns = {
        "turn": "raw/runs/*/turn_000.json",
        "verdict": "raw/runs/*/judge_000.json",
        "journal": "journal/runs/*.jsonl",
    }
    return next(iter(out.glob(patterns[kind])), out / "nothing")


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwritten(path: Path, n_bytes: int | None = None) -> None:
    """Garbage in the middle, or all over it, and not a byte more or less than before."""
    content = path.read_bytes()
    n_bytes = n_bytes or len(content)
    start = (len(content) - n_bytes) // 2
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"x" * n_bytes)


def lengthened(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"somebody else's\n")


FOLDER_LOSSES: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "a turn": ("turn", lambda _, path: path.unlink()),
    "a verdict": ("verdict", lambda _, path: path.unlink()),
    "half a turn": ("turn", lambda _, path: cut_off(path)),
    "the journal": ("journal", lambda _, path: path.unlink()),
    "half the journal": ("journal", lambda _, path: cut_off(path)),
    "nothing, but more of the journal": ("journal", lambda _, path: lengthened(path)),
    "four bytes of the journal": ("journal", lambda _, path: overwritten(path, 4)),
    "each byte of a turn": ("turn", lambda _, path: overwritten(path)),
    "all": ("verdict", lambda out, _: shutil.rmtree(out)),
    "its place": ("verdict", lambda out, _: out.rename(out.parent / "elsewhere")),
}


@pytest.mark.parametrize(
    "loss",
    daily(FOLDER_LOSSES, "a turn", "half a turn", "the journal", "each byte of a turn", "all"),
)
def test_what_was_taken_out_of_a_folder_is_written_anew(service, tmp_path, loss):
    kind, take = FOLDER_LOSSES[loss]
    out = tmp_path / "out"
    thief = Thief(
        service, lambda: in_folder(out, kind).exists(), lambda: take(out, in_folder(out, kind))
    )
    outcome = thief.rob("--output-dir", str(out))

    assert_valid("run", outcome.document)
    assert (outcome.exit_code, outcome.document["status"]) == (0, "completed"), outcome.document[
        "error"
    ]
    names = {path.name for path in out.glob("raw/runs/*/*")}
    assert names == {f"{kind}_00{n}.json" for kind in ("turn", "judge") for n in range(TURNS)}
    words = ("was rewritten", "written anew")
    notices = [n for n in outcome.document["notices"] if any(word in n for word in words)]
    assert any(f"{outcome.document['run_id']}.jsonl was" in n for n in notices) == (
        kind == "journal" or loss in ("all", "its place")
    )
    lost = [notice for notice in notices if " artifact" in notice]
    assert bool(lost) == (kind != "journal")
    reread(service, outcome, "--output-dir", str(out))


def test_a_journal_with_another_in_its_place_ends_the_run(service, tmp_path):
    out = tmp_path / "out"

    def replace() -> None:
        path = in_folder(out, "journal")
        path.unlink()
        path.write_text("somebody else's\n")

    thief = Thief(service, lambda: in_folder(out, "journal").exists(), replace)
    outcome = thief.rob("--output-dir", str(out))

    assert_unkept(outcome)
    assert in_folder(out, "journal").read_text() == "somebody else's\n"
    assert list(out.glob("curated/runs/*")) == []
    assert outcome.document["error"]["hint"].startswith("Resume from this document")
    (tmp_path / "cut.json").write_bytes(outcome.stdout)
    service.reset()
    again = run("--resume-from", str(tmp_path / "cut.json"), env=account(service.url, TUTOR))
    calls = again.document["usage"]["total"]["calls"]
    assert (again.exit_code, calls) == (0, 2 * TURNS)
    assert len(service.requests) < 2 * TURNS


def test_a_journal_that_is_gone_is_not_named_as_the_place_to_go_on_from(service, tmp_path):
    """The run is ended by a refusal, and the journal was removed after its last entry."""
    out = tmp_path / "out"
    fault = "access_denied:role=tutor:after=2"
    journal = lambda: in_folder(out, "journal")  # noqa: E731
    thief = Thief(service, lambda: journal().exists(), lambda: journal().unlink())
    service.reset(faults=[fault])
    outcome = thief.rob("--output-dir", str(out))

    assert outcome.exit_code == 3
    kept = journal().exists()
    assert kept == (outcome.document["journal"] is None)


def rows(client: Any, bucket: str) -> dict[str, int]:
    listed = client.list_objects_v2(Bucket=bucket).get("Contents", [])
    return {row["Key"]: row["Size"] for row in listed}


def taken(client: Any, bucket: str, *parts: str) -> list[str]:
    return [key for key in rows(client, bucket) if any(part in key for part in parts)]


BUCKET_LOSSES = {
    "a turn": ["turn_000"],
    "verdicts and turns": ["turn_000", "judge_000", "turn_001"],
    "an entry of the journal": ["000003.json"],
    "the beginning": ["000000.json"],
    "the index": ["journal/identities"],
    "all": [""],
}
LISTING, HEADS = "list-type", "HEAD"


def denied(*kinds: str) -> Callable[[Sent], Said | None]:
    def answer(sent: Sent) -> Said | None:
        is_head = sent.method == "HEAD" and "/raw/" in sent.path
        is_head = is_head or (sent.method == "HEAD" and "/journal/" in sent.path)
        if (HEADS in kinds and is_head) or (LISTING in kinds and "list-type" in sent.path):
            return Said(b"", 403) if sent.method == "HEAD" else xml(403, "AccessDenied")
        return None

    return answer


def steal(client: Any, bucket: str, parts: list[str]) -> tuple[Callable[[], bool], Any]:
    def take() -> None:
        for key in taken(client, bucket, *parts):
            client.delete_object(Bucket=bucket, Key=key)

    return lambda: all(taken(client, bucket, part or "judge_000") for part in parts), take


@pytest.mark.parametrize(
    ("loss", "only"),
    daily(
        product(BUCKET_LOSSES, [None, HEADS]),
        ("an entry of the journal", None),
        ("the index", None),
        ("verdicts and turns", HEADS),
        ("all", HEADS),
    ),
)
def test_what_was_taken_out_of_a_bucket_is_written_anew(
    service, client, bucket, moto_url, loss, only
):
    thief = Thief(service, *steal(client, bucket, BUCKET_LOSSES[loss]))
    deny = denied(*([] if only is None else [LISTING]))
    with relayed(moto_url, deny) as s3:
        outcome = thief.rob("--s3-bucket", bucket, AWS_ENDPOINT_URL_S3=s3.url)

    assert_valid("run", outcome.document)
    assert (outcome.exit_code, outcome.document["status"]) == (0, "completed"), outcome.document[
        "error"
    ]
    names = {key.rpartition("/")[2] for key in rows(client, bucket) if key.startswith("raw/")}
    assert names == {f"{kind}_00{n}.json" for kind in ("turn", "judge") for n in range(TURNS)}
    assert "written anew" in " ".join(outcome.document["notices"])
    reread(service, outcome, "--s3-bucket", bucket, AWS_ENDPOINT_URL_S3=moto_url)
    env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
    found = run(*PLAYED, "--s3-bucket", bucket, "--resume", env=env)
    assert (found.stdout, service.requests) == (outcome.stdout, [])


def test_what_cannot_be_known_is_said_in_the_document(service, client, bucket, moto_url):
    thief = Thief(service, *steal(client, bucket, ["turn_000"]))
    with relayed(moto_url, denied(LISTING, HEADS)) as s3:
        outcome = thief.rob("--s3-bucket", bucket, AWS_ENDPOINT_URL_S3=s3.url)

    assert outcome.exit_code == 0
    (notice,) = outcome.document["notices"]
    assert notice.startswith(f"Whether s3://{bucket}/ still has all")
    assert notice in outcome.stderr


def listed(inner: str) -> Said:
    body = f"<ListBucketResult>{inner}</ListBucketResult>"
    return Said(body.encode(), content_type="application/xml")


ENDLESS = "<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>"
FAILING_LOOKS: dict[str, Callable[[Sent], Said]] = {
    "HTML": lambda _: HTML,
    "500": lambda sent: Said(b"", 500) if sent.method == "HEAD" else xml(500, "InternalError"),
    "endless": lambda _: listed(ENDLESS),
    "cut short": lambda _: listed("<IsTruncated>true</IsTruncated>"),
    "nameless": lambda _: listed("<IsTruncated>false</IsTruncated><Contents></Contents>"),
    "denied, then HTML": lambda sent: HTML if sent.method == "HEAD" else xml(403, "AccessDenied"),
    "denied, then 500": lambda sent: (
        Said(b"", 500) if sent.method == "HEAD" else xml(403, "AccessDenied")
    ),
    "no such bucket": lambda _: xml(404, "NoSuchBucket"),
}


@pytest.mark.parametrize("answer", daily(FAILING_LOOKS, "HTML", "endless", "denied, then 500"))
def test_a_bucket_that_fails_to_tell_what_it_has_is_exit_4(tmp_path, answer):
    """It says that it takes each object, and may have kept none."""

    def say(sent: Sent) -> Said:
        if sent.method == "PUT":
            return KEPT
        is_look = "list-type" in sent.path or (sent.method == "HEAD" and ".json" in sent.path)
        if is_look:
            return FAILING_LOOKS[answer](sent)
        return Said(b"") if sent.method == "HEAD" else xml(404, "NoSuchKey")

    with FakeBedrock({"": say}) as s3:
        outcome = play(s3.url, "--s3-bucket", "a-bucket")
        sent = [*s3.sent]

    assert_unkept(outcome)
    assert outcome.document["s3_artifacts"]["curated"] is None
    assert [one.path for one in sent if "/curated/" in one.path] == []
    assert len(sent) < 200
    assert "could not be told" not in "".join(outcome.document["notices"])
    (tmp_path / "cut.json").write_bytes(outcome.stdout)
    again = run("--offline", "--resume-from", str(tmp_path / "cut.json"))
    assert (again.exit_code, again.document["run_id"]) == (0, outcome.document["run_id"])


@pytest.mark.parametrize("part", ["turn_000", "000003.json"])
def test_what_cannot_be_written_anew_is_exit_4(service, client, bucket, moto_url, tmp_path, part):
    is_taken = threading.Event()

    def deny(sent: Sent) -> Said | None:
        is_it = is_taken.is_set() and sent.method == "PUT" and part in sent.path
        return xml(403, "AccessDenied") if is_it else None

    is_there, take = steal(client, bucket, [part])
    thief = Thief(service, is_there, lambda: (is_taken.set(), take()))
    with relayed(moto_url, deny) as s3:
        outcome = thief.rob("--s3-bucket", bucket, AWS_ENDPOINT_URL_S3=s3.url)

    assert_unkept(outcome)
    assert part in outcome.document["error"]["message"]
    assert taken(client, bucket, "curated/") == []
    if part == "turn_000":
        reread_env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=moto_url)
        run_id = outcome.document["run_id"]
        assert run("resume", run_id, "--s3-bucket", bucket, env=reread_env).exit_code == 0
        return
    (tmp_path / "cut.json").write_bytes(outcome.stdout)
    again = run("--offline", "--resume-from", str(tmp_path / "cut.json"))
    assert (again.exit_code, again.document["run_id"]) == (0, outcome.document["run_id"])


def test_a_complete_run_is_read_again_where_only_its_journal_may_be_read(service, bucket, moto_url):
    def deny(sent: Sent) -> Said | None:
        is_read = sent.method in ("GET", "HEAD") and "list-type" not in sent.path
        is_read = is_read and ("/raw/" in sent.path or "/curated/" in sent.path)
        return Said(b"", 403) if is_read else None

    service.reset()
    with relayed(moto_url, deny) as s3:
        env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=s3.url)
        outcome = run(*PLAYED, "--s3-bucket", bucket, env=env)
        assert (outcome.exit_code, outcome.document["notices"]) == (0, [])
        reread(service, outcome, "--s3-bucket", bucket, AWS_ENDPOINT_URL_S3=s3.url)


# --- a bucket alone, and a process that is killed or cannot write any more ---


def kill_and_go_on(service: Service, client: Any, bucket: str, moto_url: str, calls: int) -> None:
    """Each write takes its time, as those to a bucket do, and is lost with its process."""
    service.reset(latency_ms=150)
    is_killed = threading.Event()

    def slow(sent: Sent) -> Said | None:
        is_killed.wait(0.2 if sent.method == "PUT" else 0)
        return xml(503, "ServiceUnavailable") if is_killed.is_set() else None

    words = (*BOTH, "--turns", "4", "--seed", "3", "--s3-bucket", bucket)
    with relayed(moto_url, slow) as s3:
        process = start(*words, env=account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=s3.url))
        wait_for_calls(service, calls)
        process.kill()
        is_killed.set()
        process.communicate()
    (run_id,) = {key.split("/")[2] for key in taken(client, bucket, "journal/runs/")}
    n_before = len(service.requests)
    service.reset()
    with relayed(moto_url, lambda _: None, headers=LATE) as s3:
        env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=s3.url)
        outcome = run("resume", run_id, "--s3-bucket", bucket, env=env)

    assert outcome.exit_code == 0, outcome.document["error"]
    attempts = outcome.document["usage"]["total"]["attempts"]
    # One may have been noted, and killed before it was sent, in each of the five that call.
    assert 0 <= attempts - n_before - len(service.requests) <= 5


@pytest.mark.parametrize("calls", [1, 5])
def test_no_request_of_a_killed_process_is_missing_from_the_count(
    service, client, bucket, moto_url, calls
):
    kill_and_go_on(service, client, bucket, moto_url, calls)


@pytest.mark.parametrize("calls", range(2, 11))
def test_none_is_missing_wherever_the_kill_falls(service, client, bucket, moto_url, calls):
    kill_and_go_on(service, client, bucket, moto_url, calls)


def test_a_bucket_that_fails_under_way_has_the_document_named_first(
    service, client, bucket, moto_url, tmp_path
):
    service.reset()
    is_down = threading.Event()

    def fail(sent: Sent) -> Said | None:
        if sent.method == "PUT" and "turn_000" in sent.path:
            is_down.set()
        return xml(503, "ServiceUnavailable") if is_down.is_set() else None

    with relayed(moto_url, fail) as s3:
        env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=s3.url)
        outcome = run(*PLAYED, "--s3-bucket", bucket, env=env)

    assert_unkept(outcome)
    assert outcome.document["n_turns"] == TURNS
    assert outcome.document["error"]["hint"].startswith("Resume from this document")
    (tmp_path / "cut.json").write_bytes(outcome.stdout)
    service.reset()
    words = ("--resume-from", str(tmp_path / "cut.json"))
    again = run(*words, env=account(service.url, TUTOR))
    assert (again.exit_code, again.document["n_turns"], service.requests) == (0, TURNS, [])
