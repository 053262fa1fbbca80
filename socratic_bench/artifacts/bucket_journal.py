"""The journal in a bucket: one object an entry, chained, each written once and only once."""

import hashlib
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import orjson
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from socratic_bench.artifacts.bucket import Bucket, Stored
from socratic_bench.artifacts.delivery import Delivery
from socratic_bench.artifacts.keys import RunKeys, index_of
from socratic_bench.artifacts.lease import Lease, LeaseTerms
from socratic_bench.config import MAX_STORED_BYTES
from socratic_bench.documents import encode
from socratic_bench.errors import (
    ArtifactError,
    DamagedJournalError,
    StoreOutageError,
    UsageError,
)
from socratic_bench.ports import Entry, Kept
from socratic_bench.types import Json

READERS = 8
READ_TRIES = 6
READ_WAIT_MAX_S = 8.0
# How far S3 may be behind for requests to wait until they are noted there.
WAIT_MAX_S = 2.0

Result = TypeVar("Result")

_ENTRY = re.compile(r"(\d{6,9})\.json")


@dataclass(slots=True)
class _Found:
    """What could be read of a journal."""

    entries: list[Entry] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)
    last: str | None = None
    repairs: list[str] = field(default_factory=list)


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
        """Two processes that begin a run at the same moment are not told apart: S3 has no lock."""
        del identity
        yield

    def newest(self, identity: str) -> Iterator[str]:
        """Run ids whose first entry has this `identity` digest, the newest first."""
        folder = index_of(identity)
        named = self._patiently(lambda: self._bucket.sizes(folder))
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
        entry, fault = _entry(keys, 0, None, stored)
        if entry is None:
            raise DamagedJournalError(
                [f"The journal of {run_id} cannot be used: its beginning {fault}."]
            )
        return entry

    def _absent(self, keys: RunKeys) -> UsageError:
        return UsageError(
            [f"There is no run {keys.run_id} in {self._bucket.location(keys.journal)}."],
            hint="Check the run id, --s3-bucket and --s3-prefix.",
        )

    def create(self, run_id: str, identity: str) -> "BucketJournal":
        """A new, empty journal, held by this process; returns at once, whatever S3 does."""
        keys = RunKeys(run_id)
        lease = self._lease(keys)
        lease.start()
        return self._journal(keys, lease, _Found(), keys.index(identity))

    def open(self, run_id: str) -> "BucketJournal":
        """The journal of a run, held by this process from now on.

        Raises `UsageError` if there is none, if another process holds it (naming the owner), or if
        it is no journal, and `ArtifactError` if S3 cannot be asked.
        """
        keys = RunKeys(run_id)
        if not self._sequences(keys):
            raise self._absent(keys)
        lease = self._lease(keys)
        self._patiently(lease.take)
        try:
            found = self._read(keys)
        except BaseException:
            lease.release()
            raise
        index = keys.index(str(found.entries[0].get("digest")))
        return self._journal(keys, lease, found, index)

    def _lease(self, keys: RunKeys) -> Lease:
        return Lease(self._bucket, keys.lease, keys.run_id, self._terms)

    def _journal(self, keys: RunKeys, lease: Lease, found: _Found, index: str) -> "BucketJournal":
        shelf = _Shelf(self._bucket, lease, keys.entry(0), index, found.bodies)
        notes = self._keeps_notes
        return BucketJournal(keys, shelf, self._delivery, lease, found, keeps_notes=notes)

    def _sequences(self, keys: RunKeys) -> dict[int, str]:
        """The key of every object that is named like an entry, by its number."""
        listed = self._patiently(lambda: self._bucket.sizes(keys.journal))
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

    def _read(self, keys: RunKeys) -> _Found:
        listed = self._sequences(keys)
        with ThreadPoolExecutor(READERS, thread_name_prefix="journal") as pool:
            stored = pool.map(self._get, listed.values())
            objects = dict(zip(listed, stored, strict=True))
        found = _chained(keys, objects)
        if not found.entries:
            location = self._bucket.location(keys.journal)
            raise DamagedJournalError(
                [f"{location} is no journal of {keys.run_id}: {' '.join(found.repairs)}"],
                hint="Start a new run without resuming.",
            )
        return found

    def _get(self, key: str) -> Stored | None:
        return self._patiently(lambda: self._bucket.get(key))

    def _patiently(self, ask: Callable[[], Result]) -> Result:
        retrying = Retrying(
            retry=retry_if_exception_type(StoreOutageError),
            stop=stop_after_attempt(READ_TRIES),
            wait=wait_random_exponential(multiplier=0.5, max=READ_WAIT_MAX_S),
            sleep=self._terms.sleep,
            reraise=True,
        )
        return retrying(ask)


class BucketJournal:
    """The journal of one run. Appending returns at once; the objects follow beside the dialogue."""

    def __init__(
        self,
        keys: RunKeys,
        shelf: "_Shelf",
        delivery: Delivery,
        lease: Lease,
        found: _Found,
        *,
        keeps_notes: bool,
    ) -> None:
        self._keys = keys
        self._keeps_notes = keeps_notes
        self._shelf = shelf
        self._delivery = delivery
        self._lease = lease
        self._found = tuple(found.entries)
        self._repairs = tuple(found.repairs)
        self._lock = threading.Lock()
        self._last = found.last
        self._n_entries = len(found.entries)
        self._under_way: dict[Future[None], float] = {}

    @property
    def entries(self) -> Sequence[Entry]:
        """What was there when the journal was opened, oldest first."""
        return self._found

    @property
    def repairs(self) -> Sequence[str]:
        """What had to be repaired to read it, a sentence each."""
        return self._repairs

    @property
    def is_kept(self) -> bool:
        """Whether all that was appended has arrived."""
        return self._shelf.is_sound and self._shelf.kept >= self._shelf.bodies.keys()

    @property
    def mended(self) -> Sequence[str]:
        """Its delivery tells that."""
        return ()

    def mend(self) -> None:
        """Its delivery sees to that."""

    def body_of(self, key: str) -> bytes | None:
        return self._shelf.bodies.get(key)

    def append(self, entry: Entry, *, durable: bool = True) -> None:
        """Start keeping an entry; whether it arrived the run's delivery knows.

        Notes are left out where a folder has them: each is a request to S3.
        """
        if not (durable or self._keeps_notes):
            return
        with self._lock:
            body = encode(
                {
                    "kind": "journal_entry",
                    "run_id": self._keys.run_id,
                    "sequence": self._n_entries,
                    "previous": self._last,
                    "entry": dict(entry),
                }
            )
            key = self._keys.entry(self._n_entries)
            self._last = hashlib.sha256(body).hexdigest()
            self._n_entries += 1
            self._shelf.bodies[key] = body
        write = self._delivery.send_to(self._shelf, key, body)
        if write:
            tried: Future[None] = Future()
            write.add_done_callback(lambda _: tried.set_result(None))
            with self._lock:
                self._under_way[tried] = time.monotonic()

    def writes(self) -> Sequence[Future[None]]:
        """See `socratic_bench.ports.Journal`; S3 that is `WAIT_MAX_S` behind is not waited for."""
        with self._lock:
            for write in [write for write in self._under_way if write.done()]:
                del self._under_way[write]
            first_s = min(self._under_way.values(), default=math.inf)
            is_behind = time.monotonic() - first_s > WAIT_MAX_S
            return () if is_behind else tuple(self._under_way)

    def close(self) -> None:
        """Let go of the run, so that another process may take it up."""
        self._lease.release()


class _Shelf:
    """Where a journal's entries go: over what lies there only while this process holds the run.

    What lies there is either left from an earlier process, behind a gap or a broken entry, or the
    work of one that has taken the run over. `bodies` has every entry by its key, `kept` the keys of
    those that are there. Not `is_sound`: S3 said that it kept them, and fails to say that it still
    does.
    """

    def __init__(
        self,
        bucket: Bucket,
        lease: Lease,
        first_key: str,
        index: str,
        bodies: dict[str, bytes],
    ) -> None:
        self._bucket = bucket
        self._lease = lease
        self._first_key = first_key
        self._index = index
        self.bodies = bodies
        self.kept = {*bodies}
        self.is_sound = True

    def check(self) -> None:
        """The run's own store of the same bucket is checked."""

    def location(self, key: str) -> str:
        return self._bucket.location(key)

    def put(self, key: str, body: bytes) -> None:
        if self._bucket.put_if(key, body, etag=None) is None:
            self._replace(key, body)
        if key == self._first_key:
            # Only now is there something to find.
            self._bucket.put(self._index, b"")
        self.kept.add(key)

    def missing(self, kept: Mapping[str, Kept]) -> Sequence[str] | None:
        """See `socratic_bench.ports.ArtifactStore`: also of what earlier processes have kept."""
        del kept
        sizes = {key: len(body) for key, body in [*self.bodies.items()] if key in self.kept}
        try:
            missing = self._bucket.missing({**sizes, self._index: 0})
        except ArtifactError:
            self.is_sound = False
            raise
        self.is_sound = True
        if missing is None:
            return None
        self.kept.difference_update(missing)
        # The index goes with the first entry.
        return [*dict.fromkeys(self._first_key if key == self._index else key for key in missing)]

    def _replace(self, key: str, body: bytes) -> None:
        """Put an entry where something lies, if this process is the one that may."""
        there = self._bucket.get(key)
        if there and there.body == body:
            return  # an earlier try arrived, and only its answer was lost
        if not self._lease.is_held():
            raise self._lease.lost()
        if self._bucket.put_if(key, body, etag=there.etag if there else None) is None:
            raise StoreOutageError(
                f"{self.location(key)} was changed by others meanwhile.",
                hint="Let one process at a time play a run.",
            )


def _keys_of(run_id: str) -> RunKeys | None:
    try:
        return RunKeys(run_id)
    except UsageError:
        return None


def _chained(keys: RunKeys, objects: Mapping[int, Stored | None]) -> _Found:
    """The entries up to the first one that is missing, broken, or not the next of its chain."""
    found = _Found()
    for sequence in range(max(objects, default=-1) + 1):
        stored = objects.get(sequence)
        entry, fault = _entry(keys, sequence, found.last, stored)
        if entry is None or stored is None:
            n_left = sum(1 for number in objects if number > sequence)
            behind = f" {n_left} entries behind it were left out." if n_left else ""
            found.repairs.append(f"Entry {sequence} of the journal {fault}.{behind}")
            break
        found.entries.append(entry)
        found.bodies[keys.entry(sequence)] = stored.body
        found.last = hashlib.sha256(stored.body).hexdigest()
    return found


def _entry(
    keys: RunKeys, sequence: int, previous: str | None, stored: Stored | None
) -> tuple[Entry | None, str]:
    """The entry that an object holds, or what is wrong with it."""
    if stored is None:
        return None, "is missing"
    try:
        envelope: Json = orjson.loads(stored.body)
    except orjson.JSONDecodeError:
        return None, "is cut or broken"
    if not isinstance(envelope, dict) or envelope.get("kind") != "journal_entry":
        return None, "is something else"
    entry = envelope.get("entry")
    if (envelope.get("run_id"), envelope.get("sequence")) != (keys.run_id, sequence):
        return None, "belongs elsewhere"
    if envelope.get("previous") != previous or not isinstance(entry, dict):
        return None, "does not follow the one before"
    return entry, ""
