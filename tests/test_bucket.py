"""What S3 answers, and what a run makes of it: hints, regions, keys, checksums, credentials."""

import base64
import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench.errors import ArtifactError, StoreOutageError
from socratic_bench.storage.s3 import S3Store
from tests.fakes import KEPT, PATIENCE_S, FakeBedrock, Said, Sent, xml

KEY = "raw/runs/run-1/turn_000.json"
WHO = "arn:aws:sts::111122223333:assumed-role/Runner/i-0abc"
KMS = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
NOT_ALLOWED = f"User: {WHO} is not authorized to perform: {{}} on resource: {{}} because no policy"


@pytest.fixture
def s3(keys: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBedrock]:
    with FakeBedrock({"": [KEPT]}) as fake:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", fake.url)
        yield fake


@pytest.fixture
def store(s3: FakeBedrock) -> S3Store:
    return S3Store("bucket", prefix="", region="us-east-1", kms_key_id=KMS)


def failure(store: S3Store) -> ArtifactError:
    with pytest.raises(ArtifactError) as failed:
        store.put(KEY, b"{}")
    return failed.value


HINTS: dict[str, tuple[Said, list[str]]] = {
    "no bucket": (xml(404, "NoSuchBucket"), ["aws s3 mb s3://bucket"]),
    "denied": (
        xml(403, "AccessDenied"),
        ["s3:PutObject", f"s3://bucket/{KEY}", "credentials in use"],
    ),
    "denied to somebody": (
        xml(403, "AccessDenied", NOT_ALLOWED.format("s3:PutObject", "arn:aws:s3:::bucket/x")),
        [f"Allow {WHO} s3:PutObject on s3://bucket/{KEY}."],
    ),
    "key denied": (
        xml(403, "AccessDenied", NOT_ALLOWED.format("kms:GenerateDataKey", KMS)),
        [f"Allow {WHO} kms:GenerateDataKey on the KMS key {KMS}"],
    ),
    "no key": (
        xml(400, "KMS.NotFoundException", "Key does not exist"),
        [KMS, "in the bucket's region"],
    ),
    "key off": (xml(400, "KMS.DisabledException"), [KMS, "must be enabled"]),
    "expired": (xml(400, "ExpiredToken"), ["have expired"]),
    "no such keys": (xml(403, "InvalidAccessKeyId"), ["Check the access key"]),
    "clock": (xml(403, "RequestTimeTooSkewed"), ["clock"]),
    "elsewhere, unnamed": (xml(301, "PermanentRedirect"), ["in another region", "region"]),
    "no conditional writes": (xml(501, "NotImplemented"), ["conditional writes"]),
    "something else": (xml(400, "InvalidRequest"), ["s3:PutObject is allowed"]),
}


@pytest.mark.parametrize("name", HINTS)
def test_each_refusal_has_a_hint_of_its_own_and_is_sent_once(s3, store, name):
    answer, words = HINTS[name]
    s3.scripts[""] = [answer]
    error = failure(store)

    assert [word for word in words if word not in (error.hint or "")] == []
    assert not isinstance(error, StoreOutageError)
    assert error.exit_code == 4
    assert re.search(r"[^.]\.$", error.message)
    assert [sent.method for sent in s3.sent] in (["PUT"], ["PUT", "HEAD"])


@pytest.mark.parametrize(
    "answer",
    [
        *(xml(503, "SlowDown"), xml(500, "InternalError"), xml(429, "TooManyRequests")),
        *(xml(400, "RequestTimeout"), xml(409, "OperationAborted"), xml(400, "BadDigest")),
        *(Said(b"<html>", 502), Said(b"", 503)),
    ],
    ids=lambda answer: f"{answer.status} {answer.body[:40]!r}",
)
def test_what_may_pass_is_an_outage_and_is_sent_once(s3, store, answer):
    s3.scripts[""] = [answer]

    assert isinstance(failure(store), StoreOutageError)
    assert len(s3.sent) == 1


def test_nobody_there_is_an_outage(s3, store):
    s3.close()

    assert isinstance(failure(store), StoreOutageError)


def test_an_answer_that_breaks_off_is_an_outage(s3, store):
    s3.scripts[""] = [Said(b"short", 200, {"Content-Length": "400", "ETag": '"1"'})]
    bucket = S3Store("bucket", prefix="", region="us-east-1")
    reading = threading.Thread(target=lambda: caught.append(_error(lambda: bucket.get(KEY))))
    caught: list[Exception | None] = []
    reading.start()
    while not s3.sent:
        threading.Event().wait(0.01)
    s3.close()
    reading.join(PATIENCE_S)

    assert isinstance(caught[0], StoreOutageError)


def _error(act: Callable[[], object]) -> Exception | None:
    try:
        act()
    except Exception as error:  # noqa: BLE001 -- it is what the test looks at
        return error
    return None


class TestWhatIsSent:
    def test_every_object_is_encrypted_with_the_key(self, s3, store):
        s3.scripts[""] = [Said(b"", 200, {"ETag": '"1"'})]
        store.put(KEY, b"{}")
        store.put_if(KEY, b"{}", etag=None)
        store.put_if(KEY, b"{}", etag='"1"')

        for sent in s3.sent:
            assert sent.headers["x-amz-server-side-encryption"] == "aws:kms"
            assert sent.headers["x-amz-server-side-encryption-aws-kms-key-id"] == KMS
        conditions = [(s.headers.get("If-None-Match"), s.headers.get("If-Match")) for s in s3.sent]
        assert conditions == [(None, None), ("*", None), (None, '"1"')]

    def test_without_a_key_the_bucket_decides(self, s3):
        S3Store("bucket", prefix="", region="us-east-1").put(KEY, b"{}")

        assert [name for name in s3.sent[0].headers if "encryption" in name] == []

    def test_every_object_carries_its_checksum(self, s3, store, monkeypatch):
        monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
        other = S3Store("bucket", prefix="", region="us-east-1")
        for bucket in (store, other):
            bucket.put(KEY, b"{}")

        digest = base64.b64encode(hashlib.sha256(b"{}").digest()).decode()
        assert [sent.headers["x-amz-checksum-sha256"] for sent in s3.sent] == [digest] * 2


class TestRegion:
    """The fake bucket is in eu-west-1, and the run's region is us-east-1."""

    @pytest.fixture
    def notices(self) -> list[str]:
        return []

    @pytest.fixture
    def store(self, s3: FakeBedrock, notices: list[str]) -> S3Store:
        return S3Store("bucket", prefix="", region="us-east-1", notice=notices.append)

    @staticmethod
    def elsewhere(sent: Sent) -> Said:
        headers = {"x-amz-bucket-region": "eu-west-1"}
        if "/eu-west-1/s3/" in sent.headers["Authorization"]:
            return Said(b"", 200, {"ETag": '"1"', **headers})
        return xml(301, "PermanentRedirect", **headers)

    NOTICE = "The bucket bucket is in eu-west-1, not in us-east-1: S3 is asked there."

    def test_the_check_finds_it_and_writes_go_there_at_once(self, s3, store, notices):
        s3.scripts[""] = self.elsewhere
        store.check()
        checks = len(s3.sent)
        store.put(KEY, b"{}")
        store.put(KEY, b"{}")

        assert notices == [self.NOTICE]
        assert ["/eu-west-1/s3/" in s.headers["Authorization"] for s in s3.sent[checks:]] == [
            True
        ] * 2

    def test_without_a_check_the_first_write_finds_it(self, s3, store, notices):
        s3.scripts[""] = self.elsewhere
        store.put(KEY, b"{}")
        store.put(KEY, b"{}")

        assert notices == [self.NOTICE]
        assert len(s3.sent) == 3

    def test_a_check_that_is_denied_tells_the_region_too(self, s3, store, notices):
        s3.scripts[""] = [Said(b"", 403, {"x-amz-bucket-region": "eu-west-1"})]
        store.check()

        assert notices == [self.NOTICE]

    def test_a_400_with_the_region_counts_as_much(self, s3, store, notices):
        def refused(sent: Sent) -> Said:
            answer = self.elsewhere(sent)
            return Said(b"", 400, answer.headers) if answer.status == 301 else answer

        s3.scripts[""] = refused
        store.check()

        assert notices == [self.NOTICE]

    def test_a_bucket_that_stays_elsewhere_is_an_error_that_names_the_region(self, s3, store):
        s3.scripts[""] = [xml(301, "PermanentRedirect", x_amz_bucket_region="eu-west-1")]
        error = failure(store)

        assert "is in eu-west-1: give that as region" in (error.hint or "")

    def test_its_own_region_is_no_news(self, s3, store, notices):
        s3.scripts[""] = [
            replace(KEPT, headers={**KEPT.headers, "x-amz-bucket-region": "us-east-1"})
        ]
        store.check()
        store.put(KEY, b"{}")

        assert notices == []

    def test_what_is_no_region_is_not_believed(self, s3, store, notices):
        s3.scripts[""] = [Said(b"", 403, {"x-amz-bucket-region": "evil.example/"})]
        store.check()

        assert notices == []


class TestCredentials:
    @pytest.fixture
    def profile(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
        def write(key_id: str) -> None:
            path.write_text(f"[default]\naws_access_key_id={key_id}\naws_secret_access_key=s\n")

        path = tmp_path / "credentials"
        monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
        write("AKIAFIRST")
        return write

    def test_those_that_run_out_are_read_afresh_once(self, s3, profile):
        def only(*good: str) -> Callable[[Sent], Said]:
            return lambda sent: KEPT if sent.key_id in good else xml(400, "ExpiredToken")

        notices: list[str] = []
        s3.scripts[""] = only("AKIAFIRST")
        store = S3Store("bucket", prefix="", region="us-east-1", notice=notices.append)
        store.put(KEY, b"{}")
        s3.scripts[""] = only("AKIASECOND")
        profile("AKIASECOND")
        store.put(KEY, b"{}")

        assert [sent.key_id for sent in s3.sent] == ["AKIAFIRST", "AKIAFIRST", "AKIASECOND"]
        assert notices == ["The credentials for S3 have expired: the SDK was asked for new ones."]

    def test_if_there_are_no_new_ones_the_hint_says_so(self, s3, profile):
        store = S3Store("bucket", prefix="", region="us-east-1")
        store.put(KEY, b"{}")
        s3.scripts[""] = [xml(400, "ExpiredToken")]
        first, second = failure(store), failure(store)

        assert "have expired" in (first.hint or "")
        assert "have expired" in (second.hint or "")
        # One request with the old ones, one after reading them afresh, and then one for each write.
        assert len(s3.sent) == 4

    def test_a_profile_that_is_gone_meanwhile_is_no_other_ending(self, s3, profile, monkeypatch):
        notices: list[str] = []
        store = S3Store("bucket", prefix="", region="us-east-1", notice=notices.append)
        store.put(KEY, b"{}")
        s3.scripts[""] = [xml(400, "ExpiredToken")]
        monkeypatch.setenv("AWS_PROFILE", "gone")

        assert "have expired" in (failure(store).hint or "")
        assert "gone" in notices[-1]

    def test_none_at_all(self, s3, profile, tmp_path):
        (tmp_path / "credentials").write_text("")
        store = S3Store("bucket", prefix="", region="us-east-1")

        assert "Give credentials for S3" in (failure(store).hint or "")
        assert s3.sent == []
