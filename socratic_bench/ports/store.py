"""The interfaces of what stores a run: file stores and journals."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from socratic_bench.types import Json


class StoredObject(Struct, frozen=True, kw_only=True):
    """What a store has taken under a key, by its length and its SHA-256."""

    n_bytes: int
    sha256: bytes


class ArtifactStore(Protocol):
    """Keeps files by key. A key is a relative path with "/" between its parts."""

    def check(self) -> None:
        """Raise `UsageError` if it is sure that nothing can be kept here. Makes nothing."""
        ...

    def put(self, key: str, body: bytes) -> None:
        """Keep `body` whole or raise `ArtifactError`; a second put of a key replaces the first."""
        ...

    def missing(self, kept: Mapping[str, StoredObject]) -> Sequence[str] | None:
        """Which of these keys the store no longer has, or has changed; a bucket is asked for their
        lengths only.

        `None` if it is not allowed to ask. Raises `StoreOutageError` if a later try may tell, else
        `ArtifactError`.
        """
        ...

    def location(self, key: str) -> str:
        """Where a reader finds the key: a URL or an absolute path."""
        ...


Entry = Mapping[str, Json]


class WrittenEntry(dict[str, Json]):
    """An entry whose JSON was made before, for all stores: it is `body`."""

    def __init__(self, entry: Entry, body: bytes) -> None:
        super().__init__(entry)
        self.body = body


class Journal(Protocol):
    """What one run has done so far, entry by entry; held by one process at a time."""

    @property
    def entries(self) -> Sequence[Entry]:
        """What was there when the journal was opened, oldest first."""
        ...

    @property
    def repairs(self) -> Sequence[str]:
        """What had to be repaired to read it, a sentence each."""
        ...

    @property
    def mended(self) -> Sequence[str]:
        """What others took away and was written anew since then, a sentence each."""
        ...

    @property
    def is_kept(self) -> bool:
        """Whether every entry that was appended, and raised no error, is there by now."""
        ...

    def writes(self) -> Sequence[Future[None]]:
        """Writes still under way; each future is done once its entry is stored or given up."""
        ...

    def mend(self) -> None:
        """Write anew what others took away or changed, unless the run's delivery sees to that.

        Raises `ArtifactError` if that cannot be done.
        """
        ...

    def body_of(self, key: str) -> bytes | None:
        """What a delivery was given under `key`; `None` if that is no entry of this journal."""
        ...

    def append(self, entry: Entry, *, durable: bool = True) -> None:
        """Keep an entry: safe on return in a folder, on its way in a bucket.

        One that need not be `durable` is a note that helps to tell what happened: it may be lost,
        unless its `writes` are waited for.
        Raises `ArtifactError` if it is sure that the entry cannot be kept.
        """
        ...

    def close(self) -> None:
        """Release the run, so that another process may resume it."""
        ...


class Journals(Protocol):
    """The journals of one store."""

    def exclusive(self, identity: str) -> AbstractContextManager[None]:
        """Meanwhile no other process begins or resumes a run of this `identity` digest, as far as
        the store can prevent it.
        """
        ...

    def newest(self, identity: str) -> Iterator[str]:
        """Run ids whose first entry has this `identity` digest, the newest first."""
        ...

    def first(self, run_id: str) -> Entry:
        """The first entry of a run's journal, which stays as it is and is not held.

        Raises `UsageError` if there is none.
        """
        ...

    def holds(self, run_id: str) -> bool:
        """Whether there is a journal of this run."""
        ...

    def create(self, run_id: str, identity: str) -> Journal:
        """A new, empty journal, held by this process."""
        ...

    def open(self, run_id: str) -> Journal:
        """The journal of a run, held by this process from now on.

        Raises `UsageError` if there is none, if another process holds it (naming the owner), or if
        it is no journal.
        """
        ...
