"""The journal of one run in a bucket: each entry is written once and only once."""

import hashlib
import math
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from socratic_bench.documents import encode
from socratic_bench.documents.journal import Link
from socratic_bench.documents.plain import plain_keys
from socratic_bench.errors import ArtifactError, StoreOutageError
from socratic_bench.storage.bucket import Bucket
from socratic_bench.storage.bucket_chain import FoundEntries
from socratic_bench.storage.delivery import Delivery
from socratic_bench.storage.keys import RunKeys
from socratic_bench.storage.lease import Lease
from socratic_bench.store_ports import Entry, StoredObject

# If S3 is further behind than this, requests no longer wait until they are noted there.
WAIT_MAX_S = 2.0


class BucketJournal:
    """See `socratic_bench.store_ports.Journal`. Appending returns at once; other threads write."""

    def __init__(
        self,
        keys: RunKeys,
        store: "EntryStore",
        delivery: Delivery,
        lease: Lease,
        found: FoundEntries,
        *,
        keeps_notes: bool,
    ) -> None:
        self._keys = keys
        self._keeps_notes = keeps_notes
        self._store = store
        self._delivery = delivery
        self._lease = lease
        self.entries: Sequence[Entry] = tuple(found.entries)
        self.repairs: Sequence[str] = tuple(found.repairs)
        self.mended: Sequence[str] = ()  # its delivery tells that
        self._lock = threading.Lock()
        self._last = found.last
        self._n_entries = len(found.entries)
        self._under_way: dict[Future[None], float] = {}

    @property
    def is_kept(self) -> bool:
        """Whether all that was appended has arrived."""
        return self._store.is_sound and self._store.kept >= self._store.bodies.keys()

    def mend(self) -> None:
        """Its delivery sees to that."""

    def body_of(self, key: str) -> bytes | None:
        return self._store.bodies.get(key)

    def append(self, entry: Entry, *, durable: bool = True) -> None:
        """Start storing an entry; the run's delivery knows whether it arrived.

        Notes are left out where a folder has them: each is a request to S3.
        """
        if not (durable or self._keeps_notes):
            return
        with self._lock:
            link = Link(
                run_id=self._keys.run_id,
                sequence=self._n_entries,
                previous=self._last,
                entry=dict(entry),
            )
            body = encode(plain_keys(link))
            key = self._keys.entry(self._n_entries)
            self._last = hashlib.sha256(body).hexdigest()
            self._n_entries += 1
            self._store.bodies[key] = body
        write = self._delivery.send_to(self._store, key, body)
        if write:
            tried: Future[None] = Future()
            write.add_done_callback(lambda _: tried.set_result(None))
            with self._lock:
                self._under_way[tried] = time.monotonic()

    def writes(self) -> Sequence[Future[None]]:
        """See `socratic_bench.store_ports.Journal`, none of S3 that is `WAIT_MAX_S` behind."""
        with self._lock:
            for write in [write for write in self._under_way if write.done()]:
                del self._under_way[write]
            first_s = min(self._under_way.values(), default=math.inf)
            is_behind = time.monotonic() - first_s > WAIT_MAX_S
            return () if is_behind else tuple(self._under_way)

    def close(self) -> None:
        """Let go of the run, so that another process may take it up."""
        self._lease.release()


class EntryStore:
    """Stores a journal's entries; replaces an existing object only while this process holds the
    run.

    Such an object is either from an earlier process, behind a gap or a broken entry, or from one
    that has taken the run over. `bodies` has every entry by its key, `kept` the keys of those that
    are there. Not `is_sound`: S3 said that it kept them, and fails to say that it still does.
    """

    def __init__(
        self, bucket: Bucket, lease: Lease, first_key: str, index: str, bodies: dict[str, bytes]
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

    def missing(self, kept: Mapping[str, StoredObject]) -> Sequence[str] | None:
        """See `socratic_bench.store_ports.ArtifactStore`, also of earlier processes' files."""
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
        """Replace an existing object by an entry, if this process holds the run."""
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
