"""Stores whose files can be listed and read, for what is no single run's: the index of a sweep."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeVar

from socratic_bench.retrying import RetryPolicy
from socratic_bench.settings import S3, CoreConfig
from socratic_bench.storage.folder import FolderStore
from socratic_bench.storage.places import check_stores, open_bucket, open_folder
from socratic_bench.storage.upload_queue import is_outage

if TYPE_CHECKING:
    from socratic_bench.storage.s3 import S3Store

TRIES = 6
WAIT_MAX_S = 8.0

Result = TypeVar("Result")


class ListedStore(Protocol):
    """Files by key, as `ArtifactStore` has them; every method raises `ArtifactError`."""

    def put(self, key: str, body: bytes) -> None: ...

    def get(self, key: str) -> bytes | None:
        """The file, or `None` if there is none."""
        ...

    def keys(self, beginning: str) -> Sequence[str]:
        """The keys of one folder that begin so: "folder/" for all of it."""
        ...

    def folders(self, key: str) -> Iterable[str]:
        """The names of the folders in one, which ends with "/"."""
        ...

    def location(self, key: str) -> str: ...


class ListedFolder:
    """See `ListedStore`."""

    def __init__(self, store: FolderStore) -> None:
        self._store = store

    def put(self, key: str, body: bytes) -> None:
        self._store.put(key, body)

    def get(self, key: str) -> bytes | None:
        return self._store.read(key) if self._store.holds(key) else None

    def keys(self, beginning: str) -> Sequence[str]:
        folder, _, start = beginning.rpartition("/")
        names = self._store.names(folder)
        return [f"{folder}/{name}" for name in names if name.startswith(start or "")]

    def folders(self, key: str) -> Iterable[str]:
        return self._store.names(key.rstrip("/"))

    def location(self, key: str) -> str:
        return self._store.location(key)


class ListedBucket:
    """See `ListedStore`; waits out a short outage."""

    def __init__(self, store: "S3Store", sleep: Callable[[float], None]) -> None:
        self._bucket = store.bucket
        self._sleep = sleep

    def put(self, key: str, body: bytes) -> None:
        self._patiently(lambda: self._bucket.put(key, body))

    def get(self, key: str) -> bytes | None:
        found = self._patiently(lambda: self._bucket.get(key))
        return found.body if found else None

    def keys(self, beginning: str) -> Sequence[str]:
        return [*self._patiently(lambda: self._bucket.sizes(beginning))]

    def folders(self, key: str) -> Iterable[str]:
        return dict.fromkeys(one.removeprefix(key).split("/")[0] for one in self.keys(key))

    def location(self, key: str) -> str:
        return self._bucket.location(key)

    def _patiently(self, ask: Callable[[], Result]) -> Result:
        policy = RetryPolicy(max_attempts=TRIES, wait_max_s=WAIT_MAX_S)
        return policy.call(ask, passes=is_outage, sleep=self._sleep)


def store_at(root: str, region: Callable[[], str]) -> ListedStore:
    """The store that a folder's name or s3://BUCKET/PREFIX names; `region` is that of buckets.

    Raises `UsageError` for a bucket that is none.
    """
    if not root.startswith(S3):
        return ListedFolder(FolderStore(root))
    from socratic_bench.storage.s3 import S3Store

    name, _, prefix = root.removeprefix(S3).partition("/")
    store = S3Store(name, prefix=prefix.strip("/"), region=region())
    store.check()
    return ListedBucket(store, time.sleep)


class ListedStores:
    """The stores that a configuration names, each kept up; the folder is asked first."""

    def __init__(self, config: CoreConfig, sleep: Callable[[float], None]) -> None:
        folder, bucket = open_folder(config), open_bucket(config)
        check_stores([store for store in (folder, bucket) if store])
        self._locked = folder.alone if folder else None
        self.folder = ListedFolder(folder) if folder else None
        self.bucket = ListedBucket(bucket, sleep) if bucket else None

    @contextmanager
    def alone(self, key: str, refusal: str) -> Iterator[None]:
        """See `FolderStore.alone`; a bucket has no lock, and its runs are held one by one."""
        with self._locked(key, refusal) if self._locked else nullcontext():
            yield

    @property
    def all(self) -> Sequence[ListedStore]:
        return [store for store in (self.folder, self.bucket) if store]
