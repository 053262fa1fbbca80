"""The journals in a bucket: found, begun and taken up, each held by a lease."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from socratic_bench.errors import DamagedJournalError, Problem, UsageError
from socratic_bench.settings import MAX_STORED_BYTES
from socratic_bench.storage.bucket import Bucket, Stored
from socratic_bench.storage.bucket_chain import FoundEntries, chained, read_entry
from socratic_bench.storage.bucket_journal import BucketJournal, EntryStore
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.keys import RunKeys, index_of
from socratic_bench.storage.lease import Lease, LeaseTerms
from socratic_bench.storage.upload_queue import with_retries
from socratic_bench.store_ports import Entry

READERS = 8

Result = TypeVar("Result")

_ENTRY = re.compile(r"(\d{6,9})\.json")


class BucketJournals:
    """The journals below `journal/` of a bucket, held by leases.

    Reading waits out a short outage, and raises `ArtifactError` if S3 cannot be read.
    """

    def __init__(
        self, bucket: Bucket, delivery: Delivery, terms: LeaseTerms, *, keeps_notes: bool = True
    ) -> None:
        self._bucket = bucket
        self._delivery = delivery
        self._terms = terms
        self._keeps_notes = keeps_notes

    @contextmanager
    def alone(self, identity: str) -> Iterator[None]:
        """Cannot exclude two processes that begin at the same moment: S3 has no lock."""
        del identity
        yield

    def newest(self, identity: str) -> Iterator[str]:
        """Run ids whose first entry has this `identity` digest, the newest first."""
        folder = index_of(identity)
        named = self._with_retries(lambda: self._bucket.sizes(folder))
        for run_id in sorted((key.removeprefix(folder) for key in named), reverse=True):
            keys = _keys_of(run_id)
            if keys and self._get(keys.entry(0)):
                yield run_id

    def holds(self, run_id: str) -> bool:
        """Whether there is a journal of this run."""
        return self._get(RunKeys(run_id).entry(0)) is not None

    def first(self, run_id: str) -> Entry:
        """The first entry of a run's journal, which stays as it is and is not held.

        Raises `UsageError` if there is none.
        """
        keys = RunKeys(run_id)
        stored = self._get(keys.entry(0))
        if stored is None:
            raise self._absent(keys)
        entry, fault = read_entry(keys, 0, None, stored)
        if entry is None:
            raise DamagedJournalError(
                [f"The journal of {run_id} cannot be used: its beginning {fault}."]
            )
        return entry

    def _absent(self, keys: RunKeys) -> UsageError:
        return UsageError(
            [f"There is no run {keys.run_id} in {self._bucket.location(keys.journal)}."],
            hint=Problem.of("Check the run id, {s3_bucket} and {s3_prefix}."),
        )

    def create(self, run_id: str, identity: str) -> BucketJournal:
        """A new, empty journal, held by this process; returns at once, whatever S3 does."""
        keys = RunKeys(run_id)
        lease = self._lease(keys)
        lease.start()
        return self._journal(keys, lease, FoundEntries(), keys.index(identity))

    def open(self, run_id: str) -> BucketJournal:
        """The journal of a run, held by this process from now on.

        Raises `UsageError` if there is none, if another process holds it (naming the owner), or if
        it is no journal, and `ArtifactError` if S3 cannot be asked.
        """
        keys = RunKeys(run_id)
        if not self._sequences(keys):
            raise self._absent(keys)
        lease = self._lease(keys)
        self._with_retries(lease.take)
        try:
            found = self._read(keys)
        except BaseException:
            lease.release()
            raise
        index = keys.index(str(found.entries[0].get("digest")))
        return self._journal(keys, lease, found, index)

    def _lease(self, keys: RunKeys) -> Lease:
        return Lease(self._bucket, keys.lease, keys.run_id, self._terms)

    def _journal(
        self, keys: RunKeys, lease: Lease, found: FoundEntries, index: str
    ) -> BucketJournal:
        store = EntryStore(self._bucket, lease, keys.entry(0), index, found.bodies)
        notes = self._keeps_notes
        return BucketJournal(keys, store, self._delivery, lease, found, keeps_notes=notes)

    def _sequences(self, keys: RunKeys) -> dict[int, str]:
        """The key of every object that is named like an entry, by its number."""
        listed = self._with_retries(lambda: self._bucket.sizes(keys.journal))
        if sum(listed.values()) > MAX_STORED_BYTES:
            raise UsageError(
                [f"{self._bucket.location(keys.journal)} has more than {MAX_STORED_BYTES} bytes."],
                hint="Start a new run without resuming.",
            )
        found = {}
        for key in listed:
            name = _ENTRY.fullmatch(key.removeprefix(keys.journal))
            if name and keys.entry(int(name[1])) == key:
                found[int(name[1])] = key
        return dict(sorted(found.items()))

    def _read(self, keys: RunKeys) -> FoundEntries:
        listed = self._sequences(keys)
        with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
            stored = pool.map(self._get, listed.values())
            objects = dict(zip(listed, stored, strict=True))
        found = chained(keys, objects)
        if not found.entries:
            location = self._bucket.location(keys.journal)
            raise DamagedJournalError(
                [f"{location} is no journal of {keys.run_id}: {' '.join(found.repairs)}"],
                hint="Start a new run without resuming.",
            )
        return found

    def _get(self, key: str) -> Stored | None:
        return self._with_retries(lambda: self._bucket.get(key))

    def _with_retries(self, ask: Callable[[], Result]) -> Result:
        return with_retries(ask, self._terms.sleep)


def _keys_of(run_id: str) -> RunKeys | None:
    try:
        return RunKeys(run_id)
    except UsageError:
        return None
