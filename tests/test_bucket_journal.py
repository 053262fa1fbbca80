"""The journal in a bucket and the lease on it, over S3 as moto plays it."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from email.utils import formatdate
from typing import Any

import pytest

from socratic_bench import RunConfig
from socratic_bench.errors import ArtifactError, BenchError, Stopped, StoreOutageError, UsageError
from socratic_bench.storage.bucket_journal import BucketJournals
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.lease import Lease, LeaseTerms
from socratic_bench.storage.s3 import S3Store
from socratic_bench.storage.stores import bucket_journals, open_bucket
from tests.fakes import KEPT, PATIENCE_S, FakeBedrock, Said, Sent, breaches, relayed, xml

RUN = "run-01M7XXKJ610ZKRZ0Q3VR382HZG"
LATER = "run-01M7XXKJ610ZKRZ0Q3VR382HZH"
IDENTITY = "d" * 64
FOLDER = f"p/journal/runs/{RUN}/"
LEASE = f"{FOLDER}lease.json"
ENTRIES: list[dict[str, Any]] = [{"turn": n, "text": f"Why {n}? \u00e9\n"} for n in range(6)]


@pytest.fixture
def bucket(bucket: str, moto_url: str, keys: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket of its own at the endpoint of the environment."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
    return bucket


class Host:
    """One process that plays runs: its delivery, its journals, and what it is told."""

    def __init__(
        self,
        bucket: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        keeps_notes: bool = True,
        **terms: Any,
    ):
        self.heard: list[str] = []
        self.lost: list[BenchError] = []
        self.is_lost = threading.Event()
        self.slept: list[float] = []
        self._sleep = sleep
        self.store = S3Store(bucket, prefix="p", region="us-east-1")
        self.delivery = Delivery([self.store])
        self.journals = BucketJournals(
            self.store,
            self.delivery,
            LeaseTerms(
                on_lost=self._lose,
                notice=self.heard.append,
                sleep=self.sleep,
                **{"ttl_s": 60.0, **terms},
            ),
            keeps_notes=keeps_notes,
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
    for process in made:
        process.close()


@pytest.fixture
def written(host: Callable[..., Host]) -> None:
    """A run of six entries that nobody holds any more."""
    play(host())


def play(process: Host, run_id: str = RUN, entries: list[dict[str, Any]] = ENTRIES) -> None:
    journal = process.journals.create(run_id, IDENTITY)
    for entry in entries:
        journal.append(entry)
    assert process.delivery.settle() is None
    journal.close()


def reopened(process: Host, run_id: str = RUN) -> tuple[list[Any], list[str]]:
    with closing(process.journals.open(run_id)) as journal:
        return list(journal.entries), list(journal.repairs)


class TestEntries:
    def test_what_was_appended_is_there_again(self, host, written):
        assert reopened(host()) == (ENTRIES, [])

    def test_one_object_an_entry_under_the_documented_names(self, client, bucket, written):
        names = [row["Key"] for row in client.list_objects_v2(Bucket=bucket)["Contents"]]

        assert names == [
            f"p/journal/identities/{IDENTITY}/{RUN}",
            *(f"{FOLDER}{n:06d}.json" for n in range(len(ENTRIES))),
            LEASE,
        ]

    def test_a_journal_goes_on_where_it_ended(self, host, written):
        process = host()
        with closing(process.journals.open(RUN)) as journal:
            journal.append({"more": True})
            assert process.delivery.settle() is None

        assert reopened(host()) == ([*ENTRIES, {"more": True}], [])

    def test_the_newest_run_of_an_identity_comes_first(self, host, written):
        play(host(), LATER)

        assert list(host().journals.newest(IDENTITY)) == [LATER, RUN]
        assert list(host().journals.newest("e" * 64)) == []

    def test_appending_and_creating_ask_nothing_of_the_bucket(self, host, keys, monkeypatch):
        """Every answer is held back until the run has said all that it has to say."""
        spoken = threading.Event()
        requests: list[str] = []

        def hold(sent: Sent) -> Said:
            assert spoken.wait(PATIENCE_S)
            requests.append(sent.path)
            return Said(b"", 200, {"ETag": '"1"'})

        with FakeBedrock({"": hold}) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            process = host()
            journal = process.journals.create(RUN, IDENTITY)
            for entry in ENTRIES:
                journal.append(entry)
            assert requests == []
            spoken.set()
            assert process.delivery.settle() is None
            journal.close()
            process.close()
        assert sum(
            path.endswith(".json?x-id=PutObject") or "/0" in path for path in requests
        ) >= len(ENTRIES)

    def test_it_is_known_whether_all_has_arrived(self, host, written, moto_url, monkeypatch):
        arrives = threading.Event()

        def hold(sent: Sent) -> Said | None:
            if sent.method == "PUT" and "/0000" in sent.path:
                assert arrives.wait(PATIENCE_S)
            return None

        with relayed(moto_url, hold) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            process = host()
            with closing(process.journals.open(RUN)) as journal:
                assert journal.is_kept
                journal.append({})
                assert not journal.is_kept
                arrives.set()
                assert process.delivery.settle() is None
                assert journal.is_kept

    def test_entries_that_cannot_be_kept_are_missing_in_the_end(self, host, keys, monkeypatch):
        def deny(sent: Sent) -> Said:
            return xml(403, "AccessDenied") if "/journal/" in sent.path else KEPT

        with FakeBedrock({"": deny}) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            process = host()
            journal = process.journals.create(RUN, IDENTITY)
            journal.append({})
            error = process.delivery.settle()
            journal.close()
            process.close()
        assert isinstance(error, ArtifactError)
        assert "/000000.json could not be written" in error.message
        assert any("Others cannot see" in text for text in process.heard)


class TestFaults:
    """Whatever lies there: the entries before it are used, and the repair says so."""

    CUT = '{"kind": "journal_entry", "run_id": '

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (None, "is missing"),
            (CUT, "is cut or broken"),
            (
                '{"turn": 3}',
                "is something else (the whole: Object missing required field `run_id`)",
            ),
        ],
        ids=["gap", "cut", "foreign object"],
    )
    def test_a_broken_entry_ends_what_is_used(self, client, bucket, host, written, body, words):
        key = f"{FOLDER}000003.json"
        client.delete_object(Bucket=bucket, Key=key)
        if body is not None:
            client.put_object(Bucket=bucket, Key=key, Body=body.encode())

        assert reopened(host()) == (
            ENTRIES[:3],
            [f"Entry 3 of the journal {words}. 2 entries behind it were left out."],
        )

    @pytest.mark.parametrize("number", [2, 4])
    def test_an_entry_in_anothers_place_is_not_taken_for_it(
        self, client, bucket, host, written, number
    ):
        source = {"Bucket": bucket, "Key": f"{FOLDER}{number:06d}.json"}
        client.copy_object(Bucket=bucket, Key=f"{FOLDER}000003.json", CopySource=source)

        entries, (repair,) = reopened(host())
        assert entries == ENTRIES[:3]
        assert "belongs elsewhere" in repair

    def test_nor_one_of_another_run(self, client, bucket, host, written):
        play(host(), LATER, [{"other": n} for n in range(5)])
        source = {"Bucket": bucket, "Key": f"p/journal/runs/{LATER}/000003.json"}
        client.copy_object(Bucket=bucket, Key=f"{FOLDER}000003.json", CopySource=source)

        entries, (repair,) = reopened(host())
        assert (entries, "belongs elsewhere" in repair) == (ENTRIES[:3], True)

    def test_nor_one_that_follows_a_changed_entry(self, client, bucket, host, written):
        key = f"{FOLDER}000003.json"
        body = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        client.put_object(Bucket=bucket, Key=key, Body=body.replace(b"Why 3", b"Why 9"))

        entries, (repair,) = reopened(host())
        assert len(entries) == 4
        assert "Entry 4 of the journal does not follow the one before." in repair

    def test_a_repaired_journal_grows_over_what_was_left_out(self, client, bucket, host, written):
        client.put_object(Bucket=bucket, Key=f"{FOLDER}000003.json", Body=b"broken")
        process = host()
        with closing(process.journals.open(RUN)) as journal:
            for number in range(2):
                journal.append({"again": number})
            assert process.delivery.settle() is None

        entries, (repair,) = reopened(host())
        assert entries == [*ENTRIES[:3], *({"again": number} for number in range(2))]
        assert "Entry 5 of the journal does not follow the one before." in repair

    def test_odd_objects_beside_the_entries_are_nothing(self, client, bucket, host, written):
        for name in (
            "README",
            "1.json",
            "0000001.json",
            "000003.json.bak",
            "../x",
            "a/000006.json",
        ):
            client.put_object(Bucket=bucket, Key=f"{FOLDER}{name}", Body=b"x")

        assert reopened(host()) == (ENTRIES, [])

    def test_a_run_that_is_not_there_is_a_usage_mistake_that_leaves_nothing(
        self, client, bucket, host
    ):
        with pytest.raises(UsageError) as refused:
            host().journals.open(RUN)
        assert f"There is no run {RUN} in s3://{bucket}/{FOLDER}" in refused.value.problems[0]
        assert client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0

    def test_what_is_no_journal_is_a_usage_mistake_and_is_let_go(self, client, bucket, host):
        client.put_object(Bucket=bucket, Key=f"{FOLDER}000000.json", Body=b"{}")

        with pytest.raises(UsageError, match="is not a journal"):
            host().journals.open(RUN)
        assert json.loads(client.get_object(Bucket=bucket, Key=LEASE)["Body"].read())["released"]

    @pytest.mark.parametrize("run_id", ["../x", "a/b", "", ".", "run-1/../../x", "x" * 101, "a\n"])
    def test_a_run_id_leads_nowhere_else(self, host, run_id):
        process = host()
        with pytest.raises(UsageError, match="not a run id"):
            process.journals.open(run_id)
        with pytest.raises(UsageError, match="not a run id"):
            process.journals.create(run_id, IDENTITY)

    def test_nor_does_one_that_lies_in_the_index(self, client, bucket, host, written):
        for name in ("zzz/x", "zz..", "z" * 200, "zzzz"):
            key = f"p/journal/identities/{IDENTITY}/{name}"
            client.put_object(Bucket=bucket, Key=key, Body=b"")

        assert list(host().journals.newest(IDENTITY)) == [RUN]

    def test_nor_does_an_identity(self, host):
        with pytest.raises(ValueError, match="digest"):
            list(host().journals.newest("../runs"))

    def test_a_short_outage_is_waited_out(self, host, written, bucket, moto_url, monkeypatch):
        down = iter([True, False, True, True])
        with relayed(moto_url, lambda _: xml(503, "SlowDown") if next(down, False) else None) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            process = host(sleep=lambda _: None)
            assert reopened(process) == (ENTRIES, [])
        assert len(process.slept) == 3

    def test_a_long_one_is_an_error_that_says_what_could_not_be_read(self, host, keys, monkeypatch):
        with FakeBedrock({"": [xml(503, "SlowDown")]}) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            with pytest.raises(ArtifactError) as failed:
                host(sleep=lambda _: None).journals.open(RUN)
        assert "could not be read" in failed.value.message
        assert len(s3.sent) == 6

    def test_no_leave_to_read_names_the_action(self, host, keys, monkeypatch):
        with FakeBedrock({"": [xml(403, "AccessDenied")]}) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            with pytest.raises(ArtifactError) as failed:
                host(sleep=lambda _: None).journals.open(RUN)
        assert "s3:ListBucket" in (failed.value.hint or "")
        assert len(s3.sent) == 1


class TestLease:
    """Two processes are two hosts here: nothing is shared but the bucket."""

    def lease(self, client: Any, bucket: str) -> Any:
        return json.loads(client.get_object(Bucket=bucket, Key=LEASE)["Body"].read())

    def test_what_lies_in_the_bucket_fits_its_schemas(self, client, bucket, written):
        assert breaches("lease", self.lease(client, bucket)) == []
        for number in range(len(ENTRIES)):
            body = client.get_object(Bucket=bucket, Key=f"{FOLDER}{number:06}.json")["Body"].read()
            assert breaches("journal_entry", json.loads(body)) == []

    def test_it_names_who_holds_the_run_and_is_let_go_in_the_end(
        self, client, bucket, host, written
    ):
        process = host()
        journal = process.journals.open(RUN)
        acquired = self.lease(client, bucket)
        journal.close()

        assert (acquired["pid"], acquired["run_id"], acquired["released"]) == (
            os.getpid(),
            RUN,
            False,
        )
        assert self.lease(client, bucket)["released"] is True

    def test_it_is_let_go_also_if_somebody_removed_it(self, client, bucket, host, written):
        journal = host().journals.open(RUN)
        client.delete_object(Bucket=bucket, Key=LEASE)
        journal.close()

        assert self.lease(client, bucket)["released"] is True

    def test_it_is_let_go_also_if_the_answer_to_a_renewal_was_lost(
        self, client, bucket, host, written
    ):
        """The process then does not know its lease's ETag any more."""
        journal = host().journals.open(RUN)
        body = json.dumps({**self.lease(client, bucket), "beat": 9}).encode()
        client.put_object(Bucket=bucket, Key=LEASE, Body=body)
        journal.close()

        assert self.lease(client, bucket)["released"] is True

    def test_a_new_run_of_another_process_is_refused(self, client, bucket, host):
        process = host(ttl_s=1.0)
        with closing(process.journals.create(RUN, IDENTITY)) as journal:
            journal.append({})
            assert process.delivery.settle() is None
            until(lambda: client.list_objects_v2(Bucket=bucket, Prefix=LEASE)["KeyCount"] == 1)
            with pytest.raises(UsageError, match="is in progress"):
                host(poll_s=0.05).journals.open(RUN)

    def test_waiting_sees_that_the_owner_is_alive(self, host, written):
        """The owner renews every quarter of a second; its lease would last for a second."""
        with closing(host(ttl_s=1.0).journals.open(RUN)):
            other = host(poll_s=0.05)
            with pytest.raises(UsageError, match="is in progress") as refused:
                other.journals.open(RUN)
        assert any("waiting up to 1 s" in text for text in other.heard)
        assert f"process {os.getpid()} on {socket.gethostname()}" in refused.value.problems[0]
        assert refused.value.exit_code == 2

    def test_a_dead_owners_lease_is_waited_for_and_taken(self, client, bucket, host, written):
        dead_lease(client, bucket)
        clock = Clock()
        process = host(sleep=clock.pass_by, monotonic_s=clock, poll_s=3.0)

        assert reopened(process) == (ENTRIES, [])
        assert 50 <= clock.now_s <= 60
        (notice,) = process.heard
        assert f"{RUN} is held by process 7 on elsewhere (since 2026-11-20T12:00:00Z)" in notice
        assert "waiting up to 60 s" in notice

    def test_one_that_lapsed_long_ago_by_the_servers_clock_needs_no_waiting(
        self, client, bucket, host, written, moto_url, monkeypatch
    ):
        dead_lease(client, bucket)
        an_hour_on = {"Date": formatdate(time.time() + 3600, usegmt=True)}
        with relayed(moto_url, lambda _: None, headers=an_hour_on) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            process = host()
            assert reopened(process) == (ENTRIES, [])
        assert (process.slept, process.heard) == ([], [])

    @pytest.mark.parametrize("body", [b"{", b'{"ttl_s": "x", "pid": {}, "host": "\\u001b[31m"}'])
    def test_a_lease_that_is_none_lapses_too(self, client, bucket, host, written, body):
        client.put_object(Bucket=bucket, Key=LEASE, Body=body)
        clock = Clock()
        process = host(sleep=clock.pass_by, monotonic_s=clock)

        assert reopened(process) == (ENTRIES, [])
        assert clock.now_s <= 60
        assert "\x1b" not in process.heard[0]

    def test_one_that_is_let_go_meanwhile_is_taken_at_once(self, client, bucket, host, written):
        dead_lease(client, bucket)
        clock = Clock()

        def let_go(seconds: float) -> None:
            clock.pass_by(seconds)
            dead_lease(client, bucket, released=True)

        assert reopened(host(sleep=let_go, monotonic_s=clock, poll_s=3.0)) == (ENTRIES, [])
        assert clock.now_s == 3.0

    def test_what_ends_the_run_ends_the_waiting(self, client, bucket, host, written):
        dead_lease(client, bucket)

        def interrupted(_: float) -> None:
            raise Stopped("Interrupted.", end_reason="interrupted")

        with pytest.raises(Stopped):
            host(sleep=interrupted).journals.open(RUN)
        assert self.lease(client, bucket)["host"] == "elsewhere"

    def test_of_many_that_wait_for_a_dead_one_a_single_one_gets_it(
        self, client, bucket, host, written
    ):
        dead_lease(client, bucket, ttl_s=1.0)
        hosts = [host(ttl_s=1.0, poll_s=0.1) for _ in range(4)]

        def take(process: Host) -> Any:
            try:
                return process.journals.open(RUN)
            except UsageError:
                return None

        with ThreadPoolExecutor(4) as pool:
            journals = [journal for journal in pool.map(take, hosts) if journal]
        for journal in journals:
            journal.close()
        assert len(journals) == 1
        assert [process.lost for process in hosts] == [[], [], [], []]

    def test_a_holder_that_was_taken_over_is_told_by_its_next_renewal(
        self, client, bucket, host, written
    ):
        process = host(ttl_s=0.4)
        with closing(process.journals.open(RUN)):
            dead_lease(client, bucket)
            assert process.is_lost.wait(PATIENCE_S)
        (error,) = process.lost
        assert f"Another process holds {RUN} now: process 7 on elsewhere" in error.message
        assert (error.end_reason, error.exit_code) == ("artifacts", 4)
        assert self.lease(client, bucket)["host"] == "elsewhere"

    def test_it_writes_over_no_entry_of_the_one_that_took_it_over(
        self, client, bucket, host, written
    ):
        process, other = host(), host()
        late = process.journals.open(RUN)
        dead_lease(client, bucket, released=True)
        with closing(other.journals.open(RUN)) as journal:
            journal.append({"by": "the new one"})
            assert other.delivery.settle() is None
            late.append({"by": "the old one"})
            error = process.delivery.settle()
        late.close()

        assert isinstance(error, ArtifactError)
        assert process.is_lost.is_set()
        assert reopened(host())[0] == [*ENTRIES, {"by": "the new one"}]

    def test_a_write_whose_answer_was_lost_is_its_own(
        self, client, bucket, host, written, moto_url, monkeypatch
    ):
        """The first write of each object arrives, but its answer is a 500."""
        seen: set[str] = set()

        def lose(sent: Sent) -> Said | None:
            is_first = sent.method == "PUT" and sent.path not in seen
            seen.add(sent.path)
            return xml(500, "InternalError") if is_first else None

        with relayed(moto_url, lose, passing=True) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            process = host(sleep=lambda _: None)
            with closing(process.journals.open(RUN)) as journal:
                journal.append({"more": 1})
                assert process.delivery.settle() is None
        assert process.lost == []
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
        assert reopened(host())[0] == [*ENTRIES, {"more": 1}]

    def test_a_lease_whose_renewals_arrive_unanswered_is_its_own(
        self, host, written, moto_url, monkeypatch
    ):
        """Of each two writes on a condition the first one arrives, and its answer is a 500."""
        writes: list[str] = []
        enough = threading.Event()

        def lose(sent: Sent) -> Said | None:
            if not (sent.method == "PUT" and "If-Match" in sent.headers):
                return None
            writes.append(sent.path)
            if len(writes) >= 6:
                enough.set()
            return xml(500, "InternalError") if len(writes) % 2 else None

        with relayed(moto_url, lose, passing=True) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            process = host(sleep=lambda _: None, ttl_s=1.0)
            with closing(process.journals.open(RUN)):
                assert enough.wait(PATIENCE_S)
        assert process.lost == []

    def test_an_outage_costs_no_lease_and_no_run(self, host, written, moto_url, monkeypatch):
        """It lasts for several renewals, and then some get through again."""
        down = threading.Event()
        refused, passed = [], []

        def answer_to(sent: Sent) -> Said | None:
            renewals = refused if down.is_set() else passed
            if sent.method == "PUT" and sent.path.endswith("lease.json"):
                renewals.append(sent)
            return xml(503, "SlowDown") if down.is_set() else None

        with relayed(moto_url, answer_to) as s3:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            process = host(ttl_s=0.4)
            with closing(process.journals.open(RUN)):
                down.set()
                until(lambda: len(refused) >= 3)
                down.clear()
                passed.clear()
                until(lambda: len(passed) >= 2)
        assert (process.lost, process.heard) == ([], [])

    def test_a_run_that_the_bucket_knew_in_part_is_created_over_what_was_left(
        self, client, bucket, host, written
    ):
        """Its first entry never arrived; the process is dead, and its lease has not run out."""
        client.delete_object(Bucket=bucket, Key=f"{FOLDER}000000.json")
        dead_lease(client, bucket, ttl_s=0.3)
        process = host(ttl_s=0.3)
        play(process, entries=[{"anew": n} for n in range(3)])

        assert process.lost == []
        assert reopened(host())[0] == [{"anew": n} for n in range(3)]

    def test_but_not_over_what_a_living_process_holds(self, client, bucket, host, written):
        client.delete_object(Bucket=bucket, Key=f"{FOLDER}000000.json")
        dead_lease(client, bucket)
        process = host(ttl_s=0.4)
        with closing(process.journals.create(RUN, IDENTITY)) as journal:
            for beat in range(2, 2 + round(PATIENCE_S / 0.2)):  # until it has been seen twice
                dead_lease(client, bucket, beat=beat)
                if process.is_lost.wait(0.2):
                    break
            assert process.is_lost.is_set()
            for number in range(3):
                journal.append({"anew": number})
            assert process.delivery.settle() is not None
            assert not journal.is_kept
        assert self.lease(client, bucket)["host"] == "elsewhere"
        body = client.get_object(Bucket=bucket, Key=f"{FOLDER}000001.json")["Body"].read()
        assert json.loads(body)["entry"] == ENTRIES[1]

    def test_an_answer_from_before_the_run_was_held_does_not_say_that_it_was_lost(
        self, client, bucket, host, moto_url, monkeypatch
    ):
        dead_lease(client, bucket, ttl_s=0.3)
        is_asked, answers = threading.Event(), threading.Event()

        def late(sent: Sent) -> Said | None:
            if sent.method != "GET" or is_asked.is_set():
                return None
            body = client.get_object(Bucket=bucket, Key=LEASE)
            is_asked.set()
            return Said(body["Body"].read(), headers={"Etag": body["ETag"]}, held=answers)

        with relayed(moto_url, late) as s3, ThreadPoolExecutor() as pool:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
            terms = LeaseTerms(
                on_lost=lambda _: None, notice=lambda _: None, sleep=time.sleep, ttl_s=0.4
            )
            lease = Lease(host().store, LEASE.removeprefix("p/"), RUN, terms)
            answer = pool.submit(lease.is_held)
            assert is_asked.wait(PATIENCE_S)
            lease.start()
            until(lambda: self.lease(client, bucket)["holder"] != "somebody")
            until(lambda: self.lease(client, bucket)["beat"] > 0)
            answers.set()
            with pytest.raises(StoreOutageError, match="not held yet"):
                answer.result(PATIENCE_S)
            assert lease.is_held()
            lease.release()

    def test_a_host_that_is_gone_is_not_asked_about_its_clock(self, client, bucket, host, written):
        """The lease says that it was taken in a year to come; nobody believes it."""
        dead_lease(client, bucket, since="2999-01-01T00:00:00Z")
        clock = Clock()

        assert reopened(host(sleep=clock.pass_by, monotonic_s=clock)) == (ENTRIES, [])


def dead_lease(client: Any, bucket: str, **more: Any) -> None:
    """What a process that was killed has left."""
    lease = {"kind": "lease", "run_id": RUN, "holder": "somebody", "host": "elsewhere", "pid": 7}
    lease |= {"since": "2026-11-20T12:00:00Z", "ttl_s": 60.0, "released": False, **more}
    client.put_object(Bucket=bucket, Key=LEASE, Body=json.dumps(lease).encode())


def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        threading.Event().wait(0.01)


class Clock:
    """Passes only while somebody sleeps."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds


def test_places_offer_the_journals_of_the_bucket(bucket):
    config = RunConfig(model="m", region="us-east-1", s3_bucket=bucket)
    store = open_bucket(config)
    delivery = Delivery([store] if store else [])
    terms = {"sleep": time.sleep, "on_lost": print, "notice": print}
    journals = bucket_journals(store, delivery, **terms)
    journal = journals.create(RUN, IDENTITY)
    journal.append({"a": 1})
    assert delivery.settle() is None
    journal.close()

    assert list(journals.newest(IDENTITY)) == [RUN]
    assert bucket_journals(None, delivery, **terms) is None
    delivery.close()


@pytest.mark.parametrize("keeps_notes", [True, False], ids=["alone", "beside a folder"])
def test_notes_are_kept_where_nobody_else_has_them(host: Callable[..., Host], *, keeps_notes: bool):
    process = host(keeps_notes=keeps_notes)
    written = process.journals.create(RUN, IDENTITY)
    written.append({"kind": "run", "n": 0})
    written.append({"kind": "asked", "n": 1}, durable=False)
    written.append({"kind": "answered", "n": 2})
    assert process.delivery.settle() is None
    written.close()

    body = [entry["n"] for entry in host().journals.open(RUN).entries]
    assert body == ([0, 1, 2] if keeps_notes else [0, 2])
