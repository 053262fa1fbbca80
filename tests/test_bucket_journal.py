"""The journal in a bucket and the lease on it, over S3 as moto plays it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import boto3
import pytest

from socratic_bench.artifacts.bucket_journal import BucketJournals
from socratic_bench.artifacts.delivery import Delivery
from socratic_bench.artifacts.lease import LeaseTerms
from socratic_bench.artifacts.places import bucket_journals, open_bucket
from socratic_bench.artifacts.s3 import S3Store
from socratic_bench.config import RunConfig
from socratic_bench.errors import BenchError

RUN = "run-01M7XXKJ610ZKRZ0Q3VR382HZG"
LATER = "run-01M7XXKJ610ZKRZ0Q3VR382HZH"
IDENTITY = "d" * 64
FOLDER = f"p/journal/runs/{RUN}/"
LEASE = f"{FOLDER}lease.json"
ENTRIES: list[dict[str, Any]] = [{"turn": n, "text": f"Why {n}? \u00e9\n"} for n in range(12)]


@pytest.fixture(scope="module")
def client(moto_url: str) -> Iterator[Any]:
    session = boto3.Session("AKIATESTKEY", "secret", region_name="us-east-1")
    with closing(session.client("s3", endpoint_url=moto_url)) as client:
        yield client


@pytest.fixture
def bucket(client: Any, moto_url: str, keys: None, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
    name = f"bucket-{uuid4().hex}"
    client.create_bucket(Bucket=name)
    return name


class Host:
    """One process that plays runs: its delivery, its journals, and what it is told."""

    def __init__(self, bucket: str, *, sleep: Callable[[float], None] = time.sleep, **terms: Any):
        self.heard: list[str] = []
        self.lost: list[BenchError] = []
        self.is_lost = threading.Event()
        self.slept: list[float] = []
        self._sleep = sleep
        self.store = S3Store(bucket, prefix="p", region="us-east-1")
        self.delivery = Delivery([self.store])
        self.journals = BucketJournals(
            self.store.bucket,
            self.delivery,
            LeaseTerms(
                on_lost=self._lose,
                notice=self.heard.append,
                sleep=self.sleep,
                **{"ttl_s": 60.0, **terms},
            ),
        )

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._sleep(seconds)

    def _lose(self, error: BenchError) -> None:
        self.lost.append(error)
        self.is_lost.set()

    def close(self) -> None:
        self.delivery.close()


@pytest.fixture
def host(bucket: str) -> Iterator[Callable[..., Host]]:
    made: list[Host] = []

    def make(**terms: Any) -> Host:
        made.append(Host(bucket, **terms))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def written(host: Callable[..., Host]) -> None:
    """A run of twelve entries that nobody holds any more."""
    play(host())


def play(one: Host, run_id: str = RUN, entries: list[dict[str, Any]] = ENTRIES) -> None:
    journal = one.journals.create(run_id, IDENTITY)
    for entry in entries:
        journal.append(entry)
    assert one.delivery.settle() is None
    journal.close()


def reopened(one: Host, run_id: str = RUN) -> tuple[list[Any], list[str]]:
    with closing(one.journals.open(run_id)) as journal:
        return list(journal.entries), list(journal.repairs)


class TestEntries:
    def test_what_was_appended_is_there_again(self, host, written):
        assert reopened(host()) == (ENTRIES, [])

    def test_one_object_an_entry_under_the_documented_names(self, client, bucket, written):
        names = [row["Key"] for row in client.list_objects_v2(Bucket=bucket)["Contents"]]

        assert names == [
            f"p/journal/identities/{IDENTITY}/{RUN}",
            *(f"{FOLDER}{n:06d}.json" for n in range(12)),
            LEASE,
        ]

    def test_a_journal_goes_on_where_it_ended(self, host, written):
        one = host()
        with closing(one.journals.open(RUN)) as journal:
            journal.append({"more": True})
            assert one.delivery.settle() is None

        assert reopened(host()) == ([*ENTRIES, {"more": True}], [])


def test_places_offer_the_journals_of_the_bucket(bucket):
    config = RunConfig(model="m", region="us-east-1", s3_bucket=bucket)
    store = open_bucket(config)
    delivery = Delivery([store] if store else [])
    told = {"sleep": time.sleep, "on_lost": print, "notice": print}
    journals = bucket_journals(store, delivery, **told)
    journal = journals.create(RUN, IDENTITY)
    journal.append({"a": 1})
    assert delivery.settle() is None
    journal.close()

    assert list(journals.newest(IDENTITY)) == [RUN]
    assert bucket_journals(None, delivery, **told) is None
    delivery.close()
