"""Delivery while a store is out of order: what waits, where, for how long, and what is told."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from socratic_bench.concurrency import Workers
from socratic_bench.errors import ArtifactError, Problem, StoreOutageError
from socratic_bench.retrying import RetryPolicy
from socratic_bench.storage.delivery import Delivery, UploadPolicy
from socratic_bench.storage.folder import FolderStore
from tests.fakes import PATIENCE_S, wait_until

SOON = RetryPolicy(uniform=lambda _low, _high: 0.001)


class Store:
    """Is out of order until it is told otherwise, and remembers what was tried."""

    def __init__(self, *, is_up: bool = False) -> None:
        self.up = threading.Event()
        if is_up:
            self.up.set()
        self.puts: list[str] = []
        self.kept: dict[str, bytes] = {}
        self.tried = threading.Condition()

    def check(self) -> None: ...

    def location(self, key: str) -> str:
        return f"s3://bucket/{key}"

    def put(self, key: str, body: bytes) -> None:
        with self.tried:
            self.puts.append(key)
            self.tried.notify_all()
        if not self.up.is_set():
            raise StoreOutageError(f"{key} failed.", hint="Run again.")
        self.kept[key] = body

    def wait_for_tries(self, count: int) -> None:
        with self.tried:
            assert self.tried.wait_for(lambda: len(self.puts) >= count, PATIENCE_S)


class SilentStore(Store):
    """Says nothing before it is told to."""

    def put(self, key: str, body: bytes) -> None:
        assert self.up.wait(PATIENCE_S)
        super().put(key, body)


class HangingFolder(SilentStore):
    """Can give back what it keeps."""

    def read(self, key: str) -> bytes:
        return self.kept[key]


class FailingStore(SilentStore):
    """Says nothing before it is told to, and then that it is out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()

    def put(self, key: str, body: bytes) -> None:
        self.begun.set()
        assert self.up.wait(PATIENCE_S)
        self.puts.append(key)
        raise StoreOutageError(f"{key} failed.", hint="Run again.")


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def closing() -> Iterator[list[Delivery]]:
    made: list[Delivery] = []
    yield made
    for delivery in made:
        delivery.close()


@pytest.fixture
def deliver(closing: list[Delivery]) -> Any:
    def make(*stores: Any, tries: int = 3, grace_s: float = 60.0, **more: Any) -> Delivery:
        clock = more.pop("monotonic_s", Clock())
        policy = UploadPolicy(tries=tries, grace_s=grace_s, monotonic_s=clock, retry_policy=SOON)
        closing.append(Delivery(stores, policy=policy, **more))
        return closing[-1]

    return make


def test_a_store_that_comes_back_gets_everything(deliver):
    store = Store()
    delivery = deliver(store, tries=1)
    for number in range(20):
        delivery.send(str(number), str(number).encode())
    store.wait_for_tries(50)
    assert store.kept == {}
    store.up.set()

    assert delivery.settle() is None
    assert store.kept == {str(number): str(number).encode() for number in range(20)}


def test_a_store_that_stays_away_is_tried_so_often_and_told_with_a_count(deliver):
    store = Store()
    delivery = deliver(store)
    for number in range(10):
        delivery.send(str(number), b"")

    error = delivery.settle()
    assert isinstance(error, ArtifactError)
    assert error.message.startswith("10 artifacts are missing. ")
    assert error.message.endswith(" and 4 more.")
    assert error.message.count("s3://bucket/") == 5
    assert (error.hint, error.exit_code) == ("Run again.", 4)
    assert delivery.settle() is not None


def test_after_the_dialogue_each_write_gets_its_tries_and_no_more(deliver):
    """The first try is under way when the dialogue ends; three more follow it."""
    store = FailingStore()
    delivery = deliver(store, tries=3)
    delivery.send("a", b"")
    assert store.begun.wait(PATIENCE_S)

    def end(futures: list[Future[None]]) -> None:
        store.up.set()
        for future in futures:
            future.exception()

    assert delivery.settle(end) is not None
    assert store.puts == ["a"] * 4


def test_a_store_that_takes_nothing_for_long_is_aborted_without_trying_every_write(deliver):
    clock, store = Clock(), Store()
    delivery = deliver(store, tries=10**9, grace_s=60.0, monotonic_s=clock)
    for number in range(100):
        delivery.send(str(number), b"")
    store.wait_for_tries(8)

    def wait_and_look(futures: list[Future[None]]) -> None:
        clock.now_s += 61
        for future in futures:
            future.exception()

    error = delivery.settle(wait_and_look)
    assert isinstance(error, ArtifactError)
    # What was tried itself is told by its own error, and named once.
    assert error.message.startswith("100 artifacts are missing. 0 failed. Missing, too: s3://b")
    assert "bucket/0," not in error.message
    # The four writers had one each, and nobody tried the ones behind them.
    assert len(set(store.puts)) == 4


def test_a_slow_store_that_takes_something_now_and_then_is_not_given_up(deliver):
    clock = Clock()

    class Slow(Store):
        """Takes half a minute for each write, and the first try of each is in vain."""

        def put(self, key: str, body: bytes) -> None:
            with lock:
                clock.now_s += 10
                if key in self.puts:
                    self.up.set()
                else:
                    self.up.clear()
                super().put(key, body)

    lock = threading.Lock()
    store = Slow()
    delivery = deliver(store, monotonic_s=clock, grace_s=160.0)
    for number in range(60):
        delivery.send(str(number), b"")

    assert delivery.settle() is None
    assert len(store.kept) == 60
    assert clock.now_s == 1200


def test_a_store_that_stands_still_holds_no_other_one_up(deliver, tmp_path):
    silent, folder = SilentStore(), FolderStore(str(tmp_path))
    delivery = deliver(folder, silent)
    for number in range(20):
        delivery.send(str(number), b"x")

    wait_until(lambda: len(list(tmp_path.iterdir())) == 20)
    assert silent.kept == {}
    silent.up.set()
    assert delivery.settle() is None
    assert len(silent.kept) == 20


def test_memory_is_bounded_and_said_once(deliver):
    errors: list[ArtifactError] = []
    silent = SilentStore()
    delivery = deliver(silent, memory_bytes=1000, on_full=errors.append)
    for number in range(15):
        delivery.send(str(number), b"x" * 100)

    (error,) = errors
    assert "wait for s3://bucket/" in error.message
    assert error.hints == (Problem.of("Give {output_dir}, too, where artifacts can wait."),)
    assert error.exit_code == 4
    silent.up.set()
    missing = delivery.settle()
    assert isinstance(missing, ArtifactError)
    assert missing.message.startswith("5 artifacts are missing.")
    assert len(silent.kept) == 10


def test_what_has_arrived_takes_no_memory(deliver):
    errors: list[ArtifactError] = []
    store = Store(is_up=True)
    delivery = deliver(store, memory_bytes=1000, on_full=errors.append)
    for number in range(50):
        delivery.send(str(number), b"x" * 100)
        assert delivery.settle() is None

    assert errors == []


class TestBacking:
    """With a folder, what a bucket does not take waits there."""

    def test_it_takes_no_memory_and_arrives_as_it_was(self, deliver, tmp_path):
        errors: list[ArtifactError] = []
        silent, folder = SilentStore(), FolderStore(str(tmp_path))
        delivery = deliver(folder, silent, backing=folder, memory_bytes=1000, on_full=errors.append)
        bodies = {str(number): bytes([number]) * 500 for number in range(30)}
        for number, body in bodies.items():
            delivery.send(number, body)
            wait_until(lambda: delivery.waiting_bytes == 0)
        silent.up.set()

        assert delivery.settle() is None
        assert (errors, silent.kept) == ([], bodies)

    @pytest.fixture
    def silent(self, deliver, tmp_path):
        """Eight files wait in the folder: four more than a bucket has writers."""
        store, folder = SilentStore(), FolderStore(str(tmp_path))
        delivery = deliver(folder, store, backing=folder)
        for number in range(8):
            delivery.send(str(number), b"mine")
        wait_until(lambda: delivery.waiting_bytes == 0)
        return delivery, store

    def test_what_somebody_changed_there_is_not_passed_on(self, silent, tmp_path):
        delivery, store = silent
        (tmp_path / "7").write_bytes(b"yours")
        store.up.set()

        error = delivery.settle()
        assert isinstance(error, ArtifactError)
        assert "s3://bucket/7 was not written" in error.message
        assert "was changed meanwhile" in error.message
        assert store.kept == {str(number): b"mine" for number in range(7)}

    def test_what_is_gone_there_is_told(self, silent, tmp_path):
        delivery, store = silent
        (tmp_path / "7").unlink()
        store.up.set()

        error = delivery.settle()
        assert isinstance(error, ArtifactError)
        assert "could not be read" in error.message
        assert "7" not in store.kept


class TestWhoWrites:
    """Each store has writers of its own, which no sender waits for."""

    def test_a_folder_that_hangs_holds_up_neither_the_next_work_nor_a_bucket(self, deliver):
        hanging, bucket = HangingFolder(), Store(is_up=True)
        delivery = deliver(hanging, bucket, backing=hanging)
        workers = Workers(1)
        # More than a folder has writers.
        sent = [workers.submit(partial(delivery.send, str(number), b"mine")) for number in range(6)]

        for write in sent:
            write.result(PATIENCE_S)
        wait_until(lambda: len(bucket.kept) == 6)
        assert hanging.kept == {}
        hanging.up.set()
        assert delivery.settle() is None
        assert hanging.kept == bucket.kept

    def test_work_that_fails_has_its_files_written(self, deliver, tmp_path):
        folder = FolderStore(str(tmp_path))
        delivery = deliver(folder, backing=folder)

        def send_and_fail() -> None:
            delivery.send("a", b"mine")
            raise OSError

        workers = Workers(1)
        with pytest.raises(OSError):
            workers.submit(send_and_fail).result(PATIENCE_S)
        assert delivery.settle() is None
        assert (tmp_path / "a").read_bytes() == b"mine"


def test_the_file_that_vouches_is_kept_nowhere_over_missing_parts(deliver):
    bucket, folder = Store(), Store(is_up=True)
    delivery = deliver(folder, bucket)
    delivery.send("part", b"")

    assert isinstance(delivery.conclude("curated", b""), ArtifactError)
    assert "curated" not in folder.kept
    assert bucket.kept == {}


def test_closing_ends_the_waiting(deliver):
    store = Store()
    policy = UploadPolicy(retry_policy=RetryPolicy(uniform=lambda _low, _high: 3600.0))
    delivery = Delivery([store], policy=policy)
    writing = delivery.send_to(store, "a", b"")
    store.wait_for_tries(1)
    delivery.close()

    assert isinstance(writing.exception(PATIENCE_S), ArtifactError)
    assert len(store.puts) <= 2
