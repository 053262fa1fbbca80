"""One contract for every store, over a real folder and over S3 as moto plays it."""

import shutil
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from socratic_bench import RunConfig
from socratic_bench.errors import ArtifactError, UsageError
from socratic_bench.ports.store import ArtifactStore, StoredObject
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.folder import FolderStore
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.s3 import S3Store
from socratic_bench.storage.stores import open_bucket, open_folder
from tests.fakes import KEPT, PATIENCE_S, FakeBedrock, Said

KEY = "raw/runs/run-1/turn_000.json"


@pytest.fixture
def bucket(bucket: str, moto_url: str, keys: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket of its own at the endpoint of the environment."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
    return bucket


def objects(client: Any, bucket: str) -> dict[str, bytes]:
    listed = client.list_objects_v2(Bucket=bucket).get("Contents", [])
    return {
        entry["Key"]: client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
        for entry in listed
    }


class Kind:
    """A store and what lies in it, whatever kind it is."""

    def __init__(self, store: ArtifactStore, root: str, stored: Callable[[], dict[str, bytes]]):
        self.store = store
        self.root = root
        self.kept = stored


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(params=["folder", "bucket", "bucket with a prefix"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    if request.param == "folder":
        root = tmp_path / "not" / "there" / "yet"
        return Kind(FolderStore(str(root)), f"{root}/", lambda: files_below(root))
    client, bucket = request.getfixturevalue("client"), request.getfixturevalue("bucket")
    prefix = "a/b" if request.param.endswith("prefix") else ""
    store = S3Store(bucket, prefix=prefix, region="us-east-1")
    below = f"{prefix}/" if prefix else ""

    def kept() -> dict[str, bytes]:
        return {key.removeprefix(below): body for key, body in objects(client, bucket).items()}

    return Kind(store, f"s3://{bucket}/{below}", kept)


class TestEveryStore:
    def test_it_can_be_used_before_anything_is_there(self, kind):
        kind.store.check()

        assert kind.kept() == {}

    def test_what_is_put_is_kept_whole(self, kind):
        bodies = {KEY: b'{"a": 1}', "curated/runs/run-1.json": b"", "raw/x.json": b"\0" * 300_000}
        for key, body in bodies.items():
            kind.store.put(key, body)

        assert kind.kept() == bodies

    def test_a_second_put_replaces_the_first(self, kind):
        kind.store.put(KEY, b"a longer body than the second")
        kind.store.put(KEY, b"second")

        assert kind.kept() == {KEY: b"second"}

    def test_the_location_says_where_it_is(self, kind):
        assert kind.store.location(KEY) == kind.root + KEY
        assert kind.store.location("raw/runs/run-1/") == f"{kind.root}raw/runs/run-1/"

    def test_many_threads_may_put(self, kind):
        bodies = {f"raw/{number}.json": str(number).encode() for number in range(20)}
        delivery = Delivery([kind.store])
        for key, body in bodies.items():
            delivery.send(key, body)

        assert delivery.settle() is None
        delivery.close()
        assert kind.kept() == bodies


class TestFolder:
    def test_a_relative_folder_has_an_absolute_location(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

        assert FolderStore("out").location("raw/") == f"{tmp_path}/out/raw/"

    def test_it_stays_where_it_was_when_the_program_moves(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        store = FolderStore("out")
        monkeypatch.chdir("/")
        store.put(KEY, b"x")

        assert files_below(tmp_path) == {f"out/{KEY}": b"x"}

    def test_a_file_in_its_way_is_a_usage_error(self, tmp_path):
        (tmp_path / "out").write_text("")

        with pytest.raises(UsageError) as refused:
            FolderStore(str(tmp_path / "out" / "below")).check()
        assert refused.value.problems == (
            f"The output folder {tmp_path}/out/below cannot be used: {tmp_path}/out is a file.",
        )
        assert refused.value.hint == "Choose another output_dir."

    def test_a_file_in_its_way_later_is_an_artifact_error(self, tmp_path):
        (tmp_path / "raw").write_text("")

        with pytest.raises(ArtifactError) as failed:
            FolderStore(str(tmp_path)).put(KEY, b"x")
        assert str(tmp_path / KEY) in failed.value.message
        assert failed.value.exit_code == 4

    def test_a_name_that_is_a_folder_leaves_nothing_behind(self, tmp_path):
        (tmp_path / KEY).mkdir(parents=True)

        with pytest.raises(ArtifactError):
            FolderStore(str(tmp_path)).put(KEY, b"x")
        assert files_below(tmp_path) == {}

    def test_no_reader_ever_sees_half_a_file(self, tmp_path):
        """A reader looks as often as it can while two sizes of a file take turns."""
        bodies = {b"a" * 200_000, b"b" * 100_000}
        store, seen, done = FolderStore(str(tmp_path)), set(), threading.Event()
        store.put(KEY, next(iter(bodies)))

        def look() -> None:
            while not done.is_set():
                seen.update(files_below_final(tmp_path).values())

        reader = threading.Thread(target=look)
        reader.start()
        for _ in range(10):
            for body in bodies:
                store.put(KEY, body)
        done.set()
        reader.join(PATIENCE_S)
        assert seen
        assert seen <= bodies

    @pytest.mark.parametrize("gone", ["", "raw", "raw/runs/run-1"])
    def test_a_folder_that_was_removed_meanwhile_is_made_anew(self, gone, tmp_path):
        store, other = (FolderStore(str(tmp_path / "out")) for _ in range(2))
        store.put("raw/runs/run-1/a.json", b"a")
        shutil.rmtree(tmp_path / "out" / gone)
        store.put("raw/runs/run-1/b.json", b"b")
        other.put("raw/runs/run-2/c.json", b"c")

        left = {"raw/runs/run-1/b.json": b"b", "raw/runs/run-2/c.json": b"c"}
        assert files_below(tmp_path / "out") == left

    @pytest.mark.parametrize("moved", ["", "raw", "raw/runs/run-1"])
    def test_what_lies_elsewhere_by_now_is_missing(self, moved, tmp_path):
        store, key = FolderStore(str(tmp_path / "out")), "raw/runs/run-1/a.json"
        store.put(key, b"a")
        stored = {key: StoredObject(n_bytes=1, sha256=sha256(b"a").digest())}
        assert store.missing(stored) == []

        (tmp_path / "out" / moved).rename(tmp_path / "elsewhere")
        assert store.missing(stored) == [key]
        store.put(key, b"a")
        assert store.missing(stored) == []

    def test_others_may_read_what_was_written(self, tmp_path):
        FolderStore(str(tmp_path)).put(KEY, b"x")

        assert (tmp_path / KEY).stat().st_mode & 0o777 == 0o644


def files_below_final(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.json")}


class TestBucket:
    @pytest.fixture
    def s3(self, keys: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBedrock]:
        """A store's server that says what it is told."""
        with FakeBedrock({"": [KEPT]}) as fake:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", fake.url)
            monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
            yield fake

    @pytest.fixture
    def store(self, s3: FakeBedrock) -> S3Store:
        return S3Store("bucket", prefix="", region="us-east-1")

    def test_a_missing_bucket_is_a_usage_error_with_the_documented_words(self, bucket):
        store = S3Store(f"{bucket}-not", prefix="", region="us-east-1")

        with pytest.raises(UsageError) as refused:
            store.check()
        assert refused.value.problems == (f"No such bucket: {bucket}-not.",)
        assert f"aws s3 mb s3://{bucket}-not --region us-east-1" in (refused.value.hint or "")

    @pytest.mark.parametrize(
        "answer",
        [
            Said(b"", 403),
            Said(b"", 400),
            Said(b"", 500),
            Said(b"", 503),
            Said(b"", 200),
        ],
        ids=lambda answer: str(answer.status),
    )
    def test_a_check_that_cannot_tell_lets_pass_after_one_try(self, s3, store, answer):
        s3.scripts[""] = [answer]
        store.check()

        assert len(s3.sent) == 1

    def test_a_check_of_nobody_lets_pass(self, s3, store):
        s3.close()

        store.check()

    def test_a_check_without_credentials_lets_pass(self, s3, store, monkeypatch):
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        other = S3Store("bucket", prefix="", region="us-east-1")

        other.check()
        assert s3.sent == []

    def test_a_check_of_a_silent_server_gives_up(self, s3, store, monkeypatch):
        monkeypatch.setattr("socratic_bench.storage.s3.CHECK_TIMEOUT_S", 0.05)
        s3.scripts[""] = [Said(b"", held=threading.Event())]

        store.check()
        # What was given up may not have been taken up yet.
        while not s3.sent:
            threading.Event().wait(0.01)
        assert len(s3.sent) == 1

    def test_the_callers_own_keys_and_region_sign(self, s3, store):
        store.put(KEY, b"{}")

        (sent,) = s3.sent
        assert sent.key_id == "AKIATESTKEY"
        assert "/us-east-1/s3/" in sent.headers["Authorization"]
        assert sent.headers["Content-Type"] == "application/json"

    def test_a_profile_that_does_not_exist_is_a_usage_error(self, keys, monkeypatch):
        monkeypatch.setenv("AWS_PROFILE", "missing")

        with pytest.raises(UsageError) as refused:
            S3Store("bucket", prefix="", region="us-east-1")
        assert "missing" in refused.value.problems[0]


def test_stores_are_opened_only_where_they_are_asked_for(tmp_path, keys):
    config = RunConfig(model="m", region="us-east-1")
    assert (open_folder(config), open_bucket(config)) == (None, None)

    full = RunConfig(
        model="m", region="us-east-1", output_dir=str(tmp_path), s3_bucket="b", s3_prefix="p"
    )
    folder, bucket = open_folder(full), open_bucket(full)
    assert folder is not None
    assert isinstance(bucket, S3Store)
    assert (folder.location("k"), bucket.location("k")) == (f"{tmp_path}/k", "s3://b/p/k")


@pytest.mark.parametrize(
    ("index", "turn", "judge"),
    [
        (0, "turn_000.json", "judge_000.json"),
        (42, "turn_042.json", "judge_042.json"),
        (999, "turn_999.json", "judge_999.json"),
        (1000, "turn_1000.json", "judge_1000.json"),
    ],
)
def test_keys_are_the_documented_ones(index, turn, judge):
    keys = RunKeys("run-1")

    assert (keys.raw, keys.curated) == ("raw/runs/run-1/", "curated/runs/run-1.json")
    assert (keys.turn(index), keys.judge(index)) == (keys.raw + turn, keys.raw + judge)


class FlakyStore:
    """Fails for each key as often as it is told, then keeps it."""

    def __init__(self, **failures: int) -> None:
        self.failures = failures
        self.puts: list[str] = []
        self.kept: dict[str, bytes] = {}

    def check(self) -> None: ...

    def put(self, key: str, body: bytes) -> None:
        self.puts.append(key)
        if self.failures.get(key, 0):
            self.failures[key] -= 1
            raise ArtifactError(f"{key} failed.", hint="Try again.")
        self.kept[key] = body

    def location(self, key: str) -> str:
        return f"flaky://{key}"


class BlockedStore(FlakyStore):
    """Puts nothing before it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def put(self, key: str, body: bytes) -> None:
        assert self.released.wait(PATIENCE_S)
        super().put(key, body)


class TestDelivery:
    def test_without_stores_there_is_nothing_to_lose(self):
        delivery = Delivery([])
        delivery.send("a", b"")

        assert delivery.settle() is None
        delivery.close()

    def test_and_not_a_third_time(self):
        store = FlakyStore(a=2)
        delivery = Delivery([store])
        delivery.send("a", b"1")
        delivery.send("b", b"2")

        error = delivery.settle()
        assert isinstance(error, ArtifactError)
        assert (error.message, error.hint) == ("1 artifact is missing. a failed.", "Try again.")
        assert sorted(store.puts) == ["a", "a", "b"]
        delivery.close()

    def test_settling_in_a_hurry_names_what_is_late(self):
        store = BlockedStore()
        delivery = Delivery([store])
        delivery.send("a", b"")

        error = delivery.give_up(0.01)
        store.released.set()
        delivery.close()
        assert isinstance(error, ArtifactError)
        assert error.message == "1 artifact is missing. flaky://a was not delivered in time."

    def test_a_defect_in_a_store_is_not_called_a_failed_write(self):
        class Broken(FlakyStore):
            def put(self, key: str, body: bytes) -> None:
                raise KeyError(key)

        delivery = Delivery([Broken()])
        delivery.send("a", b"")

        with pytest.raises(KeyError):
            delivery.settle()
        delivery.close()

    def test_the_last_file_goes_to_the_bucket_first_and_nowhere_after_a_failure(self):
        folder, bucket = FlakyStore(), FlakyStore(last=2)
        delivery = Delivery([folder, bucket])

        assert isinstance(delivery.conclude("last", b""), ArtifactError)
        assert (bucket.puts, folder.puts) == (["last", "last"], [])
        delivery.close()

    def test_the_last_file_goes_everywhere(self):
        stores = [FlakyStore(), FlakyStore(last=1)]
        delivery = Delivery(stores)

        assert delivery.conclude("last", b"1") is None
        assert [store.kept for store in stores] == [{"last": b"1"}] * 2
        delivery.close()
