"""The journals in a bucket: one object an entry, written once, each chained to the one before."""

from __future__ import annotations

import hashlib
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TypeVar

import orjson
from msgspec import Struct, ValidationError, field

from socratic_bench.concurrency import convert
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys, reason
from socratic_bench.documents.journal import Link
from socratic_bench.errors import (
    ArtifactError,
    DamagedJournalError,
    Problem,
    StoreOutageError,
    UsageError,
)
from socratic_bench.ports.store import Entry, StoredObject
from socratic_bench.settings import MAX_STORED_BYTES
from socratic_bench.storage.delivery import Delivery, with_retries
from socratic_bench.storage.keys import RunKeys, index_of
from socratic_bench.storage.lease import Lease, LeaseTerms
from socratic_bench.storage.s3 import S3Store, Stored
from socratic_bench.types import plural

READERS = 8
# If S3 is further behind than this, requests no longer wait until they are noted there.
WAIT_MAX_S = 2.0

_ENTRY = re.compile(r"(\d{6,9})\.json")

Result = TypeVar("Result")


class BucketJournals:
    """See `Journals`: those below `journal/` of a bucket, each held by a lease. Reading waits out a
    short outage, and raises `ArtifactError` if S3 cannot be read.
    """

    def __init__(
        self, bucket: S3Store, delivery: Delivery, terms: LeaseTerms, *, keeps_notes: bool = True
    ) -> None:
        self._bucket = bucket
        self._delivery = delivery
        self._terms = terms
        self._keeps_notes = keeps_notes

    @contextmanager
    def exclusive(self, identity: str) -> Iterator[None]:
        """Cannot exclude two processes that begin at the same moment: S3 has no lock."""
        del identity
        yield

    def newest(self, identity: str) -> Iterator[str]:
        folder = index_of(identity)
        index = self._with_retries(lambda: self._bucket.sizes(folder))
        for run_id in sorted((key.removeprefix(folder) for key in index), reverse=True):
            with suppress(UsageError):  # an object of another name
                if self._get(RunKeys(run_id).entry(0)):
                    yield run_id

    def holds(self, run_id: str) -> bool:
        return self._get(RunKeys(run_id).entry(0)) is not None

    def first(self, run_id: str) -> Entry:
        keys = RunKeys(run_id)
        stored = self._get(keys.entry(0))
        if stored is None:
            raise self._absent(keys)
        entry, fault = _read_entry(keys, 0, None, stored)
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
        return self._journal(keys, lease, ChainedEntries(), identity)

    def open(self, run_id: str) -> BucketJournal:
        keys = RunKeys(run_id)
        if not self._plain_keys(keys):
            raise self._absent(keys)
        lease = self._lease(keys)
        self._with_retries(lease.take)
        try:
            chain = self._read(keys)
        except BaseException:
            lease.release()
            raise
        return self._journal(keys, lease, chain, str(chain.entries[0].get("digest")))

    def _lease(self, keys: RunKeys) -> Lease:
        return Lease(self._bucket, keys.lease, keys.run_id, self._terms)

    def _journal(
        self, keys: RunKeys, lease: Lease, chain: ChainedEntries, identity: str
    ) -> BucketJournal:
        journal = BucketJournal(keys, identity, self._bucket, self._delivery, lease, chain)
        journal.keeps_notes = self._keeps_notes
        return journal

    def _plain_keys(self, keys: RunKeys) -> dict[int, str]:
        """The key of every object that is named like an entry, by its number, in order."""
        sizes = self._with_retries(lambda: self._bucket.sizes(keys.journal))
        if sum(sizes.values()) > MAX_STORED_BYTES:
            raise UsageError(
                [f"{self._bucket.location(keys.journal)} has more than {MAX_STORED_BYTES} bytes."],
                hint="Start a new run without resuming.",
            )
        entry_keys = {}
        for key in sizes:
            name = _ENTRY.fullmatch(key.removeprefix(keys.journal))
            if name and keys.entry(int(name[1])) == key:
                entry_keys[int(name[1])] = key
        return dict(sorted(entry_keys.items()))

    def _read(self, keys: RunKeys) -> ChainedEntries:
        entry_keys = self._plain_keys(keys)
        with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
            objects = dict(zip(entry_keys, pool.map(self._get, entry_keys.values()), strict=True))
        chain = ChainedEntries.of(keys, objects)
        if not chain.entries:
            location = self._bucket.location(keys.journal)
            raise DamagedJournalError(
                [f"{location} is not a journal of {keys.run_id}: {' '.join(chain.repairs)}"],
                hint="Start a new run without resuming.",
            )
        return chain

    def _get(self, key: str) -> Stored | None:
        return self._with_retries(lambda: self._bucket.get(key))

    def _with_retries(self, request: Callable[[], Result]) -> Result:
        return with_retries(request, self._terms.sleep)


class BucketJournal:
    """See `socratic_bench.ports.store.Journal`. Appending returns at once: the delivery writes the
    entries in other threads, and calls it as an `ArtifactStore`.

    An existing object is replaced only while this process holds the run: it is either from an
    earlier process, behind a gap or a broken entry, or from one that has taken the run over.
    `_bodies` has every entry by its key, `_kept` the keys of those that are there.
    """

    keeps_notes = True

    def __init__(
        self,
        keys: RunKeys,
        identity: str,
        bucket: S3Store,
        delivery: Delivery,
        lease: Lease,
        chain: ChainedEntries,
    ) -> None:
        self._keys = keys
        self._index = keys.index(identity)
        self._bucket = bucket
        self._delivery = delivery
        self._lease = lease
        self._bodies = chain.bodies
        self._kept = {*chain.bodies}
        self._is_sound = True  # false if S3 accepted them and then failed to confirm that
        self.entries: Sequence[Entry] = tuple(chain.entries)
        self.repairs: Sequence[str] = tuple(chain.repairs)
        self.mended: Sequence[str] = ()  # the delivery gives notices of that
        self._lock = threading.Lock()
        self._last_sha256 = chain.last_sha256
        self._n_entries = len(chain.entries)
        self._under_way: dict[Future[None], float] = {}

    @property
    def is_kept(self) -> bool:
        """Whether all that was appended has arrived."""
        return self._is_sound and self._kept >= self._bodies.keys()

    def mend(self) -> None:
        """Nothing: the delivery writes anew what others took away."""

    def body_of(self, key: str) -> bytes | None:
        return self._bodies.get(key)

    def append(self, entry: Entry, *, durable: bool = True) -> None:
        """Start storing an entry; the run's delivery knows whether it arrived. Notes are left out
        where a folder has them: each is a request to S3.
        """
        if not (durable or self.keeps_notes):
            return
        with self._lock:
            link = Link(
                run_id=self._keys.run_id,
                sequence=self._n_entries,
                previous=self._last_sha256,
                entry=dict(entry),
            )
            body = encode(plain_keys(link))
            key = self._keys.entry(self._n_entries)
            self._last_sha256 = hashlib.sha256(body).hexdigest()
            self._n_entries += 1
            self._bodies[key] = body
        write = self._delivery.send_to(self, key, body)
        if write:
            # One that never fails, for those who wait.
            attempt: Future[None] = Future()
            write.add_done_callback(lambda _: attempt.set_result(None))
            with self._lock:
                self._under_way[attempt] = time.monotonic()

    def writes(self) -> Sequence[Future[None]]:
        """See `socratic_bench.ports.store.Journal`; none if S3 is `WAIT_MAX_S` behind, or a folder
        keeps the notes.
        """
        if not self.keeps_notes:
            return ()
        with self._lock:
            for write in [write for write in self._under_way if write.done()]:
                del self._under_way[write]
            oldest_s = min(self._under_way.values(), default=math.inf)
            is_behind = time.monotonic() - oldest_s > WAIT_MAX_S
            return () if is_behind else tuple(self._under_way)

    def close(self) -> None:
        """Release the run, so that another process may resume it."""
        self._lease.release()

    def check(self) -> None:
        """Nothing: the run's own store of the same bucket is checked."""

    def location(self, key: str) -> str:
        return self._bucket.location(key)

    def put(self, key: str, body: bytes) -> None:
        if self._bucket.put_if(key, body, etag=None) is None:
            self._replace(key, body)
        if key == self._keys.entry(0):
            # Only now is there something to find.
            self._bucket.put(self._index, b"")
        self._kept.add(key)

    def missing(self, objects: Mapping[str, StoredObject]) -> Sequence[str] | None:
        """See `socratic_bench.ports.store.ArtifactStore`, also of earlier processes' files."""
        del objects
        bodies = {key: body for key, body in [*self._bodies.items()] if key in self._kept}
        own = {
            key: StoredObject(n_bytes=len(body), sha256=b"")  # a bucket compares lengths alone
            for key, body in {**bodies, self._index: b""}.items()
        }
        try:
            missing = self._bucket.missing(own)
        except ArtifactError:
            self._is_sound = False
            raise
        self._is_sound = True
        if missing is None:
            return None
        self._kept.difference_update(missing)
        # The index goes with the first entry.
        first = self._keys.entry(0)
        return [*dict.fromkeys(first if key == self._index else key for key in missing)]

    def _replace(self, key: str, body: bytes) -> None:
        """Replace an existing object by an entry, if this process holds the run."""
        existing = self._bucket.get(key)
        if existing and existing.body == body:
            return  # an earlier try arrived, and only its answer was lost
        if not self._lease.is_held():
            raise self._lease.mark_lost()
        etag = existing.etag if existing else None
        if self._bucket.put_if(key, body, etag=etag) is None:
            raise StoreOutageError(
                f"{self.location(key)} was changed by others meanwhile.",
                hint="Use one process at a time for a run.",
            )


class ChainedEntries(Struct):
    """What could be read of a journal: its entries, their objects' bodies, and the last sha256."""

    entries: list[Entry] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)
    last_sha256: str | None = None
    repairs: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, keys: RunKeys, objects: Mapping[int, Stored | None]) -> ChainedEntries:
        """The entries up to the first one that is missing, broken, or not the next of its chain."""
        chain = cls()
        for sequence in range(max(objects, default=-1) + 1):
            stored = objects.get(sequence)
            entry, fault = _read_entry(keys, sequence, chain.last_sha256, stored)
            if entry is None or stored is None:
                chain.repairs.append(_repair_message(sequence, fault, objects))
                break
            chain.entries.append(entry)
            chain.bodies[keys.entry(sequence)] = stored.body
            chain.last_sha256 = hashlib.sha256(stored.body).hexdigest()
        return chain


def _repair_message(sequence: int, fault: str, sequences: Iterable[int]) -> str:
    """The sentence about the entry at which the chain breaks off."""
    n_behind = sum(1 for number in sequences if number > sequence)
    behind = plural(n_behind, "entry behind it was", "entries behind it were")
    sentence = f"Entry {sequence} of the journal {fault}."
    return f"{sentence} {behind} left out." if n_behind else sentence


def _read_entry(
    keys: RunKeys, sequence: int, previous: str | None, stored: Stored | None
) -> tuple[Entry | None, str]:
    """The entry in an object, or `None` and what is wrong with it."""
    if stored is None:
        return None, "is missing"
    try:
        link = convert(orjson.loads(stored.body), Link)
    except orjson.JSONDecodeError:
        return None, "is cut or broken"
    except ValidationError as error:
        return None, f"is something else ({reason(error).rstrip('.')})"
    if (link.run_id, link.sequence) != (keys.run_id, sequence):
        return None, "belongs elsewhere"
    if link.previous != previous:
        return None, "does not follow the one before"
    return link.entry, ""
