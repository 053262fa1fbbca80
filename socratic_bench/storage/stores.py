"""The stores that a configuration or a place names, and the journals in them.

The door of the S3 part: it loads the SDK, and is imported only when a bucket is named.
"""

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from random import random
from typing import TYPE_CHECKING, Protocol

from socratic_bench.errors import BenchError, Mistakes, UsageError
from socratic_bench.ports.store import ArtifactStore, Journals
from socratic_bench.settings import OFFLINE_REGION, S3, CoreConfig
from socratic_bench.storage.delivery import Delivery, with_retries
from socratic_bench.storage.folder import FolderStore
from socratic_bench.storage.folder_journal import FolderJournals
from socratic_bench.types import Json

if TYPE_CHECKING:
    from socratic_bench.storage.s3 import S3Store


Region = Callable[[], str]  # that of buckets, looked up once it is needed


def open_folder(
    config: CoreConfig, notice: Callable[[str], None] | None = None
) -> FolderStore | None:
    """The output folder, or `None` without one; `notice` gets a sentence about each repair."""
    return FolderStore(config.output_dir, notice) if config.output_dir else None


def folder_journals(
    config: CoreConfig, notice: Callable[[str], None] = lambda _: None
) -> Journals | None:
    """The journals in the output folder, or `None` without one; `notice` hears of damaged ones."""
    return FolderJournals(config.output_dir, notice) if config.output_dir else None


def owner() -> dict[str, Json]:
    """Process and host, which a journal names to those who meet its lock."""
    return {"pid": os.getpid(), "host": socket.gethostname()}


def open_bucket(
    config: CoreConfig, notice: Callable[[str], None] = lambda _: None
) -> "S3Store | None":
    """The bucket, or `None` without one. Raises `UsageError`. `notice` hears, from any thread, of
    what differs from the settings, such as the region.
    """
    if not config.s3_bucket:
        return None
    from socratic_bench.storage.s3 import S3Store

    return S3Store(
        config.s3_bucket,
        prefix=config.s3_prefix,
        region=config.region or OFFLINE_REGION,
        kms_key_id=config.s3_kms_key_id,
        setting="s3_bucket",
        notice=notice,
    )


def bucket_journals(
    store: "S3Store | None",
    delivery: Delivery,
    *,
    sleep: Callable[[float], None],
    on_lost: Callable[[BenchError], object],
    notice: Callable[[str], None],
    keeps_notes: bool = True,
) -> Journals | None:
    """The journals in the bucket that `open_bucket` opened; `None` without one.

    `sleep` and `on_lost` are `CancelToken.sleep` and `CancelToken.end`: see `LeaseTerms`. Entries
    travel with `delivery`: its `settle` waits for them, too, so that no curated file comes before
    them, and a journal is closed only after `settle` or `give_up`. `keeps_notes`: each request to a
    model is noted before it is sent, which only a run without a folder needs.
    """
    if store is None:
        return None
    from socratic_bench.storage.bucket_journal import BucketJournals
    from socratic_bench.storage.lease import LeaseTerms

    terms = LeaseTerms(on_lost=on_lost, notice=notice, sleep=sleep)
    return BucketJournals(store, delivery, terms, keeps_notes=keeps_notes)


def check_stores(stores: Sequence[ArtifactStore]) -> None:
    """Check all stores. Raises one `UsageError` with the problems of all."""
    mistakes = Mistakes()
    for store in stores:
        with mistakes:
            store.check()
    if mistakes.sentences:
        raise mistakes.error()


class ListedStore(Protocol):
    """A store whose files can be listed and read; every method raises `ArtifactError`."""

    def put(self, key: str, body: bytes) -> None:
        """Store a file, whatever was there."""
        ...

    def update(self, key: str, change: Callable[[bytes | None], bytes | None]) -> None:
        """Replace a file, or `None`, by what `change` makes of it; again, if another process has
        replaced it meanwhile. Nothing is written for `None`.
        """
        ...

    def get(self, key: str) -> bytes | None:
        """The file, or `None` if there is none."""
        ...

    def remove(self, key: str) -> None:
        """Remove a file, if it is there."""
        ...

    def age_s(self, key: str) -> float | None:
        """Seconds since the file was written; `None` if there is none."""
        ...

    def keys(self, prefix: str) -> Sequence[str]:
        """The keys of one folder that begin with `prefix`: "folder/" for all of it."""
        ...

    def sizes(self, prefix: str) -> Mapping[str, int]:
        """The bytes of each file whose key begins so, in folders, too."""
        ...

    def folders(self, key: str) -> Iterable[str]:
        """The names of the folders in one, which ends with "/"."""
        ...

    def location(self, key: str) -> str:
        """Where a reader finds the key: a URL or an absolute path."""
        ...


class ListedBucket:
    """See `ListedStore`; waits out a short outage."""

    def __init__(self, bucket: "S3Store", sleep: Callable[[float], None]) -> None:
        self._bucket = bucket
        self._sleep = sleep

    def put(self, key: str, body: bytes) -> None:
        with_retries(lambda: self._bucket.put(key, body), self._sleep)

    def update(self, key: str, change: Callable[[bytes | None], bytes | None]) -> None:
        def is_done() -> bool:
            stored = self._bucket.get(key)
            body = change(stored.body if stored else None)
            etag = stored.etag if stored else None
            return body is None or self._bucket.put_if(key, body, etag=etag) is not None

        while not with_retries(is_done, self._sleep):
            self._sleep(0.01 + 0.04 * random())

    def get(self, key: str) -> bytes | None:
        stored = with_retries(lambda: self._bucket.get(key), self._sleep)
        return stored.body if stored else None

    def age_s(self, key: str) -> float | None:
        """By the clock of S3."""
        stored = with_retries(lambda: self._bucket.get(key), self._sleep)
        return stored.age_s if stored else None

    def sizes(self, prefix: str) -> Mapping[str, int]:
        return with_retries(lambda: self._bucket.sizes(prefix), self._sleep)

    def keys(self, prefix: str) -> Sequence[str]:
        return [*self.sizes(prefix)]

    def folders(self, key: str) -> Iterable[str]:
        return dict.fromkeys(name.removeprefix(key).split("/")[0] for name in self.keys(key))

    def remove(self, key: str) -> None:
        with_retries(lambda: self._bucket.delete(key), self._sleep)

    @contextmanager
    def exclusive(self, key: str, refusal: str) -> Iterator[None]:
        """Hold a lease on a key while the block runs. Raises `UsageError` with the refusal if
        another process holds it.
        """
        from socratic_bench.storage.lease import Lease, LeaseTerms

        quiet = LeaseTerms(on_lost=lambda _: None, notice=lambda _: None, sleep=self._sleep)
        lease = Lease(self._bucket, key, key, quiet)
        try:
            lease.take()
        except UsageError as error:
            raise UsageError([refusal]) from error
        try:
            yield
        finally:
            lease.release()

    def location(self, key: str) -> str:
        return self._bucket.location(key)


def store_at(root: str, region: Region) -> ListedStore:
    """The store at a folder or s3://BUCKET/PREFIX; `region` gives the region of buckets. Raises
    `UsageError` for a bucket that does not exist.
    """
    if not root.startswith(S3):
        return FolderStore(root)
    from socratic_bench.storage.s3 import S3Store

    name, _, prefix = root.removeprefix(S3).partition("/")
    store = S3Store(name, prefix=prefix.strip("/"), region=region())
    store.check()
    return ListedBucket(store, time.sleep)


class ListedStores:
    """The stores that a configuration names, checked; the folder is the first."""

    def __init__(self, config: CoreConfig, sleep: Callable[[float], None]) -> None:
        self.folder = open_folder(config)
        bucket = open_bucket(config)
        check_stores([store for store in (self.folder, bucket) if store])
        self.bucket = ListedBucket(bucket, sleep) if bucket else None

    def exclusive(self, key: str, refusal: str | None = None) -> AbstractContextManager[None]:
        """See `FolderStore.exclusive`; a bucket has no lock, and each of its runs has a lease."""
        return self.folder.exclusive(key, refusal) if self.folder else nullcontext()

    def shared(self, key: str, when_alone: Callable[[], None]) -> AbstractContextManager[None]:
        """See `FolderStore.shared`; a bucket has nothing that only a single process may do."""
        return self.folder.shared(key, when_alone) if self.folder else nullcontext()

    @property
    def all(self) -> Sequence[ListedStore]:
        return [store for store in (self.folder, self.bucket) if store]
