"""Stores whose files can be listed and read, for what is no single run's: the index of a sweep."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from socratic_bench.settings import S3, CoreConfig
from socratic_bench.storage.folder import FolderStore
from socratic_bench.storage.places import check_stores, open_bucket
from socratic_bench.storage.upload_queue import with_retries

if TYPE_CHECKING:
    from socratic_bench.storage.s3 import S3Store


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


class ListedFolder(FolderStore):
    """See `ListedStore`."""

    def get(self, key: str) -> bytes | None:
        return self.read(key) if self.holds(key) else None

    def keys(self, beginning: str) -> Sequence[str]:
        folder, _, start = beginning.rpartition("/")
        return [f"{folder}/{name}" for name in self.names(folder) if name.startswith(start)]

    def folders(self, key: str) -> Iterable[str]:
        return self.names(key.rstrip("/"))


class ListedBucket:
    """See `ListedStore`; waits out a short outage."""

    def __init__(self, store: "S3Store", sleep: Callable[[float], None]) -> None:
        self._bucket = store.bucket
        self._sleep = sleep

    def put(self, key: str, body: bytes) -> None:
        with_retries(lambda: self._bucket.put(key, body), self._sleep)

    def get(self, key: str) -> bytes | None:
        found = with_retries(lambda: self._bucket.get(key), self._sleep)
        return found.body if found else None

    def keys(self, beginning: str) -> Sequence[str]:
        return [*with_retries(lambda: self._bucket.sizes(beginning), self._sleep)]

    def folders(self, key: str) -> Iterable[str]:
        return dict.fromkeys(one.removeprefix(key).split("/")[0] for one in self.keys(key))

    def location(self, key: str) -> str:
        return self._bucket.location(key)


def store_at(root: str, region: Callable[[], str]) -> ListedStore:
    """The store that a folder's name or s3://BUCKET/PREFIX names; `region` is that of buckets.

    Raises `UsageError` for a bucket that is none.
    """
    if not root.startswith(S3):
        return ListedFolder(root)
    from socratic_bench.storage.s3 import S3Store

    name, _, prefix = root.removeprefix(S3).partition("/")
    store = S3Store(name, prefix=prefix.strip("/"), region=region())
    store.check()
    return ListedBucket(store, time.sleep)


class ListedStores:
    """The stores that a configuration names, each kept up; the folder is asked first."""

    def __init__(self, config: CoreConfig, sleep: Callable[[float], None]) -> None:
        self.folder = ListedFolder(config.output_dir) if config.output_dir else None
        bucket = open_bucket(config)
        check_stores([store for store in (self.folder, bucket) if store])
        self.bucket = ListedBucket(bucket, sleep) if bucket else None

    def alone(self, key: str, refusal: str) -> AbstractContextManager[None]:
        """See `FolderStore.alone`; a bucket has no lock, and its runs are held one by one."""
        return self.folder.alone(key, refusal) if self.folder else nullcontext()

    @property
    def all(self) -> Sequence[ListedStore]:
        return [store for store in (self.folder, self.bucket) if store]
